#include "ucx/call_channel.hpp"

#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "base/result.hpp"
#include "call/call_listing.hpp"
#include "call/call_memory.hpp"
#include "rpc/call_channel_core.hpp"
#include "rpc/call_result.hpp"
#include "ucx/call_stub.hpp"
#include "worker/core_access.hpp"
#include "worker/failed_operation.hpp"

namespace ucx {

/// How the public objects make requests of calls.
struct detail::call_starter {
  static call_request start(const std::shared_ptr<call_channel_core>& over,
                            const wanted_call& wanted, const call_writer& arguments,
                            const call_options& options) {
    std::shared_ptr<call_result> result;
    if (!over) return {closed(wanted), result};
    const std::shared_ptr<call_channel_core> kept = over;  // a handler may destroy the channel
    request started = kept->start(wanted, arguments, options, result);
    return {std::move(started), std::move(result)};
  }
  static request closed(const wanted_call& wanted) {
    return failed_request(errc::closed, "calling " + wanted.called.name() + " by no channel");
  }
  static const std::shared_ptr<call_channel_core>& core(const call_channel& of) noexcept {
    return of.core_;
  }
};

using detail::call_starter;

namespace {

typed_call<call_listing> start_listing(const std::shared_ptr<detail::call_channel_core>& over,
                                       const call_options& options, std::string_view after) {
  call_writer arguments;
  arguments.text(after);
  const call_function listing(detail::listing_name, detail::listing_types);
  return typed_call<call_listing>(
      call_starter::start(over, {.called = listing}, arguments, options));
}

/// Gathers the functions of a peer from the parts in which they come.
class gathered_listing {
 public:
  /// Adds a part. Fails where it is none that could come next.
  detail::result<void> add(call_listing part) {
    const std::string last = behind();
    if (!part.functions.empty() && part.functions.front().called.name() <= last) {
      return detail::failure{errc::protocol_error,
                             "asking for functions: the peer tells of one twice"};
    }
    for (const call_description& each : part.functions) {
      size_ += each.called.name().size() + each.called.signature().text().size() +
               each.documentation.size();
    }
    std::move(part.functions.begin(), part.functions.end(), std::back_inserter(all_));
    if (all_.size() <= call_listing::max_functions && size_ <= call_listing::max_size) return {};
    return detail::failure{errc::protocol_error,
                           "asking for functions: the peer tells of too many"};
  }
  /// Returns the name behind which the next part begins.
  std::string behind() const { return all_.empty() ? std::string() : all_.back().called.name(); }
  std::vector<call_description> all() && { return std::move(all_); }

 private:
  std::vector<call_description> all_;
  std::size_t size_ = 0;
};

}  // namespace

call_reader call_request::result(std::error_code& ec) & {
  call_reader none({});
  std::error_code outcome;
  wait(outcome);
  if (!outcome && !result_) outcome = errc::closed;
  if (!outcome) {
    if (&ec != &throws) ec.clear();
    return detail::call_memory_access::reader(result_->bytes, result_->parts);
  }
  if (&ec == &throws) throw ucx::error(outcome, description(), ucx_status(), cause());
  ec = outcome;
  none.fail("there is no result");
  return none;
}

std::error_code call_request::cause() const noexcept {
  return result_ && done() ? result_->cause : std::error_code();
}

clock_stamp call_request::clock() const noexcept {
  return result_ && done() ? result_->clock : clock_stamp();
}

call_channel::call_channel() noexcept = default;
call_channel::call_channel(call_channel&& other) noexcept = default;
call_channel& call_channel::operator=(call_channel&& other) noexcept {
  call_channel before(std::move(*this));
  core_ = std::move(other.core_);
  return *this;
}
call_channel::~call_channel() = default;

call_channel::call_channel(const endpoint& connection, const call_channel_options& options,
                           std::error_code& ec) {
  const auto& over = detail::core_access::core(connection);
  if (!over) {
    detail::result<void>(detail::failure{errc::closed, "calling over no connection"}).or_end(ec);
    return;
  }
  auto made = std::make_shared<detail::call_channel_core>(over, options);
  const detail::result<void> opened = made->open();
  opened.or_end(ec);
  if (opened) core_ = std::move(made);
}

call_request call_channel::start_dynamic_call(const call_function& called,
                                              const call_writer& arguments,
                                              const call_options& options) const {
  return call_starter::start(core_, {.called = called}, arguments, options);
}

void call_channel::post_dynamic_call(const call_function& called, const call_writer& arguments,
                                     std::error_code& ec) const {
  const std::shared_ptr<detail::call_channel_core> kept = core_;
  const auto posted = kept ? kept->post({.called = called}, arguments)
                           : detail::result<void>(detail::failure{
                                 errc::closed, "calling " + called.name() + " by no channel"});
  posted.or_end(ec);
}

typed_call<call_listing> call_channel::start_signatures(const call_options& options,
                                                        std::string_view after) const {
  return start_listing(core_, options, after);
}

std::vector<call_description> call_channel::signatures(const call_options& options,
                                                       std::error_code& ec) const {
  // While this waits, a handler may destroy the channel.
  const std::shared_ptr<detail::call_channel_core> kept = core_;
  gathered_listing gathered;
  std::optional<detail::clock::time_point> deadline;
  if (kept) deadline = kept->deadline_after(options.timeout);
  for (bool is_whole = false; !is_whole;) {
    call_options left = options;
    if (deadline) left.timeout = kept->time_until(*deadline);
    call_listing part = start_listing(kept, left, gathered.behind()).result(ec);
    if (&ec != &throws && ec) return {};
    is_whole = part.is_whole;
    const detail::result<void> added = gathered.add(std::move(part));
    added.or_end(ec);
    if (!added) return {};
  }
  return std::move(gathered).all();
}

std::size_t call_channel::under_way() const noexcept { return core_ ? core_->under_way() : 0; }

bound_function::bound_function(const call_channel& channel, call_function called,
                               const call_options& options, std::error_code& ec)
    : called_(std::move(called)), channel_(call_starter::core(channel)) {
  const detail::wanted_call binding{.kind = detail::call_kind::bind, .called = called_};
  call_request bound = call_starter::start(channel_, binding, call_writer(), options);
  call_reader number = bound.result(ec);
  if (!number.ok()) return;
  number_ = number.unsigned_integer();
  number.finish(ec);
}

call_request bound_function::start(const call_writer& arguments,
                                   const call_options& options) const {
  return call_starter::start(
      channel_, {.kind = detail::call_kind::bound, .called = called_, .number = number_}, arguments,
      options);
}

}  // namespace ucx
