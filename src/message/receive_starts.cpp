#include "message/receive_starts.hpp"

#include <cstddef>
#include <span>
#include <utility>

#include "base/result.hpp"
#include "connection/endpoint_core.hpp"
#include "message/message_exchange.hpp"
#include "message/message_link.hpp"
#include "message/receive_operation.hpp"
#include "message/receive_place.hpp"
#include "message/stream_receive.hpp"
#include "worker/core_access.hpp"
#include "worker/failed_operation.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {
namespace {

/// Says why messages do not come; no error where they do.
failure no_messages(const worker_core& worker, const endpoint_core* from) {
  if (!worker.context().has(feature::am)) {
    return failure{errc::feature_disabled, "receiving a message on a context without feature::am"};
  }
  if (from == nullptr || from->speaks()) return failure{};
  return failure{errc::not_supported, "receiving a message of a plain UCX peer, which sends none"};
}

/// Makes a receive that has begun; the caller owns it. Starts nothing if it throws.
template <class Receive, class... What>
Receive* begin(worker_core& worker, operation::kept_alive&& held, const io_options& options,
               const What&... what) {
  auto& idle = worker.pool_of<Receive>();
  Receive* const made = idle.take();
  try {
    made->begin(worker, std::move(held), worker.deadline_after(options.timeout), what...);
  } catch (...) {
    idle.give_back(made);
    throw;
  }
  return made;
}

/// A connection that the program has keeps its worker, too.
operation::kept_alive holding(worker_core& worker, endpoint_core* from) {
  if (from != nullptr) return {.counted = from};
  return {.worker = worker.shared_from_this()};
}

request failed_by_fork() { return failed_request(errc::forked_child, "receiving a message"); }

template <class Place>
request start_at(worker_core& worker, const std::shared_ptr<endpoint_core>& from,
                 const tag_match& wanted, const Place& place, const io_options& options) {
  if (worker.is_inherited()) return failed_by_fork();
  if (const failure none = no_messages(worker, from.get()); none.code) {
    return failed_request(none.code, none.text);
  }
  const std::lock_guard guard(worker.lock());
  receive_operation* const receive =
      begin<receive_operation>(worker, holding(worker, from.get()), options,
                               receive_operation::source::tagged, wanted, place);
  if (!receive->done()) worker.messages().post(*receive);
  return core_access::make_request(receive);
}

template <class Place>
request start_held_at(const std::shared_ptr<worker_core>& worker, arrived_message* held,
                      const Place& place, const io_options& options) {
  if (held == nullptr) {
    return failed_request(errc::invalid_argument, "receive of an empty message");
  }
  if (worker->is_inherited()) return failed_by_fork();
  const std::lock_guard guard(worker->lock());
  if ((held->owner == arrived_message::whose::taken && !held->here()) || held->receive != nullptr) {
    return failed_request(errc::invalid_argument, "second receive of one message");
  }
  std::shared_ptr<endpoint_core> from;
  // Of one that is here the connection may end.
  if (held->from != nullptr && !held->here()) from = held->from->weak_from_this().lock();
  receive_operation* const receive =
      begin<receive_operation>(*worker, {worker, std::move(from)}, options,
                               receive_operation::source::taken, tag_match::any(), place);
  if (!receive->done()) worker->messages().receive(*receive, *held);
  return core_access::make_request(receive);
}

}  // namespace

request start_tagged(worker_core& worker, const std::shared_ptr<endpoint_core>& from,
                     const tag_match& wanted, const receive_target& into,
                     const io_options& options) {
  if (const std::span<std::byte>* const run = receive_place::run_of(into)) {
    return start_at(worker, from, wanted, *run, options);
  }
  const result<receive_place> place = receive_place::of(into);
  if (!place) return failed_request(place.why().code, place.why().text);
  return start_at(worker, from, wanted, *place, options);
}

request start_of(const std::shared_ptr<worker_core>& worker, arrived_message* held,
                 const receive_target& into, const io_options& options) {
  if (const std::span<std::byte>* const run = receive_place::run_of(into)) {
    return start_held_at(worker, held, *run, options);
  }
  const result<receive_place> place = receive_place::of(into);
  if (!place) return failed_request(place.why().code, place.why().text);
  return start_held_at(worker, held, *place, options);
}

request start_stream(const std::shared_ptr<endpoint_core>& from, stream_amount amount,
                     std::span<std::byte> into, const io_options& options) {
  worker_core& worker = from->worker();
  if (worker.is_inherited()) return failed_by_fork();
  if (const failure none = no_messages(worker, from.get()); none.code) {
    return failed_request(none.code, none.text);
  }
  const std::lock_guard guard(worker.lock());
  stream_receive* const receive =
      begin<stream_receive>(worker, holding(worker, from.get()), options, amount, into);
  if (!receive->done()) from->messages().incoming().start_stream(*receive);
  return core_access::make_request(receive);
}

}  // namespace ucx::detail
