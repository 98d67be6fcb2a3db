#include "copying/local_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "output/exit_code.hpp"

namespace ucx::tool {
namespace {

/// Returns the descriptor; -1, and errno, where there is none to be had.
int opened(const std::filesystem::path& path, int flags, ::mode_t mode) noexcept {
  int descriptor = -1;
  do {
    descriptor = ::open(path.c_str(), flags | O_CLOEXEC, mode);
  } while (descriptor < 0 && errno == EINTR);
  return descriptor;
}

}  // namespace

void fail_at(const std::filesystem::path& path, const char* doing, int error) {
  throw failure(exit_code_of_errno(error),
                fmt::format("{}: {}: {}", path.string(), doing,
                            std::error_code(error, std::generic_category()).message()),
                error == EFBIG ? failure::reach::one_file : failure::reach::by_code);
}

local_file::local_file(std::filesystem::path path, int flags, ::mode_t mode)
    : path_(std::move(path)), descriptor_(opened(path_, flags, mode)) {
  if (descriptor_ < 0) fail_at(path_, "cannot open it", errno);
}

std::optional<local_file> local_file::open_unless(int refusal, const std::filesystem::path& path,
                                                  int flags) {
  local_file made;
  made.path_ = path;
  made.descriptor_ = opened(path, flags, 0666);
  if (made.descriptor_ >= 0) return made;
  if (errno == refusal) return std::nullopt;
  fail_at(path, "cannot open it", errno);
}

local_file::local_file(local_file&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

local_file& local_file::operator=(local_file&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

local_file::~local_file() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void local_file::close() {
  if (::close(std::exchange(descriptor_, -1)) != 0 && errno != EINTR) {
    fail_at(path_, "cannot write", errno);
  }
}

void local_file::settle() const {
  const int another = ::fcntl(descriptor_, F_DUPFD_CLOEXEC, 0);
  if (another < 0 || (::close(another) != 0 && errno != EINTR)) {
    fail_at(path_, "cannot write", errno);
  }
}

struct ::stat local_file::status() const {
  struct ::stat about = {};
  if (::fstat(descriptor_, &about) != 0) fail_at(path_, "cannot look at it", errno);
  return about;
}

std::size_t local_file::read_at(std::uint64_t offset, std::span<std::byte> into) const {
  std::size_t done = 0;
  while (done < into.size()) {
    const ssize_t got = ::pread(descriptor_, into.data() + done, into.size() - done,
                                static_cast<::off_t>(offset + done));
    if (got == 0) break;
    if (got > 0) {
      done += static_cast<std::size_t>(got);
    } else if (errno != EINTR) {
      fail_at(path_, "cannot read", errno);
    }
  }
  return done;
}

void local_file::write_at(std::uint64_t offset, std::span<const std::byte> from) const {
  while (!from.empty()) {
    const ssize_t put =
        ::pwrite(descriptor_, from.data(), from.size(), static_cast<::off_t>(offset));
    if (put >= 0) {
      from = from.subspan(static_cast<std::size_t>(put));
      offset += static_cast<std::uint64_t>(put);
    } else if (errno != EINTR) {
      fail_at(path_, "cannot write", errno);
    }
  }
}

void local_file::append(std::span<const std::byte> from) const {
  while (!from.empty()) {
    const ssize_t put = ::write(descriptor_, from.data(), from.size());
    if (put >= 0) {
      from = from.subspan(static_cast<std::size_t>(put));
    } else if (errno != EINTR) {
      fail_at(path_, "cannot write", errno);
    }
  }
}

void local_file::resize(std::uint64_t size) const {
  if (::ftruncate(descriptor_, static_cast<::off_t>(size)) != 0) {
    fail_at(path_, "cannot set its size", errno);
  }
}

std::vector<content_digest> local_file::digests(const digest_range& wanted) const {
  std::vector<content_digest> all;
  constexpr std::size_t piece = std::size_t{256} << 10U;
  std::vector<std::byte> buffer(std::min<std::uint64_t>(piece, wanted.length));
  std::uint64_t offset = wanted.offset;
  for (std::uint64_t left = wanted.length; left > 0;) {
    content_hasher hasher;
    for (std::uint64_t of_chunk = std::min(wanted.chunk, left); of_chunk > 0;) {
      const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(buffer.size(), of_chunk));
      const std::span<std::byte> into(buffer.data(), size);
      if (read_at(offset, into) < size) {
        throw failure(exit_code::content_changed, path_.string() + ": it was cut off meanwhile");
      }
      hasher.update(into);
      offset += size;
      left -= size;
      of_chunk -= size;
    }
    all.push_back(hasher.digest());
  }
  return all;
}

}  // namespace ucx::tool
