#include "region/paths/shared_mapping.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "os/huge_page.hpp"
#include "region/exposed/exposed_region.hpp"

namespace ucx::detail {
namespace {

/// Closes what it holds.
class descriptor {
 public:
  explicit descriptor(int opened) noexcept : opened_(opened) {}
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;
  ~descriptor() {
    if (opened_ >= 0) ::close(opened_);
  }
  int get() const noexcept { return opened_; }

 private:
  int opened_;
};

std::string entry_of(const std::string& process, std::uint64_t file) {
  return "/proc/" + process + "/fd/" + std::to_string(file);
}

std::string words_of(int failure) { return std::generic_category().message(failure); }

bool is_meant(const memory_stamp& found, const remote_descriptor& described) noexcept {
  return found.mark == memory_stamp::expected_mark && found.region == described.region &&
         found.incarnation == described.incarnation;
}

}  // namespace

std::unique_ptr<shared_mapping> shared_mapping::open(const remote_descriptor& described,
                                                     std::string& why_not) {
  const memfd_handle& file = described.memfd;
  if (file.process == 0) {
    why_not = "the memory is not in a file that peers may map";
    return nullptr;
  }
  if (described.host != host_identity()) {
    why_not = "the memory is on another host";
    return nullptr;
  }
  if (described.size > largest_memory_file) {
    why_not = "no file is that long";
    return nullptr;
  }
  // Only looked at first: to open something else of the owner's, a device for example, could do
  // more than that.
  const std::string name = entry_of(std::to_string(file.process), file.descriptor);
  const descriptor seen(::open(name.c_str(), O_PATH | O_CLOEXEC));
  if (seen.get() < 0) {
    why_not = "the owner's file can not be opened here (" + name + ": " + words_of(errno) + ")";
    return nullptr;
  }
  struct ::stat found = {};
  const std::uint64_t begin_of_stamp = memory_stamp_offset(described.size);
  const std::uint64_t whole = memory_file_size(described.size);
  if (::fstat(seen.get(), &found) != 0 || !S_ISREG(found.st_mode) || found.st_dev != file.device ||
      found.st_ino != file.inode || found.st_size < 0 ||
      static_cast<std::uint64_t>(found.st_size) != whole) {
    why_not = "the owner's file is not to be seen here (" + name + " is another one)";
    return nullptr;
  }
  const bool writes = includes(described.granted, access::write);
  const descriptor opened(::open(entry_of("self", static_cast<std::uint64_t>(seen.get())).c_str(),
                                 (writes ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK));
  if (opened.get() < 0) {
    why_not = "the owner's file can not be opened here (" + words_of(errno) + ")";
    return nullptr;
  }
  struct ::statfs system = {};
  if (::fstatfs(opened.get(), &system) != 0 || system.f_type != TMPFS_MAGIC ||
      static_cast<std::uint64_t>(found.st_blocks) * 512 < whole) {
    why_not = "the owner's file has no memory of its own";
    return nullptr;
  }
  const int seals = ::fcntl(opened.get(), F_GET_SEALS);
  constexpr int fixed = F_SEAL_SHRINK | F_SEAL_GROW;
  if (seals < 0 || (seals & fixed) != fixed) {
    why_not = "the owner's file could be cut off";
    return nullptr;
  }
  std::unique_ptr<shared_mapping> made(new shared_mapping(begin_of_stamp, whole - begin_of_stamp));
  if (!made->map(opened.get(), writes)) {
    why_not = "mapping the owner's memory failed (" + words_of(errno) + ")";
    return nullptr;
  }
  if (is_meant(*made->stamp_, described)) return made;
  why_not = "the owner's file belongs to another region";
  return nullptr;
}

bool shared_mapping::map(int file, bool writes) noexcept {
  const int rights = PROT_READ | (writes ? PROT_WRITE : 0);
  void* const stamp =
      ::mmap(nullptr, stamp_size_, PROT_READ, MAP_SHARED, file, static_cast<::off_t>(size_));
  if (stamp == MAP_FAILED) return false;
  stamp_ = static_cast<memory_stamp*>(stamp);
  void* const data = map_aligned(size_, rights, file);
  if (data == MAP_FAILED) return false;
  data_ = static_cast<std::byte*>(data);
  return true;
}

shared_mapping::~shared_mapping() {
  if (stamp_ != nullptr) ::munmap(stamp_, stamp_size_);
  if (data_ != nullptr) ::munmap(data_, size_);
}

}  // namespace ucx::detail
