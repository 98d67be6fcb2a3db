// A process that runs out of something: a clear error, and it goes on.
#include <gtest/gtest.h>
#include <sys/statvfs.h>

#include <cstdint>
#include <string>

#include "support/test_peer.hpp"
#include "ucx/error.hpp"

namespace ucx::test {
namespace {

std::string begins(errc value) { return "error " + std::to_string(static_cast<int>(value)) + ' '; }

TEST(Exhaustion, OfFileDescriptorsIsItsOwnError) {
  test_peer peer("tcp");
  const int open = std::stoi(peer.ask("files"));
  peer.ask("limit_files " + std::to_string(open + 1));
  const std::string answer = peer.try_to("another worker");
  EXPECT_TRUE(answer.starts_with(begins(errc::too_many_files))) << answer;
  peer.ask("limit_files 1024");
  peer.ask("another worker");
  peer.ask("another listener");
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

}  // namespace
}  // namespace ucx::test
