// Files whose readers can tell whether they are whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

#include "support/files/temporary_directory.hpp"
#include "ucx/fstream.hpp"

namespace ucx::test {

/// Returns a text of `size` bytes behind its first line, which tells them and `number`.
inline std::string whole_file(std::size_t size, std::uint64_t number) {
  std::string text = std::to_string(size) + ' ' + std::to_string(number) + '\n';
  const std::size_t begin = text.size();
  text.resize(begin + size);
  for (std::size_t i = 0; i < size; ++i) {
    text[begin + i] = static_cast<char>('a' + (i / 7 + i + number) % 26);
  }
  return text;
}

/// Returns the number of a file that is whole; 0 for any other.
inline std::uint64_t number_of_whole(const std::filesystem::path& file) {
  const std::string text = content_of(file);
  std::size_t used = 0;
  if (text.empty() || text.find('\n') == std::string::npos) return 0;
  const std::size_t size = std::stoull(text, &used);
  const std::uint64_t number = std::stoull(text.substr(used));
  return text == whole_file(size, number) ? number : 0;
}

/// Writes such files at that URL without end, one after the other to eight names, and calls `first`
/// after the first. Returns why it had to end.
template <class First>
std::string write_whole_files(const std::string& where, First&& first) {
  for (std::uint64_t i = 1;; ++i) {
    ofstream out(where + "/file" + std::to_string(i % 8));
    out << whole_file(i * 123'457 % 3'000'000, i);
    out.close();
    if (!out) return out.error_message();
    if (i == 1) first();
  }
}

}  // namespace ucx::test
