// A directory that is gone with its test.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

namespace ucx::test {

class temporary_directory {
 public:
  temporary_directory() {
    std::string name = (std::filesystem::temp_directory_path() / "ucxio-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no directory " + name);
    path_ = name;
  }
  ~temporary_directory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  temporary_directory(const temporary_directory&) = delete;
  temporary_directory& operator=(const temporary_directory&) = delete;

  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

  /// Makes the file `name`, or replaces what is in it.
  std::filesystem::path make(const std::string& name, const std::string& content) const {
    const std::filesystem::path file = path_ / name;
    std::ofstream(file, std::ios::binary) << content;
    return file;
  }

 private:
  std::filesystem::path path_;
};

/// Returns what is in a file; empty where there is none.
inline std::string content_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  // Piece by piece: byte by byte takes long with a sanitizer that looks at every access.
  std::string content;
  std::string piece(std::size_t{64} << 10U, '\0');
  while (in.read(piece.data(), static_cast<std::streamsize>(piece.size())) || in.gcount() > 0) {
    content.append(piece, 0, static_cast<std::size_t>(in.gcount()));
  }
  return content;
}

}  // namespace ucx::test
