// A call of a client as a request: questions to the server, one after another.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include "base/clock.hpp"
#include "base/intrusive_list.hpp"
#include "base/result.hpp"
#include "client/client_questions.hpp"
#include "client/client_session.hpp"
#include "ucx/request.hpp"
#include "wire/control_message.hpp"
#include "worker/alarm.hpp"
#include "worker/operation_group.hpp"

namespace ucx::detail {

/// Says what a call asks, and reads the answers. Under the worker's lock.
class conversation {
 public:
  virtual ~conversation() = default;

  /// Asks the next question.
  virtual void ask(client_session& session, client_session::question& asked) = 0;
  /// Takes an answer. Returns whether there is no further question, or why the call has failed.
  virtual result<bool> take(std::span<const std::byte> answer) = 0;
  /// Answers are taken in the worker's round, instead of inside UCX's callback.
  virtual bool takes_in_round() const noexcept { return false; }
  /// So much longer than the time-out the next question may take, which then is its own. Empty: all
  /// questions have one time-out.
  virtual std::optional<clock::duration> extra_time() { return {}; }
  /// So long after an answer the next question is asked.
  virtual clock::duration pause() const noexcept { return clock::duration::zero(); }
  /// Is told that the operation before the first question has failed, and was not given up.
  virtual void not_begun(std::error_code) noexcept {}
  /// Says more of a failure. The answer is the last one; empty where there was none.
  virtual failure explain(failure why, std::span<const std::byte>) const { return why; }
};

/// Ends with the last answer, or early: with its deadline, its connection, or its client (closed).
/// An answer that comes later is dropped; the server need not hold open what it opened.
class client_call final : public operation,
                          public list_hook<call_tag>,
                          public list_hook<arrived_call_tag>,
                          private operation_group,
                          private client_session::asker {
 public:
  /// Asks the first question, when `first` has ended well. `doing` is what the text of a failure
  /// begins with. REQUIRES: `first` takes no longer than this does; it has a later deadline.
  static request start(client_questions& by, const io_options& options, std::string doing,
                       std::unique_ptr<conversation> what, request first = {});

  client_call(client_questions& by, std::string doing, std::unique_ptr<conversation> what,
              std::chrono::nanoseconds timeout)
      : by_(by), doing_(std::move(doing)), what_(std::move(what)), timeout_(timeout) {}

  void give_up(errc why) noexcept override { give_up_for(make_error_code(why)); }
  void give_up_for(std::error_code why) noexcept;
  void connection_failed(std::error_code why) noexcept override { give_up_for(why); }
  bool awaits_peer() const noexcept override { return true; }
  /// Threads ask at any time: before its end, for what does not change.
  std::string describe() const override { return done() && !text_.empty() ? text_ : doing_; }
  std::optional<int> own_ucx_status() const noexcept override { return ucx_status_; }
  void set_blocking() noexcept override;
  /// Takes the answer that has arrived, in a round.
  void take() noexcept;

 protected:
  void recycle() noexcept override { delete this; }

 private:
  void begin(request first);
  void say() noexcept;
  void rest(clock::duration pause);
  void answered() noexcept override;
  void member_ended(operation& member, std::error_code outcome) noexcept override;
  void finish(result<void> outcome) noexcept;

  client_questions& by_;  // until it is done
  const std::string doing_;
  std::string text_;  // of a failure
  std::optional<int> ucx_status_;
  bool is_over_ = false;
  std::shared_ptr<conversation> what_;  // until it is done
  const std::chrono::nanoseconds timeout_;
  client_session::question asked_;
  std::unique_ptr<alarm> resting_;
};

/// One question: `take` reads its answer, `explain` says more of a refusal.
template <class Body>
class one_question final : public conversation {
 public:
  using reader = std::function<result<void>(std::span<const std::byte> answer)>;
  using explainer = std::function<failure(failure why)>;

  one_question(control_type type, control_type answer_type, Body body, reader take,
               explainer explain)
      : type_(type),
        answer_type_(answer_type),
        body_(std::move(body)),
        take_(std::move(take)),
        explain_(std::move(explain)) {}

  void ask(client_session& session, client_session::question& asked) override {
    asked.answer_type = answer_type_;
    session.ask(asked, type_, body_);
  }
  result<bool> take(std::span<const std::byte> answer) override {
    if (auto taken = take_(answer); !taken) return std::move(taken.why());
    return true;
  }
  failure explain(failure why, std::span<const std::byte>) const override {
    return explain_(std::move(why));
  }

 private:
  control_type type_;
  control_type answer_type_;
  Body body_;
  reader take_;
  explainer explain_;
};

}  // namespace ucx::detail
