// Ends of pipes that meet without any IP address: where the reader is, who is turned away, and who
// is of a version that knows no worker addresses. What such a pipe then does is in pipe_test.cpp.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <future>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "support/basics/soon.hpp"
#include "support/bytes/bytes_of.hpp"
#include "support/streams/pipe_place.hpp"
#include "support/transports/ucx_server.hpp"
#include "ucx/client.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/error.hpp"
#include "ucx/message.hpp"
#include "ucx/peer_address.hpp"
#include "ucx/pipe_broker.hpp"
#include "ucx/pipe_stream.hpp"
#include "ucx/server.hpp"
#include "ucx/url.hpp"
#include "ucx/worker.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t question_number = 0x7563'7869'706d'6500;
constexpr std::uint64_t answer_tag = question_number + 1;
constexpr std::uint64_t knock_number = question_number + 2;
constexpr char reader = 1;
constexpr char writer = 2;

/// A number of two bytes, and so many bytes.
std::string counted(const std::string& text) {
  return std::string{static_cast<char>(text.size() & 0xffU), static_cast<char>(text.size() >> 8U)} +
         text;
}

std::string encoded(const worker_address& address) {
  const std::vector<std::byte> wire = address.encode();
  return {reinterpret_cast<const char*>(wire.data()), wire.size()};
}

std::string question(char version, char role, const std::string& socket,
                     const std::string& worker) {
  std::string made = "UXPQ";
  made +=
      version + std::string(3, '\0') + role + std::string(3, '\0') + '\1' + std::string(3, '\0');
  made += counted("pipe") + counted(socket);
  return version == 1 ? made : made + counted(worker);
}

/// An answer of version 1 without an address.
std::string old_answer(errc status, const std::string& token = std::string(16, '\0')) {
  std::string made("UXPA\1\0\0\0", 8);
  return made + static_cast<char>(status) + std::string(7, '\0') + token;
}

/// A stranger_by_address who speaks to the broker, and to whom it introduces him, byte by byte.
class stranger_by_address {
 public:
  explicit stranger_by_address(const std::string& where)
      : through_(url(where).server(), options()), broker_(through_.connection()) {}

  void tell(const std::string& said) {
    std::error_code refused;  // the answer says why
    broker_.send(active_message{question_number}, bytes_of(said), {}, refused);
    EXPECT_TRUE(!refused || refused == errc::message_refused) << refused;
  }
  std::string hear() {
    std::string answer(20'000, '\0');
    const message_info came =
        broker_.receive(answer_tag, std::as_writable_bytes(std::span(answer)));
    answer.resize(static_cast<std::size_t>(came.length));
    return answer;
  }
  std::string ask(const std::string& said) {
    tell(said);
    return hear();
  }
  /// Connects, and says so; returns why that was not heard.
  std::error_code knock(const worker_address& at, const std::string& token) {
    endpoint_options made;
    made.terms = connection_terms();
    const auto bytes = bytes_of(token);
    made.terms->info.assign(bytes.begin(), bytes.end());
    std::error_code ec;
    endpoint& peer = peers_.emplace_back(through_.worker(), at, std::move(made));
    peer.wait_connected(ec);
    if (!ec) {
      peer.start_send(active_message{knock_number}, std::span<const std::byte>(),
                      {.until = send_until::matched})
          .wait(ec);
    }
    return ec;
  }
  ucx::worker& worker() { return through_.worker(); }
  bool is_connected(std::size_t peer) { return !peers_[peer].status(); }

 private:
  static client_options options() {
    client_options made;
    made.worker.progress = progress_mode::sleeping_thread;
    return made;
  }

  client through_;
  endpoint broker_;
  std::vector<endpoint> peers_;
};

class PipeWithoutIp : public pipe_place {
 protected:
  explicit PipeWithoutIp(server_options options = {})
      : pipe_place(pipe_route::without_ip, std::move(options)) {}

  void wait_for_one() const {
    EXPECT_TRUE(soon([this] { return broker_->waiting() > 0; }));
  }
};

TEST_F(PipeWithoutIp, SaysWhoDidNotCome) {
  EXPECT_TRUE(name().starts_with("ucx+file://")) << name();
  // Longer than the server takes to answer: one that has not is what the error tells of.
  const ipipestream in(name(), {.connect_timeout = 3s});
  EXPECT_EQ(in.error(), errc::timed_out);
  EXPECT_NE(in.error_message().find("no writer came"), std::string::npos) << in.error_message();
  EXPECT_NE(in.error_message().find(name()), std::string::npos) << in.error_message();
}

TEST_F(PipeWithoutIp, StopsOpening) {
  std::stop_source stop;
  auto opening = open<ipipestream>({.stop = stop.get_token()});
  wait_for_one();
  stop.request_stop();
  EXPECT_EQ(opening.get().error(), errc::canceled);
}

TEST_F(PipeWithoutIp, NeedsABroker) {
  broker_.reset();
  EXPECT_EQ(ipipestream(name()).error(), errc::not_supported);
  EXPECT_EQ(opipestream(name()).error(), errc::not_supported);
}

TEST_F(PipeWithoutIp, NeedsAServer) {
  const std::string gone = name();
  server_.close();
  const opipestream out(gone);
  EXPECT_EQ(out.error(), errc::connection_refused) << out.error_message();
  EXPECT_NE(out.error_message().find(gone), std::string::npos) << out.error_message();
}

TEST_F(PipeWithoutIp, OutlivesTheServer) {
  connect();
  server_.close();
  *out_ << "straight";
  out_->close();
  EXPECT_TRUE(*out_) << out_->error_message();
  EXPECT_EQ(all_of(*in_), "straight");
}

TEST_F(PipeWithoutIp, ConnectsOnlyToWhomItWasIntroduced) {
  auto opening = open<ipipestream>();
  wait_for_one();
  stranger_by_address other(name());
  const std::string answer = other.ask(question(2, writer, "", ""));
  ASSERT_GT(answer.size(), 36U);
  ASSERT_EQ(answer.substr(0, 12), std::string("UXPA\2\0\0\0\0\0\0\0", 12));
  const std::string token = answer.substr(16, 16);
  ASSERT_EQ(answer.substr(32, 2), std::string(2, '\0')) << "it has no socket";
  const worker_address at = worker_address::decode(bytes_of(answer).subspan(36));
  EXPECT_FALSE(other.knock(at, ""));
  EXPECT_FALSE(other.knock(at, std::string(16, 'x')));
  EXPECT_EQ(opening.wait_for(100ms), std::future_status::timeout);
  EXPECT_FALSE(other.knock(at, token));
  ipipestream in = opening.get();
  EXPECT_TRUE(in) << in.error_message();
  const auto end = std::chrono::steady_clock::now() + 20s;
  while ((other.is_connected(0) || other.is_connected(1)) &&
         std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_FALSE(other.is_connected(0) || other.is_connected(1)) << "strangers stayed";
  EXPECT_TRUE(other.is_connected(2));
  // Nobody listens any more.
  EXPECT_EQ(other.knock(at, token), errc::no_such_handler);
}

TEST_F(PipeWithoutIp, LooksForAnotherWhereWhoWasIntroducedIsNotThere) {
  stranger_by_address gone(name());  // whose worker lets nobody in
  gone.tell(question(2, reader, "", encoded(gone.worker().address())));
  wait_for_one();
  auto writing = open<opipestream>();
  EXPECT_TRUE(soon([this] { return broker_->introduced() > 0; }));
  ipipestream in(name());
  opipestream out = writing.get();
  ASSERT_TRUE(out) << out.error_message();
  out << "found";
  out.close();
  EXPECT_EQ(all_of(in), "found");
}

TEST_F(PipeWithoutIp, RefusesAddressesThatAreNone) {
  stranger_by_address hostile(name());
  const std::string good = encoded(hostile.worker().address());
  std::string mangled = good;
  mangled[good.size() / 2] ^= 1;
  const std::string refused = old_answer(errc::protocol_error).substr(0, 12);
  for (const std::string& worker :
       {std::string(), mangled, good.substr(1), good + 'x',
        encoded(worker_address::from_native(std::vector<std::byte>(16 << 10U))),
        encoded(worker_address())}) {
    EXPECT_EQ(hostile.ask(question(2, reader, "", worker)).substr(0, 12), refused);
  }
  EXPECT_EQ(hostile.ask(question(2, reader, "127.0.0.1:1", good)).substr(0, 12), refused);
  EXPECT_EQ(hostile.ask(question(2, writer, "", good)).substr(0, 12), refused);
  EXPECT_EQ(hostile.ask(question(4, reader, "", good)).substr(0, 12), refused);
  EXPECT_EQ(broker_->waiting(), 0U);
}

/// Of a window that holds no more than a message: the broker has to ask for long questions.
class PipeLongAddress : public PipeWithoutIp {
 protected:
  PipeLongAddress() : PipeWithoutIp({.worker = {.message_window = 16 << 10U}}) {}

  static std::string long_question() {
    return question(
        2, reader, "",
        encoded(worker_address::from_native(std::vector<std::byte>(12'000, std::byte{0x55}))));
  }
};

TEST_F(PipeLongAddress, IsTold) {
  stranger_by_address waits(name());
  waits.tell(long_question());
  wait_for_one();
  stranger_by_address other(name());
  const std::string answer = other.ask(question(2, writer, "", ""));
  EXPECT_EQ(answer.substr(34), long_question().substr(24));
}

TEST_F(PipeLongAddress, IsLeftAFewTimesOnly) {
  stranger_by_address greedy(name());
  for (int i = 0; i < 4; ++i) greedy.tell(long_question());
  EXPECT_EQ(greedy.ask(long_question()).substr(0, 12), old_answer(errc::busy).substr(0, 12));
  EXPECT_EQ(broker_->waiting(), 4U);
}

TEST_F(PipeWithoutIp, TellsNoWorkerAddressToWhoKnowsNone) {
  const std::string refused = old_answer(errc::not_supported).substr(0, 12);
  auto opening = open<ipipestream>();
  wait_for_one();
  stranger_by_address old(name());
  EXPECT_EQ(old.ask(question(1, writer, "", "")).substr(0, 12), refused);
  opipestream out(name());
  EXPECT_TRUE(out) << out.error_message();
  EXPECT_TRUE(opening.get());
  // The same where the one that knows none was there before.
  old.tell(question(1, writer, "", ""));
  wait_for_one();
  opening = open<ipipestream>();
  EXPECT_EQ(old.hear().substr(0, 12), refused);
  opipestream second(name());
  EXPECT_TRUE(second) << second.error_message();
  EXPECT_TRUE(opening.get());
}

/// A server that has both an IP address and a file.
class PipeBothWays : public testing::Test {
 protected:
  PipeBothWays() { server_.publish_address(folder_ / "address"); }

  std::string by_address() const { return server_.url("pipe"); }
  std::string by_file() const {
    return to_string(url::from_address_file((folder_ / "address").string(), "pipe"));
  }
  /// A reader and a writer, each by an address of its own.
  static void expect_to_meet(const std::string& read_at, const std::string& written_at) {
    auto opening = std::async(std::launch::async, [&] { return opipestream(written_at); });
    ipipestream in(read_at);
    opipestream out = opening.get();
    ASSERT_TRUE(in) << in.error_message();
    ASSERT_TRUE(out) << out.error_message();
    out << "met";
    out.close();
    EXPECT_EQ(all_of(in), "met");
  }

  const temporary_directory folder_;
  ucx_server server_;
};

TEST_F(PipeBothWays, MeetWhoeverTheyCameBy) {
  const pipe_broker broker(server_);
  for (const bool reads_by_file : {true, false}) {
    SCOPED_TRACE(reads_by_file);
    expect_to_meet(reads_by_file ? by_file() : by_address(),
                   reads_by_file ? by_address() : by_file());
  }
}

/// The broker of a version that knows socket addresses only, for one reader and one writer.
class old_broker {
 public:
  explicit old_broker(server& by) : worker_(by.worker(0)) {
    worker_.on_message(question_number, [this](const message& asked) { answer(asked); });
  }
  ~old_broker() { worker_.on_message(question_number, {}); }
  old_broker(const old_broker&) = delete;
  old_broker& operator=(const old_broker&) = delete;

 private:
  void answer(const message& asked) {
    const std::span<const std::byte> said = asked.data();
    endpoint came = asked.peer();
    if (said.size() < 24 || said[4] != std::byte{1}) {
      return send(came, old_answer(errc::protocol_error) + counted(""));
    }
    if (said[8] == static_cast<std::byte>(reader)) {
      const auto address = said.subspan(24);
      address_.assign(reinterpret_cast<const char*>(address.data()), address.size());
      reader_.emplace(std::move(came));
    } else {
      writer_.emplace(std::move(came));
    }
    if (!reader_ || !writer_) return;
    const std::string found = old_answer(errc{}, "a token of theirs");
    send(*reader_, found.substr(0, 32) + counted(""));
    send(*writer_, found.substr(0, 32) + counted(address_));
  }
  static void send(endpoint& to, const std::string& answer) {
    std::error_code gone;
    to.post_send(answer_tag, bytes_of(answer), 0, {.memory = send_memory::copied}, gone);
  }

  worker& worker_;
  std::string address_;
  std::optional<endpoint> reader_;
  std::optional<endpoint> writer_;
};

TEST_F(PipeBothWays, MeetAtAnOldBrokerByAddressOnly) {
  const old_broker broker(server_);
  expect_to_meet(by_address(), by_address());
  const ipipestream refused(by_file());
  EXPECT_EQ(refused.error(), errc::not_supported) << refused.error_message();
  EXPECT_NE(refused.error_message().find("version"), std::string::npos) << refused.error_message();
}

}  // namespace
}  // namespace ucx::test
