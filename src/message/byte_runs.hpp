// Several runs of bytes as one: what a gathering send sends, and a scattering receive fills. Any of
// them may be a device's.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "cuda/device_copiers.hpp"
#include "cuda/device_pointer.hpp"
#include "cuda/timed_copy.hpp"
#include "ucx/memory_place.hpp"

namespace ucx::detail {

/// Borrows the runs' bytes, not the list of them. Used again without allocating.
template <class Byte>
class byte_runs {
 public:
  using run = std::span<Byte>;

  void assign(run only) noexcept {
    runs_.clear();
    copiers_.clear();
    first_ = {only, only.size()};
    total_ = only.size();
  }
  void assign(std::span<const run> runs) {
    clear();
    append(runs);
  }
  void append(run next) {
    total_ += next.size();
    if (runs_.empty() && first_.end == 0) {
      first_ = {next, total_};
      return;
    }
    if (runs_.empty()) runs_.push_back(first_);
    runs_.push_back({next, total_});
  }
  void append(std::span<const run> runs) {
    for (const run& each : runs) append(each);
  }
  void clear() noexcept {
    runs_.clear();
    copiers_.clear();
    first_ = {};
    total_ = 0;
  }

  /// Finds the runs that are a device's. From here on only the driver copies those. Errors:
  /// no_memory, not_supported, io_error, invalid_argument (a run that begins in one place and ends
  /// in another).
  std::error_code find_devices(device_copiers& known) {
    return cuda_driver::may_be_there() ? look_for_devices(known) : std::error_code();
  }
  bool on_device() const noexcept { return !copiers_.empty(); }
  /// Returns the kind of the first run that is a device's, else the host's.
  memory_kind kind() const noexcept { return on_device() ? kind_ : memory_kind::host; }

  std::size_t size() const noexcept { return total_; }
  bool contiguous() const noexcept { return runs_.empty(); }
  /// Returns the longest run of bytes that begins at `offset`.
  run from(std::size_t offset) const noexcept {
    if (runs_.empty()) return first_.bytes.subspan(std::min(offset, total_));
    const auto found = find(offset);
    if (found == runs_.end()) return {};
    return found->bytes.last(found->end - offset);
  }
  /// Copies what begins at `offset` into `into`, which is the host's and no longer than what
  /// follows there. Errors, where a run is a device's: io_error, no_memory, closed, busy,
  /// timed_out. It times out at `until`, or after `longest_hold`; then only the driver may still
  /// use the run.
  std::error_code copy_out(std::size_t offset, std::span<std::byte> into,
                           clock::time_point until) const noexcept {
    while (!into.empty()) {
      const run here = from(offset);
      const std::size_t size = std::min(here.size(), into.size());
      if (device_copier* const copier = copier_at(offset)) {
        const std::error_code ec =
            copy_from_device(*copier, into.first(size), here.data(), {soonest(until)});
        if (ec) return ec;
      } else {
        std::memcpy(into.data(), here.data(), size);
      }
      into = into.subspan(size);
      offset += size;
    }
    return {};
  }
  /// Copies `bytes`, which are the host's, to `offset`; there is room for them. Errors: as of
  /// `copy_out`.
  std::error_code copy_in(std::size_t offset, std::span<const std::byte> bytes,
                          clock::time_point until) const noexcept {
    if (!runs_.empty() || on_device()) return copy_into_runs(offset, bytes, until);
    if (!bytes.empty()) std::memcpy(first_.bytes.data() + offset, bytes.data(), bytes.size());
    return {};
  }

 private:
  /// How long a device may hold up the worker that has the message: its peers would think it dead.
  static constexpr std::chrono::seconds longest_hold{2};
  static clock::time_point soonest(clock::time_point until) noexcept {
    return std::min(until, clock::now() + longest_hold);
  }
  struct placed {
    run bytes;
    std::size_t end = 0;  // where it ends in the whole
  };
  std::error_code copy_into_runs(std::size_t offset, std::span<const std::byte> bytes,
                                 clock::time_point until) const noexcept {
    while (!bytes.empty()) {
      const run here = from(offset);
      const std::size_t size = std::min(here.size(), bytes.size());
      if (device_copier* const copier = copier_at(offset)) {
        const std::error_code ec =
            copy_to_device(*copier, here.data(), bytes.first(size), {soonest(until)});
        if (ec) return ec;
      } else {
        std::memcpy(here.data(), bytes.data(), size);
      }
      bytes = bytes.subspan(size);
      offset += size;
    }
    return {};
  }
  /// Returns where in `runs_` the byte at `offset` is.
  auto find(std::size_t offset) const noexcept {
    return std::upper_bound(
        runs_.begin(), runs_.end(), offset,
        [](std::size_t wanted, const placed& each) { return wanted < each.end; });
  }
  /// Returns the copier of the run at `offset`; null where the processor copies it.
  device_copier* copier_at(std::size_t offset) const noexcept {
    if (copiers_.empty()) return nullptr;
    return copiers_[static_cast<std::size_t>(find(offset) - runs_.begin())].get();
  }
  std::error_code look_for_devices(device_copiers& known) {
    if (runs_.empty()) return find_device(first_.bytes, 0, known);
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      if (const std::error_code ec = find_device(runs_[i].bytes, i, known)) return ec;
    }
    return {};
  }
  std::error_code find_device(run bytes, std::size_t index, device_copiers& known) {
    std::error_code ec;
    if (!is_on_device(bytes, ec) || ec) return ec;
    result<std::shared_ptr<device_copier>> copier = known.of(bytes.data());
    if (!copier) return copier.why().code;
    if (copiers_.empty()) {
      copiers_.resize(std::max<std::size_t>(runs_.size(), 1));
      kind_ = place_of(bytes.data()).kind;
    }
    copiers_[index] = *std::move(copier);
    return {};
  }

  placed first_;              // the only one, mostly: where the rest of the operation is
  std::vector<placed> runs_;  // all of several
  std::size_t total_ = 0;
  // By number of the run, where any is a device's: found once, because an address that was freed
  // looks like the host's.
  std::vector<std::shared_ptr<device_copier>> copiers_;
  memory_kind kind_ = memory_kind::host;
};

}  // namespace ucx::detail
