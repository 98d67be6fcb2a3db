#include "ucx/file_descriptor.hpp"

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

#include "base/result.hpp"
#include "client/opened_source.hpp"
#include "ucx/error.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/request.hpp"
#include "worker/outcome_of.hpp"

namespace ucx {
namespace {

constexpr std::size_t piece = std::size_t{1} << 20U;
constexpr std::size_t most_in_flight = 8;

using detail::failure;
using detail::result;

failure system_failure(int number, const std::string& doing) {
  const errc why = number == EMFILE || number == ENFILE                      ? errc::too_many_files
                   : number == ENOSPC || number == ENOMEM || number == EFBIG ? errc::no_memory
                                                                             : errc::io_error;
  return {why, doing + " (" + std::generic_category().message(number) + ")"};
}

/// Writable memory of a file, unmapped with its owner.
class mapped_file {
 public:
  /// Maps nothing, and sets errno, where the system does not.
  mapped_file(int file, std::size_t size) noexcept
      : size_(size),
        at_(size == 0 ? nullptr
                      : ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)) {}
  ~mapped_file() {
    if (at_ != nullptr && at_ != MAP_FAILED) ::munmap(at_, size_);
  }
  mapped_file(const mapped_file&) = delete;
  mapped_file& operator=(const mapped_file&) = delete;

  explicit operator bool() const noexcept { return at_ != MAP_FAILED; }
  std::span<std::byte> bytes() const noexcept { return {static_cast<std::byte*>(at_), size_}; }

 private:
  const std::size_t size_;
  void* const at_;
};

/// Has all of the memory now: where there is not as much, touching it would end the process. Piece
/// by piece, because a signal has the system begin again with the call's first byte. Returns the
/// system's error.
int allocate(int file, std::uint64_t size) noexcept {
  for (std::uint64_t offset = 0; offset < size;) {
    const std::uint64_t count = std::min<std::uint64_t>(piece, size - offset);
    const int failed =
        ::posix_fallocate(file, static_cast<off_t>(offset), static_cast<off_t>(count));
    if (failed != 0 && failed != EINTR) return failed;
    if (failed == 0) offset += count;
  }
  return 0;
}

result<void> read_all(remote_region& region, std::span<std::byte> into, const io_options& each) {
  std::deque<request> in_flight;
  for (std::uint64_t offset = 0; !into.empty() || !in_flight.empty();) {
    if (!into.empty() && in_flight.size() < most_in_flight) {
      const std::size_t size = std::min(into.size(), piece);
      in_flight.push_back(region.start_read_at(offset, into.first(size), each));
      into = into.subspan(size);
      offset += size;
    } else {
      const auto read = detail::outcome_of(std::move(in_flight.front()));
      if (!read) return read;
      in_flight.pop_front();
    }
  }
  return {};
}

result<file_descriptor> copy(remote_region region, const copy_to_memfd_options& options) {
  const std::string doing = "copying " + region.description() + " into memory";
  const std::uint64_t size = region.size();
  if (size > options.max_size || size > PTRDIFF_MAX) {
    return failure{errc::no_space, doing + ": it has " + std::to_string(size) + " bytes, and " +
                                       std::to_string(options.max_size) + " are allowed"};
  }
  file_descriptor made(::memfd_create("ucxio", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!made) return system_failure(errno, doing);
  if (const int failed = allocate(made.get(), size); failed != 0) {
    return system_failure(failed, doing);
  }
  {
    const mapped_file memory(made.get(), static_cast<std::size_t>(size));
    if (!memory) return system_failure(errno, doing);
    const auto read = read_all(region, memory.bytes(), {options.timeout});
    if (!read) return read.why();
  }
  constexpr int everything = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
  if (::fcntl(made.get(), F_ADD_SEALS, everything) != 0) return system_failure(errno, doing);
  return made;
}

result<file_descriptor> copy(const url& name, const copy_to_memfd_options& options) {
  auto source = detail::open_source(name, {options.timeout});
  if (!source) return source.why();
  return copy(std::move(source->region), options);
}

}  // namespace

file_descriptor copy_to_memfd(const url& name, const copy_to_memfd_options& options,
                              std::error_code& ec) {
  return copy(name, options).or_end(ec);
}

file_descriptor copy_to_memfd(const remote_region& region, const copy_to_memfd_options& options,
                              std::error_code& ec) {
  return copy(region.share(), options).or_end(ec);
}

}  // namespace ucx
