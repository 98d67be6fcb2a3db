// How values become bytes between processes: docs/reference/wire-format.md, "Conventions".
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

namespace ucx::detail {

/// Writes a little-endian value at a place of a header. REQUIRES: there is room.
template <std::unsigned_integral Integer>
constexpr void put_at(std::span<std::byte> into, std::size_t at, Integer value) noexcept {
  // Compilers make byte-wise loops slow: they are a tenth of what a short message costs.
  if (std::endian::native == std::endian::little && !std::is_constant_evaluated()) {
    std::memcpy(into.data() + at, &value, sizeof value);
    return;
  }
  for (std::size_t i = 0; i < sizeof value; ++i) {
    into[at + i] = static_cast<std::byte>(value >> (8 * i));
  }
}

/// Reads one. REQUIRES: it is there.
template <std::unsigned_integral Integer>
constexpr Integer take_at(std::span<const std::byte> from, std::size_t at) noexcept {
  Integer value = 0;
  if (std::endian::native == std::endian::little && !std::is_constant_evaluated()) {
    std::memcpy(&value, from.data() + at, sizeof value);
    return value;
  }
  for (std::size_t i = 0; i < sizeof value; ++i) {
    value |= static_cast<Integer>(static_cast<Integer>(from[at + i]) << (8 * i));
  }
  return value;
}

/// Appends little-endian values to a buffer.
class wire_writer {
 public:
  template <std::unsigned_integral Integer>
  void put(Integer value) {
    for (std::size_t i = 0; i < sizeof value; ++i) {
      bytes_.push_back(static_cast<std::byte>(value >> (8 * i)));
    }
  }
  void put(std::span<const std::byte> raw) { bytes_.insert(bytes_.end(), raw.begin(), raw.end()); }

  std::vector<std::byte>& bytes() noexcept { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

/// Reads little-endian values out of untrusted bytes. A read past the end gives zero, and `ok()` is
/// false from then on, so that a decoder checks once, after the last field.
class wire_reader {
 public:
  explicit wire_reader(std::span<const std::byte> bytes) noexcept : rest_(bytes) {}

  template <std::unsigned_integral Integer>
  Integer take() noexcept {
    const std::span<const std::byte> raw = take(sizeof(Integer));
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < raw.size(); ++i) {
      value |= std::to_integer<std::uint64_t>(raw[i]) << (8 * i);
    }
    return static_cast<Integer>(value);
  }
  /// Returns the next `count` bytes, or none where fewer are left.
  std::span<const std::byte> take(std::size_t count) noexcept {
    if (count > rest_.size()) {
      ok_ = false;
      rest_ = {};
      return {};
    }
    const auto taken = rest_.first(count);
    rest_ = rest_.subspan(count);
    return taken;
  }

  bool ok() const noexcept { return ok_; }
  /// Returns whether every byte was read, and none too many.
  bool finished() const noexcept { return ok_ && rest_.empty(); }

 private:
  std::span<const std::byte> rest_;
  bool ok_ = true;
};

/// The envelope of a worker address; its body is UCX's own bytes in every version.
inline constexpr std::string_view worker_address_letters = "UXWA";
inline constexpr std::size_t longest_worker_address = std::size_t{64} << 10U;

/// Returns the XXH3-64 hash of `bytes`, seed 0: the same on every machine.
std::uint64_t checksum(std::span<const std::byte> bytes) noexcept;

/// The envelope of everything that a program may store or send by itself: four letters, version,
/// length, body, checksum. Letters, version, length and checksum are the same in every version.
class envelope {
 public:
  static constexpr std::size_t head_size = 12;
  static constexpr std::size_t overhead = head_size + 8;

  enum class verdict {
    intact,
    damaged,        ///< Not such an envelope, or some bytes are not as they were written.
    other_version,  ///< Intact, but its body is not for this library.
  };

  /// Begins an envelope; the body follows. REQUIRES: four letters.
  static wire_writer begin(std::string_view letters);
  /// Ends what `begin` began: fills in the length and appends the checksum.
  static std::vector<std::byte> end(wire_writer&& writer);

  /// Opens an envelope.
  envelope(std::span<const std::byte> wire, std::string_view letters) noexcept;

  verdict outcome() const noexcept { return outcome_; }
  unsigned version() const noexcept { return version_; }
  /// Returns the body; it is empty unless the envelope is intact.
  std::span<const std::byte> body() const noexcept {
    return outcome_ == verdict::intact ? body_ : std::span<const std::byte>();
  }
  /// Returns the body, also of another version; it is empty if the envelope is damaged. For bodies
  /// that are the same in every version.
  std::span<const std::byte> any_body() const noexcept { return body_; }

 private:
  verdict outcome_ = verdict::damaged;
  unsigned version_ = 0;
  std::span<const std::byte> body_;
};

}  // namespace ucx::detail
