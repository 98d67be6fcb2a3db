// Connecting as a request over a worker of the caller's, and the requests of a remote_file, in
// virtual time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "support/basics/soon.hpp"
#include "support/bytes/bytes_of.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/simulated/simulated_server.hpp"
#include "ucx/client.hpp"
#include "ucx/error.hpp"
#include "ucx/remote_file.hpp"
#include "ucx/request.hpp"
#include "ucx/server.hpp"
#include "ucx/url.hpp"
#include "ucx/worker.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

/// A server, and a worker that this thread drives as a loop would.
class ConnectRequests : public testing::Test {
 protected:
  static constexpr std::chrono::milliseconds pause{1};
  static constexpr int rounds = 60000;
  static constexpr int states = 10;  // beyond the rounds that connecting takes

  ConnectRequests() {
    folder_.make("file", "content");
    stored_.emplace(served_.server().publish_store(folder_ / "", {.writable = true}));
  }
  url server() {
    const socket_address at = served_.made->address().socket;
    return url(at.host(), at.port());
  }
  void round() {
    driven_.progress();
    if (served_.made) served_.server().worker().progress();
    served_.network.advance(1ms);
  }
  void finish(const request& awaited) {
    for (int i = 0; i < rounds && !awaited.done(); ++i) round();
    ASSERT_TRUE(awaited.done()) << awaited.description();
  }
  void succeed(const request& awaited) {
    finish(awaited);
    EXPECT_FALSE(awaited.error()) << awaited.description() << ": " << awaited.error().message();
  }

  const temporary_directory folder_;
  simulated_server served_{{.link = {.latency = 2ms}, .pause = pause}};
  std::optional<publication> stored_;
  fake_process& process_ = served_.network.add_process("loop");
  worker driven_{served_.context_in(process_), {.progress = progress_mode::external}};
};

TEST_F(ConnectRequests, MakeAClientOfTheirWorker) {
  client made;
  EXPECT_EQ(made.status(), errc::closed);
  const request connecting = client::start_connect(driven_, server(), made);
  EXPECT_EQ(made.status(), errc::closed) << "it is made at the end";
  succeed(connecting);
  EXPECT_FALSE(made.status());
  EXPECT_EQ(made.server(), server());
  entry found;
  succeed(made.start_stat("file", found));
  EXPECT_EQ(found.size, 7U);
}

TEST_F(ConnectRequests, LeaveTheHandlersOfALoopToItsRounds) {
  {
    client made;
    succeed(client::start_connect(driven_, server(), made));
  }
  int runs = 0;
  std::function<void()> again = [&] {
    ++runs;
    driven_.post([&again] { again(); });
  };
  again();
  {
    client made;
    succeed(client::start_connect(driven_, server(), made));
  }
  runs = 0;
  driven_.progress();
  EXPECT_EQ(runs, 1) << "a client has gone, and not the loop's worker";
  again = [] {};
  driven_.progress();
}

TEST_F(ConnectRequests, FailWhereNoServerIs) {
  client made;
  const request nobody = client::start_connect(driven_, url("127.0.0.1", 9), made);
  finish(nobody);
  EXPECT_EQ(nobody.error(), errc::connection_refused) << nobody.description();
  EXPECT_THAT(nobody.description(), testing::HasSubstr("ucx://127.0.0.1:9"));
  const request other = client::start_connect(driven_, url("ucx+tcp://127.0.0.1:9"), made);
  EXPECT_EQ(other.error(), errc::bad_configuration);
  EXPECT_EQ(client::start_connect(driven_, url(), made).error(), errc::bad_url);
  EXPECT_EQ(made.status(), errc::closed);
}

TEST_F(ConnectRequests, EndWithTheirDeadline) {
  served_.process.stop();
  client made;
  const auto begin = served_.network.now();
  const request connecting = client::start_connect(driven_, server(), made, {.timeout = 2s});
  for (int i = 0; i < 4000 && !connecting.done(); ++i) {
    driven_.progress();
    served_.network.advance(1ms);
  }
  EXPECT_EQ(connecting.error(), errc::timed_out);
  EXPECT_LT(served_.network.now() - begin, 3s);
  served_.process.resume();
}

TEST_F(ConnectRequests, ShareAClientOfTheirWorker) {
  client first;
  client second;
  const request one = client::start_shared(driven_, server(), first);
  const request other = client::start_shared(driven_, server(), second);
  EXPECT_EQ(second.status(), errc::closed);
  succeed(one);
  succeed(other);
  EXPECT_EQ(first.connection().id(), second.connection().id());
  client third;
  const request known = client::start_shared(driven_, server(), third);
  EXPECT_TRUE(known.done()) << "nothing has to be waited for";
  EXPECT_EQ(third.connection().id(), first.connection().id());
  entry found;
  succeed(third.start_stat("file", found));
  EXPECT_EQ(found.size, 7U);
}

TEST_F(ConnectRequests, ConnectAnewWhereTheSharedClientIsGoneOrLost) {
  client first;
  succeed(client::start_shared(driven_, server(), first));
  const std::uint64_t before = first.connection().id();
  first.close();
  client second;
  succeed(client::start_shared(driven_, server(), second));
  EXPECT_NE(second.connection().id(), before);
  const std::uint64_t then = second.connection().id();
  second = client();
  for (int i = 0; i < 100; ++i) round();
  client third;
  const request anew = client::start_shared(driven_, server(), third);
  EXPECT_FALSE(anew.done()) << "it does not linger";
  succeed(anew);
  EXPECT_NE(third.connection().id(), then);
}

TEST_F(ConnectRequests, FailTogetherWhereNoServerIs) {
  client first;
  client second;
  const url nobody("127.0.0.1", 9);
  const request one = client::start_shared(driven_, nobody, first);
  const request other = client::start_shared(driven_, nobody, second);
  finish(one);
  finish(other);
  for (const request* each : {&one, &other}) {
    EXPECT_EQ(each->error(), errc::connection_refused) << each->description();
    EXPECT_THAT(each->description(), testing::HasSubstr("ucx://127.0.0.1:9"));
  }
  EXPECT_EQ(client::start_shared(driven_, url(), first).error(), errc::bad_url);
  EXPECT_EQ(client::start_shared(driven_, url("ucx+tcp://127.0.0.1:9"), first).error(),
            errc::bad_configuration);
}

TEST_F(ConnectRequests, LeaveThoseAloneWhoShareTheirClient) {
  for (int state = 0; state < states; ++state) {
    SCOPED_TRACE(state);
    client first;
    client second;
    client third;
    std::optional one = client::start_shared(driven_, server(), first);
    request other = client::start_shared(driven_, server(), second);
    const request last = client::start_shared(driven_, server(), third);
    for (int i = 0; i < state; ++i) round();
    one.reset();
    other.cancel();
    EXPECT_TRUE(other.done());
    succeed(last);
    EXPECT_FALSE(third.status());
  }
}

TEST_F(ConnectRequests, GiveUpTheSharedAttemptWithTheLastWhoWaits) {
  served_.process.stop();
  client first;
  client second;
  request one = client::start_shared(driven_, server(), first, {.timeout = 4s});
  const request other = client::start_shared(driven_, server(), second, {.timeout = 1s});
  for (int i = 0; i < 2000 && !other.done(); ++i) {
    driven_.progress();
    served_.network.advance(1ms);
  }
  EXPECT_EQ(other.error(), errc::timed_out);
  EXPECT_FALSE(one.done());
  one.cancel();
  EXPECT_EQ(one.error(), errc::canceled);
  served_.process.resume();
  client third;
  succeed(client::start_shared(driven_, server(), third));
}

TEST_F(ConnectRequests, ThatShareAnAttemptHaveTheirOwnTime) {
  served_.process.stop();
  client first;
  client second;
  const request one = client::start_shared(driven_, server(), first, {.timeout = 1s});
  const request other = client::start_shared(driven_, server(), second, {.timeout = 30s});
  for (int i = 0; i < 2000 && !one.done(); ++i) {
    driven_.progress();
    served_.network.advance(1ms);
  }
  EXPECT_EQ(one.error(), errc::timed_out);
  EXPECT_FALSE(other.done()) << other.description();
  served_.process.resume();
  succeed(other);
  EXPECT_FALSE(second.status());
}

TEST_F(ConnectRequests, GiveUpAndDropTheOnlySharedAttemptInEachState) {
  for (int state = 0; state < 2 * states; ++state) {
    SCOPED_TRACE(state);
    client made;
    std::optional<request> asked = client::start_shared(driven_, server(), made);
    for (int i = 0; i < state / 2; ++i) round();
    if (state % 2 == 0) asked->cancel();
    asked.reset();
    made = client();
    for (int i = 0; i < 20; ++i) round();
  }
}

TEST_F(ConnectRequests, AreCanceledInEachState) {
  int canceled = 0;
  for (int state = 0; state < states; ++state) {
    SCOPED_TRACE(state);
    client made;
    request connecting = client::start_connect(driven_, server(), made);
    for (int i = 0; i < state; ++i) round();
    connecting.cancel();
    ASSERT_TRUE(connecting.done()) << "it waits for nobody";
    EXPECT_EQ(made.status(),
              connecting.error() ? make_error_code(errc::closed) : std::error_code());
    if (connecting.error()) {
      EXPECT_EQ(connecting.error(), errc::canceled);
      ++canceled;
    }
    for (int i = 0; i < 20; ++i) round();
  }
  EXPECT_GT(canceled, 1);
}

TEST_F(ConnectRequests, AreDroppedInEachStateWithoutAnotherRound) {
  for (int state = 0; state < states; ++state) {
    SCOPED_TRACE(state);
    const std::size_t before = served_.network.live().workers;
    {
      client made;
      worker gone(served_.context_in(process_), {.progress = progress_mode::external});
      const request connecting = client::start_connect(gone, server(), made);
      for (int i = 0; i < state; ++i) {
        gone.progress();
        round();
      }
    }
    EXPECT_EQ(served_.network.live().workers, before);
    for (int i = 0; i < 20; ++i) round();
  }
}

TEST_F(ConnectRequests, FilesDoNothingInAHandlerThatWouldWait) {
  client over;
  succeed(client::start_connect(driven_, server(), over));
  const remote_file_options writing{.wanted = access::write, .create = creation::replace};
  remote_file file(over, "new", writing);
  bool ran = false;
  driven_.post([&] {
    std::error_code ec;
    file.close(ec);
    EXPECT_EQ(ec, errc::would_deadlock);
    EXPECT_TRUE(file.is_open());
    file.commit(ec);
    EXPECT_EQ(ec, errc::would_deadlock);
    const remote_file other(over, "other", writing, ec);
    EXPECT_EQ(ec, errc::would_deadlock);
    ran = true;
  });
  for (int i = 0; i < rounds && !ran; ++i) round();
  ASSERT_TRUE(ran);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "new"));
  file.close();
  EXPECT_TRUE(std::filesystem::exists(folder_ / "new"));
}

/// A read flushes what was written before. Given up, it takes nothing from the file.
TEST_F(ConnectRequests, CanceledReadsLoseNoWrites) {
  client over;
  succeed(client::start_connect(driven_, server(), over));
  const std::vector<std::byte> text(100'000, std::byte{3});
  for (int state = 0; state < states; ++state) {
    SCOPED_TRACE(state);
    const remote_file_options writing{.wanted = access::read_write, .create = creation::replace};
    remote_file file;
    succeed(remote_file::start_open(over, "new", writing, file));
    const request first = file.start_write_at(0, text);
    std::vector<std::byte> into(4);
    std::size_t count = 0;
    request reading = file.start_read_at(0, into, count);
    for (int i = 0; i < state; ++i) round();
    reading.cancel();
    finish(reading);
    succeed(first);
    succeed(file.start_close());
    EXPECT_EQ(content_of(folder_ / "new").size(), text.size());
  }
}

TEST_F(ConnectRequests, EndWithAServerThatIsKilled) {
  for (int state = 0; state < states; ++state) {
    SCOPED_TRACE(state);
    simulated_server other({.link = {.latency = 2ms}, .seed = static_cast<std::uint64_t>(state)});
    fake_process& own = other.network.add_process("loop");
    worker driven(other.context_in(own), {.progress = progress_mode::external});
    const socket_address at = other.made->address().socket;
    client made;
    request connecting = client::start_connect(driven, url(at.host(), at.port()), made);
    for (int i = 0; i < state; ++i) {
      driven.progress();
      other.server().worker().progress();
      other.network.advance(1ms);
    }
    other.process.kill();
    std::error_code ec;
    connecting.wait(ec);
    if (ec) {
      EXPECT_TRUE(ec == errc::connection_reset || ec == errc::connection_refused ||
                  ec == errc::unreachable)
          << ec.message();
    }
  }
}

TEST_F(ConnectRequests, GoWithTheirWorker) {
  client made;
  std::optional<request> connecting;
  {
    worker gone(served_.context_in(process_), {.progress = progress_mode::external});
    connecting = client::start_connect(gone, server(), made);
  }
  connecting.reset();
  EXPECT_EQ(made.status(), errc::closed);
}

/// A worker with a thread goes on connecting, up to wherever it is dropped.
TEST(ConnectRequestsOfAThread, AreDroppedInEachState) {
  link_options link;
  link.time = time_mode::real;
  simulated_server served({.link = link});
  fake_process& own = served.network.add_process("loop");
  const std::uint16_t port = served.made->address().socket.port();
  const auto drive = [&] { return served.server().worker().progress(); };
  enum class state { begun, connecting, connected };
  for (const char* const host : {"127.0.0.1", "localhost"}) {
    for (const state reached : {state::begun, state::connecting, state::connected}) {
      for (int turn = 0; turn < 5; ++turn) {
        SCOPED_TRACE(std::string(host) + ", state " + std::to_string(static_cast<int>(reached)));
        const std::size_t before = served.network.live().workers;
        {
          worker driven(served.context_in(own),
                        {.progress = progress_mode::sleeping_thread, .connect_timeout = 60s});
          auto made = std::make_unique<client>();
          std::optional<request> connecting = client::start_connect(driven, url(host, port), *made);
          if (reached == state::connecting) {
            EXPECT_TRUE(soon([&] { return driven.connections() > 0; }));
          } else if (reached == state::connected) {
            EXPECT_TRUE(soon([&] {
              drive();
              return connecting->done();
            }));
            EXPECT_FALSE(connecting->error()) << connecting->description();
          }
          connecting.reset();
          made.reset();  // nothing is written to it any more
        }
        EXPECT_TRUE(soon([&] { return served.network.live().workers == before; }));
        while (drive()) {
        }
      }
    }
  }
}

/// A file by requests alone.
TEST_F(ConnectRequests, WriteAndReadAFile) {
  client over;
  succeed(client::start_connect(driven_, server(), over));
  remote_file file;
  EXPECT_FALSE(file.is_open());
  std::size_t count = 0;
  EXPECT_EQ(file.start_write_at(0, {}).error(), errc::closed);
  const remote_file_options writing{.wanted = access::read_write, .create = creation::replace};
  succeed(remote_file::start_open(over, "new", writing, file));
  ASSERT_TRUE(file.is_open());
  EXPECT_EQ(remote_file::start_open(over, "new", writing, file).error(), errc::invalid_argument);
  const auto text = bytes_of("some text");
  const request first = file.start_write_at(0, text);
  std::vector<std::byte> into(100);
  const request reading = file.start_read_at(5, into, count);
  succeed(reading);
  EXPECT_EQ(count, 4U) << "it sees what was written before";
  succeed(first);
  succeed(file.start_resize(4));
  succeed(file.start_sync());
  succeed(file.start_commit());
  EXPECT_EQ(content_of(folder_ / "new"), "some");
  const request closing = file.start_close();
  EXPECT_FALSE(file.is_open());
  succeed(closing);
  remote_file missing;
  const request none = remote_file::start_open(over, "nothing", {}, missing);
  finish(none);
  EXPECT_EQ(none.error(), errc::no_such_name);
  EXPECT_FALSE(missing.is_open());
  EXPECT_EQ(remote_file::start_open(over, "x", {.create = creation::replace}, missing).error(),
            errc::invalid_argument);
}

TEST_F(ConnectRequests, CloseAFileInEachState) {
  client over;
  succeed(client::start_connect(driven_, server(), over));
  const auto text = bytes_of("some text");
  for (int state = 0; state < states; ++state) {
    SCOPED_TRACE(state);
    remote_file file;
    const remote_file_options writing{.wanted = access::write, .create = creation::replace};
    succeed(remote_file::start_open(over, "new", writing, file));
    succeed(file.start_write_at(0, text));
    request closing = file.start_close();
    for (int i = 0; i < state; ++i) round();
    closing.cancel();
    finish(closing);
    if (closing.error()) {
      EXPECT_EQ(closing.error(), errc::canceled);
    }
    closing = {};
    for (int i = 0; i < 20; ++i) round();
  }
}

}  // namespace
}  // namespace ucx::test
