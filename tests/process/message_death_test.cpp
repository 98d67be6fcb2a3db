// A peer is killed in the middle of a message: between the header, or the announcement, and the
// payload, and within the payload. What waits for it ends once, and the others go on.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "support/bytes/pattern.hpp"
#include "support/process/process_reading.hpp"
#include "support/process/test_peer.hpp"
#include "support/transports/network.hpp"
#include "ucx/context.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/error.hpp"
#include "ucx/listener.hpp"
#include "ucx/message.hpp"
#include "ucx/worker.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

constexpr std::size_t small = 1000;
constexpr std::size_t large = std::size_t{1} << 20U;
constexpr std::size_t huge = std::size_t{64} << 20U;
constexpr std::uint64_t number = 1;
constexpr auto silence = 2s;  // longer than a busy machine starves a healthy process

context_options context_for(const std::string& plane) {
  context_options options;
  if (plane == "tcp") {
    options = over_network();
  } else {
    options.transports = {"posix", "cma", "self"};
  }
  return options;
}

/// Over TCP, where UCX notices a death, and over shared memory, where the heartbeat has to. There
/// long messages lie in two halves, so that they go in pieces.
class MessageDeath : public testing::TestWithParam<std::string> {
 protected:
  MessageDeath() {
    if (GetParam() == "tcp") door_.emplace(worker_, any_port_of_network());
    handle();
    meet(healthy_);
  }
  ~MessageDeath() override { worker_.on_message(number, {}); }

  void handle() {
    worker_.on_message(number, [this](message came) { arrived_ = std::move(came); });
  }
  void meet(test_peer& peer) {
    ask(peer, "connect " + address());
    ask(peer, "keep");
  }

  std::string address() {
    return door_ ? to_string(door_->address()) : to_string(worker_.address());
  }
  bool until(auto&& done) {
    const clock::time_point limit = clock::now() + patience(20s);
    while (!done()) {
      if (clock::now() >= limit) return false;
      if (!worker_.progress()) std::this_thread::sleep_for(50us);
    }
    return true;
  }
  /// A process asked something has to be answered by this one meanwhile.
  std::string ask(test_peer& peer, const std::string& command) {
    std::string answer;
    std::atomic<bool> answered{false};
    const std::jthread asking([&] {
      answer = peer.ask(command);
      answered = true;
    });
    EXPECT_TRUE(until([&] { return answered.load(); })) << command;
    return answer;
  }
  message take(const std::string& kind) {
    EXPECT_TRUE(until([&] {
      if (kind == "tag" && !arrived_) arrived_ = worker_.take(tag_match::any());
      return arrived_.has_value();
    }));
    message taken = arrived_ ? std::move(*arrived_) : message();
    arrived_.reset();
    return taken;
  }
  /// Returns a connection to a process, made from here.
  endpoint connect(test_peer& peer) {
    if (door_) return endpoint(worker_, socket_address(ask(peer, "listen " + at_port())));
    endpoint made(worker_, parse_worker_address(ask(peer, "address")));
    EXPECT_TRUE(until([&] { return made.state() != connection_state::connecting; }));
    return made;
  }
  request start_send(endpoint& peer, const std::string& kind, std::span<const std::byte> bytes) {
    const std::array halves{bytes.first(bytes.size() / 2), bytes.subspan(bytes.size() / 2)};
    std::span<const std::span<const std::byte>> runs(&bytes, 1);
    if (in_halves_) runs = halves;
    if (kind == "tag") return peer.start_send(7, runs, {.timeout = 60s});
    return peer.start_send(active_message{number, pattern(32, 7)}, runs, {.timeout = 60s});
  }

  /// Over shared memory the first alone: each takes as long as the heartbeat.
  std::vector<std::string> kinds(std::vector<std::string> all) const {
    if (!door_) all.resize(1);
    return all;
  }
  /// Expects that the connection's loss ends `waiting` soon, and only once.
  void expect_loss(request& waiting, clock::time_point death) {
    std::atomic<int> ends{0};
    waiting.then([&](std::error_code ec) {
      ++ends;
      EXPECT_EQ(ec, errc::connection_reset) << ec.message();
    });
    EXPECT_TRUE(until([&] { return ends > 0; }));
    EXPECT_LT(clock::now() - death, patience(20s));
    EXPECT_EQ(waiting.error(), errc::connection_reset);
    for (int i = 0; i < 100; ++i) worker_.progress();
    EXPECT_EQ(ends, 1);
  }
  /// Expects that another process is served, both ways, by short and long messages.
  void expect_service() { expect_service(healthy_); }
  void expect_service(test_peer& other) {
    for (const std::size_t size : {small, large}) {
      ask(other, "send tag " + std::to_string(size) + " 3");
      message came = take("tag");
      ASSERT_EQ(came.length(), size);
      std::vector<std::byte> into(size);
      request receive = came.start_receive(into);
      EXPECT_TRUE(until([&] { return receive.done(); }));
      EXPECT_FALSE(receive.error()) << receive.error().message();
      EXPECT_TRUE(holds_pattern(into, 3));
      endpoint back = came.peer();
      const std::vector<std::byte> answer = pattern(size, 4);
      request send = start_send(back, "handler", answer);
      EXPECT_EQ(ask(other, "hold handler"), std::to_string(size));
      ask(other, "fetch");
      EXPECT_TRUE(until([&] { return send.done(); }));
      EXPECT_FALSE(send.error()) << send.error().message();
    }
  }

  /// Kills the sender of a message of which a part is here.
  void lose_within(test_peer& victim, message& header, std::span<std::byte> into) {
    request receive = header.start_receive(into);
    ASSERT_NE(pattern_byte(0, 5), std::byte{});
    EXPECT_TRUE(until([&] { return into.front() == pattern_byte(0, 5); }));
    EXPECT_FALSE(receive.done());
    victim.process().kill();
    expect_loss(receive, clock::now());
  }
  /// Has a process connect and start to send a message; returns it.
  message message_of(test_peer& sender, const std::string& kind, std::size_t size) {
    ask(sender, "connect " + address());
    ask(sender, "send " + kind + " " + std::to_string(size) + " 5" + (in_halves_ ? " halves" : ""));
    return take(kind);
  }

  bool in_halves_ = GetParam() != "tcp";
  test_peer healthy_{plane()};
  context context_{context_for(GetParam())};
  worker worker_{context_, patient_options()};
  std::optional<listener> door_;
  std::optional<message> arrived_;

  static worker_options patient_options() {
    worker_options options;
    options.operation_timeout = 60s;
    options.heartbeat_interval = silence / 20;
    options.heartbeat_timeout = GetParam() == "tcp" ? 60s : patience(silence);
    return patient(options);
  }
  static std::string plane() { return GetParam() == "tcp" ? "tcp" : "local"; }
};

TEST_P(MessageDeath, OfASenderBeforeItsPayloadIsAskedFor) {
  for (const std::string& kind : kinds({"handler", "tag"})) {
    SCOPED_TRACE(kind);
    test_peer victim(plane());
    message header = message_of(victim, kind, large);
    EXPECT_EQ(header.length(), large);
    EXPECT_FALSE(header.has_payload());
    victim.process().kill();
    const clock::time_point death = clock::now();
    std::vector<std::byte> into(large);
    request receive = header.start_receive(into);
    expect_loss(receive, death);
    if (kind == "handler") {
      EXPECT_TRUE(holds_pattern(header.header(), 5)) << "what came stays";
    }
    header = message();
    expect_service();
  }
}

TEST_P(MessageDeath, OfASenderThatWasAskedForItsPayload) {
  for (const std::string& kind : kinds({"tag", "handler"})) {
    SCOPED_TRACE(kind);
    test_peer victim(plane());
    message header = message_of(victim, kind, large);
    victim.process().stop();
    std::vector<std::byte> into(large);
    request receive = header.start_receive(into);
    for (int i = 0; i < 100; ++i) worker_.progress();
    EXPECT_FALSE(receive.done());
    victim.process().kill();
    expect_loss(receive, clock::now());
    expect_service();
  }
}

TEST_P(MessageDeath, OfASenderWithinItsPayload) {
  std::vector<std::byte> into(huge);
  test_peer victim(plane());
  message header = message_of(victim, "tag", huge);
  lose_within(victim, header, into);
  // The memory is the program's again.
  std::fill(into.begin(), into.end(), std::byte{0x5a});
  if (door_) {
    expect_service();
  } else {
    // What UCX's senders share may wait for the dead one for ever: the next worker has its own.
    header = message();
    worker_ = worker(context_, patient_options());
    handle();
    test_peer next(plane());
    meet(next);
    expect_service(next);
  }
  EXPECT_TRUE(all_bytes_are(into, std::byte{0x5a}));
}

TEST_P(MessageDeath, OfAReceiverThatHasTheHeaderOnly) {
  const std::vector<std::byte> bytes = pattern(large, 7);
  for (const std::string& kind : kinds({"handler", "tag"})) {
    SCOPED_TRACE(kind);
    test_peer victim(plane());
    endpoint connection = connect(victim);
    if (kind == "handler") ask(victim, "keep");
    request send = start_send(connection, kind, bytes);
    EXPECT_EQ(ask(victim, "hold " + kind), std::to_string(large));
    EXPECT_FALSE(send.done());
    victim.process().kill();
    expect_loss(send, clock::now());
    EXPECT_EQ(connection.status(), errc::connection_reset);
    expect_service();
  }
}

TEST_P(MessageDeath, OfAReceiverWithinThePayload) {
  const std::vector<std::byte> bytes(huge);
  test_peer victim(plane());
  endpoint connection = connect(victim);
  request send = start_send(connection, "tag", bytes);
  EXPECT_EQ(ask(victim, "hold tag"), std::to_string(huge));
  victim.ask("fetch");  // nothing moves before this side makes progress
  victim.process().stop();
  const clock::time_point end = clock::now() + 50ms;
  EXPECT_TRUE(until([&] { return clock::now() >= end; }));
  EXPECT_FALSE(send.done()) << "more than lies between the two was taken";
  victim.process().kill();
  expect_loss(send, clock::now());
  expect_service();
}

/// Messages that their receiver reads where they lie.
class MessageLoanDeath : public MessageDeath {
 protected:
  MessageLoanDeath() { in_halves_ = false; }
  void SetUp() override {
    if (!system_reads_children()) GTEST_SKIP() << "process_vm_readv is forbidden here";
    if (!has_cma(context_)) GTEST_SKIP() << "with this UCX nothing is read where it lies";
  }
};

TEST_P(MessageLoanDeath, OfALenderThatWasStoppedBefore) {
  test_peer victim(plane());
  // Read well before the lender's silence counts, however busy the machine is.
  message header = message_of(victim, "tag", large);
  victim.process().stop();
  std::vector<std::byte> into(large);
  request receive = header.start_receive(into);
  EXPECT_TRUE(until([&] { return receive.done(); })) << "nobody needs the sender for it";
  EXPECT_FALSE(receive.error()) << receive.error().message();
  EXPECT_TRUE(holds_pattern(into, 5));
  victim.process().kill();
  expect_service();
}

TEST_P(MessageLoanDeath, OfALenderBeforeItsMessageIsRead) {
  test_peer victim(plane());
  message header = message_of(victim, "tag", large);
  victim.process().kill();
  std::vector<std::byte> into(large);
  request receive = header.start_receive(into);
  expect_loss(receive, clock::now());
  header = message();
  expect_service();
}

TEST_P(MessageLoanDeath, OfALenderWithinItsMessage) {
  test_peer victim(plane());
  message header = message_of(victim, "tag", huge);
  std::vector<std::byte> into(huge);
  lose_within(victim, header, into);
  std::fill(into.begin(), into.end(), std::byte{0x5a});
  header = message();
  expect_service();
  EXPECT_TRUE(all_bytes_are(into, std::byte{0x5a}));
}

TEST_P(MessageLoanDeath, OfABorrower) {
  std::vector<std::byte> bytes = pattern(huge, 7);
  test_peer victim(plane());
  endpoint connection = connect(victim);
  request send = start_send(connection, "tag", bytes);
  EXPECT_EQ(ask(victim, "hold tag"), std::to_string(huge));
  EXPECT_FALSE(send.done());
  victim.ask("fetch");  // and reads by itself: nothing waits for us
  victim.process().kill();
  // Killed early or late, it may have had time to say that it has everything.
  EXPECT_TRUE(until([&] { return send.done(); }));
  EXPECT_TRUE(!send.error() || send.error() == errc::connection_reset) << send.error().message();
  std::fill(bytes.begin(), bytes.end(), std::byte{});
  expect_service();
}

INSTANTIATE_TEST_SUITE_P(OneHost, MessageLoanDeath, testing::Values("shared_memory"),
                         [](const auto& instance) { return instance.param; });

INSTANTIATE_TEST_SUITE_P(Planes, MessageDeath, testing::Values("tcp", "shared_memory"),
                         [](const auto& chosen) { return chosen.param; });

}  // namespace
}  // namespace ucx::test
