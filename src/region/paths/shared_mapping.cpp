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
#include "wire/host_identity.hpp"

namespace ucx::detail {
namespace {

std::string entry_of(const std::string& process, std::uint64_t file) {
  return "/proc/" + process + "/fd/" + std::to_string(file);
}

std::string words_of(int failure) { return std::generic_category().message(failure); }

bool is_meant(const memory_stamp& found, const remote_descriptor& described) noexcept {
  return found.mark == memory_stamp::expected_mark && found.region == described.region &&
         found.incarnation == described.incarnation;
}

bool is_as_described(const struct ::stat& found, const remote_descriptor& described) noexcept {
  const memfd_handle& file = described.memfd;
  const bool is_same =
      file.process == 0 || (found.st_dev == file.device && found.st_ino == file.inode);
  return S_ISREG(found.st_mode) && is_same && found.st_size >= 0 &&
         static_cast<std::uint64_t>(found.st_size) == memory_file_size(described.size);
}

/// Opens the owner's file by its process, which takes the right to look at that.
owned_descriptor find_file(const remote_descriptor& described, std::string& why_not) {
  const memfd_handle& file = described.memfd;
  if (file.process == 0) {
    why_not = "the memory is not in a file that peers may map";
    return {};
  }
  if (described.host != host_identity()) {
    why_not = "the memory is on another host";
    return {};
  }
  // Only looked at first: to open something else of the owner's, a device for example, could do
  // more than that.
  const std::string name = entry_of(std::to_string(file.process), file.descriptor);
  const owned_descriptor seen(::open(name.c_str(), O_PATH | O_CLOEXEC));
  if (!seen) {
    why_not = "the owner's file can not be opened here (" + name + ": " + words_of(errno) + ")";
    return {};
  }
  struct ::stat found = {};
  if (::fstat(seen.get(), &found) != 0 || !is_as_described(found, described)) {
    why_not = "the owner's file is not to be seen here (" + name + " is another one)";
    return {};
  }
  const bool writes = includes(described.granted, access::write);
  owned_descriptor opened(::open(entry_of("self", static_cast<std::uint64_t>(seen.get())).c_str(),
                                 (writes ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK));
  if (!opened) why_not = "the owner's file can not be opened here (" + words_of(errno) + ")";
  return opened;
}

/// Returns why a file is not to be mapped; nothing where it is.
std::string complaint_about(int file, const remote_descriptor& described) {
  struct ::stat found = {};
  struct ::statfs system = {};
  if (::fstat(file, &found) != 0 || !is_as_described(found, described)) {
    return "the file that the owner passed is another one";
  }
  if (::fstatfs(file, &system) != 0 || system.f_type != TMPFS_MAGIC ||
      static_cast<std::uint64_t>(found.st_blocks) * 512 < memory_file_size(described.size)) {
    return "the owner's file has no memory of its own";
  }
  const int seals = ::fcntl(file, F_GET_SEALS);
  constexpr int fixed = F_SEAL_SHRINK | F_SEAL_GROW;
  if (seals < 0 || (seals & fixed) != fixed) return "the owner's file could be cut off";
  return {};
}

}  // namespace

std::unique_ptr<shared_mapping> shared_mapping::open(const remote_descriptor& described,
                                                     owned_descriptor passed,
                                                     std::string& why_not) {
  if (described.size > largest_memory_file) {
    why_not = "no file is that long";
    return nullptr;
  }
  const owned_descriptor file = passed ? std::move(passed) : find_file(described, why_not);
  if (!file) return nullptr;
  why_not = complaint_about(file.get(), described);
  if (!why_not.empty()) return nullptr;
  const std::uint64_t begin_of_stamp = memory_stamp_offset(described.size);
  const std::uint64_t size_of_stamp = memory_file_size(described.size) - begin_of_stamp;
  std::unique_ptr<shared_mapping> made(new shared_mapping(begin_of_stamp, size_of_stamp));
  if (!made->map(file.get(), includes(described.granted, access::write))) {
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
