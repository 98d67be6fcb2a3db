#include "new_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <exception>
#include <string>

#include "copy_ends.hpp"

namespace ucx::tool {
namespace {

constexpr ::mode_t usual_mode = 0666;

bool is_there(const std::filesystem::path& path) noexcept {
  struct ::stat found = {};
  return ::lstat(path.c_str(), &found) == 0;
}

bool give_name(int file, const char* path) noexcept {
  std::array<char, 32> descriptor{};
  std::snprintf(descriptor.data(), descriptor.size(), "/proc/self/fd/%d", file);
  return ::linkat(AT_FDCWD, descriptor.data(), AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0;
}

}  // namespace

bool write_new_file(const std::filesystem::path& path, std::span<const std::byte> bytes) noexcept {
  try {
    const std::string leaf = path.filename().string();
    std::filesystem::path directory = path.parent_path();
    if (is_partial_name(leaf) || is_there(directory / partial_name(leaf))) return false;
    if (directory.empty()) directory = ".";
    const int file = ::open(directory.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, usual_mode);
    if (file < 0) return false;
    const bool is_written = bytes.empty() || ::write(file, bytes.data(), bytes.size()) ==
                                                 static_cast<ssize_t>(bytes.size());
    const bool has_name = is_written && give_name(file, path.c_str());
    // An error of closing is one of writing, on some file systems.
    if (::close(file) == 0 || !has_name) return has_name;
    ::unlink(path.c_str());
    return false;
  } catch (const std::exception&) {  // so long a name none can have
    return false;
  }
}

}  // namespace ucx::tool
