#pragma once

// For one version: <boost/iostreams/device/array.hpp> does the same over a view of the region
// (`docs/reference/streams.md`, "Boost.Iostreams").
#include "ucx/version.hpp"

#if UCXIO_OLD_NAMES
// Boost.Iostreams 1.70 or newer: the user's build has to find it, as for boost_device.hpp.
#include <boost/iostreams/categories.hpp>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "ucx/remote_region.hpp"

namespace ucx {

/// Reads a mapped region in place, as a Boost Direct Source. Boost copies nothing, not even into a
/// buffer. It is a handle: its copies are one source. Putting back another character than was read
/// writes to the memory, and that ends the process. Boost's own `mapped_file_source` does the same.
/// Lifetime: the memory lives as long as any copy.
/// Threads: as the worker's.
class [[deprecated("boost::iostreams::array_source over remote_region::view()")]] mapped_source {
 public:
  using char_type = char;
  struct category : boost::iostreams::source_tag,
                    boost::iostreams::direct_tag,
                    boost::iostreams::closable_tag {};

  /// Takes all of `region`, and keeps a handle to it.
  /// Errors: those of `remote_region::view`; not_supported where the region is not mapped.
  explicit mapped_source(const remote_region& region)
      : region_(std::make_shared<remote_region>(region.share())) {
    if (region_->size() > 0) bytes_ = region_->view(0, static_cast<std::size_t>(region_->size()));
  }

  /// Returns begin and end of the bytes; Boost wants them without `const`.
  std::pair<char*, char*> input_sequence() const noexcept {
    char* const first = reinterpret_cast<char*>(const_cast<std::byte*>(bytes_.data()));
    return {first, first + bytes_.size()};
  }
  /// Nothing has to be done.
  void close() noexcept {}

 private:
  std::shared_ptr<remote_region> region_;
  std::span<const std::byte> bytes_;
};

/// Writes a mapped region in place, as a Boost Direct Sink. The owner has each byte at once.
/// Otherwise like `mapped_source`.
class [[deprecated(
    "boost::iostreams::array_sink over remote_region::writable_view()")]] mapped_sink {
 public:
  using char_type = char;
  struct category : boost::iostreams::sink_tag,
                    boost::iostreams::direct_tag,
                    boost::iostreams::closable_tag {};

  /// Takes all of `region`, and keeps a handle to it.
  /// Errors: those of `mapped_source`; permission_denied.
  explicit mapped_sink(const remote_region& region)
      : region_(std::make_shared<remote_region>(region.share())) {
    if (region_->size() == 0) return;
    bytes_ = region_->writable_view(0, static_cast<std::size_t>(region_->size()));
  }

  /// Returns begin and end of the bytes.
  std::pair<char*, char*> output_sequence() const noexcept {
    char* const first = reinterpret_cast<char*>(bytes_.data());
    return {first, first + bytes_.size()};
  }
  /// Nothing has to be done.
  void close() noexcept {}

 private:
  std::shared_ptr<remote_region> region_;
  std::span<std::byte> bytes_;
};

}  // namespace ucx

#endif  // UCXIO_OLD_NAMES
