// Calls whose functions answer later, at their server.
#include <mutex>
#include <new>
#include <utility>

#include "call/call_deferral.hpp"
#include "connection/endpoint_core.hpp"
#include "rpc/call_server_core.hpp"
#include "rpc/peer_gate.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

/// Brings an answer to the thread that drives the worker.
class call_server_core::late_reply final : public late_sender {
 public:
  late_reply(std::weak_ptr<call_server_core> server, shared_call call)
      : server_(std::move(server)), call_(std::move(call)) {}

  void send(std::optional<call_message> answer) noexcept override {
    const std::shared_ptr<call_server_core> server = server_.lock();
    if (!server) return;  // the call was given back
    worker_core& worker = call_->over->worker();
    if (worker.in_handler()) return server->answer_late(call_, std::move(answer));
    try {
      worker.post([server, call = call_, made = std::move(answer)]() mutable {
        server->answer_late(call, std::move(made));
      });
    } catch (const std::bad_alloc&) {  // the caller learns it from its deadline
      server->forget(key_of(*call_));
    }
  }
  std::stop_token stop() const override { return call_->stop.get_token(); }

 private:
  const std::weak_ptr<call_server_core> server_;
  const shared_call call_;
};

/// Makes one for the call that runs.
class call_server_core::late_replies final : public late_senders {
 public:
  late_replies(call_server_core& server, const shared_call& call) : server_(server), call_(call) {}

  result<std::shared_ptr<late_sender>> later() override {
    call_->stop = std::stop_source();
    auto made = std::make_shared<late_reply>(server_.weak_from_this(), call_);
    if (!server_.defer(call_)) {
      return failure{errc::busy, "deferring a call: this connection has too many under way"};
    }
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
  call->is_inside = true;
  auto made = functions_->answer(asked, context, is_of_server_ ? &gate : nullptr, &later);
  call->is_inside = false;
  if (!is_of_server_) return made;
  if (made) {
    gate.tell(asked, outcome_of(*made));
  } else {
    call->told_later = gate.name_of(asked);
    call->is_bound = asked.kind == call_kind::bound;
  }
  return made;
}

bool call_server_core::defer(const shared_call& call) {
  if (note(call, options_.max_calls) != room::noted) return false;
  call->is_deferred = true;
  return true;
}

/// A handler of the worker.
void call_server_core::answer_late(const shared_call& call,
                                   std::optional<call_message> made) noexcept {
  if (call->is_answered) return;  // the caller has given up, or the server has ended
  if (call->is_inside) {
    call->early = std::move(made);
    if (call->early) return;
  }
  if (made) try {
      tell_late(*call, outcome_of(*made));
      return answer(call, *std::move(made));
    } catch (const std::bad_alloc&) {
    }
  give_back(call);
}

/// Its caller has given up: the answer, when it comes, goes nowhere.
void call_server_core::drop(const shared_call& call) noexcept {
  call->is_answered = true;
  tell_late(*call, call_outcome::given_up);
  forget(key_of(*call));
  call->stop.request_stop();
}

/// The line in the audit.
void call_server_core::tell_late(served_call& call, call_outcome ended) noexcept {
  peer_gate::tell_later(call.peer, call.told_later, call.is_bound, ended);
  call.told_later.clear();
}

}  // namespace ucx::detail
