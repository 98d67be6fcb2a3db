// Real files that grow, with room ahead of them.
#include "base/file_preallocation.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/owned_descriptor.hpp"
#include "support/bytes/byte_sizes.hpp"
#include "support/files/temporary_directory.hpp"

namespace ucx::test {
namespace {

using detail::file_preallocation;
using detail::owned_descriptor;

class RoomAhead : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!file_preallocation::helps_in(file_.get())) {
      GTEST_SKIP() << "the directory of temporary files is of a file system other than ext4";
    }
  }

  void write(file_preallocation& ahead, std::uint64_t offset, std::size_t size) {
    ahead.reserve_for(offset, size);
    const std::string bytes(size, 'x');
    ASSERT_EQ(::pwrite(file_.get(), bytes.data(), size, static_cast<::off_t>(offset)),
              static_cast<ssize_t>(size));
  }
  struct ::stat about() const {
    struct ::stat told = {};
    ::fsync(file_.get());  // until then the system may not know what it takes
    ::fstat(file_.get(), &told);
    return told;
  }
  std::uint64_t size() const { return static_cast<std::uint64_t>(about().st_size); }
  std::uint64_t taken() const { return static_cast<std::uint64_t>(about().st_blocks) * 512; }

  temporary_directory directory_;
  owned_descriptor file_{
      ::open((directory_ / "new").c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600)};
};

/// What the system needs to note where a file's bytes are.
constexpr std::uint64_t notes = 64 << 10U;

TEST_F(RoomAhead, IsNoMoreThanAQuarterAndGoneAtTheEnd) {
  file_preallocation ahead(file_.get());
  for (std::size_t at = 0; at < 16 * mib; at += mib) write(ahead, at, mib);
  EXPECT_EQ(size(), 16 * mib);
  EXPECT_GT(taken(), 16 * mib);
  EXPECT_LE(taken(), 20 * mib + notes);
  ahead.give_back();
  EXPECT_EQ(size(), 16 * mib);
  EXPECT_LE(taken(), 16 * mib + notes);
  write(ahead, 16 * mib, mib);
  EXPECT_LE(taken(), 17 * mib + notes);
}

TEST_F(RoomAhead, IsNotOfSmallFiles) {
  file_preallocation ahead(file_.get());
  write(ahead, 0, 4096);
  write(ahead, 4096, 4096);
  EXPECT_EQ(taken(), 8192U);
}

TEST_F(RoomAhead, LeavesAHole) {
  file_preallocation ahead(file_.get());
  write(ahead, 0, 8 * mib);
  write(ahead, 100 * mib, mib);
  write(ahead, 101 * mib, mib);
  EXPECT_EQ(size(), 102 * mib);
  EXPECT_LE(taken(), 10 * mib + notes);
}

TEST_F(RoomAhead, WithoutItNothingIsReserved) {
  file_preallocation none;
  for (std::size_t at = 0; at < 4 * mib; at += mib) write(none, at, mib);
  none.give_back();
  EXPECT_LE(taken(), 4 * mib + notes);
}

TEST_F(RoomAhead, TakesOffsetsThatNoFileHas) {
  file_preallocation ahead(file_.get());
  write(ahead, 0, 2 * mib);
  ahead.reserve_for(~std::uint64_t{0} - 10, mib);
  EXPECT_EQ(size(), 2 * mib);
  EXPECT_LE(taken(), 2 * mib + notes);
}

}  // namespace
}  // namespace ucx::test
