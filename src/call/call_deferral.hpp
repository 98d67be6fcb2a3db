// Calls whose functions answer after they have returned.
#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <stop_token>
#include <utility>

#include "base/result.hpp"
#include "call/call_directory.hpp"
#include "call/call_message.hpp"
#include "ucx/call_table.hpp"
#include "ucx/call_writer.hpp"

namespace ucx::detail {

/// Carries the answer of one call to its caller.
class late_sender {
 public:
  virtual ~late_sender() = default;
  /// Once, from any thread; nothing where there is no memory for an answer.
  virtual void send(std::optional<call_message> answer) noexcept = 0;
  /// Requests stop when the caller has given up.
  virtual std::stop_token stop() const = 0;
};

/// Makes the senders of calls.
class late_senders {
 public:
  virtual ~late_senders() = default;
  /// Returns a sender for the call that runs.
  /// Errors: busy; not_supported.
  virtual result<std::shared_ptr<late_sender>> later() = 0;
};

/// A call that has no answer yet. Threads: one at a time.
class deferred_call {
 public:
  deferred_call(std::shared_ptr<call_directory> of,
                std::shared_ptr<const call_directory::function> called, const call_context& context,
                std::shared_ptr<late_sender> to);

  call_context& context() noexcept { return context_; }
  void send(const call_writer& result) noexcept;
  void fail(const std::exception_ptr& thrown) noexcept;
  /// Answers that there is none.
  void drop() noexcept;

 private:
  void refuse(const call_failure& why);

  const std::shared_ptr<call_directory> of_;
  const std::shared_ptr<const call_directory::function> called_;
  call_context context_;
  const std::shared_ptr<late_sender> to_;
};

/// The call whose function runs, for `call_context::defer()`. It refers to its parts.
class call_deferral {
 public:
  /// `senders`: null where answers can not come later.
  call_deferral(call_directory& of, const std::shared_ptr<const call_directory::contents>& keeps,
                const call_directory::function& called, late_senders* senders) noexcept
      : of_(of), keeps_(keeps), called_(called), senders_(senders) {}

  /// Errors: not_supported, already_exists, busy.
  result<std::shared_ptr<deferred_call>> defer(const call_context& context);
  bool was_deferred() const noexcept { return was_deferred_; }

 private:
  call_directory& of_;
  const std::shared_ptr<const call_directory::contents>& keeps_;
  const call_directory::function& called_;
  late_senders* const senders_;
  bool was_deferred_ = false;
};

}  // namespace ucx::detail
