// One loop of the program drives a client: connecting, a list, many opens, reads, a file, pipes,
// the end.
// The server is another process, so that all threads here would be the client's.
#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#if UCXIO_HAS_ASIO
#include "asio_progress.hpp"
#endif
#include "client_coroutine.hpp"
#include "client_job.hpp"
#include "support/basics/soon.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/process/test_peer.hpp"
#include "support/transports/url_scheme.hpp"
#include "ucx/context.hpp"
#include "ucx/file_descriptor.hpp"
#include "ucx/url.hpp"
#include "ucx/worker.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t listed_names = 1000;

/// A server of a writable store of many files, and a worker for the loop of this thread.
class OneLoop : public testing::TestWithParam<std::string> {
 protected:
  OneLoop() : by_{GetParam(), secrets_ / ""} {
    for (std::size_t i = 0; i < listed_names; ++i) {
      const std::string number = std::to_string(listed_names + i);
      files_.make("file-" + number, "text " + number);
    }
    where_ = url(peer_.ask("serve_by " + by_.name + ' ' + by_.folder.string()));
    peer_.ask("publish_store " + (files_ / "").string());
    const std::size_t first = threads();
    driven_.emplace(context(by_.context()), worker_options{.progress = progress_mode::external});
    // UCX has one of its own.
    EXPECT_LE(threads(), first + (by_.is_of_ucx() ? 1 : 0));
    at_begin_ = threads();
    // Timers are run by the worker: it sees what there is in the middle of everything.
    driven_->call_every(1ms, [this] { most_ = std::max(most_, threads()); }).detach();
  }

  static std::size_t threads() {
    const std::filesystem::directory_iterator all("/proc/self/task");
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
  }
  /// Returns how often this thread has slept, for whatever reason.
  static long sleeps() {
    ::rusage usage = {};
    ::getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw;
  }

  void expect_done(const std::vector<entry>& names, const std::vector<std::string>& texts,
                   const std::vector<pipe_ends>& pipes, const std::string& trouble) {
    EXPECT_EQ(trouble, "");
    EXPECT_EQ(names.size(), listed_names);
    ASSERT_EQ(texts.size(), client_job::most_open);
    for (std::size_t i = 0; i < texts.size(); ++i) {
      EXPECT_EQ(texts[i], content_of(files_ / names[i].name));
    }
    EXPECT_EQ(content_of(files_ / client_job::written_name), client_job::written);
    ASSERT_EQ(pipes.size(), client_job::most_pipes);
    for (const pipe_ends& each : pipes) EXPECT_EQ(each.piped, client_job::written);
    EXPECT_GT(most_, 0U);
    // A reader of a pipe listens: over UCX its port is guarded, and by TLS the tokens are watched.
    const std::size_t guards = by_.is_of_ucx() ? client_job::most_pipes : 0;
    const std::size_t watches = by_.name == "tls" ? 1 : 0;
    // The resolver has one for a moment, and the system lists some that have been joined. One for
    // each open file would be many more.
    EXPECT_LE(most_, at_begin_ + guards + watches + 4);
    EXPECT_TRUE(soon([&] { return threads() <= at_begin_ + watches; })) << threads();
    EXPECT_EQ(driven_->connections(), 0U);
  }

  const temporary_directory secrets_;
  const temporary_directory files_;
  const url_scheme by_;
  test_peer peer_{"tcp"};
  url where_;
  std::optional<worker> driven_;
  std::size_t at_begin_ = 0;
  std::size_t most_ = 0;
};

TEST_P(OneLoop, OfEpollDrivesAClient) {
  worker& driven = *driven_;
  const file_descriptor loop(::epoll_create1(EPOLL_CLOEXEC));
  ::epoll_event wanted = {.events = EPOLLIN, .data = {.fd = driven.event_fd()}};
  ASSERT_EQ(::epoll_ctl(loop.get(), EPOLL_CTL_ADD, driven.event_fd(), &wanted), 0);
  client_job job(driven, where_);
  bool is_over = false;
  long in_loop = 0;
  const long before = sleeps();
  job.begin([&] { is_over = true; });
  const auto until = std::chrono::steady_clock::now() + 120s;
  while (!is_over && std::chrono::steady_clock::now() < until) {
    while (driven.progress()) {
    }
    if (is_over || !driven.arm()) continue;
    const auto limit = std::min<std::chrono::nanoseconds>(driven.next_timeout(), 1s);
    const long awake = sleeps();
    ::epoll_event ready = {};
    ::epoll_wait(loop.get(), &ready, 1,
                 static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(limit).count()));
    in_loop += sleeps() - awake;
  }
  ASSERT_TRUE(is_over);
  // Each of some 140 requests would sleep, if its call waited. The system may have reasons.
  if (!by_.is_of_ucx()) {
    EXPECT_LT(sleeps() - before - in_loop, 70);
  }
  expect_done(job.names(), job.texts(), job.pipes(), job.trouble());
}

TEST_P(OneLoop, OfCoroutinesDrivesAClient) {
  what_it_found found;
  std::stop_source stop;
  visit_store(*driven_, where_, found, stop);
  driven_->run(stop.get_token());
  expect_done(found.names, found.texts, found.pipes, found.trouble);
}

#if UCXIO_HAS_ASIO
TEST_P(OneLoop, OfAsioDrivesAClient) {
  client_job job(*driven_, where_);
  {
    asio::io_context io;
    job.begin([&] { io.stop(); });
    asio_progress progress(io, *driven_);
    io.run();
  }
  expect_done(job.names(), job.texts(), job.pipes(), job.trouble());
}
#endif

/// A step whose server is gone ends the job with the reason.
TEST_P(OneLoop, IsToldOfAServerThatIsKilled) {
  what_it_found found;
  std::stop_source stop;
  peer_.process().stop();
  visit_store(*driven_, where_, found, stop);
  for (int i = 0; i < 100; ++i) driven_->progress();
  peer_.process().kill();
  driven_->run(stop.get_token());
  EXPECT_NE(found.trouble, "");
  EXPECT_TRUE(found.names.empty());
  EXPECT_LE(most_, at_begin_ + 1);
}

std::string name_of_loop(const testing::TestParamInfo<std::string>& each) { return each.param; }

INSTANTIATE_TEST_SUITE_P(, OneLoop, testing::Values("ucx", "socket", "unix"), name_of_loop);
#if UCXIO_HAS_TLS
INSTANTIATE_TEST_SUITE_P(ByTls, OneLoop, testing::Values("tls"), name_of_loop);
#endif

}  // namespace
}  // namespace ucx::test
