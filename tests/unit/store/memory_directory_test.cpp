// A directory in memory, and a child of fork() that has a copy of its owner.
#include "store/memory_directory.hpp"

#include <gtest/gtest.h>

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>

namespace ucx::test {
namespace {

TEST(MemoryDirectory, IsRemovedByItsOwnerAndNotByAChild) {
  std::string within = "/dev/shm/ucxio-test-XXXXXX";
  ASSERT_NE(::mkdtemp(within.data()), nullptr) << "no /dev/shm";
  std::unique_ptr<detail::memory_directory> owned =
      detail::memory_directory::make(within, 1).or_throw();
  const std::filesystem::path path = owned->path();
  const ::pid_t child = ::fork();
  if (child == 0) {
    owned.reset();
    ::_exit(0);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(std::filesystem::exists(path));
  owned.reset();
  EXPECT_FALSE(std::filesystem::exists(path));
  std::filesystem::remove_all(within);
}

}  // namespace
}  // namespace ucx::test
