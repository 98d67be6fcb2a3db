// Files of C, descriptors and positional files of a process that ends, or whose server does.
#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "support/files/temporary_directory.hpp"
#include "support/process/test_peer.hpp"
#include "support/transports/ucx_server.hpp"
#include "ucx/cstdio.hpp"
#include "ucx/error.hpp"
#include "ucx/experimental/read_fd_feed.hpp"
#include "ucx/file_descriptor.hpp"
#include "ucx/server.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;
using experimental::read_fd_feed;

class Adapters : public testing::Test {
 protected:
  const temporary_directory directory_;
};

TEST_F(Adapters, FileThatIsLeftOpenIsClosedByTheEndOfItsProgram) {
  ucx_server served;
  const publication store = served.publish_store(directory_ / "", {.writable = true});
  test_peer writer("tcp");
  writer.ask("leave_open " + served.url() + "/new");
  EXPECT_FALSE(std::filesystem::exists(directory_ / "new"));
  writer.say("quit");
  EXPECT_EQ(writer.process().wait(30s), 0);
  EXPECT_EQ(content_of(directory_ / "new"), "left open");
}

TEST_F(Adapters, FileOfAKilledProgramDoesNotAppear) {
  ucx_server served;
  const publication store = served.publish_store(directory_ / "", {.writable = true});
  test_peer writer("tcp");
  writer.ask("leave_open " + served.url() + "/new");
  writer.process().kill();
  for (int i = 0; i < 3000 && served.statistics().clients > 0; ++i) {
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_FALSE(std::filesystem::exists(directory_ / "new"));
}

/// Starts `cat`, which reads `from` to its end, and throws it away.
pid_t start_cat(int from) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  const int nowhere = ::open("/dev/null", O_WRONLY);
  ::dup2(from, 0);
  ::dup2(nowhere, 1);
  ::dup2(nowhere, 2);
  ::execlp("cat", "cat", nullptr);
  ::_exit(127);
}

TEST_F(Adapters, FeedOfAKilledServerIsNotTakenForTheWhole) {
  directory_.make("file", std::string(std::size_t{20} << 20U, 'x'));
  for (const bool killed : {false, true}) {
    test_peer server("tcp");
    const std::string url = server.ask("serve");
    server.ask("publish_store " + (directory_ / "").string());
    read_fd_feed feed(ucx::url(url + "/file"), {.window = std::size_t{256} << 10U});
    char first = 0;
    ASSERT_EQ(::read(feed.fd(), &first, 1), 1);
    if (killed) server.process().kill();  // of what is on its way there is far less than all
    const pid_t cat = start_cat(feed.release_fd().get());
    int status = -1;
    ASSERT_EQ(::waitpid(cat, &status, 0), cat);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), killed ? 1 : 0);
    EXPECT_TRUE(feed.wait_for(30s));
    EXPECT_EQ(feed.error() == std::errc::connection_reset, killed) << feed.error_message();
  }
}

// Nothing that is destroyed waits for a server that says nothing any more.
TEST_F(Adapters, FeedOfAStoppedServerCanBeStopped) {
  directory_.make("file", std::string(std::size_t{20} << 20U, 'x'));
  test_peer server("tcp");
  const std::string url = server.ask("serve");
  server.ask("publish_store " + (directory_ / "").string());
  file_descriptor reader;
  {
    read_fd_feed feed(ucx::url(url + "/file"), {.window = std::size_t{256} << 10U});
    char first = 0;
    ASSERT_EQ(::read(feed.fd(), &first, 1), 1);
    server.process().stop();
    EXPECT_FALSE(feed.wait_for(10ms));
    reader = feed.release_fd();
  }
  std::array<char, 65536> into{};
  ssize_t count = 0;
  while ((count = ::read(reader.get(), into.data(), into.size())) > 0) {
  }
  EXPECT_EQ(count, -1);
  EXPECT_EQ(errno, ECONNRESET);
  server.process().resume();
}

TEST_F(Adapters, FileOfAStoppedServerFails) {
  directory_.make("file", std::string(std::size_t{64} << 20U, 'x'));
  test_peer server("tcp");
  const std::string url = server.ask("serve");
  server.ask("publish_store " + (directory_ / "").string());
  std::FILE* const in = open_file(url + "/file", "r");
  ASSERT_NE(in, nullptr);
  EXPECT_EQ(std::fgetc(in), 'x');
  server.process().stop();
  std::vector<char> into(std::size_t{64} << 20U);
  EXPECT_LT(std::fread(into.data(), 1, into.size(), in), into.size() - 1);
  EXPECT_TRUE(std::ferror(in));
  EXPECT_TRUE(errno == ECONNRESET || errno == ETIMEDOUT) << errno;
  std::fclose(in);
  server.process().resume();
}

}  // namespace
}  // namespace ucx::test
