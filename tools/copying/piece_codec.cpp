#include "copying/piece_codec.hpp"

#include <lz4.h>
#include <zstd.h>

#include <algorithm>

#include "output/exit_code.hpp"

namespace ucx::tool {
namespace {

constexpr int zstd_level = 3;

/// Fills the beginning of `into`; returns how much of it, 0 where there is not enough room.
std::size_t compress(codec by, std::span<const std::byte> from, std::span<std::byte> into) {
  if (by == codec::zstd) {
    const std::size_t length =
        ::ZSTD_compress(into.data(), into.size(), from.data(), from.size(), zstd_level);
    return ::ZSTD_isError(length) == 0 ? length : 0;
  }
  const int length = ::LZ4_compress_default(
      reinterpret_cast<const char*>(from.data()), reinterpret_cast<char*>(into.data()),
      static_cast<int>(from.size()), static_cast<int>(into.size()));
  return static_cast<std::size_t>(std::max(length, 0));
}

/// Returns whether that filled `into`. Nothing is written behind it, whatever `from` says.
bool decompress(codec by, std::span<const std::byte> from, std::span<std::byte> into) {
  if (by == codec::zstd) {
    return ::ZSTD_decompress(into.data(), into.size(), from.data(), from.size()) == into.size();
  }
  const int length = ::LZ4_decompress_safe(
      reinterpret_cast<const char*>(from.data()), reinterpret_cast<char*>(into.data()),
      static_cast<int>(from.size()), static_cast<int>(into.size()));
  return length >= 0 && static_cast<std::size_t>(length) == into.size();
}

bool restore(codec by, std::span<const std::byte> from, std::span<std::byte> into) {
  if (by != codec::none) return decompress(by, from, into);
  if (from.size() != into.size()) return false;
  std::ranges::copy(from, into.begin());
  return true;
}

}  // namespace

std::string_view name_of(codec by) noexcept {
  switch (by) {
    case codec::zstd:
      return "zstd";
    case codec::lz4:
      return "lz4";
    default:
      return "none";
  }
}

std::optional<codec> codec_of(std::string_view name) noexcept {
  for (const codec each : {codec::none, codec::zstd, codec::lz4}) {
    if (name == name_of(each)) return each;
  }
  return std::nullopt;
}

coded_piece encode(codec wanted, std::span<const std::byte> piece) {
  coded_piece made;
  made.digest = digest_of(piece);
  if (wanted != codec::none && piece.size() > 1) {
    made.bytes.resize(piece.size() - 1);
    const std::size_t length = compress(wanted, piece, made.bytes);
    made.bytes.resize(length);
    if (length > 0) made.by = wanted;
  }
  if (made.by == codec::none) made.bytes.assign(piece.begin(), piece.end());
  return made;
}

void decode(codec by, std::span<const std::byte> coded, const content_digest& digest,
            std::span<std::byte> into) {
  if (restore(by, coded, into) && digest_of(into) == digest) return;
  throw failure(exit_code::integrity, "a piece was damaged on its way to or from an agent");
}

}  // namespace ucx::tool
