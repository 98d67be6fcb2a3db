// Calls whose functions answer later, at their server.
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "base/inbox_task.hpp"
#include "call/call_deferral.hpp"
#include "connection/endpoint_core.hpp"
#include "rpc/call_server_core.hpp"
#include "rpc/peer_gate.hpp"
#include "worker/core_access.hpp"
#include "worker/operation.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

/// An answer on its way to the thread that drives the worker.
class call_server_core::late_task final
    : public inbox_task,
      public std::enable_shared_from_this<call_server_core::late_task> {
 public:
  explicit late_task(std::weak_ptr<call_server_core> server) : server_(std::move(server)) {}
  void bring(const key& which, std::optional<call_message> made) noexcept {
    which_ = which;
    made_ = std::move(made);
  }
  /// A handler goes on, because the program may be called.
  void run(worker_core& by) override {
    by.queue_handler([self = shared_from_this()] {
      const std::shared_ptr<call_server_core> server = self->server_.lock();
      if (server) server->answer_late(self->which_, std::move(self->made_));
    });
  }

 private:
  const std::weak_ptr<call_server_core> server_;
  key which_;
  std::optional<call_message> made_;
};

/// Has the memory that an answer needs on its way from the beginning.
class call_server_core::late_reply final : public late_sender {
 public:
  late_reply(const std::weak_ptr<call_server_core>& server, shared_call call)
      : server_(server), call_(std::move(call)), task_(std::make_shared<late_task>(server)) {}

  void send(std::optional<call_message> answer) noexcept override {
    const std::shared_ptr<call_server_core> server = server_.lock();
    if (!server) return;  // the call was given back
    worker_core& worker = call_->over->worker();
    if (worker.in_handler()) return server->answer_late(key_of(*call_), std::move(answer));
    task_->bring(key_of(*call_), std::move(answer));
    worker.hand_over(std::move(task_));
  }
  std::stop_token stop() const override { return call_->stop.get_token(); }

 private:
  const std::weak_ptr<call_server_core> server_;
  const shared_call call_;  // whose peer the function may use
  std::shared_ptr<late_task> task_;
};

/// Ends with the connection of a caller, or at its deadline.
class call_server_core::caller_watch final : public operation {
 public:
  explicit caller_watch(const served_call& of) noexcept {
    start(of.over->worker(), of.over, of.deadline);
    if (const std::error_code lost = of.over->status()) complete(lost);
  }

  void give_up(errc why) noexcept override {
    if (!done()) complete(make_error_code(why));
  }
  void connection_failed(std::error_code why) noexcept override {
    if (!done()) complete(why);
  }
  bool is_own() const noexcept override { return true; }
  std::string describe() const override { return "waiting for a later answer"; }

 protected:
  void recycle() noexcept override { delete this; }
};

/// Makes one for the call that runs.
class call_server_core::late_replies final : public late_senders {
 public:
  late_replies(call_server_core& server, const shared_call& call) : server_(server), call_(call) {}

  result<std::shared_ptr<late_sender>> later() override {
    call_->stop = std::stop_source();
    auto made = std::make_shared<late_reply>(server_.weak_from_this(), call_);
    switch (server_.defer(call_)) {
      case room::noted:
        break;
      case room::full:
      case room::memory_full:
        return failure{errc::busy, "deferring a call: this connection has too many under way"};
      case room::closed:
        return failure{errc::canceled, "deferring a call whose server has ended"};
    }
    server_.watch(call_);
    return std::shared_ptr<late_sender>(std::move(made));
  }

 private:
  call_server_core& server_;
  const shared_call& call_;
};

std::optional<call_message> call_server_core::run_function(const shared_call& call,
                                                           const asked_call& asked,
                                                           call_context& context) {
  late_replies later(*this, call);
  peer_gate gate(call->peer);
  auto made = functions_->answer(asked, context, is_of_server_ ? &gate : nullptr, &later);
  if (!is_of_server_) return made;
  if (made) {
    gate.tell(asked, outcome_of(*made));
  } else {
    call->told_later = gate.name_of(asked);
    call->is_bound = asked.kind == call_kind::bound;
  }
  return made;
}

/// It runs until its function has returned, whether it came whole or not.
call_server_core::room call_server_core::defer(const shared_call& call) {
  const std::lock_guard guard(noting_);
  const room made = place(call, options_.max_calls);
  if (made != room::noted) return made;
  call->is_deferred = true;
  if (call->at != step::running) ++running_;
  call->at = step::running;
  return made;
}

/// From here on it ends with its connection, and at its deadline.
void call_server_core::watch(const shared_call& call) {
  worker_core& worker = call->over->worker();
  const std::lock_guard guard(worker.lock());
  call->caller = core_access::make_request(new caller_watch(*call));
  call->caller.then([kept = weak_from_this(), of = std::weak_ptr(call)](std::error_code) {
    const auto self = kept.lock();
    const shared_call lost = of.lock();
    if (self && lost && self->take_waiting(key_of(*lost))) drop(*lost);
  });
}

/// Takes out one that waits for its answer; returns whether it did.
bool call_server_core::take_waiting(const key& which) noexcept {
  shared_call taken;  // goes behind the lock
  const std::lock_guard guard(noting_);
  const auto found = calls_.find(which);
  if (found == calls_.end() || !found->second->is_deferred) return false;
  if (found->second->at == step::running) return false;
  taken = std::move(found->second);
  calls_.erase(found);
  return true;
}

/// Returns a call that runs from here on; nothing where it has ended. The answer is kept
/// while the function runs.
call_server_core::shared_call call_server_core::take_deferred(
    const key& which, std::optional<call_message>& made) noexcept {
  const std::lock_guard guard(noting_);
  const auto found = calls_.find(which);
  if (found == calls_.end() || !found->second->is_deferred) return nullptr;
  served_call& call = *found->second;
  if (call.at == step::running) {
    if (!std::exchange(call.is_early, true)) call.early = std::move(made);
    return nullptr;
  }
  call.is_deferred = false;
  call.at = step::running;
  ++running_;
  return found->second;
}

/// A handler of the worker, or what else its rounds run.
void call_server_core::answer_late(const key& which, std::optional<call_message> made) noexcept {
  const shared_call call = take_deferred(which, made);
  if (!call) return;  // the caller has given up, or the server has ended
  send_late(call, std::move(made));
  end_running(call);
}

/// REQUIRES: it runs.
void call_server_core::send_late(const shared_call& call,
                                 std::optional<call_message> made) noexcept {
  call->caller = request();
  if (made) try {
      tell_late(*call, outcome_of(*made));
      return answer(call, *std::move(made));
    } catch (const std::bad_alloc&) {
    }
  give_back(call);
}

/// Its caller has given up: the answer, when it comes, goes nowhere. It is under way no more.
void call_server_core::drop(served_call& call) noexcept {
  call.is_answered = true;
  call.caller = request();
  tell_late(call, call_outcome::given_up);
  call.stop.request_stop();
}

/// The line in the audit.
void call_server_core::tell_late(served_call& call, call_outcome ended) noexcept {
  peer_gate::tell_later(call.peer, call.told_later, call.is_bound, ended);
  call.told_later.clear();
}

}  // namespace ucx::detail
