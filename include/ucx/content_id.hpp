#pragma once

#include <cstdint>

namespace ucx {

/// What stood behind a name when it was opened, to be compared with what is there later.
struct content_id {
  /// The file, whatever is written to it, also after its server was started again; or the memory,
  /// as long as it is published. Equal numbers are one thing.
  std::uint64_t object = 0;
  /// What is in it: of a file that changed it is another one; of memory it never is.
  std::uint64_t generation = 0;

  friend bool operator==(const content_id&, const content_id&) = default;
};

}  // namespace ucx
