// A process that runs out of something: a clear error, and it goes on.
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>

#include "support/process/own_mounts.hpp"
#include "support/process/test_peer.hpp"
#include "ucx/context.hpp"
#include "ucx/error.hpp"
#include "ucx/worker.hpp"

namespace ucx::test {
namespace {

std::string begins(errc value) { return "error " + std::to_string(static_cast<int>(value)) + ' '; }

TEST(Exhaustion, OfFileDescriptorsIsItsOwnError) {
  test_peer peer("tcp");
  peer.ask("leave_files 1");
  const std::string answer = peer.try_to("another worker");
  EXPECT_TRUE(answer.starts_with(begins(errc::too_many_files))) << answer;
  peer.ask("free_files");
  peer.ask("another worker");
  peer.ask("another listener");
}

TEST(Exhaustion, OfFileDescriptorsWhileConnectingIsItsOwnError) {
  test_peer owner("tcp");
  const std::string where = to_string(owner.listen());
  const std::string descriptor = to_hex(owner.allocate(4096).encode());
  test_peer reader("tcp", "caller");
  reader.ask("leave_files 0");
  const std::string answer = reader.try_to("connect " + where);
  EXPECT_TRUE(answer.starts_with(begins(errc::too_many_files))) << answer;
  EXPECT_NE(answer.find("connecting to " + where), std::string::npos) << answer;
  reader.ask("free_files");
  reader.ask("connect " + where);
  reader.ask("open " + descriptor);
  EXPECT_EQ(reader.ask("read 0 4096 1"), "yes");
}

TEST(Exhaustion, OfAnOwnersFileDescriptorsHarmsOnlyNewPeers) {
  test_peer owner("tcp");
  const std::string where = to_string(owner.listen());
  const std::string descriptor = to_hex(owner.allocate(4096).encode());
  test_peer old_peer("tcp", "caller");
  old_peer.ask("connect " + where);
  old_peer.ask("open " + descriptor);
  test_peer new_peer("tcp", "caller");
  owner.ask("leave_files 0");
  const std::string answer = new_peer.try_to("connect " + where);
  EXPECT_TRUE(answer.starts_with("error ")) << answer;
  EXPECT_EQ(old_peer.ask("read 0 4096 1"), "yes");
  owner.ask("free_files");
  new_peer.ask("connect " + where);
  new_peer.ask("open " + descriptor);
  EXPECT_EQ(new_peer.ask("read 0 4096 1"), "yes");
  EXPECT_EQ(old_peer.ask("read 0 4096 1"), "yes");
}

TEST(Exhaustion, OfSharedMemoryIsItsOwnError) {
  struct ::statvfs shm = {};
  if (::statvfs("/dev/shm", &shm) != 0) GTEST_SKIP() << "there is no /dev/shm";
  const std::uint64_t free = std::uint64_t{shm.f_bavail} * shm.f_frsize;
  test_peer peer("shared", "caller");
  const std::string answer =
      peer.try_to("allocate " + std::to_string(free + (std::uint64_t{64} << 20U)) + " read 1");
  EXPECT_TRUE(answer.starts_with(begins(errc::no_shared_memory))) << answer;
  EXPECT_NE(answer.find("allocating"), std::string::npos) << answer;
  peer.allocate(65536);
}

/// Gives the calling process a /dev/shm of its own. Returns whether it may have one.
bool mount_small_shm(const char* size) {
  const std::string options = std::string("size=") + size;
  return leave_shared_mounts() && keep_mounts_private("/dev/shm") &&
         ::mount("tmpfs", "/dev/shm", "tmpfs", 0, options.c_str()) == 0;
}

enum exit_code : int { as_expected, not_permitted, not_as_expected };

/// In a process of its own. Another process takes what is in /dev/shm between context and worker.
exit_code make_a_worker_without_room() {
  if (!mount_small_shm("32m")) return not_permitted;
  context_options options;
  options.transports = {"posix", "self"};
  const context on_posix(options);
  std::ofstream("/dev/shm/filler") << std::string(std::size_t{30} << 20U, 'x');
  std::error_code ec;
  const worker without_room(on_posix, {}, ec);
  if (ec != errc::no_shared_memory) {
    std::cerr << "the error is: " << ec.message() << '\n';
    return not_as_expected;
  }
  std::filesystem::remove("/dev/shm/filler");
  const worker with_room(on_posix, {}, ec);
  if (ec) std::cerr << "with room: " << ec.message() << '\n';
  return ec ? not_as_expected : as_expected;
}

// UCX 1.22 reads through a null pointer there, unless it is kept from falling back.
TEST(Exhaustion, OfSharedMemoryBeforeAWorkerIsTold) {
  const pid_t child = ::fork();
  ASSERT_NE(child, -1);
  if (child == 0) ::_exit(make_a_worker_without_room());
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  if (WEXITSTATUS(status) == not_permitted) GTEST_SKIP() << "this process may not mount anything";
  EXPECT_EQ(WEXITSTATUS(status), as_expected);
}

}  // namespace
}  // namespace ucx::test
