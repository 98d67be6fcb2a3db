// Streams whose server is killed, and started again over the same, another, or no content.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "support/bytes/pattern.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/process/test_peer.hpp"
#include "support/transports/network.hpp"
#include "ucx/client.hpp"
#include "ucx/error.hpp"
#include "ucx/file_descriptor.hpp"
#include "ucx/fstream.hpp"
#include "ucx/url.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;
using std::ios;

constexpr std::chrono::nanoseconds reconnect_limit = 30s;

/// A server in another process, on one port whatever becomes of it.
class Reconnect : public testing::Test {
 protected:
  Reconnect() { start(at_port()); }

  /// Starts the server; the port may be free only when the system has let go of it.
  void start(const std::string& at) {
    for (int i = 0; i < 500; ++i) {
      server_.emplace("tcp");
      const std::string said = server_->try_to("serve " + at);
      if (said.starts_with("ok ")) {
        url_ = said.substr(3);
        break;
      }
      std::this_thread::sleep_for(20ms);
    }
    publish_();
  }
  void publish_by(std::function<void()> publish) {
    publish_ = std::move(publish);
    publish_();
  }
  void publish_the_store() {
    publish_by([this] { server_->ask("publish_store " + (directory_ / "").string()); });
  }
  void kill() { server_->process().kill(); }
  void start_again() { start(at_port(url(url_).port())); }
  void restart() {
    kill();
    start_again();
  }
  /// The same, so that the stream knows of it before its next operation: what it writes then is not
  /// lost on its way.
  void restart_and_notice(const std::function<void()>& meanwhile = [] {}) {
    client stream_uses = client::shared(url(url_));
    kill();
    for (int i = 0; i < 10'000 && !stream_uses.status(); ++i) {
      stream_uses.worker().progress();
      std::this_thread::sleep_for(1ms);
    }
    EXPECT_EQ(stream_uses.status(), errc::connection_reset);
    meanwhile();
    start_again();
  }

  std::string at(const std::string& name) const { return url_ + '/' + name; }
  std::string text(std::size_t size) const {
    std::string made(size, '\0');
    fill_pattern(std::as_writable_bytes(std::span(made)), 3);
    return made;
  }

  const temporary_directory directory_;
  std::function<void()> publish_ = [] {};
  std::optional<test_peer> server_;
  std::string url_;
};

TEST_F(Reconnect, ReaderGoesOnInTheSameFile) {
  const std::string all = text(5'000'000);
  directory_.make("data", all);
  publish_the_store();
  ifstream in(at("data"), ios::in, {.buffer_size = 64 << 10, .reconnect_timeout = reconnect_limit});
  std::string got(1'000'000, ' ');
  ASSERT_TRUE(in.read(got.data(), 1'000'000)) << in.error_message();
  restart();
  std::string rest(4'000'000, ' ');
  ASSERT_TRUE(in.read(rest.data(), 4'000'000)) << in.error_message();
  EXPECT_TRUE(got + rest == all);
  EXPECT_EQ(in.get(), EOF);
  EXPECT_FALSE(in.bad());
}

TEST_F(Reconnect, IsNoticedBeforeWhatIsAskedOnce) {
  publish_the_store();
  for (int round = 0; round < 5; ++round) {
    directory_.make("file", "content");
    const url server(url_);
    std::error_code ec;
    const auto again = [&] {
      ASSERT_TRUE(client::shared(server).exists("file"));  // over a connection that lingers
      restart();
    };
    again();
    client::shared(server).resize("file", 3, {}, ec);
    EXPECT_FALSE(ec) << ec.message();
    again();
    client::shared(server).rename("file", "other", {}, ec);
    EXPECT_FALSE(ec) << ec.message();
    client::shared(server).rename("other", "file");
    again();
    EXPECT_EQ(client::shared(server).list_directory("", {}, ec).entries.size(), 1U);
    EXPECT_FALSE(ec) << ec.message();
    again();
    client::shared(server).remove("file", {}, ec);
    EXPECT_FALSE(ec) << ec.message();
    EXPECT_FALSE(std::filesystem::exists(directory_ / "file"));
  }
}

// Others use it still, so that it does not linger.
TEST_F(Reconnect, IsNoticedWhereTheSharedClientIsInUse) {
  publish_the_store();
  directory_.make("file", "content");
  client first = client::shared(url(url_));
  ASSERT_TRUE(first.exists("file"));
  restart();
  client second = client::shared(url(url_));
  std::error_code ec;
  second.remove("file", {}, ec);
  EXPECT_FALSE(ec) << ec.message();
  EXPECT_EQ(first.status(), errc::connection_reset);
}

TEST_F(Reconnect, SharedClientOfAServerThatIsGoneIsNone) {
  ASSERT_TRUE(client::shared(url(url_)).list().empty());
  kill();
  std::error_code ec;
  client none = client::shared(url(url_), ec);
  EXPECT_EQ(ec, errc::connection_refused) << ec.message();
  EXPECT_EQ(none.status(), errc::closed);
}

/// Keeps the system from telling the other side of the process's connections when they end, as
/// where a machine loses its power. Returns false where it may not be told so.
bool silence_connections_of(::pid_t process) {
  const file_descriptor whose(static_cast<int>(::syscall(SYS_pidfd_open, process, 0)));
  int silenced = 0;
  for (int number = 0; number < 200; ++number) {
    const file_descriptor each(
        static_cast<int>(::syscall(SYS_pidfd_getfd, whose.get(), number, 0)));
    ::tcp_info about = {};
    ::socklen_t size = sizeof about;
    const bool is_known =
        each && ::getsockopt(each.get(), IPPROTO_TCP, TCP_INFO, &about, &size) == 0;
    if (!is_known || about.tcpi_state != TCP_ESTABLISHED) continue;
    const int yes = 1;
    if (::setsockopt(each.get(), IPPROTO_TCP, TCP_REPAIR, &yes, sizeof yes) != 0) return false;
    ++silenced;
  }
  return silenced > 0;
}

TEST_F(Reconnect, IsNoticedWhereTheEndWasNotTold) {
  publish_the_store();
  directory_.make("file", "content");
  const url file(at("file"));
  ASSERT_TRUE(client::shared(file).exists("file"));
  if (!silence_connections_of(server_->process().pid())) {
    GTEST_SKIP() << "this system lets nobody have another process's sockets";
  }
  restart();
  std::error_code ec;
  client::shared(file).remove("file", {}, ec);
  EXPECT_FALSE(ec) << ec.message();
}

TEST_F(Reconnect, ReaderWaitsForTheServerToBeThereAgain) {
  const std::string all = text(100'000);
  directory_.make("data", all);
  publish_by([this] { server_->ask("publish_file data " + (directory_ / "data").string()); });
  ifstream in(at("data"), ios::in,
              {.buffer_size = 4096, .queue_depth = 1, .reconnect_timeout = reconnect_limit});
  ASSERT_EQ(in.get(), static_cast<unsigned char>(all[0]));
  kill();
  std::string rest(all.size() - 1, ' ');
  auto reading = std::async(
      std::launch::async, [&] { in.read(rest.data(), static_cast<std::streamsize>(rest.size())); });
  EXPECT_EQ(reading.wait_for(100ms), std::future_status::timeout);
  start_again();
  reading.get();
  ASSERT_TRUE(in) << in.error_message();
  EXPECT_TRUE(rest == all.substr(1));
}

TEST_F(Reconnect, KilledInTheMiddleOfALongReadChangesNoByte) {
  const std::string all = text(std::size_t{48} << 20U);
  directory_.make("data", all);
  publish_the_store();
  ifstream in(at("data"), ios::in,
              {.buffer_size = 256 << 10, .reconnect_timeout = reconnect_limit});
  for (int round = 0; round < 3; ++round) {
    in.seekg(0);
    std::string got(all.size(), ' ');
    auto reading = std::async(
        std::launch::async, [&] { in.read(got.data(), static_cast<std::streamsize>(got.size())); });
    std::this_thread::sleep_for(std::chrono::milliseconds(2 + 7 * round));
    restart();
    reading.get();
    ASSERT_TRUE(in) << in.error_message();
    EXPECT_TRUE(got == all);
    EXPECT_EQ(in.tellg(), static_cast<std::streamoff>(all.size()));
  }
}

TEST_F(Reconnect, WithoutItTheConnectionIsLost) {
  directory_.make("data", text(100'000));
  publish_the_store();
  ifstream in(at("data"), ios::in, {.buffer_size = 4096, .queue_depth = 1});
  in.get();
  restart();
  in.seekg(50'000);
  EXPECT_EQ(in.get(), EOF);
  EXPECT_TRUE(in.bad());
  EXPECT_EQ(in.error(), errc::connection_reset);
}

TEST_F(Reconnect, ReaderIsToldThatTheFileChanged) {
  const auto data = directory_.make("data", text(100'000));
  publish_the_store();
  ifstream in(at("data"), ios::in,
              {.buffer_size = 4096, .queue_depth = 1, .reconnect_timeout = reconnect_limit});
  in.get();
  kill();
  std::fstream(data) << "other";
  start_again();
  in.seekg(50'000);
  EXPECT_EQ(in.get(), EOF);
  EXPECT_TRUE(in.bad());
  EXPECT_EQ(in.error(), errc::content_changed);
  EXPECT_NE(in.error_message().find("the file was changed meanwhile"), std::string::npos)
      << in.error_message();
  EXPECT_EQ(in.tellg(), -1);
  in.clear();
  EXPECT_EQ(in.tellg(), 50'000);
  EXPECT_EQ(in.get(), EOF) << "it does not become the same again";
  EXPECT_EQ(in.error(), errc::content_changed);
}

TEST_F(Reconnect, ReaderIsToldThatTheFileWasReplaced) {
  const std::string all = text(100'000);
  const auto data = directory_.make("data", all);
  publish_the_store();
  ifstream in(at("data"), ios::in,
              {.buffer_size = 4096,
               .queue_depth = 1,
               .follow_timeout = 1ms,
               .reconnect_timeout = reconnect_limit});
  in.get();
  kill();
  directory_.make("new", all + "more");
  std::filesystem::rename(directory_ / "new", data);
  start_again();
  in.seekg(50'000);
  EXPECT_EQ(in.get(), EOF);
  EXPECT_EQ(in.error(), errc::content_changed) << in.error_message();
}

TEST_F(Reconnect, ReaderIsToldThatTheFileIsGone) {
  const auto data = directory_.make("data", text(100'000));
  publish_the_store();
  ifstream in(at("data"), ios::in,
              {.buffer_size = 4096, .queue_depth = 1, .reconnect_timeout = reconnect_limit});
  in.get();
  kill();
  std::filesystem::remove(data);
  start_again();
  in.seekg(50'000);
  EXPECT_EQ(in.get(), EOF);
  EXPECT_EQ(in.error(), errc::no_such_name) << in.error_message();
}

TEST_F(Reconnect, MemoryOfAnotherServerIsAnotherContent) {
  publish_by([this] { server_->ask("publish data 100000 7"); });
  ifstream in(at("data"), ios::in,
              {.buffer_size = 4096, .queue_depth = 1, .reconnect_timeout = reconnect_limit});
  in.get();
  restart();
  in.seekg(50'000);
  EXPECT_EQ(in.get(), EOF);
  EXPECT_TRUE(in.bad());
  EXPECT_EQ(in.error(), errc::content_changed) << in.error_message();
}

TEST_F(Reconnect, MemoryIsTheSameWhereOnlyTheConnectionWasLost) {
  publish_by([this] { server_->ask("publish data 100000 7"); });
  client_options quick;
  quick.worker.heartbeat_interval = 500ms;
  quick.worker.heartbeat_timeout = 3s;
  quick.context.share_memory = false;  // so that the server is asked
  client own(url_, quick);
  fstream both(own, "data", ios::in | ios::out,
               {.buffer_size = 4096, .queue_depth = 1, .reconnect_timeout = reconnect_limit});
  both << "ab" << std::flush;
  ASSERT_TRUE(both) << both.error_message();
  server_->process().stop();
  int got = 0;
  auto reading = std::async(std::launch::async, [&] {
    both.seekg(50'000);
    got = both.get();
  });
  for (int i = 0; i < 20'000 && !own.status(); ++i) std::this_thread::sleep_for(1ms);
  EXPECT_TRUE(own.status());
  server_->process().resume();
  reading.get();
  const std::vector<std::byte> published = pattern(100'000, 7);
  EXPECT_EQ(got, static_cast<int>(published[50'000])) << both.error_message();
  both.seekg(0);
  EXPECT_EQ(both.get(), 'a');
}

TEST_F(Reconnect, GivesUpWhenNobodyIsThereInTime) {
  directory_.make("data", text(100'000));
  publish_the_store();
  ifstream in(at("data"), ios::in,
              {.buffer_size = 4096, .queue_depth = 1, .reconnect_timeout = 50ms});
  in.get();
  kill();
  in.seekg(50'000);
  EXPECT_EQ(in.get(), EOF);
  EXPECT_TRUE(in.bad());
  EXPECT_TRUE(in.error() == errc::connection_refused || in.error() == errc::connection_reset)
      << in.error_message();
  in.clear();
  start_again();
  EXPECT_EQ(in.get(), static_cast<unsigned char>(text(100'000)[50'000])) << in.error_message();
}

TEST_F(Reconnect, FollowerGoesOnInAFileThatBecameLonger) {
  const auto log = directory_.make("log", "first\n");
  publish_the_store();
  client own(url_);
  ifstream in(own, "log", ios::in,
              {.follow_timeout = reconnect_limit, .reconnect_timeout = reconnect_limit});
  std::string line;
  ASSERT_TRUE(std::getline(in, line));
  auto reading = std::async(std::launch::async, [&] { std::getline(in, line); });
  EXPECT_EQ(reading.wait_for(50ms), std::future_status::timeout);
  kill();
  std::ofstream(log, ios::app) << "second\n";
  start_again();
  reading.get();
  ASSERT_TRUE(in) << in.error_message();
  EXPECT_EQ(line, "second");
}

TEST_F(Reconnect, FollowerOfASilentServerIsToldSo) {
  directory_.make("log", "first\n");
  publish_the_store();
  client_options quick;
  quick.worker.heartbeat_interval = 500ms;
  quick.worker.heartbeat_timeout = 3s;
  client own(url_, quick);
  ifstream in(own, "log", ios::in, {.follow_timeout = std::chrono::hours(1)});
  std::string line;
  ASSERT_TRUE(std::getline(in, line));
  server_->process().stop();
  EXPECT_FALSE(std::getline(in, line));
  EXPECT_TRUE(in.bad());
  EXPECT_TRUE(in.error() == errc::connection_reset || in.error() == errc::timed_out)
      << in.error_message();
  server_->process().resume();
}

TEST_F(Reconnect, StreamsOfOneClientShareTheNewConnection) {
  directory_.make("data", text(100'000));
  publish_the_store();
  client own(url_);
  const stream_options options{
      .buffer_size = 4096, .queue_depth = 1, .reconnect_timeout = reconnect_limit};
  ifstream one(own, "data", ios::in, options);
  ifstream two(own, "data", ios::in, options);
  one.get();
  two.get();
  restart();
  one.seekg(50'000);
  two.seekg(60'000);
  EXPECT_NE(one.get(), EOF) << one.error_message();
  EXPECT_NE(two.get(), EOF) << two.error_message();
  EXPECT_EQ(server_->ask("clients"), "1");
  EXPECT_EQ(own.status(), errc::connection_reset);
  std::error_code ec;
  const client next = detail::reconnected(own, ec);
  EXPECT_FALSE(ec) << ec.message();
  EXPECT_EQ(server_->ask("clients"), "1");
}

TEST_F(Reconnect, ClientThatWasClosedStaysSo) {
  client own(url_);
  EXPECT_FALSE(detail::reconnected(own).status());
  own.close();
  std::error_code ec;
  detail::reconnected(own, ec);
  EXPECT_EQ(ec, errc::closed);
  EXPECT_THROW(detail::reconnected(own), ucx::error);
}

TEST_F(Reconnect, ClientThatWasLostAndThenClosedStaysSo) {
  client own(url_);
  restart();
  own.close();
  std::error_code ec;
  detail::reconnected(own, ec);
  EXPECT_EQ(ec, errc::closed);
  EXPECT_EQ(server_->ask("clients"), "0");
}

TEST_F(Reconnect, AppendingGoesOnAfterItWasToldWhatIsMissing) {
  publish_the_store();
  ofstream out(at("log"), ios::app, {.reconnect_timeout = reconnect_limit});
  out << "first\n" << std::flush;
  ASSERT_TRUE(out) << out.error_message();
  kill();
  out << "second\n" << std::flush;
  EXPECT_TRUE(out.bad());
  out.clear();
  EXPECT_EQ(out.tellp(), 6);
  start_again();
  out << "second\n" << std::flush;
  ASSERT_TRUE(out) << out.error_message();
  out << "third\n";
  out.close();
  EXPECT_TRUE(out) << out.error_message();
  EXPECT_EQ(content_of(directory_ / "log"), "first\nsecond\nthird\n");
}

TEST_F(Reconnect, AppendingWhereNothingIsMissingJustGoesOn) {
  publish_the_store();
  ofstream out(at("log"), ios::app, {.reconnect_timeout = reconnect_limit});
  out << "first\n" << std::flush;
  restart_and_notice();
  out << "second\n" << std::flush;
  ASSERT_TRUE(out) << out.error_message();
  restart_and_notice();
  out.close();
  EXPECT_TRUE(out) << out.error_message();
  EXPECT_EQ(content_of(directory_ / "log"), "first\nsecond\n");
}

TEST_F(Reconnect, AppendingBehindSomebodyElseIsRefused) {
  publish_the_store();
  ofstream out(at("log"), ios::app, {.reconnect_timeout = reconnect_limit});
  out << "first\n" << std::flush;
  restart_and_notice(
      [this] { std::ofstream(directory_ / "log", ios::app) << "somebody else's\n"; });
  out << "second\n" << std::flush;
  EXPECT_TRUE(out.bad());
  EXPECT_EQ(out.error(), errc::content_changed) << out.error_message();
}

TEST_F(Reconnect, EditingInPlaceGoesOnInTheSameFile) {
  directory_.make("data", "0123456789");
  publish_the_store();
  fstream both(at("data"), ios::in | ios::out, {.reconnect_timeout = reconnect_limit});
  both << "ab" << std::flush;
  ASSERT_TRUE(both) << both.error_message();
  restart();
  EXPECT_EQ(both.get(), '2') << both.error_message();
  restart_and_notice();
  both.seekp(4);
  both << "cd" << std::flush;
  ASSERT_TRUE(both) << both.error_message();
  both.close();
  EXPECT_TRUE(both) << both.error_message();
  EXPECT_EQ(content_of(directory_ / "data"), "ab23cd6789");
}

TEST_F(Reconnect, NewFileThatWasNotCommittedHasToBeWrittenAgain) {
  publish_the_store();
  ofstream out(at("new"), ios::out, {.reconnect_timeout = reconnect_limit});
  out << "half" << std::flush;
  ASSERT_TRUE(out) << out.error_message();
  restart();
  out << "the other" << std::flush;
  EXPECT_TRUE(out.bad());
  EXPECT_EQ(out.error(), errc::connection_reset);
  EXPECT_NE(out.error_message().find("written again"), std::string::npos) << out.error_message();
  out.clear();
  out.close();
  EXPECT_TRUE(out.fail());
  EXPECT_FALSE(std::filesystem::exists(directory_ / "new"));
}

}  // namespace
}  // namespace ucx::test
