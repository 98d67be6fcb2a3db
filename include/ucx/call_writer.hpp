// Writing the values of a call: docs/reference/calls.md.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <system_error>
#include <vector>

#include "ucx/access.hpp"
#include "ucx/buffer.hpp"
#include "ucx/error.hpp"
#include "ucx/version.hpp"

namespace ucx {

namespace detail {
class call_windows;
struct call_memory_access;

/// Memory that goes beside the values of a call.
struct sent_part {
  std::span<const std::byte> bytes = {};
  std::shared_ptr<buffer> owner = nullptr;  ///< Null where the bytes are borrowed.
};
}  // namespace detail

/// Writes values one after another: the arguments of a call, or a result. `<ucx/rpc.hpp>` writes
/// C++ types by it.
///
///     ucx::call_writer arguments;
///     arguments.text("west").list(2).float64(0.5).float64(1.5);  // ("west", [0.5, 1.5])
///
/// A value that can not be written makes the writer fail for good, and `written()` tells. So only
/// the end has to be checked.
class UCXIO_EXPORT call_writer {
 public:
  /// Bytes of all values at most.
  static constexpr std::size_t max_size = std::size_t{1} << 20U;
  /// Lists and maps within each other at most.
  static constexpr std::size_t max_depth = 16;
  /// Windows among the arguments of a call at most.
  static constexpr std::size_t max_windows = 8;
  /// Runs of memory beside the values at most.
  static constexpr std::size_t max_parts = 8;

  call_writer& nil();
  call_writer& boolean(bool value);
  call_writer& integer(std::int64_t value);
  call_writer& unsigned_integer(std::uint64_t value);
  call_writer& float32(float value);
  call_writer& float64(double value);
  /// Writes text. `written()` fails where it is not UTF-8.
  call_writer& text(std::string_view value);
  call_writer& bytes(std::span<const std::byte> value);
  /// Begins a list. The next `count` values are its elements.
  call_writer& list(std::size_t count);
  /// Begins a map. The next values are `pairs` keys, each with its value behind it.
  call_writer& map(std::size_t pairs);
  /// Opens a window to memory of this side, as the argument of a call over a connection. The call
  /// makes it, and ends it: `ucx::window`.
  /// Lifetime: `memory`, until the call is done.
  call_writer& window(std::span<std::byte> memory, access granted);
  /// Puts memory beside the values, of the host or a device: its bytes are not copied to the
  /// writer. It is a value where it stands. Only a call over a connection carries it.
  /// Lifetime: `bytes`, until the call is done. A result owns its memory: it takes buffers alone.
  call_writer& memory(std::span<const std::byte> bytes);
  /// Puts memory that the writer shares with its copies, and with the call.
  call_writer& memory(buffer bytes);

  /// Returns the number of values so far. A list or map is one, with all that is in it.
  std::size_t count() const noexcept { return count_; }

  /// Returns the bytes of all values.
  /// Lifetime: until the writer changes.
  /// Errors: no_space: more than `max_size` bytes. invalid_argument: lists deeper than `max_depth`,
  /// text that is not UTF-8, a list or map that has fewer values than it was begun with, or a
  /// window: only a call over a connection has those.
  std::span<const std::byte> written(std::error_code& ec = throws) const&;
  std::span<const std::byte> written(std::error_code& ec = throws) && = delete;

 private:
  friend class detail::call_windows;
  friend struct detail::call_memory_access;
  struct sink;
  /// A window, whose value goes between bytes.
  struct opened {
    std::size_t at = 0;
    std::span<std::byte> memory = {};
    access granted = access::read;
  };

  bool begin(std::size_t size);
  call_writer& add_part(detail::sent_part next);
  void append(std::span<const std::byte> values);
  call_writer& end();
  void nest(std::size_t values);

  std::vector<std::byte> bytes_;
  std::vector<opened> windows_;
  std::vector<detail::sent_part> parts_;
  /// The values that are missing in each list and map that has begun, from the outermost on.
  std::array<std::size_t, max_depth> missing_{};
  std::size_t depth_ = 0;
  std::size_t count_ = 0;
  errc code_ = {};
  const char* wrong_ = nullptr;
};

}  // namespace ucx
