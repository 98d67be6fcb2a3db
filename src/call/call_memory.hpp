// The memory beside the values of a call: docs/reference/calls.md, "Memory beside a call".
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "ucx/call_reader.hpp"
#include "ucx/call_writer.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {

/// How the library reaches the memory of writers and readers.
struct call_memory_access {
  static const std::vector<sent_part>& parts(const call_writer& of) noexcept { return of.parts_; }
  /// The writer fails for good. Lifetime: `why`, the program's.
  static void fail(call_writer& of, const char* why) noexcept {
    if (of.wrong_ != nullptr) return;
    of.code_ = errc::invalid_argument;
    of.wrong_ = why;
  }
  /// Lifetime: `bytes` and `parts`, while the reader is used. `take_memory()` takes from `parts`.
  static call_reader reader(std::span<const std::byte> bytes,
                            std::span<landed_part> parts) noexcept {
    call_reader made(bytes);
    made.parts_ = parts;
    return made;
  }
};

}  // namespace ucx::detail
