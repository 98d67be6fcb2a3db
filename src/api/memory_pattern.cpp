#include "ucx/memory_resources.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "base/result.hpp"
#include "cuda/device_pointer.hpp"
#include "ucx/error.hpp"

namespace ucx {
namespace {

constexpr std::size_t piece_size = std::size_t{1} << 20U;  // of a device's memory, at a time

/// The bytes of one content, from a place on.
class pattern {
 public:
  pattern(std::uint64_t seed, std::uint64_t offset) noexcept
      : mixed_((offset + 1) * step + seed * 0xC2B2AE3D27D4EB4FU) {}

  std::byte next() noexcept {
    const auto made = static_cast<std::byte>(mixed_ >> 56U);
    mixed_ += step;
    return made;
  }

 private:
  static constexpr std::uint64_t step = 0x9E3779B97F4A7C15U;
  std::uint64_t mixed_;
};

void fill(std::span<std::byte> bytes, pattern& content) noexcept {
  for (std::byte& each : bytes) each = content.next();
}

std::optional<std::size_t> mismatch(std::span<const std::byte> bytes, pattern& content) noexcept {
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    if (bytes[at] != content.next()) return at;
  }
  return {};
}

/// Memory for the pieces of `size` bytes of a device; empty with an error.
std::vector<std::byte> piece_of(std::size_t size, std::error_code& ec) {
  try {
    return std::vector<std::byte>(std::min(piece_size, size));
  } catch (const std::bad_alloc&) {
    ec = errc::no_memory;
    return {};
  }
}

void fill_any(std::span<std::byte> bytes, pattern content, const io_options& options,
              std::error_code& ec) {
  if (bytes.empty()) return;
  const bool on_device = detail::is_on_device(bytes, ec);
  if (ec) return;
  if (!on_device) return fill(bytes, content);
  std::vector<std::byte> through = piece_of(bytes.size(), ec);
  while (!ec && !bytes.empty()) {
    const std::span piece = std::span(through).first(std::min(through.size(), bytes.size()));
    fill(piece, content);
    copy_memory(bytes.data(), piece.data(), piece.size(), options, ec);
    bytes = bytes.subspan(piece.size());
  }
}

std::optional<std::size_t> mismatch_in_any(std::span<const std::byte> bytes, pattern content,
                                           const io_options& options, std::error_code& ec) {
  if (bytes.empty()) return {};
  const bool on_device = detail::is_on_device(bytes, ec);
  if (ec) return {};
  if (!on_device) return mismatch(bytes, content);
  std::vector<std::byte> through = piece_of(bytes.size(), ec);
  for (std::size_t at = 0; !ec && at < bytes.size(); at += through.size()) {
    const std::span piece = std::span(through).first(std::min(through.size(), bytes.size() - at));
    copy_memory(piece.data(), bytes.data() + at, piece.size(), options, ec);
    if (ec) return {};
    if (const auto found = mismatch(piece, content)) return at + *found;
  }
  return {};
}

std::string text(const char* doing, std::size_t size) {
  return doing + std::to_string(size) + " bytes with a pattern";
}

}  // namespace

void fill_pattern(std::span<std::byte> bytes, std::uint64_t seed, std::uint64_t offset,
                  const io_options& options, std::error_code& ec) {
  std::error_code outcome;
  fill_any(bytes, pattern(seed, offset), options, outcome);
  detail::end_with(outcome, ec, [bytes] { return text("filling ", bytes.size()); });
}

std::optional<std::size_t> find_pattern_mismatch(std::span<const std::byte> bytes,
                                                 std::uint64_t seed, std::uint64_t offset,
                                                 const io_options& options, std::error_code& ec) {
  std::error_code outcome;
  const auto found = mismatch_in_any(bytes, pattern(seed, offset), options, outcome);
  detail::end_with(outcome, ec, [bytes] { return text("comparing ", bytes.size()); });
  return found;
}

}  // namespace ucx
