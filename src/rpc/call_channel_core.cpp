#include "rpc/call_channel_core.hpp"

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>

#include "call/call_memory.hpp"
#include "connection/endpoint_core.hpp"
#include "rpc/call_exchange.hpp"
#include "rpc/call_windows.hpp"
#include "worker/core_access.hpp"
#include "worker/failed_operation.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {
namespace {

failure calling(const std::string& name, failure why) {
  why.text = "calling " + name + ": " + why.text;
  return why;
}

/// Sets the arguments, which are those of `from`. `owner`: of the windows; null: there are none.
result<void> take_arguments(wanted_call& wanted, const call_writer& from,
                            const std::shared_ptr<context_core>& owner, call_windows& windows) {
  if (wanted.called.name().empty()) {
    return failure{errc::bad_name, "calling a function without a name"};
  }
  if (auto opened = windows.open(owner, from); !opened) {
    return calling(wanted.called.name(), std::move(opened).why());
  }
  wanted.arguments = windows.arguments();
  wanted.parts = call_memory_access::parts(from);
  return {};
}

}  // namespace

call_channel_core::call_channel_core(std::shared_ptr<endpoint_core> over,
                                     call_channel_options options)
    : over_(std::move(over)),
      options_(std::move(options)),
      under_way_(std::make_shared<std::size_t>(0)) {}

result<void> call_channel_core::open() {
  worker_core& worker = over_->worker();
  if (!worker.context().has(feature::am)) {
    return failure{errc::feature_disabled, "calling over a context without feature::am"};
  }
  if (!over_->speaks()) {
    return failure{errc::not_supported, "calling a plain UCX peer, which serves no calls"};
  }
  const std::lock_guard guard(worker.lock());
  worker.part<call_exchange>().listen();
  return {};
}

request call_channel_core::start(wanted_call wanted, const call_writer& arguments,
                                 const call_options& options, std::shared_ptr<call_result>& made) {
  const std::string& name = wanted.called.name();
  if (over_->is_inherited()) return failed_request(errc::forked_child, "calling " + name);
  if (!options.memory.has_resource()) {
    return failed_request(errc::invalid_argument,
                          "calling " + name + ": there is no resource for its kind of memory");
  }
  worker_core& worker = over_->worker();
  call_windows windows;
  if (auto taken = take_arguments(wanted, arguments, worker.shared_context(), windows); !taken) {
    return failed_request(std::move(taken).why());
  }
  made = std::make_shared<call_result>();
  wanted.stamps = options_.clock;
  wanted.landing = {options.memory, options.max_memory};
  const std::lock_guard guard(worker.lock());
  if (*under_way_ >= options_.max_calls) {
    return failed_request(errc::busy, "calling " + name + ": " +
                                          std::to_string(options_.max_calls) +
                                          " calls of this channel are under way");
  }
  auto& idle = worker.pool_of<call_operation>();
  call_operation* const call = idle.take();
  try {
    call->begin(over_, wanted, options.timeout, made, under_way_, std::move(windows));
  } catch (...) {
    idle.give_back(call);
    throw;
  }
  return core_access::make_request(call);
}

result<void> call_channel_core::post(wanted_call wanted, const call_writer& arguments) {
  call_windows none;
  if (auto taken = take_arguments(wanted, arguments, nullptr, none); !taken) return taken;
  const std::string what = "calling " + wanted.called.name();
  if (over_->is_inherited()) return failure{errc::forked_child, what};
  worker_core& worker = over_->worker();
  const std::lock_guard guard(worker.lock());
  if (const std::error_code unusable = over_->status()) return failure{unusable, what};
  call_message made = encode_request({.kind = wanted.kind,
                                      .is_one_way = true,
                                      .hash = wanted.called.signature().hash(),
                                      .name = wanted.called.name(),
                                      .arguments = wanted.arguments},
                                     wanted.parts);
  if (options_.clock) add_clock(made, options_.clock->now());
  request sending = made.parts.empty() ? call_exchange::send(over_, call_messages, std::move(made))
                                       : call_exchange::copy(over_, call_messages, std::move(made));
  if (const std::error_code failed = sending.error()) return failure{failed, what};
  call_exchange::leave(std::move(sending));
  return {};
}

std::size_t call_channel_core::under_way() const noexcept {
  const std::lock_guard guard(over_->worker().lock());
  return *under_way_;
}

clock::time_point call_channel_core::deadline_after(
    std::chrono::nanoseconds timeout) const noexcept {
  worker_core& worker = over_->worker();
  const std::lock_guard guard(worker.lock());
  return worker.deadline_after(timeout);
}

std::chrono::nanoseconds call_channel_core::time_until(clock::time_point deadline) const noexcept {
  if (deadline == clock::time_point::max()) return std::chrono::nanoseconds::max();
  const std::chrono::nanoseconds left = deadline - over_->worker().api().now();
  return std::max(left, std::chrono::nanoseconds(1));
}

}  // namespace ucx::detail
