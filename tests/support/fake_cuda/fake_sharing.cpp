// Memory of the pretended devices that several processes reach: what holds it becomes a file in
// memory, which others open by the owner's process and number of it.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <type_traits>

#include "fake_device.hpp"
#include "fake_pages.hpp"
#include "fake_results.hpp"

namespace ucx::test {
namespace {

/// What a handle has; the rest of it is zeros.
struct named_file {
  std::uint64_t mark = 0x656b61665f637069;
  std::uint64_t process = 0;
  std::uint64_t file = 0;
  std::uint64_t inode = 0;
  std::uint64_t size = 0;
};
static_assert(sizeof(named_file) <= sizeof(fake_cuda_handle));
static_assert(std::is_trivially_copyable_v<named_file>);

/// Moves the bytes to a file, where they stay at their place.
bool put_in_file(fake_memory& memory) {
  const std::size_t size = whole_pages(memory.size);
  const int file = ::memfd_create("fake_cuda", MFD_CLOEXEC);
  if (file < 0) return false;
  const bool there =
      ::ftruncate(file, static_cast<::off_t>(size)) == 0 &&
      ::pwrite(file, memory.bytes, memory.size, 0) == static_cast<::ssize_t>(memory.size) &&
      ::mmap(memory.bytes, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) !=
          MAP_FAILED;
  if (!there) {
    ::close(file);
    return false;
  }
  memory.file = file;
  return true;
}

/// Maps the file that `named` says; null where there is none.
std::byte* map_file(const named_file& named) {
  const std::string path =
      "/proc/" + std::to_string(named.process) + "/fd/" + std::to_string(named.file);
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return nullptr;
  struct ::stat found = {};
  void* mapped = MAP_FAILED;
  if (::fstat(file, &found) == 0 && found.st_ino == named.inode &&
      found.st_size == static_cast<::off_t>(whole_pages(named.size))) {
    mapped = ::mmap(nullptr, whole_pages(named.size), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  ::close(file);
  return mapped == MAP_FAILED ? nullptr : static_cast<std::byte*>(mapped);
}

}  // namespace

int fake_cuda::share(std::uint64_t address, fake_cuda_handle* made) {
  const std::lock_guard guard(mutex_);
  if (current() == nullptr) return invalid_context;
  fake_memory* const found = holder(address);
  if (found == nullptr || found->kind != fake_kind::device) return invalid_value;
  if (found->file < 0 && !put_in_file(*found)) return map_failed;
  struct ::stat held = {};
  if (::fstat(found->file, &held) != 0) return map_failed;
  named_file named;
  named.process = static_cast<std::uint64_t>(::getpid());
  named.file = static_cast<std::uint64_t>(found->file);
  named.inode = held.st_ino;
  named.size = found->size;
  *made = {};
  std::memcpy(made->bytes, &named, sizeof named);
  return success;
}

/// As drivers of before CUDA 11 it opens nothing twice in one context.
int fake_cuda::open_shared(const fake_cuda_handle& shared, std::uint64_t* opened) {
  const std::lock_guard guard(mutex_);
  CUctx_st* const user = current();
  if (user == nullptr) return invalid_context;
  named_file named;
  std::memcpy(&named, shared.bytes, sizeof named);
  if (named.mark != named_file().mark || named.size == 0) return invalid_value;
  if (named.process == static_cast<std::uint64_t>(::getpid())) return invalid_context;
  const bool is_open = std::any_of(memory_.begin(), memory_.end(), [&](const auto& each) {
    return each.second.from == named.inode && each.second.context == user;
  });
  if (is_open) return already_mapped;
  fake_memory memory{fake_kind::opened, reserve(named.size), named.size, user};
  memory.bytes = map_file(named);
  memory.from = named.inode;
  if (memory.address == 0 || memory.bytes == nullptr) return map_failed;
  memory_[memory.address] = memory;
  *opened = memory.address;
  return success;
}

int fake_cuda::close_shared(std::uint64_t opened) {
  const std::lock_guard guard(mutex_);
  if (current() == nullptr) return invalid_context;
  const auto found = memory_.find(opened);
  if (found == memory_.end() || found->second.kind != fake_kind::opened) return invalid_value;
  retire(found->second);
  memory_.erase(found);
  return success;
}

std::size_t fake_cuda::opened() {
  const std::lock_guard guard(mutex_);
  return static_cast<std::size_t>(
      std::count_if(memory_.begin(), memory_.end(), [](const auto& each) {
        return each.second.kind == fake_kind::opened || each.second.kind == fake_kind::imported;
      }));
}

}  // namespace ucx::test
