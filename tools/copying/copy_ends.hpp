// The two ends of a copy: a file here, or what a server has.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "copying/location.hpp"
#include "copying/piece_codec.hpp"
#include "copying/server_clients.hpp"
#include "ucx/content_digest.hpp"
#include "ucx/entry.hpp"

namespace ucx::tool {

/// Both ends hash chunks of so many bytes, to find out whether they have the same.
constexpr std::size_t digest_chunk = std::size_t{1} << 20U;

struct copy_terms {
  bool verify = false;               ///< Reads are checked, and the whole is compared at the end.
  bool resume = false;               ///< Goes on with what an interrupted copy has left.
  bool restart_changed = false;      ///< Changed bytes of that are copied anew.
  bool hash = false;                 ///< Tells the hash of what was copied.
  bool sparse = false;               ///< Zeros become holes.
  bool is_from_server = false;       ///< A server may claim any size.
  bool preserve = false;             ///< The time of the last change, and here the mode, too.
  codec source_codec = codec::none;  ///< Bytes of a server come in this encoding.
  codec target_codec = codec::none;  ///< Bytes for a server go in this encoding.
  std::uint64_t largest = std::numeric_limits<std::uint64_t>::max();  ///< That a file may be.
};

/// The facts about a source beside its bytes.
struct source_facts {
  std::optional<file_time> modified = {};
  std::optional<::mode_t> mode = {};
};

// Errors of both ends: failure, with the cause's number and a text that says which file.

/// The source of a copy: so many bytes as it had when it was opened. Safe from any thread.
class copy_source {
 public:
  virtual ~copy_source() = default;
  virtual std::uint64_t size() const noexcept = 0;
  /// Fills `into`. Errors: content_changed (it became shorter).
  virtual void read(std::uint64_t offset, std::span<std::byte> into) = 0;
  /// Returns the first byte from `offset` on that is not known to be in a hole; `size()` where
  /// there is none.
  virtual std::uint64_t next_data(std::uint64_t offset) = 0;
  /// Returns the hash of each chunk of that range. Cost: where the bytes are, a pass over them.
  virtual std::vector<content_digest> digests(const digest_range& wanted) = 0;
  virtual source_facts facts() = 0;
  /// Errors: content_changed (it is not what it was when it was opened, as far as can be seen).
  virtual void check_unchanged() = 0;
};

/// Where it goes. One thread at a time, and offsets that increase.
class copy_target {
 public:
  /// Throws away what is not whole, or leaves it for `--resume`, as `keep` said.
  virtual ~copy_target() = default;
  /// Returns how many bytes an earlier copy has left; 0 unless that was wanted.
  virtual std::uint64_t present() const noexcept = 0;
  virtual std::vector<content_digest> digests(const digest_range& wanted) = 0;
  /// Has the first `present` bytes, and nothing behind them.
  virtual void begin(std::uint64_t present) = 0;
  /// Returns whether what is left out reads as zero.
  virtual bool may_have_holes() const noexcept = 0;
  virtual void write(std::uint64_t offset, std::span<const std::byte> from) = 0;
  /// Has everything that was written where it can be hashed, `size` bytes in all.
  virtual void complete(std::uint64_t size) = 0;
  /// Gives it its name.
  virtual void commit(const source_facts& like) = 0;
  /// Says whether what is there by now may be resumed; else it goes with this object. Returns
  /// whether it stays.
  virtual bool keep(bool is_good) noexcept = 0;
};

/// Errors: not_found, permission, usage (a directory), those of the connection.
std::unique_ptr<copy_source> open_source(const location& from, const copy_terms& terms,
                                         server_clients& clients);
/// `size` is what is going to be written. Errors: the same; no_space (it has a fixed size); usage,
/// where its name is that of an unfinished copy, which may be another one's.
std::unique_ptr<copy_target> open_target(const location& to, std::uint64_t size,
                                         const copy_terms& terms, server_clients& clients);

/// Returns the name under which an unfinished copy to `leaf` lies beside it.
std::string partial_name(const std::string& leaf);
/// Returns whether a file of that name may be an unfinished copy.
bool is_partial_name(std::string_view leaf) noexcept;

}  // namespace ucx::tool
