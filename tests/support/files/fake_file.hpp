// A file and a disk as a test wants them: what is cached, how long the rest takes, what goes wrong.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "file/file_source.hpp"
#include "file/slow_reader.hpp"
#include "region/exposed/region_service.hpp"
#include "support/bytes/pattern.hpp"
#include "ucx/error.hpp"
#include "ucx/worker.hpp"
#include "worker/core_access.hpp"
#include "worker/worker_core.hpp"

namespace ucx::test {

/// Holds pattern 0 up to `end`.
class fake_file final : public detail::file_source {
 public:
  static constexpr std::uint64_t endless = std::numeric_limits<std::uint64_t>::max();

  std::uint64_t end = endless;
  std::uint64_t cached = endless;  ///< So many bytes from the beginning need no disk.
  std::uint64_t broken = endless;  ///< Reading from here on is an error of the device.
  unsigned disk_reads = 0;
  std::uint64_t disk_bytes = 0;

  std::size_t read_now(std::uint64_t offset, std::span<std::byte> into) noexcept override {
    const std::uint64_t limit = std::min({end, cached, broken});
    const std::size_t count =
        offset >= limit ? 0 : static_cast<std::size_t>(std::min(into.size(), limit - offset));
    fill_pattern(into.first(count), 0, offset);
    return count;
  }

  std::error_code read(std::uint64_t offset, std::span<std::byte> into) noexcept override {
    ++disk_reads;
    disk_bytes += into.size();
    if (offset + into.size() > broken) return errc::io_error;
    if (offset + into.size() > end) return errc::content_changed;
    fill_pattern(into, 0, offset);
    return {};
  }
};

/// Stands for a worker's reading thread; a read ends when the test says so.
class slow_disk final : public detail::slow_reader {
 public:
  /// Takes the place of the thread; lives as long as the worker.
  static slow_disk& attach(worker& owner) {
    detail::worker_core& core = *detail::core_access::core(owner);
    auto made = std::make_unique<slow_disk>(core);
    slow_disk& disk = *made;
    core.service().files().read_slowly_by(std::move(made));
    return disk;
  }

  explicit slow_disk(detail::worker_core& core) : core_(core) {}

  void start(std::shared_ptr<detail::slow_read> read) override {
    waiting_.push_back(std::move(read));
    if (at_once) finish(waiting_.size() - 1);
  }

  bool at_once = false;  ///< Reads end in the worker's next round.
  std::size_t waiting() const noexcept { return waiting_.size(); }

  /// Ends the read that came as number `index` of those that wait.
  void finish(std::size_t index = 0) {
    std::shared_ptr<detail::slow_read> read = std::move(waiting_[index]);
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(index));
    if (!read->unwanted) read->error = read->file->read(read->offset, read->into);
    core_.hand_over(std::move(read));
  }
  void finish_all() {
    while (!waiting_.empty()) finish();
  }

 private:
  detail::worker_core& core_;
  std::vector<std::shared_ptr<detail::slow_read>> waiting_;
};

}  // namespace ucx::test
