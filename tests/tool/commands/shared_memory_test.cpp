// What others on the host reach of a server's shared memory: nothing, even with its group.
#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "support/basics/changed_variable.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/tool/tool.hpp"

namespace ucx::test {
namespace {

/// A System V segment, as /proc/sysvipc/shm tells it.
struct segment {
  int id = 0;
  unsigned mode = 0;
};

std::vector<segment> segments_of(pid_t process) {
  std::vector<segment> found;
  std::ifstream list("/proc/sysvipc/shm");
  std::string line;
  std::getline(list, line);
  while (std::getline(list, line)) {
    std::istringstream words(line);
    long key = 0;
    segment each;
    std::size_t size = 0;
    pid_t creator = 0;
    words >> key >> each.id >> std::oct >> each.mode >> std::dec >> size >> creator;
    if (creator == process) found.push_back(each);
  }
  return found;
}

/// The files in memory that a process holds open, as paths that lead to them.
std::vector<std::string> memory_files_of(pid_t process) {
  std::vector<std::string> found;
  const std::string at = "/proc/" + std::to_string(process) + "/fd";
  std::error_code ec;
  for (const auto& each : std::filesystem::directory_iterator(at)) {
    const std::string file = std::filesystem::read_symlink(each.path(), ec);
    if (file.starts_with("/dev/shm/") || file.starts_with("/memfd:")) found.push_back(each.path());
  }
  return found;
}

/// Returns how many of them a process of another user, but of this one's group, can write.
int count_writable(const std::vector<segment>& segments, const std::vector<std::string>& files) {
  constexpr ::uid_t nobody = 65534;
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setgroups(0, nullptr) != 0 || ::setresuid(nobody, nobody, nobody) != 0) ::_exit(255);
    int count = 0;
    for (const segment& each : segments) {
      if (::shmat(each.id, nullptr, 0) != reinterpret_cast<void*>(-1)) ++count;
    }
    for (const std::string& each : files) {
      if (::open(each.c_str(), O_RDWR | O_CLOEXEC) >= 0) ++count;
    }
    ::_exit(count);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// A server by UCX, whose queues are in shared memory; by default there are none.
class ServedMemory : public ::testing::Test {
 protected:
  tool_server served() const { return tool_server({"--ucx", "--workers", "2", file_.string()}); }

  const temporary_directory folder_;
  const std::filesystem::path file_ = folder_.make("notes.txt", "one\n");
};

// Else the other tests say nothing: this server has what they look for.
TEST_F(ServedMemory, IsForTheGroupWhereSystemVIsNamed) {
  const changed_variable transports("UCX_TLS", "tcp,self,sysv");
  tool_server server = served();
  EXPECT_EQ(run_tool({"cat", server.url("notes.txt")}).out, "one\n");
  const std::vector<segment> segments = segments_of(server.process().pid());
  ASSERT_FALSE(segments.empty());
  EXPECT_NE(segments.front().mode & 0020U, 0U) << "UCX has changed its mode";
  if (::geteuid() == 0) {
    EXPECT_GT(count_writable(segments, {}), 0);
  }
}

TEST_F(ServedMemory, IsNotForTheGroup) {
  tool_server server = served();
  EXPECT_EQ(run_tool({"cat", server.url("notes.txt")}).out, "one\n");
  EXPECT_TRUE(segments_of(server.process().pid()).empty());
  const std::vector<std::string> files = memory_files_of(server.process().pid());
  ASSERT_FALSE(files.empty());
  bool named = false;
  for (const std::string& each : files) {
    struct ::stat file = {};
    ASSERT_EQ(::stat(each.c_str(), &file), 0) << each;
    if (!std::filesystem::read_symlink(each).string().starts_with("/dev/shm/")) continue;
    named = true;
    EXPECT_EQ(file.st_mode & 0077U, 0U) << std::filesystem::read_symlink(each);
  }
  EXPECT_TRUE(named) << "no queue of UCX's";
}

TEST_F(ServedMemory, CanNotBeWrittenByAnotherUserOfTheGroup) {
  if (::geteuid() != 0) GTEST_SKIP() << "this process may not become another user";
  tool_server server = served();
  const pid_t process = server.process().pid();
  const std::vector<std::string> files = memory_files_of(process);
  ASSERT_FALSE(files.empty());
  EXPECT_EQ(count_writable(segments_of(process), files), 0);
}

/// The library has no segments of its own, and a server without UCX none at all.
TEST_F(ServedMemory, IsNotSharedByDefault) {
  tool_server server({file_.string()});
  EXPECT_EQ(run_tool({"cat", server.url("notes.txt")}).out, "one\n");
  EXPECT_TRUE(segments_of(server.process().pid()).empty());
}

}  // namespace
}  // namespace ucx::test
