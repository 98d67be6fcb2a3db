// What the process may do with its memory.
#include "os/memory_rights.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <fstream>
#include <span>

#include "support/files/temporary_directory.hpp"

namespace ucx::detail {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr memory_use to_read{.reads = true};
constexpr memory_use to_write{.writes = true};
constexpr memory_use to_use{true, true};

/// Four pages: two to read and write, one to read, one for nothing.
class MemoryRights : public testing::Test {
 protected:
  MemoryRights()
      : page(static_cast<std::size_t>(::sysconf(_SC_PAGESIZE))),
        begin(static_cast<std::byte*>(::mmap(nullptr, 4 * page, PROT_READ | PROT_WRITE,
                                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    ::mprotect(begin + 2 * page, page, PROT_READ);
    ::mprotect(begin + 3 * page, page, PROT_NONE);
  }
  ~MemoryRights() override { ::munmap(begin, 4 * page); }

  std::span<const std::byte> from(std::size_t offset, std::size_t size) const {
    return {begin + offset, size};
  }

  const std::size_t page;
  std::byte* const begin;
};

TEST_F(MemoryRights, AreThoseOfEachPage) {
  EXPECT_THAT(why_unusable(from(0, 2 * page), to_use), IsEmpty());
  EXPECT_THAT(why_unusable(from(0, 3 * page), to_read), IsEmpty());
  EXPECT_THAT(why_unusable(from(2 * page, page), to_write), HasSubstr("may not write at 0x"));
  EXPECT_THAT(why_unusable(from(3 * page, page), to_read), HasSubstr("may not read at 0x"));
  EXPECT_THAT(why_unusable(from(3 * page, page), to_write), HasSubstr("may not write at 0x"));
}

TEST_F(MemoryRights, EndWithTheLastByte) {
  EXPECT_THAT(why_unusable(from(page + 1, page - 1), to_use), IsEmpty());
  EXPECT_THAT(why_unusable(from(page + 1, page), to_use), HasSubstr("may not write"));
  EXPECT_THAT(why_unusable(from(page + 1, 2 * page - 1), to_read), IsEmpty());
  EXPECT_THAT(why_unusable(from(page + 1, 2 * page), to_read), HasSubstr("may not read"));
  EXPECT_THAT(why_unusable(from(3 * page, 0), to_use), IsEmpty()) << "nothing is asked";
}

TEST_F(MemoryRights, AreNoneWhereNothingIsMapped) {
  ::munmap(begin + page, page);
  EXPECT_THAT(why_unusable(from(0, page), to_use), IsEmpty());
  EXPECT_THAT(why_unusable(from(0, 3 * page), to_read), HasSubstr("nothing is mapped at 0x"));
  EXPECT_THAT(why_unusable(from(page, page), to_read), HasSubstr("nothing is mapped at 0x"));
  EXPECT_THAT(why_unusable({reinterpret_cast<const std::byte*>(page), page}, to_read),
              HasSubstr("nothing is mapped at 0x"));
}

TEST_F(MemoryRights, AreNotKnownWithoutTheList) {
  EXPECT_THAT(why_unusable(from(0, page), to_read, "/nonexistent"), HasSubstr("/nonexistent"));
  const test::temporary_directory folder;
  std::ofstream(folder / "maps") << "no list at all\n";
  EXPECT_THAT(why_unusable(from(0, page), to_read, (folder / "maps").c_str()),
              HasSubstr("nothing is mapped"));
}

}  // namespace
}  // namespace ucx::detail
