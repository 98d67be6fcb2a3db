// What a side does with the frames that it gets.
#include <algorithm>
#include <cstring>
#include <utility>

#include "support/fake_ucp/callback_scope.hpp"
#include "support/fake_ucp/fake_fabric.hpp"

namespace ucx::test::sim {
namespace {

template <class Header>
ucs_status_t call_back(const am_handler& handler, const Header& header, void* data,
                       std::size_t size, const ucp_am_recv_param_t& parameters) {
  const callback_scope inside(true);
  return handler.call(handler.argument, header.data(), header.size(), data, size, &parameters);
}

operation_ptr find_operation(const side& owner, std::uint64_t id) {
  const auto found = owner.operations.find(id);
  return found == owner.operations.end() ? nullptr : found->second;
}

// What a handler left behind must not be read again: make that visible.
void poison(std::vector<std::byte>& bytes) {
  std::fill(bytes.begin(), bytes.end(), std::byte{0xdd});
}

}  // namespace

void fabric::run(worker_object& worker, frame what, lock_type& lock) {
  if (worker.process->killed) return;
  release_room(what);
  const side& own = side_of(what.link, what.to);
  if (own.closed) return;
  if (own.leaving && (what.kind == frame_kind::message || what.kind == frame_kind::offer)) return;
  ensure_endpoint(what.link, what.to);  // the first frame makes the connection known here
  switch (what.kind) {
    case frame_kind::message:
      return take_message(worker, what, lock);
    case frame_kind::offer:
      return take_offer(worker, what, lock);
    case frame_kind::fetch:
      return take_fetch(what);
    case frame_kind::fetched:
    case frame_kind::get_data:
    case frame_kind::put_done:
      return take_data(what);
    case frame_kind::fetch_done:
      return finish(what.link, what.to, what.operation, what.status);
    case frame_kind::get_request:
      return take_get(what, false);
    case frame_kind::put_data:
      return take_put(what, false);
    case frame_kind::connect:
      return take_connect(worker, what, lock);
    case frame_kind::accepted:
      side_of(what.link, what.to).open = true;
      push(what.link, what.to, true);
      return settle_flushes(what.link, what.to);
    case frame_kind::closed:
      return take_closed(what);
  }
}

void fabric::take_message(worker_object& worker, frame& what, lock_type& lock) {
  auto& pieces = side_of(what.link, what.to).incoming[what.operation];
  if (what.offset == 0) {
    pieces.header = std::move(what.header);
    pieces.weightless = what.missing > 0;
    if (!pieces.weightless) pieces.bytes.resize(what.total);
  }
  std::copy(what.bytes.begin(), what.bytes.end(),
            pieces.bytes.begin() + static_cast<std::ptrdiff_t>(what.offset));
  pieces.received += what.bytes.size() + what.missing;
  if (pieces.received < what.total) return;
  see(call::am_send, false, what.total, pieces.header);
  assembly message = std::move(pieces);
  side_of(what.link, what.to).incoming.erase(what.operation);

  auto* const reply_to = side_of(what.link, what.to).endpoint;
  const auto found = worker.handlers.find(what.am_id);
  if (found == worker.handlers.end()) return;
  const am_handler handler = found->second;
  ucp_am_recv_param_t parameters{};
  if (what.reply) {
    parameters.recv_attr |= UCP_AM_RECV_ATTR_FIELD_REPLY_EP;
    parameters.reply_ep = reinterpret_cast<ucp_ep_h>(reply_to);
  }
  // Over TCP a message of one piece lies in the socket's buffer, and can not be kept.
  const bool can_keep = what.total > 0 && !message.weightless &&
                        ((handler.flags & UCP_AM_FLAG_PERSISTENT_DATA) != 0 ||
                         what.total > link.segment || link.lasting_data);
  if (message.weightless && nothing.size() < what.total) nothing.resize(what.total);
  void* const data = message.weightless ? nothing.data() : message.bytes.data();
  const std::size_t size = what.total;
  if (can_keep) {
    parameters.recv_attr |= UCP_AM_RECV_ATTR_FLAG_DATA;
    worker.kept.emplace(data, std::move(message.bytes));
  }
  lock.unlock();
  const auto status = call_back(handler, message.header, data, size, parameters);
  lock.lock();
  poison(message.header);
  poison(message.bytes);
  if (status == UCS_INPROGRESS) {
    if (!can_keep) violate("a handler kept data that does not last");
    return;
  }
  if (const auto kept = worker.kept.find(data); can_keep && kept != worker.kept.end()) {
    poison(kept->second);
    worker.kept.erase(kept);
  }
}

void fabric::take_offer(worker_object& worker, frame& what, lock_type& lock) {
  auto* const reply_to = side_of(what.link, what.to).endpoint;
  auto offered = std::make_unique<offered_message>();
  *offered = {what.link, what.to, what.operation, what.total};
  const auto found = worker.handlers.find(what.am_id);
  if (found == worker.handlers.end()) return drop_offer(*offered, UCS_OK);
  const am_handler handler = found->second;
  void* const descriptor = offered.get();
  worker.offers.emplace(descriptor, std::move(offered));
  ucp_am_recv_param_t parameters{};
  parameters.recv_attr = UCP_AM_RECV_ATTR_FLAG_RNDV;
  if (what.reply) {
    parameters.recv_attr |= UCP_AM_RECV_ATTR_FIELD_REPLY_EP;
    parameters.reply_ep = reinterpret_cast<ucp_ep_h>(reply_to);
  }
  lock.unlock();
  const auto status = call_back(handler, what.header, descriptor, what.total, parameters);
  lock.lock();
  poison(what.header);
  if (status == UCS_INPROGRESS) return;
  if (const auto kept = worker.offers.find(descriptor); kept != worker.offers.end()) {
    drop_offer(*kept->second, status);
    worker.offers.erase(kept);
  }
}

void fabric::drop_offer(const offered_message& offer, ucs_status_t status) {
  if (side_of(offer.link, offer.index).closed) return;
  frame answer;
  answer.kind = frame_kind::fetch_done;
  answer.operation = offer.peer_operation;
  answer.status = status;
  post(offer.link, offer.index, std::move(answer));
}

void fabric::take_fetch(const frame& what) {
  const auto wanted = find_operation(side_of(what.link, what.to), what.operation);
  if (wanted == nullptr) return;
  transmission data;
  data.prototype.kind = frame_kind::fetched;
  data.prototype.operation = wanted->id;
  data.prototype.peer_operation = what.peer_operation;
  data.prototype.total = wanted->size;
  data.source_operation = wanted;
  data.source = wanted->source;
  data.size = wanted->size;
  post(what.link, what.to, std::move(data));
}

void fabric::take_data(frame& what) {
  side& own = side_of(what.link, what.to);
  const bool fetched = what.kind == frame_kind::fetched;
  const auto wanted = find_operation(own, fetched ? what.peer_operation : what.operation);
  if (wanted == nullptr) return;
  if (what.kind == frame_kind::put_done) {
    finish(what.link, what.to, wanted, what.status);
    if (what.status != UCS_OK) fail_side(what.link, what.to, what.status);
    return;
  }
  if (what.status != UCS_OK) {
    finish(what.link, what.to, wanted, what.status);
    // An access that an adapter refuses ends the connection.
    if (!link.emulated_rma && what.link->detects_failure)
      fail_side(what.link, what.to, what.status);
    return;
  }
  if (!store(wanted->target + what.offset, what.bytes, what.by_adapter)) {
    return finish(what.link, what.to, wanted, UCS_ERR_IO_ERROR);
  }
  wanted->received += what.bytes.size();
  if (wanted->received < what.total) return;
  if (wanted->kind == call::get) see(call::get, false, what.total);
  finish(what.link, what.to, wanted, UCS_OK, what.total);
  if (fetched) drop_offer({what.link, what.to, what.operation, 0}, UCS_OK);
}

void fabric::take_get(frame& what, bool hardware) {
  transmission data;
  data.prototype.kind = frame_kind::get_data;
  data.prototype.operation = what.operation;
  data.prototype.total = what.total;
  if (is_exposed(what)) {
    data.prototype.memory_id = what.memory_id;
    data.source = reinterpret_cast<const std::byte*>(what.address);
    data.size = what.total;
  } else {
    if (!hardware) violate("a peer's get reached memory that is not mapped: UCX checks nothing");
    data.prototype.status = UCS_ERR_IO_ERROR;
  }
  post(what.link, what.to, std::move(data), hardware);
}

void fabric::take_put(frame& what, bool hardware) {
  bool inside = is_exposed(what);
  if (inside) {
    inside = store(reinterpret_cast<std::byte*>(what.address) + what.offset, what.bytes, hardware);
  } else if (!hardware) {
    violate("a peer's put reached memory that is not mapped: UCX checks nothing");
  }
  if (what.offset + what.bytes.size() < what.total) return;
  see(call::put, false, what.total);
  frame answer;
  answer.kind = frame_kind::put_done;
  answer.operation = what.operation;
  answer.status = inside ? UCS_OK : UCS_ERR_IO_ERROR;
  post(what.link, what.to, std::move(answer), hardware);
}

}  // namespace ucx::test::sim
