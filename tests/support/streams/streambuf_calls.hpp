// Short words for the calls of a streambuf that its tests make.
#pragma once

#include <cstddef>
#include <ios>
#include <streambuf>
#include <string>
#include <system_error>

#include "ucx/error.hpp"
#include "ucx/stream_options.hpp"

namespace ucx::test {

inline constexpr auto in = std::ios_base::in;
inline constexpr auto out = std::ios_base::out;
inline constexpr std::size_t block = 64 * 1024;
inline constexpr stream_options small_blocks{.buffer_size = block, .queue_depth = 4};
inline const std::streambuf::pos_type nowhere{std::streamoff(-1)};

inline std::streamoff position(std::streambuf& buffer) {
  return buffer.pubseekoff(0, std::ios::cur);
}

inline std::string read(std::streambuf& buffer, std::size_t count) {
  std::string bytes(count, '#');
  const auto got = buffer.sgetn(bytes.data(), static_cast<std::streamsize>(count));
  bytes.resize(static_cast<std::size_t>(got));
  return bytes;
}

inline std::streamsize write(std::streambuf& buffer, const std::string& bytes) {
  return buffer.sputn(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

/// Returns what a read of `count` bytes throws; no error when it does not.
inline std::error_code error_of_read(std::streambuf& buffer, std::size_t count) {
  try {
    read(buffer, count);
  } catch (const ucx::error& failure) {
    return failure.code();
  }
  return {};
}

/// Not for EXPECT_EQ, which would print megabytes.
inline bool same(const std::string& a, const std::string& b) { return a == b; }

}  // namespace ucx::test
