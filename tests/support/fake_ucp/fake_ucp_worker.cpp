// Workers of the simulated UCX, and waiting.
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "support/fake_ucp/fake_ucp_address.hpp"
#include "support/fake_ucp/fake_ucp_entry.hpp"
#include "ucx/socket_address.hpp"

namespace ucx::test {
namespace {

// How long a real wait may miss what another thread causes.
constexpr std::chrono::nanoseconds longest_sleep = std::chrono::microseconds(200);

bool is_readable(int fd, int wake_fd, std::chrono::nanoseconds timeout) {
  std::array<pollfd, 2> fds{pollfd{fd, POLLIN, 0}, pollfd{wake_fd, POLLIN, 0}};
  const timespec limit{0, static_cast<long>(timeout.count())};
  return ::ppoll(fds.data(), fds.size(), &limit, nullptr) > 0;
}

// What is left on a connection when its worker goes away.
void abandon(sim::fabric& network, api_entry& in, const sim::connection_ptr& link, int index) {
  auto& own = link->sides[static_cast<std::size_t>(index)];
  auto* const endpoint = own.endpoint;
  if (own.leaving && !own.closed) in.violate("while a flushing close is pending: UCX aborts");
  if (endpoint != nullptr && endpoint->created && endpoint->detects_failure) {
    in.violate("while an endpoint in mode PEER is not closed");
    if (!own.operations.empty()) in.violate("with operations pending in mode PEER: UCX aborts");
  }
  if (endpoint != nullptr) network.endpoints.remove(endpoint);
  if (!own.closed) network.shut(link, index, UCS_ERR_CANCELED);
}

}  // namespace

ucs_status_t fake_ucp::worker_create(ucp_context_h context, const ucp_worker_params_t* params,
                                     ucp_worker_h* worker) {
  api_entry in(*this, call::worker_create);
  auto* const parent = in.find(network_.contexts, context);
  if (parent == nullptr) return UCS_ERR_INVALID_PARAM;
  if (in.refused()) return in.verdict().status;
  auto made = std::make_unique<sim::worker_object>();
  made->process = &process_;
  made->context = parent;
  made->id = network_.next_id++;
  if ((params->field_mask & UCP_WORKER_PARAM_FIELD_THREAD_MODE) != 0) {
    made->threads = params->thread_mode;
  }
  ++parent->workers;
  *worker = reinterpret_cast<ucp_worker_h>(network_.workers.add(std::move(made)));
  return UCS_OK;
}

void fake_ucp::worker_destroy(ucp_worker_h worker) {
  api_entry in(*this, call::worker_destroy, worker_of(worker));
  auto* const object = in.find(network_.workers, worker);
  if (object == nullptr) return;
  if (object->progressing) in.violate("inside a callback of the worker");
  network_.listeners.each([&](const sim::listener_object& each) {
    if (each.worker == object) in.violate("while a listener of the worker lives");
  });
  const auto links = object->links;
  for (const auto& link : links) {
    for (int index = 0; index < 2; ++index) {
      if (link->sides[static_cast<std::size_t>(index)].worker == object) {
        abandon(network_, in, link, index);
      }
    }
  }
  if (network_.link.destroy_calls_back) network_.call_back_from(*object, 0, in.lock());
  for (auto request = network_.requests.begin(); request != network_.requests.end();) {
    request =
        request->second->worker == object ? network_.requests.erase(request) : std::next(request);
  }
  object->items.clear();
  object->links.clear();
  object->kept.clear();
  object->offers.clear();
  if (object->event_fd >= 0) ::close(object->event_fd);
  object->event_fd = -1;
  object->armed = false;
  --object->context->workers;
  network_.workers.remove(worker);
}

ucs_status_t fake_ucp::worker_query(ucp_worker_h worker, ucp_worker_attr_t* attributes) {
  api_entry in(*this, call::worker_query, worker_of(worker));
  const auto* const object = in.find(network_.workers, worker);
  if (object == nullptr) return UCS_ERR_INVALID_PARAM;
  if (in.refused()) return in.verdict().status;
  if ((attributes->field_mask & UCP_WORKER_ATTR_FIELD_THREAD_MODE) != 0) {
    attributes->thread_mode = object->threads;
  }
  if ((attributes->field_mask & UCP_WORKER_ATTR_FIELD_MAX_AM_HEADER) != 0) {
    attributes->max_am_header = network_.link.max_am_header;
  }
  if ((attributes->field_mask & UCP_WORKER_ATTR_FIELD_NAME) != 0) {
    std::snprintf(attributes->name, sizeof(attributes->name), "%s", process_.name.c_str());
  }
  if ((attributes->field_mask & UCP_WORKER_ATTR_FIELD_ADDRESS) != 0) {
    attributes->address = make_address(*object, attributes->address_length);
    network_.addresses.insert(attributes->address);
  }
  return UCS_OK;
}

ucs_status_t fake_ucp::worker_get_address(ucp_worker_h worker, ucp_address_t** address,
                                          std::size_t* length) {
  api_entry in(*this, call::worker_get_address, worker_of(worker));
  const auto* const object = in.find(network_.workers, worker);
  if (object == nullptr) return UCS_ERR_INVALID_PARAM;
  if (in.refused()) return in.verdict().status;
  *address = make_address(*object, *length);
  network_.addresses.insert(*address);
  return UCS_OK;
}

void fake_ucp::worker_release_address(ucp_worker_h worker, ucp_address_t* address) {
  api_entry in(*this, call::worker_release_address, worker_of(worker));
  if (network_.addresses.erase(address) == 0) return in.violate("of something else");
  free_address(address);
}

unsigned fake_ucp::worker_progress(ucp_worker_h worker) {
  api_entry in(*this, call::worker_progress, worker_of(worker));
  auto* const object = in.find(network_.workers, worker);
  if (object == nullptr || process_.stopped) return 0;
  if (object->progressing) {
    in.violate("inside a callback of the worker");
    return 0;
  }
  if (network_.link.time == time_mode::simulated) network_.pass(network_.link.progress_cost);
  network_.run_due();
  object->progressing = true;
  const unsigned done = network_.dispatch(*object, in.lock());
  object->progressing = false;
  if (done == 0 && network_.link.time == time_mode::simulated && !network_.in_pump()) {
    network_.idle(in.lock(), &process_, network_.link.idle_step);
  }
  return done;
}

ucs_status_t fake_ucp::worker_get_efd(ucp_worker_h worker, int* fd) {
  api_entry in(*this, call::worker_get_efd, worker_of(worker));
  auto* const object = in.find(network_.workers, worker);
  if (object == nullptr) return UCS_ERR_INVALID_PARAM;
  if (in.refused()) return in.verdict().status;
  if ((object->context->features & UCP_FEATURE_WAKEUP) == 0) return UCS_ERR_INVALID_PARAM;
  if (object->event_fd < 0) object->event_fd = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (object->event_fd < 0) return UCS_ERR_IO_ERROR;
  *fd = object->event_fd;
  return UCS_OK;
}

ucs_status_t fake_ucp::worker_arm(ucp_worker_h worker) {
  api_entry in(*this, call::worker_arm, worker_of(worker));
  auto* const object = in.find(network_.workers, worker);
  if (object == nullptr) return UCS_ERR_INVALID_PARAM;
  if (in.refused()) return in.verdict().status;
  if ((object->context->features & UCP_FEATURE_WAKEUP) == 0) return UCS_ERR_INVALID_PARAM;
  network_.run_due();
  std::uint64_t count = 0;
  if (object->event_fd >= 0) {
    [[maybe_unused]] const auto drained = ::read(object->event_fd, &count, sizeof(count));
  }
  if (std::exchange(object->signalled, false) || network_.is_ready(*object)) return UCS_ERR_BUSY;
  object->armed = object->event_fd >= 0;
  return UCS_OK;
}

ucs_status_t fake_ucp::worker_signal(ucp_worker_h worker) {
  // The one call on a worker that any thread may make at any time.
  api_entry in(*this, call::worker_signal);
  auto* const object = in.find(network_.workers, worker);
  if (object == nullptr) return UCS_ERR_INVALID_PARAM;
  if (in.refused()) return in.verdict().status;
  object->signalled = true;
  const std::uint64_t one = 1;
  if (object->event_fd >= 0) {
    [[maybe_unused]] const auto written = ::write(object->event_fd, &one, sizeof(one));
  }
  return UCS_OK;
}

// One-sided operations of the simulation take effect in the order of their start, unless a test
// delays one.
ucs_status_t fake_ucp::worker_fence(ucp_worker_h worker) {
  api_entry in(*this, call::worker_fence, worker_of(worker));
  if (in.find(network_.workers, worker) == nullptr) return UCS_ERR_INVALID_PARAM;
  return in.refused() ? in.verdict().status : UCS_OK;
}

detail::clock::time_point fake_ucp::now() {
  const api_entry in(*this, call::now);
  return network_.now();
}

void fake_ucp::wait_readable(int fd, int wake_fd, std::chrono::nanoseconds timeout) {
  api_entry in(*this, call::wait_readable);
  const bool simulated = network_.link.time == time_mode::simulated;
  const auto bounded =
      std::clamp<std::chrono::nanoseconds>(timeout, timeout.zero(), std::chrono::hours(1));
  const auto deadline = network_.now() + bounded;
  for (;;) {
    const std::chrono::nanoseconds left = deadline - network_.now();
    // Another thread may cause the next event at any moment, and does not wake us for it.
    const auto slice = simulated ? left.zero() : std::clamp(left, left.zero(), longest_sleep);
    in.lock().unlock();
    const bool readable = is_readable(fd, wake_fd, slice);
    in.lock().lock();
    if (readable || left <= left.zero()) return;
    network_.idle(in.lock(), &process_, std::min(left, network_.link.idle_step));
  }
}

int fake_ucp::try_listen(const sockaddr* address, socklen_t size) {
  const auto wanted = socket_address::from_native(address, size);
  return wanted.is_loopback() ? 0 : detail::real_ucp().try_listen(address, size);
}

bool fake_ucp::relax() {
  // One that is planned to fail says that another thread wanted the core.
  api_entry in(*this, call::relax);
  network_.idle(in.lock(), &process_, network_.link.idle_step);
  if (network_.link.time == time_mode::simulated) return in.refused();
  in.lock().unlock();
  ::sched_yield();
  in.lock().lock();
  return in.refused();
}

}  // namespace ucx::test
