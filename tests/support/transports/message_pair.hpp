// Two workers of this process that exchange messages over a real transport.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "support/transports/connected_pair.hpp"
#include "support/transports/event_loop.hpp"
#include "support/transports/foreign_ucx.hpp"
#include "support/transports/network.hpp"
#include "ucx/context.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/listener.hpp"
#include "ucx/message.hpp"
#include "ucx/request.hpp"
#include "ucx/worker.hpp"

namespace ucx::test {

struct message_pair_options {
  route over = route::tcp_by_address;
  progress_mode sender = progress_mode::caller;
  progress_mode receiver = progress_mode::sleeping_thread;
  /// Of both sides, but for those of mode `external`, which a loop drives beside the test: `safe`.
  thread_mode threads = thread_mode::multi;
  worker_options defaults = {};  ///< All but `progress` and `threads`.
  bool adopted = false;  ///< Contexts and workers are UCX's own, made elsewhere and taken over.
};

inline void PrintTo(const message_pair_options& options, std::ostream* out) {
  *out << to_string(options.over);
}

inline std::string name_of_messages(const testing::TestParamInfo<message_pair_options>& instance) {
  return to_string(instance.param.over) + "_sender_" + name_of(instance.param.sender) +
         "_receiver_" + name_of(instance.param.receiver) +
         (instance.param.adopted ? "_adopted" : "");
}

/// Returns the pairs that every test of messages runs with: over each transport every mode at least
/// once on either side; not every mode with every other. Where both are of mode `caller` the test's
/// one thread drives them by turns. Senders of that mode have one thread and say so, as by default;
/// one pair shows that `safe` is the same.
inline std::vector<message_pair_options> every_message_pair() {
  using mode = progress_mode;
  std::vector<message_pair_options> all;
  for (const route over : {route::tcp_by_listener, route::tcp_by_address, route::shared_memory}) {
    const bool shows_safe = over == route::tcp_by_address;
    all.push_back({over, mode::caller, mode::sleeping_thread,
                   shows_safe ? thread_mode::multi : thread_mode::automatic});
    all.push_back({over, mode::caller, mode::caller, thread_mode::automatic});
    all.push_back({over, mode::polling_thread, mode::polling_thread, thread_mode::automatic});
    all.push_back({over, mode::sleeping_thread, mode::external, thread_mode::automatic});
    all.push_back({over, mode::external, mode::sleeping_thread, thread_mode::automatic});
  }
  all.push_back({route::tcp_to_itself, mode::caller, mode::caller, thread_mode::automatic});
  // What is sent there is delivered within UCX's call that sends it. It has no events to sleep on.
  for (const mode driver : {mode::caller, mode::polling_thread}) {
    all.push_back({route::loopback, driver, driver, thread_mode::automatic});
  }
  return all;
}

/// Returns pairs of adopted contexts and workers: over TCP and shared memory, in every mode.
inline std::vector<message_pair_options> adopted_message_pairs() {
  using mode = progress_mode;
  std::vector<message_pair_options> all;
  for (const route over : {route::tcp_by_listener, route::shared_memory}) {
    all.push_back({over, mode::caller, mode::sleeping_thread, thread_mode::automatic, {}, true});
  }
  for (const route over : {route::tcp_by_address, route::shared_memory}) {
    all.push_back({over, mode::external, mode::polling_thread, thread_mode::automatic, {}, true});
  }
  return all;
}

/// One thread of a test uses both sides. Nobody drives a receiver of mode `caller` beside it while
/// a call of the sender's blocks: what needs an answer of the receiver's is waited for by
/// `until()`. Members die last to first.
class message_pair {
 public:
  explicit message_pair(const message_pair_options& chosen) : options(chosen) {
    context_options wanted = context_options_for(options.over);
    wanted.features = feature::am;
    if (options.over != route::loopback) wanted.features = wanted.features | feature::wakeup;
    receiver_context.emplace(make_context(wanted));
    receiver_.emplace(make_worker(*receiver_context, options.receiver));
    const worker_address address = address_of(*receiver_, options.over);
    if (goes_by_listener(options.over)) door.emplace(*receiver_, any_port_of_network());
    if (to_itself()) {
      if (door) {
        sender.emplace(*receiver_, door->address(), nobody_waits());
      } else {
        sender.emplace(*receiver_, address);
      }
    } else {
      if (options.receiver == progress_mode::external) loop.emplace(*receiver_);
      sender_context.emplace(make_context(wanted));
      sender_worker.emplace(make_worker(*sender_context, options.sender));
      if (options.sender == progress_mode::external) sender_loop.emplace(*sender_worker);
      if (door) {
        sender.emplace(*sender_worker, door->address(), nobody_waits());
      } else {
        sender.emplace(*sender_worker, address);
      }
    }
    until([&] { return sender->state() != connection_state::connecting; });
    sender->wait_connected();
  }

  /// The receiver answers while its sender closes.
  ~message_pair() {
    if (!drives_receiver() || !receiver_ || !sender) return;
    const request closing = sender->start_close();
    until([&] { return closing.done(); });
  }
  message_pair(const message_pair&) = delete;
  message_pair& operator=(const message_pair&) = delete;

  bool to_itself() const noexcept {
    return options.over == route::tcp_to_itself || options.over == route::loopback;
  }
  /// Returns whether nobody but `until()` drives the receiver.
  bool drives_receiver() const noexcept {
    return !to_itself() && options.receiver == progress_mode::caller;
  }
  worker& receiver() { return *receiver_; }
  worker& sender_side() { return to_itself() ? *receiver_ : *sender_worker; }

  /// Drives whom nobody else drives until `done()`; returns whether that was in time.
  bool until(const std::function<bool()>& done,
             std::chrono::nanoseconds limit = std::chrono::seconds(40)) {
    const auto end = std::chrono::steady_clock::now() + patience(limit);
    while (!done()) {
      if (std::chrono::steady_clock::now() >= end) return false;
      bool active = !sender_loop && sender_side().progress();
      if (receiver_ && drives_receiver()) active = receiver().progress() || active;
      if (!active) std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
    return true;
  }
  /// Waits for a message of this tag, and takes it.
  message take(const tag_match& wanted) {
    std::optional<message> taken;
    EXPECT_TRUE(until([&] { return (taken = receiver().take(wanted)).has_value(); }));
    return taken ? std::move(*taken) : message();
  }
  /// Returns the receiver's connection to the sender.
  endpoint back() {
    sender->send(0xbac, {});
    return take(0xbac).peer();
  }

  const message_pair_options options;
  std::optional<context> receiver_context;
  std::optional<context> sender_context;
  std::optional<worker> receiver_;
  std::optional<event_loop> loop;
  std::optional<worker> sender_worker;
  std::optional<listener> door;
  std::optional<event_loop> sender_loop;
  std::optional<endpoint> sender;

 private:
  static endpoint_options nobody_waits() {
    endpoint_options made;
    made.wait = connect_wait::none;
    return made;
  }
  context make_context(const context_options& wanted) const {
    return options.adopted ? adopt_context(wanted) : context(wanted);
  }
  worker make_worker(const context& parent, progress_mode mode) const {
    return options.adopted ? adopt_worker(parent, with(mode)) : worker(parent, with(mode));
  }
  worker_options with(progress_mode mode) const {
    worker_options made = patient(options.defaults);
    made.progress = mode;
    made.thread_mode = mode == progress_mode::external ? thread_mode::multi : options.threads;
    return made;
  }
};

}  // namespace ucx::test
