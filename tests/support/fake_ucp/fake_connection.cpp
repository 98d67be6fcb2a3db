// How connections begin and end.
#include <arpa/inet.h>

#include <utility>

#include "support/fake_ucp/fake_fabric.hpp"

namespace ucx::test::sim {
namespace {

// The simulated machine has no other addresses than these.
bool is_local(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    return (ntohl(v4.sin_addr.s_addr) >> 24U) == 127;
  }
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
  return IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr) || IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr);
}

}  // namespace

std::uint16_t port_of(const sockaddr_storage& address) {
  // Both families keep the port at the same place.
  return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

bool is_own_address(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET &&
      reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr == htonl(INADDR_ANY)) {
    return true;
  }
  if (address.ss_family == AF_INET6 &&
      IN6_IS_ADDR_UNSPECIFIED(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr)) {
    return true;
  }
  return is_local(address);
}

void set_port(sockaddr_storage& address, std::uint16_t port) {
  reinterpret_cast<sockaddr_in&>(address).sin_port = htons(port);
}

connection_ptr fabric::connect(worker_object& from, worker_object* to) {
  auto made = std::make_shared<connection>();
  made->sides[0].worker = &from;
  made->sides[1].worker = to;
  from.links.push_back(made);
  if (to != nullptr) {
    made->number = from.connections_to[to->id]++;
    if (to != &from) to->links.push_back(made);
  }
  return made;
}

connection_ptr fabric::find_implicit(worker_object& worker, std::uint64_t peer,
                                     std::uint64_t number) {
  for (const auto& each : worker.links) {
    const side& own = each->sides[1];
    if (each->by_socket || own.worker != &worker || own.closed) continue;
    if (each->sides[0].worker->id != peer || each->number != number) continue;
    if (own.endpoint == nullptr || !own.endpoint->created) return each;
  }
  return nullptr;
}

endpoint_object* fabric::ensure_endpoint(const connection_ptr& on, int index) {
  side& own = side_of(on, index);
  if (own.endpoint != nullptr || own.closed || own.leaving || on->by_socket) return own.endpoint;
  auto made = std::make_unique<endpoint_object>();
  made->worker = own.worker;
  made->link = on;
  made->index = index;
  made->detects_failure = on->detects_failure;
  own.endpoint = endpoints.add(std::move(made));
  own.open = true;
  return own.endpoint;
}

void fabric::cancel_operations(const connection_ptr& on, int index, ucs_status_t status) {
  side& own = side_of(on, index);
  own.software.queue.clear();
  own.software.busy = false;
  // What answers a peer on the same host goes on: no process does it.
  const auto is_own = [&](const transmission& each) {
    return on->detects_failure || each.source_operation != nullptr ||
           each.prototype.kind == frame_kind::get_request;
  };
  auto& one_sided = own.hardware.queue;
  const bool was_sending = !one_sided.empty() && is_own(one_sided.front());
  std::erase_if(one_sided, is_own);
  if (was_sending) own.hardware.busy = false;
  own.incoming.clear();
  const auto ended = std::exchange(own.operations, {});
  for (const auto& [id, operation] : ended) complete(std::move(operation->request), status);
  if (was_sending) push_wire(on, index, own.hardware, true);
}

void fabric::fail_side(const connection_ptr& on, int index, ucs_status_t status) {
  side& own = side_of(on, index);
  if (own.closed || own.worker == nullptr) return;
  own.open = false;
  // Without error handling nobody notices: what is outstanding stays so. A flush or close that
  // waits for nothing else needs no peer.
  const bool detects =
      own.endpoint != nullptr ? own.endpoint->detects_failure : on->detects_failure;
  if (!detects) {
    own.left = true;
    return settle_flushes(on, index);
  }
  own.closed = true;
  if (own.endpoint != nullptr) own.endpoint->failure = status;
  const endpoint_error lost{own.endpoint, status};
  if (link.error_handler_first && own.endpoint != nullptr) put(*own.worker, lost);
  cancel_operations(on, index, status);
  if (!link.error_handler_first && own.endpoint != nullptr) put(*own.worker, lost);
}

void fabric::announce_death(const connection_ptr& on, int index, ucs_status_t status,
                            nanoseconds in) {
  after(in, [this, on, index, status] {
    const side& told = side_of(on, index);
    if (told.closed || told.worker == nullptr || workers.find(told.worker) == nullptr) return;
    frame news;
    news.kind = frame_kind::closed;
    news.link = on;
    news.to = index;
    news.status = status;
    put(*told.worker, std::move(news));
  });
}

void fabric::shut(const connection_ptr& on, int index, ucs_status_t status) {
  side& own = side_of(on, index);
  own.closed = true;
  own.open = false;
  own.endpoint = nullptr;
  cancel_operations(on, index, status);
  announce_death(on, 1 - index, UCS_ERR_CONNECTION_RESET, link.latency);
}

void fabric::take_closed(const frame& what) {
  if (what.operation != 0) {
    after(link.latency, [this, on = what.link, peer = 1 - what.to, id = what.operation] {
      finish(on, peer, id, UCS_OK);
      side_of(on, peer).closed = true;
    });
  }
  fail_side(what.link, what.to, what.status);
}

listener_object* fabric::find_listener(const sockaddr_storage& address) const {
  listener_object* found = nullptr;
  const auto port = port_of(address);
  listeners.each([&](listener_object& each) {
    if (each.port == port && !each.worker->process->killed) found = &each;
  });
  return found;
}

void fabric::dial(const connection_ptr& on, const sockaddr_storage& to, nanoseconds delay) {
  on->by_socket = true;
  side_of(on, 1).address = to;
  after(link.latency + delay, [this, on, to] {
    if (side_of(on, 0).closed) return;
    auto* const listener = is_local(to) ? find_listener(to) : nullptr;
    if (listener == nullptr) {
      return announce_death(on, 0, is_local(to) ? link.refused_status : UCS_ERR_UNREACHABLE,
                            link.latency);
    }
    side_of(on, 1).worker = listener->worker;
    listener->worker->links.push_back(on);
    frame request;
    request.kind = frame_kind::connect;
    request.link = on;
    request.to = 1;
    put(*listener->worker, std::move(request));
  });
}

void fabric::take_connect(worker_object& worker, const frame& what, lock_type& lock) {
  auto* const listener = find_listener(side_of(what.link, 1).address);
  if (listener == nullptr || listener->worker != &worker) {
    return shut(what.link, 1, UCS_ERR_CANCELED);
  }
  auto made = std::make_unique<conn_request_object>();
  made->worker = &worker;
  made->link = what.link;
  auto* const request = conn_requests.add(std::move(made));
  const auto handler = listener->on_connect;
  lock.unlock();
  handler.cb(reinterpret_cast<ucp_conn_request_h>(request), handler.arg);
  lock.lock();
}

}  // namespace ucx::test::sim
