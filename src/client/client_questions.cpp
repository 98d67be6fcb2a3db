#include "client/client_questions.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <new>
#include <optional>
#include <utility>

#include "base/deadline.hpp"
#include "client/client_call.hpp"
#include "connection/endpoint_core.hpp"
#include "ucx/error.hpp"
#include "ucx/version.hpp"
#include "worker/core_access.hpp"
#include "worker/worker_core.hpp"
#include "worker/worker_round.hpp"

namespace ucx::detail {
namespace {

/// Room in a message for what is not what it is about.
constexpr std::size_t overhead = control_header::size + 32;

/// A server that has answered within this is there: none ends and comes again meanwhile.
constexpr std::chrono::milliseconds moment{10};

/// Bounds the reading of what came before somebody looked.
constexpr int rounds_to_hear = 100;

/// The peer of a connection is watched while this is there.
class watched {
 public:
  explicit watched(endpoint_core& connection) : connection_(connection) {
    const std::lock_guard guard(connection.worker().lock());
    connection.liveness().expect_control();
  }
  watched(const watched&) = delete;
  watched& operator=(const watched&) = delete;
  ~watched() {
    const std::lock_guard guard(connection_.worker().lock());
    connection_.liveness().expected_control();
  }

 private:
  endpoint_core& connection_;
};

/// A server that refuses says in its answer what it is.
class hello_question final : public conversation {
 public:
  hello_question(known_server& server, const std::optional<ticket_secret>& ticket) noexcept
      : server_(server), ticket_(ticket) {}

  void ask(client_session& session, client_session::question& asked) override {
    asked.answer_type = control_type::welcome;
    hello_body hello;
    hello.library = to_string(version());
    hello.features = control_feature::all;
    hello.ticket = ticket_;
    session.ask(asked, control_type::hello, hello);
  }
  /// There what waits for the client may get it.
  bool takes_in_round() const noexcept override { return true; }
  result<bool> take(std::span<const std::byte> answer) override {
    std::optional<welcome_body> welcome = decode_welcome(answer);
    if (!welcome) return failure{errc::protocol_error, "an answer that is no welcome"};
    const bool knows_tickets = (welcome->features & control_feature::tickets) != 0;
    server_.welcomed(*std::move(welcome));
    if (!ticket_ || knows_tickets) return true;
    // It has let this client in as itself.
    return failure{errc::not_supported, "the server is of a version that knows no tickets"};
  }
  failure explain(failure why, std::span<const std::byte> answer) const override {
    const std::optional<welcome_body> refused = decode_welcome(answer);
    if (!refused) return why;
    if (why.code == errc::version_mismatch) {
      why.text += ": it speaks version " + std::to_string(refused->version) +
                  " of the control protocol, this library (" + to_string(version()) + ") version " +
                  std::to_string(control_version);
    } else if (why.code == errc::busy) {
      why.text += ": it has as many clients as it takes";
    } else if (ticket_ && why.code == errc::permission_denied) {
      why.text += ": the ticket does not count, or not any more";
    } else if (why.code == errc::connection_refused) {
      why.text += ": it is a worker that serves no names, or its server was closed";
    }
    return why;
  }

 private:
  known_server& server_;
  const std::optional<ticket_secret> ticket_;
};

}  // namespace

client_questions::client_questions(worker_core& worker, endpoint_core& connection,
                                   std::function<void(std::uint64_t)> on_revoke)
    : worker_(worker),
      connection_(connection),
      session_(channel_, std::move(on_revoke)),
      teller_(std::make_shared<client_session*>(&session_)) {}

void client_questions::listen() {
  const std::lock_guard guard(worker_.lock());
  connection_.control().set_receiver(&session_);
}

void client_questions::end() noexcept {
  const std::lock_guard guard(worker_.lock());
  connection_.control().set_receiver(nullptr);
  *teller_ = nullptr;
  try {
    if (!session_.over()) session_.leave();
  } catch (const std::bad_alloc&) {  // the peer learns it from the end of the connection
  }
  while (client_call* const left = calls_.front()) left->give_up_for(make_error_code(errc::closed));
}

request client_questions::start_greet(clock::time_point deadline,
                                      const std::optional<ticket_secret>& ticket) {
  constexpr clock::duration least{1};  // none would be the usual time-out
  return client_call::start(*this, {.timeout = std::max(least, deadline - now())},
                            "greeting the server at " + connection_.peer_name(),
                            std::make_unique<hello_question>(server_, ticket));
}

void client_questions::enter(client_call& begun) noexcept { calls_.push_back(begun); }

void client_questions::leave(client_call& over, question& asked) noexcept {
  session_.forget(asked);
  calls_.remove(over);
  if (!static_cast<list_hook<arrived_call_tag>&>(over).linked()) return;
  arrived_.remove(over);
  try {
    session_.release_unwanted(asked.answer);
  } catch (const std::bad_alloc&) {  // the server has it open until this client leaves
  }
}

void client_questions::take_in_round(client_call& answered) {
  if (arrived_.empty()) {
    worker_.defer([this, alive = teller_] {
      if (*alive != nullptr) take_arrived();
    });
  }
  arrived_.push_back(answered);
}

void client_questions::take_arrived() noexcept {
  while (client_call* const next = arrived_.front()) {
    arrived_.remove(*next);
    next->take();
  }
}

void client_questions::ask_all(std::span<question> asked,
                               const std::function<void(std::size_t)>& send,
                               clock::time_point deadline) {
  requests_.fetch_add(asked.size(), std::memory_order_relaxed);
  std::error_code unasked;
  if (worker_.is_inherited()) unasked = errc::forked_child;
  if (worker_.in_handler()) unasked = errc::would_deadlock;
  for (question& each : asked) {
    if (unasked) each.outcome = unasked;
  }
  if (unasked) return;
  // The session is not to answer into what has gone.
  const auto forget = [&] {
    const std::lock_guard guard(worker_.lock());
    connection_.liveness().expected_control();
    for (question& each : asked) {
      session_.forget(each);
      if (!each.done) each.outcome = errc::timed_out;
    }
  };
  {
    const std::lock_guard guard(worker_.lock());
    connection_.liveness().expect_control();
  }
  std::size_t first = 0;  // before it all are done
  try {
    {
      const std::lock_guard guard(worker_.lock());
      for (std::size_t i = 0; i < asked.size(); ++i) {
        if (!asked[i].done) send(i);
      }
    }
    worker_.wait_until(deadline, [&] {
      while (first < asked.size() && asked[first].done) ++first;
      return first == asked.size();
    });
  } catch (...) {
    forget();
    throw;
  }
  forget();
  if (first > 0) heard();
}

result<void> client_questions::may_wait() const {
  if (!worker_.in_handler() || worker_.is_inherited()) return {};  // else the request says it
  return failure{errc::would_deadlock, "waiting for " + connection_.peer_name() + " in a handler"};
}

std::size_t client_questions::room() const noexcept { return channel_.longest() - overhead; }

clock::time_point client_questions::deadline_after(const io_options& options) {
  const std::lock_guard guard(worker_.lock());
  return worker_.deadline_after(options.timeout);
}

clock::time_point client_questions::now() const noexcept { return worker_.api().now(); }

result<void> client_questions::hear() {
  const auto because = [this](std::error_code why) {
    return failure{why, "asking " + server_.place() + " for a sign of life"};
  };
  if (const std::error_code lost = status()) return because(lost);
  const bool is_fresh = now() - heard_at_.load(std::memory_order_relaxed) < moment;
  if (is_fresh || worker_round::worker() != nullptr) return {};
  // Bytes that came long ago, and were not looked at, are no sign of life.
  for (int i = 0; i < rounds_to_hear && worker_.progress(); ++i) {
  }
  endpoint_liveness& liveness = connection_.liveness();
  const watched meanwhile(connection_);
  std::uint64_t before = 0;
  {
    const std::lock_guard guard(worker_.lock());
    before = liveness.answers();
    liveness.ask();
  }
  // A peer that says something else is not dead, and may yet not answer this.
  const bool answers = worker_.wait_until(
      after(after(now(), liveness.timeout()), liveness.timeout()),
      [&] { return liveness.answers() != before || session_.over() || connection_.status(); });
  if (const std::error_code lost = status()) return because(lost);
  if (!answers) return because(make_error_code(errc::timed_out));
  heard();
  return {};
}

std::error_code client_questions::status() const noexcept {
  if (worker_.is_inherited()) return errc::forked_child;
  const std::lock_guard guard(worker_.lock());
  return session_.over() ? session_.why() : connection_.status();
}

void client_questions::count_failures(std::uint64_t number) noexcept {
  failures_.fetch_add(number, std::memory_order_relaxed);
}

}  // namespace ucx::detail
