// Two processes that have no token in common connect by a key, and ends of pipes do.
#include "ucx/meeting_keys.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <ios>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pipes/pipe_introduction.hpp"
#include "support/basics/soon.hpp"
#include "support/files/temporary_directory.hpp"
#include "ucx/async_pipe.hpp"
#include "ucx/context.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/error.hpp"
#include "ucx/listener.hpp"
#include "ucx/message.hpp"
#include "ucx/pipe_broker.hpp"
#include "ucx/pipe_stream.hpp"
#include "ucx/request.hpp"
#include "ucx/server.hpp"
#include "ucx/socket_address.hpp"
#include "ucx/token_file.hpp"
#include "ucx/url.hpp"
#include "ucx/worker.hpp"
#include "worker/core_access.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

/// Each has a token for the server of a third one, and accepts none.
class MeetingKeys : public ::testing::Test {
 protected:
  MeetingKeys() {
    token_file servers(folder_ / "servers");
    for (const char* const each : {"alice", "bob"}) {
      token_file(folder_ / each).add("127.0.0.1", servers.create(each));
    }
  }
  context_options options_of(const std::string& file) const {
    context_options made{.transports = {"tls"}, .share_memory = false};
    made.token_file = folder_ / file;
    return made;
  }
  static worker_options threaded() {
    worker_options made;
    made.progress = progress_mode::sleeping_thread;
    return made;
  }
  static std::array<std::byte, 16> key(unsigned char number) {
    std::array<std::byte, 16> made = {};
    made.front() = std::byte{number};
    return made;
  }
  static bool succeeds(const request& awaited) {
    return soon([&] { return awaited.done(); }) && !awaited.error();
  }

  const temporary_directory folder_;
};

/// Alice has a door for keys, and beside it a server whose token bob has.
class MeetingSides : public MeetingKeys {
 protected:
  context_options logged() {
    context_options made = options_of("alice");
    made.log = {.level = log_level::info, .sink = [this](log_level, std::string_view line) {
                  const std::lock_guard guard(mutex_);
                  log_ += line;
                  log_ += '\n';
                }};
    return made;
  }
  std::string log() {
    const std::lock_guard guard(mutex_);
    return log_;
  }
  /// Bob's token is for alice's server. Returns its options.
  server_options served() {
    token_file bobs(folder_ / "bob");
    bobs.remove("127.0.0.1");
    bobs.add("127.0.0.1", token_file(folder_ / "alice").create("bob"));
    return {.bind = "127.0.0.1:0", .context = logged()};
  }
  /// Returns why bob is not let in there, by a key or by his token.
  std::error_code knock(const socket_address& at, std::optional<unsigned char> number) {
    std::error_code ec;
    if (number) {
      const endpoint made = bobs_.connect(bob_, at, key(*number), {}, ec);
      return ec;
    }
    try {
      const endpoint made = detail::core_access::connect(bob_, at, to_string(at));
    } catch (const error& refused) {
      return refused.code();
    }
    return ec;
  }
  socket_address of_server() const { return alices_server_.address().socket; }
  std::error_code knock(std::optional<unsigned char> number) {
    return knock(door_.address(), number);
  }

 private:
  std::mutex mutex_;
  std::string log_;

 protected:
  server alices_server_{served()};
  const context bobs_context_{options_of("bob")};
  worker& alice_{alices_server_.worker()};
  meeting_keys alices_{alice_.parent()};
  meeting_keys bobs_{bobs_context_};
  const worker bob_{bobs_context_, threaded()};
  listener door_{alices_.listen(alice_, socket_address("127.0.0.1:0"))};
};

TEST_F(MeetingSides, ConnectByAKeyOnce) {
  alices_.expect(key(1), 1h);
  EXPECT_FALSE(knock(1));
  EXPECT_EQ(knock(1), errc::permission_denied);
  EXPECT_THAT(log(), HasSubstr("was let in by the key of a meeting"));
  EXPECT_THAT(log(), HasSubstr("no key that it shows is expected here"));
}

TEST_F(MeetingSides, LetNobodyElseIn) {
  alices_.expect(key(1), 1h);
  EXPECT_EQ(knock(2), errc::permission_denied);
  EXPECT_EQ(knock(std::nullopt), errc::permission_denied) << "a token is no key";
  EXPECT_FALSE(knock(of_server(), std::nullopt)) << "but the server takes it";
  EXPECT_FALSE(knock(1)) << "the key still counts";
}

/// What the server serves, to who has shown a token, is not for those who have a key.
TEST_F(MeetingSides, ConnectAtNoOtherListenerOfTheProcess) {
  alices_.expect(key(1), 1h);
  EXPECT_EQ(knock(of_server(), 1), errc::permission_denied);
  const listener beside(alice_, socket_address("127.0.0.1:0"));
  EXPECT_EQ(knock(beside.address(), 1), errc::permission_denied);
  meeting_keys others(alice_.parent());
  const listener door = others.listen(alice_, socket_address("127.0.0.1:0"));
  EXPECT_EQ(knock(door.address(), 1), errc::permission_denied);
  EXPECT_FALSE(knock(1)) << "the key still counts";
}

TEST_F(MeetingSides, LetNobodyInWhenTheTimeIsOver) {
  alices_.expect(key(1), 0s);
  EXPECT_EQ(knock(1), errc::permission_denied);
}

TEST_F(MeetingSides, ForgetKeysThatNobodyHolds) {
  alices_.expect(key(1), 1h);
  alices_ = meeting_keys(alice_.parent());
  EXPECT_EQ(knock(1), errc::permission_denied);
}

TEST_F(MeetingSides, ShowNoTokenWhereTheKeyIsNone) {
  const std::array<std::byte, 15> few = {};
  std::error_code ec;
  const endpoint made = bobs_.connect(bob_, of_server(), few, {}, ec);
  EXPECT_EQ(ec, errc::invalid_argument);
  EXPECT_EQ(made.state(), connection_state::closed);
  alices_.expect(few, 1h, ec);
  EXPECT_EQ(ec, errc::invalid_argument);
}

/// One that failed before it was on its way leaves no key behind.
TEST_F(MeetingSides, HaveAKeyForOneConnection) {
  std::error_code ec;
  const endpoint none = bobs_.connect(bob_, socket_address(), key(1), {}, ec);
  EXPECT_EQ(ec, errc::bad_address);
  EXPECT_FALSE(knock(of_server(), std::nullopt));
  const listener missing = alices_.listen(alice_, socket_address(), {}, ec);
  EXPECT_EQ(ec, errc::bad_address);
  const listener beside(alice_, socket_address("127.0.0.1:0"));
  EXPECT_FALSE(knock(beside.address(), std::nullopt)) << "it takes tokens";
}

/// A server that knows one reader, at alice's door, and introduces a writer to it, once.
class CalledDoor : public MeetingSides {
 protected:
  CalledDoor() {
    alice_.on_message(detail::pipe_question_number, [this](const message& asked) {
      const auto question = detail::decode_pipe_question(asked.data());
      if (!question) return;
      detail::pipe_answer said{.version = question->version, .token = key(1)};
      if (is_older_ && question->version == detail::keyed_meeting_version) {
        said.version = detail::oldest_meeting_version;
        said.status = static_cast<std::uint32_t>(errc::protocol_error);
      } else {
        said.status = static_cast<std::uint32_t>(says_.exchange(errc::busy));
        if (is_told_.exchange(true) && is_silent_) return;
        said.address = to_string(door_.address());
      }
      std::error_code gone;
      endpoint writer = asked.peer();
      writer.post_send(detail::pipe_answer_tag, encode(said), 0, {.memory = send_memory::copied},
                       gone);
    });
  }
  /// Opens a pipe there, and returns why that failed.
  std::future<error> open(std::chrono::nanoseconds limit) {
    return std::async(std::launch::async, [this, limit] {
      pipe_options options{.connect_timeout = limit};
      options.context.share_memory = false;
      options.context.token_file = folder_ / "bob";
      try {
        const pipe_streambuf out(url(alices_server_.url("p")), std::ios::out, options);
      } catch (const error& failed) {
        return failed;
      }
      return error(std::error_code(), "it did not fail");
    });
  }
  std::size_t refusals() {
    const std::string lines = log();
    std::size_t count = 0;
    for (std::size_t at = lines.find(refusal_); at != std::string::npos;
         at = lines.find(refusal_, at + 1)) {
      ++count;
    }
    return count;
  }

 private:
  static constexpr const char* refusal_ = "no key that it shows is expected here";
  std::atomic<bool> is_told_ = false;

 protected:
  std::atomic<bool> is_older_ = false;   // it reads questions of the oldest version
  std::atomic<bool> is_silent_ = false;  // where it is asked again
  std::atomic<errc> says_ = errc{};
};

TEST_F(CalledDoor, IsCalledAgainUntilItExpectsTheKey) {
  auto failed = open(60s);
  EXPECT_TRUE(soon([&] { return refusals() > 0; })) << "it came too early";
  alices_.expect(key(1), 1h);
  EXPECT_TRUE(soon([&] { return log().find("by the key of a meeting") != std::string::npos; }));
  door_.close(close_mode::abort);  // nobody reads there
  EXPECT_TRUE(failed.get().code());
}

/// An end of an older build is behind a server of one, as far as this side can tell.
TEST_F(CalledDoor, IsCalledAFewTimesWhereItDoesNotExpectTheKey) {
  is_older_ = true;
  is_silent_ = true;
  const error failed = open(6s).get();
  EXPECT_EQ(failed.code(), errc::permission_denied);
  EXPECT_THAT(failed.what(), HasSubstr("a build with keys of meetings"));
  EXPECT_GT(refusals(), 1U);
  EXPECT_LE(refusals(), 8U);
}

TEST_F(CalledDoor, IsReachedThroughAServerOfAnOlderBuild) {
  is_older_ = true;
  auto failed = open(60s);
  alices_.expect(key(1), 1h);
  EXPECT_TRUE(soon([&] { return log().find("by the key of a meeting") != std::string::npos; }));
  door_.close(close_mode::abort);
  EXPECT_TRUE(failed.get().code());
}

TEST_F(CalledDoor, IsOfAnotherBuildWhereTheServerSaysSo) {
  says_ = errc::version_mismatch;
  const error failed = open(60s).get();
  EXPECT_EQ(failed.code(), errc::version_mismatch);
  EXPECT_THAT(failed.what(), HasSubstr("a build with keys of meetings"));
}

TEST_F(MeetingKeys, ListenWithoutATokenThatIsAccepted) {
  const context parent(options_of("alice"));
  const worker driven(parent, threaded());
  meeting_keys keys(parent);
  EXPECT_TRUE(keys.is_used());
  std::error_code ec;
  const listener none(driven, socket_address("127.0.0.1:0"), {}, ec);
  EXPECT_EQ(ec, errc::permission_denied) << "it is none of theirs";
  const listener door = keys.listen(driven, socket_address("127.0.0.1:0"), {}, ec);
  EXPECT_FALSE(ec);
}

TEST_F(MeetingKeys, DoNothingWithoutTls) {
  const context parent({.transports = {"socket"}});
  meeting_keys keys(parent);
  EXPECT_FALSE(keys.is_used());
  const worker driven(parent, threaded());
  const listener door = keys.listen(driven, socket_address("127.0.0.1:0"));
  keys.expect(key(1), 1h);
  const endpoint made = keys.connect(driven, door.address(), key(2));
  EXPECT_FALSE(made.status());
}

TEST_F(MeetingKeys, JoinTheEndsOfAPipeInBothDirections) {
  server there({.bind = "127.0.0.1:0", .context = options_of("servers")});
  const pipe_broker broker(there);
  const auto ends_of = [&](const std::string& file) {
    pipe_options made;
    made.context.share_memory = false;
    made.context.token_file = folder_ / file;
    return made;
  };
  for (const bool alice_reads : {true, false}) {
    const std::string reader = alice_reads ? "alice" : "bob";
    auto reading = std::async(std::launch::async, [&] {
      ipipestream in(there.url("p"), ends_of(reader));
      std::string all;
      std::getline(in, all, '\0');
      return in.bad() ? in.error_message() : all;
    });
    opipestream out(there.url("p"), ends_of(alice_reads ? "bob" : "alice"));
    out << "by a key";
    out.close();
    EXPECT_TRUE(out) << out.error_message();
    EXPECT_EQ(reading.get(), "by a key");
  }
}

TEST_F(MeetingKeys, JoinTheEndsOfAPipeThatAreRequests) {
  server there({.bind = "127.0.0.1:0", .context = options_of("servers")});
  const pipe_broker broker(there);
  const context alices(options_of("alice"));
  const context bobs(options_of("bob"));
  worker reading(alices, threaded());
  worker writing(bobs, threaded());
  async_pipe in;
  async_pipe out;
  request opens_in = async_pipe::start_open(reading, url(there.url("p")), std::ios::in, in);
  request opens_out = async_pipe::start_open(writing, url(there.url("p")), std::ios::out, out);
  ASSERT_TRUE(succeeds(opens_in));
  const std::array<std::byte, 3> said = {std::byte{1}, std::byte{2}, std::byte{3}};
  std::array<std::byte, 3> heard = {};
  std::size_t count = 0;
  request reads = in.start_read(heard, count);
  ASSERT_TRUE(succeeds(opens_out)) << "who writes awaits who reads";
  request writes = out.start_write(said);
  EXPECT_TRUE(succeeds(writes));
  request closes = out.start_close();
  EXPECT_TRUE(succeeds(reads));
  EXPECT_GT(count, 0U);
  EXPECT_EQ(heard.front(), said.front());
}

}  // namespace
}  // namespace ucx::test
