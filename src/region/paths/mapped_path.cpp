#include "region/paths/mapped_path.hpp"

#include <atomic>
#include <cstring>
#include <string>
#include <utility>

#include "connection/endpoint_core.hpp"
#include "connection/write_tracker.hpp"
#include "os/huge_page.hpp"
#include "region/paths/driver_move.hpp"
#include "ucx/error.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

mapped_path::mapped_path(peer_region& region, std::shared_ptr<shared_mapping> mapping) noexcept
    : transfer_path(region), mapping_(std::move(mapping)) {}

result<std::unique_ptr<transfer_path>> mapped_path::open(peer_region& region,
                                                         owned_descriptor file) {
  if (!region.endpoint().worker().context().shares_memory()) {
    return failure{errc::not_supported, "the context was made to share no memory"};
  }
  std::string why_not;
  if (!file && region.descriptor().memfd.process == 0 && region.endpoint().peer().is_unix()) {
    return failure{
        errc::not_supported,
        "the owner passed no file for it: the memory is in none, is only written, or the "
        "file was lost on its way"};
  }
  std::shared_ptr<shared_mapping> mapped =
      shared_mapping::open(region.descriptor(), std::move(file), why_not);
  if (!mapped) return failure{errc::not_supported, std::move(why_not)};
  return std::unique_ptr<transfer_path>(new mapped_path(region, std::move(mapped)));
}

bool mapped_path::takes(access) const noexcept { return !region_.endpoint().operations().fenced(); }

transfer_path::outcome mapped_path::read(std::uint64_t offset, std::span<std::byte> into,
                                         const io_options&, std::error_code&) {
  if (!takes(access::read)) return std::nullopt;
  std::memcpy(into.data(), address() + offset, into.size());
  log_done("read of ", offset, into.size());
  return nullptr;
}

transfer_path::outcome mapped_path::write(const std::shared_ptr<write_tracker>& tracker,
                                          std::uint64_t offset, std::span<const std::byte> from,
                                          const io_options&, std::error_code&) {
  if (!takes(access::write)) return std::nullopt;
  std::memcpy(address() + offset, from.data(), from.size());
  std::atomic_thread_fence(std::memory_order_release);  // before what tells the owner of it
  tracker->wrote_in_place();
  log_done("write of ", offset, from.size());
  return nullptr;
}

transfer_path::outcome mapped_path::move_device(const device_bytes& bytes, std::uint64_t offset,
                                                access wanted, const io_options& options,
                                                std::error_code& ec) {
  if (!takes(wanted) || region_.has_answers()) return std::nullopt;
  return copy_device(bytes, address() + offset, mapping_, offset, wanted, options, ec);
}

std::unique_ptr<direct_move> mapped_path::mover(const device_bytes& bytes, access) {
  driver_move::owners_memory there{.host = address(), .keeps = mapping_};
  return std::make_unique<driver_move>(region_.endpoint().worker(), bytes.copier, std::move(there),
                                       bytes.after);
}

/// Where the owner lends it still it is this side's device that failed, which it would by message,
/// too.
bool mapped_path::was_moved(std::uint64_t, std::error_code) { return is_lent(); }

std::optional<std::uint64_t> mapped_path::bytes_in_huge_pages() const {
  return huge_bytes("self", reinterpret_cast<std::uintptr_t>(address()), region_.descriptor().size);
}

}  // namespace ucx::detail
