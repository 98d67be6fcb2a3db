#include "call/call_deferral.hpp"

#include <new>
#include <utility>

#include "ucx/late_answer.hpp"

namespace ucx {
namespace detail {

deferred_call::deferred_call(std::shared_ptr<call_directory> of,
                             std::shared_ptr<const call_directory::function> called,
                             const call_context& context, std::shared_ptr<late_sender> to)
    : of_(std::move(of)), called_(std::move(called)), context_(context), to_(std::move(to)) {
  context_.stop = to_->stop();
}

void deferred_call::refuse(const call_failure& why) {
  to_->send(of_->refuse(context_.number, why, context_, called_->name));
}

void deferred_call::send(const call_writer& result) noexcept try {
  if (const auto wrong = call_directory::complaint_about_result(result, called_->shape))
    return refuse(*wrong);
  call_message made = encode_result_of(context_.number, result);
  of_->count(call_outcome::done);
  to_->send(std::move(made));
} catch (const std::bad_alloc&) {
  to_->send(std::nullopt);
}

void deferred_call::fail(const std::exception_ptr& thrown) noexcept try {
  if (!thrown) return drop();
  try {
    std::rethrow_exception(thrown);
  } catch (...) {
    refuse(call_directory::failure_of_exception());
  }
} catch (const std::bad_alloc&) {
  to_->send(std::nullopt);
}

void deferred_call::drop() noexcept try {
  refuse({.outcome = call_outcome::handler_failed,
          .text = "it ended without an answer",
          .code = make_error_code(errc::canceled)});
} catch (const std::bad_alloc&) {
  to_->send(std::nullopt);
}

result<std::shared_ptr<deferred_call>> call_deferral::defer(const call_context& context) {
  if (was_deferred_) return failure{errc::already_exists, "deferring a call twice"};
  if (senders_ == nullptr) {
    return failure{errc::not_supported, "deferring a call that came by no connection"};
  }
  auto to = senders_->later();
  if (!to) return failure(to.why());
  const std::shared_ptr<const call_directory::function> called(keeps_, &called_);
  auto made =
      std::make_shared<deferred_call>(of_.shared_from_this(), called, context, *std::move(to));
  was_deferred_ = true;
  return made;
}

}  // namespace detail

late_answer call_context::defer(std::error_code& ec) const {
  using made = detail::result<std::shared_ptr<detail::deferred_call>>;
  made deferred = deferral.by_ != nullptr
                      ? deferral.by_->defer(*this)
                      : made(detail::failure{errc::not_supported,
                                             "deferring a call that is over, or by a copy"});
  return late_answer(std::move(deferred).or_end(ec));
}

late_answer::late_answer() noexcept = default;
late_answer::late_answer(std::shared_ptr<detail::deferred_call> call) noexcept
    : call_(std::move(call)) {}
late_answer::late_answer(late_answer&& other) noexcept = default;
late_answer& late_answer::operator=(late_answer&& other) noexcept {
  late_answer before(std::move(*this));
  call_ = std::move(other.call_);
  return *this;
}
late_answer::~late_answer() {
  if (call_) call_->drop();
}

call_context& late_answer::context() const noexcept { return call_->context(); }

void late_answer::send(const call_writer& result) noexcept {
  if (const auto call = std::move(call_)) call->send(result);
}

void late_answer::fail(std::exception_ptr thrown) noexcept {
  if (const auto call = std::move(call_)) call->fail(thrown);
}

}  // namespace ucx
