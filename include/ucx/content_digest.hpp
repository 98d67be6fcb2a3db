// The identity of content: a hash, or the owner's numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "ucx/to_string.hpp"
#include "ucx/version.hpp"

namespace ucx {

/// The XXH3-128 hash of some bytes. It finds accidental changes. It does not protect against an
/// attacker.
struct content_digest {
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  friend bool operator==(const content_digest&, const content_digest&) = default;
};

/// The bytes to hash: `length` bytes from `offset` on, each `chunk` of them by itself. The last
/// chunk may be shorter.
struct digest_range {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  std::uint64_t chunk = std::uint64_t{1} << 20U;
};

/// Returns the hash of `bytes`.
/// Cost: one pass over them, some 20 GB/s.
UCXIO_EXPORT content_digest digest_of(std::span<const std::byte> bytes) noexcept;

/// Returns 32 hexadecimal digits, as `xxh128sum` prints them.
UCXIO_EXPORT std::string to_string(const content_digest& digest);

template <>
inline constexpr bool detail::is_printed<content_digest> = true;

/// Computes the hash of bytes that come piece by piece; it equals `digest_of` all of them.
class UCXIO_EXPORT content_hasher {
 public:
  content_hasher();
  content_hasher(content_hasher&& other) noexcept;
  content_hasher& operator=(content_hasher&& other) noexcept;
  ~content_hasher();

  void update(std::span<const std::byte> bytes) noexcept;
  /// Returns the hash of all bytes so far.
  content_digest digest() const noexcept;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

/// The identity of a name's content when the name was opened. Compare it with a later one.
struct content_id {
  /// The number of the file, or of the memory while it is published. It stays the same when the
  /// file is written, and after its server was started again. Equal numbers mean one object.
  std::uint64_t object = 0;
  /// The number of the file's bytes: another one after the file changed. For memory it stays the
  /// same.
  std::uint64_t generation = 0;

  friend bool operator==(const content_id&, const content_id&) = default;
};

}  // namespace ucx
