#include "store/store_file.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <exception>
#include <thread>
#include <utility>

#include "store/store_directory.hpp"

namespace ucx::detail {

store_file::~store_file() {
  if (!closing_) return;
  try {
    const auto closed = std::make_shared<owned_descriptor>(std::move(descriptor_));
    const bool taken = closing_->start_some_time([closed] {
      *closed = owned_descriptor();
      return disk_queue::answer();
    });
    // The store was closed before: this thread may not wait for its disk any more.
    if (!taken) std::thread([closed] { *closed = owned_descriptor(); }).detach();
  } catch (const std::exception&) {  // then it is closed here
  }
}

std::error_code store_file::write(std::uint64_t offset, std::span<const std::byte> from) noexcept {
  ahead_.reserve_for(offset, from.size());
  while (!from.empty()) {
    const ssize_t written =
        ::pwrite(descriptor_.get(), from.data(), from.size(), static_cast<off_t>(offset));
    if (written > 0) {
      offset += static_cast<std::uint64_t>(written);
      from = from.subspan(static_cast<std::size_t>(written));
    } else if (written == 0 || errno != EINTR) {
      return written == 0 ? store_error(EIO) : store_error(errno);
    }
  }
  return {};
}

std::error_code store_file::resize(std::uint64_t size) noexcept {
  ahead_.give_back();
  while (::ftruncate(descriptor_.get(), static_cast<off_t>(size)) != 0) {
    if (errno != EINTR) return store_error(errno);
  }
  return {};
}

std::optional<std::uint64_t> store_file::size_now() const noexcept {
  struct ::stat about = {};
  if (::fstat(descriptor_.get(), &about) != 0) return std::nullopt;
  return static_cast<std::uint64_t>(about.st_size);
}

std::error_code store_file::sync() noexcept {
  return ::fsync(descriptor_.get()) == 0 ? std::error_code() : store_error(errno);
}

}  // namespace ucx::detail
