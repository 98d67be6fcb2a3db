// Reading the values of a call: docs/reference/calls.md.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include "ucx/buffer.hpp"
#include "ucx/call_writer.hpp"
#include "ucx/error.hpp"
#include "ucx/version.hpp"

namespace ucx {

namespace detail {
/// Memory that came beside the values of a call.
struct landed_part {
  std::span<std::byte> bytes = {};
  std::shared_ptr<buffer> owner = nullptr;
};
}  // namespace detail

/// Reads values that a `call_writer` of the peer wrote, one after another. The bytes may be
/// anything: each length is compared with the bytes that are left.
///
///     const std::string_view place = arguments.text();
///     for (std::size_t left = arguments.list(); left > 0; --left) use(arguments.float64());
///     arguments.finish();
///
/// A value of another type makes the reader fail for good. From then on each read returns zero, or
/// nothing. So only the end has to be checked, by `finish()`, before the values are relied on.
///
/// Lifetime: the bytes, while the reader and the texts and bytes that it returned are used.
class UCXIO_EXPORT call_reader {
 public:
  /// Bytes that values of one reader may take in memory at most (`claim()`).
  static constexpr std::size_t max_memory = std::size_t{64} << 20U;

  explicit call_reader(std::span<const std::byte> bytes) noexcept;

  /// Returns whether the next value is a nil, and reads it then. Else nothing is read.
  bool nil();
  bool boolean();
  std::int64_t integer(std::int64_t least = std::numeric_limits<std::int64_t>::min(),
                       std::int64_t most = std::numeric_limits<std::int64_t>::max());
  std::uint64_t unsigned_integer(std::uint64_t most = std::numeric_limits<std::uint64_t>::max());
  float float32();
  double float64();
  /// Reads text, which is UTF-8. It refers to the reader's bytes.
  std::string_view text();
  /// Reads bytes. They are those of the reader.
  std::span<const std::byte> bytes();
  /// Reads memory that came beside the values: of the host, unless the program chose a resource for
  /// another kind. It is named once.
  /// Lifetime: of the arguments, until the function has returned; of a result, its request.
  std::span<std::byte> memory();
  /// Reads memory likewise, and takes it.
  buffer take_memory();
  /// Reads the beginning of a list. Its elements follow: so many are read next.
  /// Returns: at most as many as bytes are left.
  std::size_t list();
  /// Reads the beginning of a map. So many keys follow, each with its value behind it.
  std::size_t map();
  /// Reads the next value, with all that is in it.
  void skip();

  /// Notes that the caller takes memory for `count` values of `size` bytes each. The reader fails
  /// where all together are more than `max_memory`: few bytes may stand for large objects.
  /// Returns `ok()`.
  bool claim(std::size_t count, std::size_t size);
  /// Makes the reader fail: a value is not what the caller can use.
  void fail(std::string_view why);

  bool ok() const noexcept { return wrong_.empty(); }
  /// Returns what was wrong first, with its place; nothing while `ok()`.
  const std::string& why() const noexcept { return wrong_; }

  /// Ends the reading. Fails where a read has failed, where bytes are left, and where a list or map
  /// was not read whole.
  /// Errors: protocol_error.
  void finish(std::error_code& ec = throws);

 private:
  friend struct detail::call_memory_access;
  enum class kind : std::uint8_t;
  struct head;

  static head head_of(std::span<const std::byte> rest) noexcept;
  static std::string_view name_of(kind value) noexcept;
  /// Reads what says the type and length of the next value; nothing is left of it but content.
  bool take(kind wanted, std::uint64_t& number);
  bool take_head(const head& next);
  bool take_values(const head& next);
  std::span<const std::byte> content(std::uint64_t size);
  void expected(std::string_view wanted, kind there);
  detail::landed_part* named_part();

  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
  /// The values that are missing in each list and map that has begun, from the outermost on.
  std::array<std::size_t, call_writer::max_depth> missing_{};
  std::size_t depth_ = 0;
  std::size_t all_missing_ = 0;
  std::size_t memory_ = 0;
  std::span<detail::landed_part> parts_;
  std::uint32_t named_ = 0;  // a bit of each part
  bool has_skipped_ = false;
  std::string wrong_;
};

}  // namespace ucx
