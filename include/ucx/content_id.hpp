#pragma once

#include <cstdint>

namespace ucx {

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
