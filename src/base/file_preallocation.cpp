#include "base/file_preallocation.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <limits>

namespace ucx::detail {
namespace {

constexpr std::uint64_t mib = std::uint64_t{1} << 20U;
/// Small files are written as they are.
constexpr std::uint64_t least_size = mib;
/// A quarter of what there is, within these.
constexpr std::uint64_t least_step = mib;
constexpr std::uint64_t longest_step = 8 * mib;

}  // namespace

bool file_preallocation::helps_in(int directory) noexcept {
  struct ::statfs about = {};
  return ::fstatfs(directory, &about) == 0 && about.f_type == EXT4_SUPER_MAGIC;
}

void file_preallocation::reserve_for(std::uint64_t offset, std::size_t length) noexcept {
  if (descriptor_ < 0) return;
  constexpr auto longest = static_cast<std::uint64_t>(std::numeric_limits<::off_t>::max());
  const bool fits = offset <= longest && length <= longest - offset;
  // A hole stays one, and what is written here and there finds its own room.
  if (!fits || offset > end_) return give_back();
  end_ = std::max(end_, offset + length);
  if (end_ <= reserved_ || end_ < least_size) return;
  const std::uint64_t begin = std::max(reserved_, offset);
  const std::uint64_t step = std::clamp(end_ / 4, least_step, longest_step);
  const std::uint64_t size = std::min(end_ + step, longest) - begin;
  reserved_ = begin + size;
  if (::fallocate(descriptor_, FALLOC_FL_KEEP_SIZE, static_cast<::off_t>(begin),
                  static_cast<::off_t>(size)) != 0) {
    give_back();  // of a disk that is nearly full some of it
  }
}

void file_preallocation::give_back() noexcept {
  struct ::stat about = {};
  // To its own size: frees what lies behind.
  if (descriptor_ >= 0 && reserved_ > 0 && ::fstat(descriptor_, &about) == 0 &&
      static_cast<std::uint64_t>(about.st_size) < reserved_) {
    static_cast<void>(::ftruncate(descriptor_, about.st_size));
  }
  descriptor_ = -1;
}

}  // namespace ucx::detail
