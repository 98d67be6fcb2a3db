// Files of a store that travel whole.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "file/file_facts.hpp"
#include "store/put_job.hpp"

namespace ucx::detail {

class store_core;

/// Counts the bytes of whole files that wait for the disk. Clients do not have these files open. A
/// part of a store, under the worker's lock; answers come as `store_disk` says.
class store_contents {
 public:
  /// So many bytes of files that come whole may wait for the disk; each takes some by itself.
  static constexpr std::size_t most_put = std::size_t{64} << 20U;
  static constexpr std::size_t room_of_file = std::size_t{1} << 10U;

  explicit store_contents(store_core& store) noexcept : store_(store) {}
  store_contents(const store_contents&) = delete;
  store_contents& operator=(const store_contents&) = delete;

  struct content {
    file_facts facts;
    std::vector<std::byte> bytes;
  };
  /// Returns all that is in a file of `most` bytes at most, where that can be had without waiting
  /// for a disk; nothing says nothing. Opens nothing that lasts.
  std::optional<content> content_now(const std::string& path, std::size_t most) const;

  using stored = std::function<void(std::vector<std::error_code>)>;
  /// Returns whether they may wait for the disk, too.
  bool has_room(const std::vector<whole_file>& files) const noexcept;
  /// Writes files that come whole, and tells how that went with each. Errors: as create and commit;
  /// busy (it is being written already). REQUIRES: has_room(files).
  void put(std::vector<whole_file> files, bool exclusive, bool durable, stored answer);

 private:
  class put_claim;
  std::error_code claim(const whole_file& file, put_claim& claimed);

  store_core& store_;
  std::size_t put_bytes_ = 0;  // of files that come whole
};

}  // namespace ucx::detail
