// Descriptors of what a server publishes: all of it in memory, and all of it one byte after the
// other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "support/files/temporary_directory.hpp"
#include "support/transports/ucx_server.hpp"
#include "ucx/client.hpp"
#include "ucx/error.hpp"
#include "ucx/experimental/read_fd_feed.hpp"
#include "ucx/file_descriptor.hpp"
#include "ucx/server.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;
using experimental::read_fd_feed;
using testing::HasSubstr;

/// Something that differs everywhere.
std::string text_of(std::size_t size) {
  std::string made(size, '\0');
  for (std::size_t i = 0; i < size; ++i) made[i] = static_cast<char>((i * 31 + i / 251) % 253);
  return made;
}

struct ending {
  std::string bytes;
  int failure = 0;  ///< errno of the last read; 0: the end.
};

/// Reads to the end, or to what is instead of it.
ending read_all(int from, std::size_t each = 10'000) {
  ending made;
  std::vector<char> into(each);
  for (;;) {
    const ssize_t count = ::read(from, into.data(), into.size());
    if (count <= 0) {
      made.failure = count < 0 ? errno : 0;
      return made;
    }
    made.bytes.append(into.data(), static_cast<std::size_t>(count));
  }
}

class Descriptor : public testing::Test {
 protected:
  static constexpr std::size_t large = std::size_t{20} << 20U;

  url at(const std::string& name = "file") const { return url(served_.url() + '/' + name); }

  const temporary_directory directory_;
  ucx_server served_;
  publication store_ = served_.publish_store(directory_ / "");
};

// ---- A copy in memory

class SealedCopy : public Descriptor {};

TEST_F(SealedCopy, IsAFileWithAllOfIt) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{4096},
                                 std::size_t{1} << 20U, (std::size_t{9} << 20U) + 17}) {
    const std::string text = text_of(size);
    directory_.make("file", text);
    const file_descriptor copy = copy_to_memfd(at());
    ASSERT_TRUE(copy);
    EXPECT_EQ(::lseek(copy.get(), 0, SEEK_CUR), 0);
    EXPECT_TRUE(read_all(copy.get()).bytes == text) << size;
    EXPECT_EQ(::lseek(copy.get(), 0, SEEK_END), static_cast<off_t>(size));
    EXPECT_EQ(::fcntl(copy.get(), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    const std::string path = "/proc/self/fd/" + std::to_string(copy.get());
    EXPECT_TRUE(content_of(path) == text) << size;
  }
}

TEST_F(SealedCopy, CanBeMappedAndNotBeChanged) {
  const std::string text = text_of(10'000);
  directory_.make("file", text);
  const file_descriptor copy = copy_to_memfd(at());
  void* const memory = ::mmap(nullptr, text.size(), PROT_READ, MAP_SHARED, copy.get(), 0);
  ASSERT_NE(memory, MAP_FAILED);
  EXPECT_EQ(std::string_view(static_cast<const char*>(memory), text.size()), text);
  ::munmap(memory, text.size());
  EXPECT_LT(::write(copy.get(), "x", 1), 0);
  EXPECT_LT(::ftruncate(copy.get(), 0), 0);
  EXPECT_EQ(::mmap(nullptr, 1, PROT_READ | PROT_WRITE, MAP_SHARED, copy.get(), 0), MAP_FAILED);
}

/// Sends a thread signals all the time.
class signals {
 public:
  signals() {
    struct ::sigaction does_nothing = {};
    does_nothing.sa_handler = [](int) {};  // and interrupts what the system does
    ::sigaction(SIGUSR1, &does_nothing, &before_);
    sending_ = std::jthread([to = ::pthread_self()](const std::stop_token& end) {
      while (!end.stop_requested()) {
        ::pthread_kill(to, SIGUSR1);
        std::this_thread::sleep_for(5ms);
      }
    });
  }
  signals(const signals&) = delete;
  signals& operator=(const signals&) = delete;
  ~signals() {
    sending_.request_stop();
    sending_.join();
    ::sigaction(SIGUSR1, &before_, nullptr);
  }

 private:
  struct ::sigaction before_ = {};
  std::jthread sending_;
};

TEST_F(SealedCopy, IsMadeAlsoWhileSignalsArrive) {
  directory_.make("file", "begin");
  std::filesystem::resize_file(directory_ / "file", std::size_t{64} << 20U);
  client through(served_.url());
  const remote_region region = through.open("file");
  const signals meanwhile;
  std::error_code ec;
  const file_descriptor copy = copy_to_memfd(region, {}, ec);
  EXPECT_FALSE(ec) << ec.message();
  EXPECT_EQ(::lseek(copy.get(), 0, SEEK_END), off_t{64} << 20U);
}

TEST_F(SealedCopy, TellsWhyThereIsNone) {
  std::error_code ec;
  EXPECT_FALSE(copy_to_memfd(at("missing"), {}, ec));
  EXPECT_EQ(ec, errc::no_such_name);
  EXPECT_FALSE(copy_to_memfd(url(served_.url()), {}, ec));
  EXPECT_EQ(ec, errc::bad_url);
  directory_.make("file", text_of(1001));
  EXPECT_FALSE(copy_to_memfd(at(), {.max_size = 1000}, ec));
  EXPECT_EQ(ec, errc::no_space);
  EXPECT_TRUE(copy_to_memfd(at(), {.max_size = 1001}, ec));
  EXPECT_FALSE(ec);
  client through(served_.url());
  const remote_region region = through.open("file");
  EXPECT_TRUE(copy_to_memfd(region));
  std::filesystem::resize_file(directory_ / "file", 10);
  EXPECT_FALSE(copy_to_memfd(region, {}, ec));
  EXPECT_EQ(ec, errc::content_changed);
  store_.close();
  EXPECT_FALSE(copy_to_memfd(region, {}, ec));
  EXPECT_EQ(ec, errc::revoked);
  ::rlimit before = {};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const publication memory = served_.publish("memory", std::as_bytes(std::span("text", 4)));
  const remote_region small = through.open("memory");
  ::rlimit none = before;
  none.rlim_cur = 3;
  ::setrlimit(RLIMIT_NOFILE, &none);
  const file_descriptor refused = copy_to_memfd(small, {}, ec);
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(ec, errc::too_many_files);
}

// ---- A feed

class ReadFdFeed : public Descriptor {};

TEST_F(ReadFdFeed, HandsOverAllOfIt) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{524288}, large + 3}) {
    const std::string text = text_of(size);
    directory_.make("file", text);
    read_fd_feed feed(at());
    const ending read = read_all(feed.fd());
    EXPECT_EQ(read.failure, 0);
    EXPECT_TRUE(read.bytes == text) << size;
    EXPECT_TRUE(feed.wait_for(30s));
    EXPECT_FALSE(feed.error()) << feed.error_message();
    EXPECT_EQ(feed.bytes_fed(), size);
  }
}

TEST_F(ReadFdFeed, WaitsForWhoeverReadsWithinItsWindow) {
  const std::string text = text_of(large);
  directory_.make("file", text);
  read_fd_feed feed(at(), {.window = std::size_t{128} << 10U});
  char first = 0;
  ASSERT_EQ(::read(feed.fd(), &first, 1), 1);  // at once
  EXPECT_FALSE(feed.wait_for(50ms));
  EXPECT_LT(feed.bytes_fed(), large);
  EXPECT_TRUE(first + read_all(feed.fd()).bytes == text);
}

TEST_F(ReadFdFeed, EndsWhenNobodyReads) {
  directory_.make("file", text_of(large));
  read_fd_feed feed(at());
  feed.release_fd();
  EXPECT_EQ(feed.fd(), -1);
  EXPECT_TRUE(feed.wait_for(30s));
  EXPECT_EQ(feed.error(), errc::canceled);
  EXPECT_NE(feed.error_message(), "");
}

TEST_F(ReadFdFeed, TellsAReaderThatItWasStopped) {
  directory_.make("file", text_of(large));
  file_descriptor reader;
  {
    read_fd_feed feed(at());
    reader = feed.release_fd();
    std::jthread stopping([&feed] { feed.stop(); });
    EXPECT_TRUE(feed.wait_for(30s));
    EXPECT_EQ(feed.error(), errc::canceled);
  }
  const ending read = read_all(reader.get());
  EXPECT_EQ(read.failure, ECONNRESET);
  EXPECT_LT(read.bytes.size(), large);
}

TEST_F(ReadFdFeed, TellsAReaderThatBytesAreMissing) {
  const std::string text = text_of(large);
  for (const bool lost : {false, true}) {
    directory_.make("file", text);
    read_fd_feed feed(at(), {.window = std::size_t{256} << 10U});
    std::string begin(1000, '\0');
    ASSERT_EQ(::read(feed.fd(), begin.data(), begin.size()), 1000);
    if (lost) {
      served_.close();
    } else {
      std::filesystem::resize_file(directory_ / "file", 10);
    }
    const ending read = read_all(feed.fd());
    EXPECT_EQ(read.failure, ECONNRESET);
    EXPECT_EQ(::read(feed.fd(), begin.data(), 1), 0) << "it is told once";
    EXPECT_LT(read.bytes.size() + 1000, large);
    EXPECT_TRUE(text.starts_with(begin + read.bytes)) << "what came is what was there";
    EXPECT_TRUE(feed.wait_for(30s));
    EXPECT_TRUE(feed.error());
    EXPECT_EQ(feed.error() == errc::content_changed, !lost) << feed.error_message();
  }
}

/// A child of fork() that lives on until its parent lets go of it, when it has called `first`.
class forked_child {
 public:
  template <class Call>
  explicit forked_child(Call&& first) {
    std::array<int, 2> up{};
    std::array<int, 2> down{};
    if (::pipe(up.data()) != 0 || ::pipe(down.data()) != 0) return;
    id_ = ::fork();
    if (id_ == 0) {
      first();
      ::close(down[1]);
      char none = 0;
      const bool told = ::write(up[1], "", 1) == 1;
      ::_exit(told && ::read(down[0], &none, 1) == 0 ? 0 : 1);
    }
    ::close(up[1]);
    ::close(down[0]);
    until_ = file_descriptor(down[1]);
    char none = 0;
    is_there_ = id_ > 0 && ::read(up[0], &none, 1) == 1;
    ::close(up[0]);
  }
  forked_child(const forked_child&) = delete;
  forked_child& operator=(const forked_child&) = delete;
  ~forked_child() {
    until_ = file_descriptor();
    if (id_ > 0) ::waitpid(id_, nullptr, 0);
  }
  bool is_there() const { return is_there_; }

 private:
  ::pid_t id_ = -1;
  file_descriptor until_;
  bool is_there_ = false;
};

/// A read that lasts is a failure of the test's, which does not wait for it.
void bound_reads(int from) {
  const ::timeval longest{.tv_sec = 20, .tv_usec = 0};
  ASSERT_EQ(::setsockopt(from, SOL_SOCKET, SO_RCVTIMEO, &longest, sizeof longest), 0);
}

TEST_F(ReadFdFeed, EndsAlsoWhereAChildHasItsDescriptors) {
  const std::string text = text_of(large);
  directory_.make("file", text);
  read_fd_feed feed(at());
  bound_reads(feed.fd());
  const forked_child child([] {});
  ASSERT_TRUE(child.is_there());
  const ending read = read_all(feed.fd());
  EXPECT_EQ(read.failure, 0);
  EXPECT_TRUE(read.bytes == text);
}

TEST_F(ReadFdFeed, IsLeftToItsParentByAChildThatDestroysIt) {
  directory_.make("file", text_of(large));
  std::optional<read_fd_feed> feed(at());
  bound_reads(feed->fd());
  const forked_child child([&feed] { feed.reset(); });
  ASSERT_TRUE(child.is_there());
  feed->stop();
  EXPECT_EQ(read_all(feed->fd()).failure, ECONNRESET);
}

TEST_F(ReadFdFeed, IsNotStoppedByAChild) {
  const std::string text = text_of(large);
  directory_.make("file", text);
  read_fd_feed feed(at());
  bound_reads(feed.fd());
  const forked_child child([&feed] {
    feed.stop();
    if (!feed.wait_for(std::chrono::seconds(20))) ::_exit(1);
    if (feed.error() != errc::forked_child || feed.error_message().empty()) ::_exit(1);
  });
  ASSERT_TRUE(child.is_there());
  const ending read = read_all(feed.fd());
  EXPECT_EQ(read.failure, 0);
  EXPECT_TRUE(read.bytes == text);
}

TEST_F(ReadFdFeed, IsSharedByThreads) {
  directory_.make("file", text_of(large));
  read_fd_feed feed(at());
  std::atomic<int> taken = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        static_cast<void>(feed.fd());
        taken += feed.release_fd() ? 1 : 0;
        EXPECT_TRUE(feed.wait_for(std::chrono::nanoseconds::max()));
      });
    }
  }
  EXPECT_EQ(taken, 1);
}

TEST_F(ReadFdFeed, TellsWhatCanNotBe) {
  std::error_code ec;
  const read_fd_feed missing(at("missing"), {}, ec);
  EXPECT_EQ(ec, errc::no_such_name);
  EXPECT_EQ(missing.fd(), -1);
  EXPECT_EQ(missing.error(), errc::closed);
  EXPECT_TRUE(missing.wait_for(0s));
  const read_fd_feed unnamed(url(served_.url()), {}, ec);
  EXPECT_EQ(ec, errc::bad_url);
  directory_.make("file", "text");
  const read_fd_feed narrow(at(), {.window = 1000}, ec);
  EXPECT_EQ(ec, errc::invalid_argument);
  client through(served_.url());
  read_fd_feed feed(through.open("file"));
  read_fd_feed moved(std::move(feed));
  EXPECT_EQ(read_all(moved.fd()).bytes, "text");
  const read_fd_feed of_region(through.open("file"), {.window = 0}, ec);
  EXPECT_EQ(ec, errc::invalid_argument);
  const publication memory = served_.publish("memory", std::as_bytes(std::span("text", 4)));
  const remote_region small = through.open("memory");
  ::rlimit before = {};
  ::getrlimit(RLIMIT_NOFILE, &before);
  ::rlimit none = before;
  none.rlim_cur = 3;
  ::setrlimit(RLIMIT_NOFILE, &none);
  const read_fd_feed refused(small, {}, ec);
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(ec, errc::too_many_files);
}

}  // namespace
}  // namespace ucx::test
