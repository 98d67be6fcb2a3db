#include "engine/region_source.hpp"

#include "ucx/access.hpp"

namespace ucx::detail {

request region_source::start_read_at(std::uint64_t offset, std::span<std::byte> into) {
  return region_.start_read_at(offset, into, each_);
}

request region_source::start_read_kept(std::uint64_t offset, std::span<std::byte> into,
                                       const std::shared_ptr<const void>& keeper) {
  return region_.start_read_kept(offset, into, keeper, each_);
}

request region_source::start_write_at(std::uint64_t offset, std::span<const std::byte> from) {
  return region_.start_write_at(offset, from, each_);
}

request region_source::start_flush() { return region_.start_flush(each_); }

bool region_source::in_place() const noexcept {
  return region_.transfer_method() == transfer_method::mapped && !each_.verify;
}

std::span<const std::byte> region_source::view(std::uint64_t offset, std::size_t length) const {
  return region_.view(offset, length);
}

bool region_source::abandons_reads_at_once() const noexcept {
  const transfer_method by = region_.transfer_method();
  return each_.verify || (by != transfer_method::rma && by != transfer_method::cuda_ipc) ||
         region_.leaves_reads_at_once();
}

std::optional<std::uint64_t> region_source::first_unconfirmed() const {
  return region_.first_unconfirmed();
}

// A flush of the old handle would have to wait for its last writes; a new handle knows of none.
void region_source::forget_writes(std::uint64_t) { region_ = region_.share(); }

std::chrono::steady_clock::time_point region_source::now() const noexcept { return region_.now(); }

}  // namespace ucx::detail
