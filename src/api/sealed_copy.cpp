#include "ucx/sealed_copy.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <deque>
#include <span>
#include <string>
#include <utility>

#include "base/or_code.hpp"
#include "client/opened_source.hpp"
#include "ucx/error.hpp"
#include "ucx/io_options.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/request.hpp"

namespace ucx {
namespace {

constexpr std::size_t piece = std::size_t{1} << 20U;
constexpr std::size_t most_in_flight = 8;

[[noreturn]] void throw_system_error(int number, const std::string& what) {
  const errc why = number == EMFILE || number == ENFILE                      ? errc::too_many_files
                   : number == ENOSPC || number == ENOMEM || number == EFBIG ? errc::no_memory
                                                                             : errc::io_error;
  throw error(why, what + " (" + std::generic_category().message(number) + ")");
}

/// Writable memory of a file, unmapped with its owner.
class mapped_file {
 public:
  mapped_file(int file, std::size_t size, const std::string& what) : size_(size) {
    if (size == 0) return;
    void* const at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (at == MAP_FAILED) throw_system_error(errno, what);
    first_ = static_cast<std::byte*>(at);
  }
  ~mapped_file() {
    if (first_ != nullptr) ::munmap(first_, size_);
  }
  mapped_file(const mapped_file&) = delete;
  mapped_file& operator=(const mapped_file&) = delete;

  std::span<std::byte> bytes() const noexcept { return {first_, size_}; }

 private:
  const std::size_t size_;
  std::byte* first_ = nullptr;
};

/// Has all of the memory now: where there is not as much, touching it would end the process. Piece
/// by piece, because a signal has the system begin again with the call's first byte.
void allocate(int file, std::uint64_t size, const std::string& what) {
  for (std::uint64_t offset = 0; offset < size;) {
    const std::uint64_t count = std::min<std::uint64_t>(piece, size - offset);
    const int failed =
        ::posix_fallocate(file, static_cast<off_t>(offset), static_cast<off_t>(count));
    if (failed != 0 && failed != EINTR) throw_system_error(failed, what);
    if (failed == 0) offset += count;
  }
}

void read_all(remote_region& region, std::span<std::byte> into, const io_options& each) {
  std::deque<request> in_flight;
  for (std::uint64_t offset = 0; !into.empty() || !in_flight.empty();) {
    if (!into.empty() && in_flight.size() < most_in_flight) {
      const std::size_t size = std::min(into.size(), piece);
      in_flight.push_back(region.start_read_at(offset, into.first(size), each));
      into = into.subspan(size);
      offset += size;
    } else {
      in_flight.front().wait();
      in_flight.pop_front();
    }
  }
}

file_descriptor copy(remote_region& region, const sealed_copy_options& options) {
  const std::string what = "copying " + region.description() + " into memory";
  const std::uint64_t size = region.size();
  if (size > options.most || size > PTRDIFF_MAX) {
    throw error(errc::no_space, what + ": it has " + std::to_string(size) + " bytes, and " +
                                    std::to_string(options.most) + " are allowed");
  }
  file_descriptor made(::memfd_create("ucxio", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!made) throw_system_error(errno, what);
  allocate(made.get(), size, what);
  {
    const mapped_file memory(made.get(), static_cast<std::size_t>(size), what);
    read_all(region, memory.bytes(), {options.timeout});
  }
  constexpr int everything = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
  if (::fcntl(made.get(), F_ADD_SEALS, everything) != 0) throw_system_error(errno, what);
  return made;
}

}  // namespace

file_descriptor sealed_copy(const url& name, const sealed_copy_options& options) {
  detail::opened_source source = detail::open_source(name, {options.timeout});
  return copy(source.region, options);
}

file_descriptor sealed_copy(const url& name, const sealed_copy_options& options,
                            std::error_code& ec) {
  return detail::or_code(ec, [&] { return sealed_copy(name, options); });
}

file_descriptor sealed_copy(const remote_region& region, const sealed_copy_options& options) {
  remote_region own = region.share();
  return copy(own, options);
}

file_descriptor sealed_copy(const remote_region& region, const sealed_copy_options& options,
                            std::error_code& ec) {
  return detail::or_code(ec, [&] { return sealed_copy(region, options); });
}

}  // namespace ucx
