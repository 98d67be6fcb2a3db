// Several runs of bytes as one: what a gathering send sends, and a scattering receive fills.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace ucx::detail {

/// Borrows the runs' bytes, not the list of them. Used again without allocating.
template <class Byte>
class byte_runs {
 public:
  using run = std::span<Byte>;

  void assign(run only) noexcept {
    runs_.clear();
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
    first_ = {};
    total_ = 0;
  }

  std::size_t size() const noexcept { return total_; }
  bool contiguous() const noexcept { return runs_.empty(); }
  /// Returns the longest run of bytes that begins at `offset`.
  run from(std::size_t offset) const noexcept {
    if (runs_.empty()) return first_.bytes.subspan(std::min(offset, total_));
    const auto found =
        std::upper_bound(runs_.begin(), runs_.end(), offset,
                         [](std::size_t wanted, const placed& each) { return wanted < each.end; });
    if (found == runs_.end()) return {};
    return found->bytes.last(found->end - offset);
  }
  /// Copies what begins at `offset` into `into`, which is no longer than what follows there.
  void copy_out(std::size_t offset, std::span<std::byte> into) const noexcept {
    while (!into.empty()) {
      const run here = from(offset);
      const std::size_t size = std::min(here.size(), into.size());
      std::memcpy(into.data(), here.data(), size);
      into = into.subspan(size);
      offset += size;
    }
  }
  /// Copies `bytes` to `offset`; there is room for them.
  void copy_in(std::size_t offset, std::span<const std::byte> bytes) const noexcept {
    while (!bytes.empty()) {
      const run here = from(offset);
      const std::size_t size = std::min(here.size(), bytes.size());
      std::memcpy(here.data(), bytes.data(), size);
      bytes = bytes.subspan(size);
      offset += size;
    }
  }

 private:
  struct placed {
    run bytes;
    std::size_t end = 0;  // where it ends in the whole
  };
  placed first_;              // the only one, mostly: where the rest of the operation is
  std::vector<placed> runs_;  // all of several
  std::size_t total_ = 0;
};

}  // namespace ucx::detail
