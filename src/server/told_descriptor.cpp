#include "server/told_descriptor.hpp"

#include <cstdint>
#include <utility>

namespace ucx::detail {
namespace {

/// Numbers of atomic accesses have to be aligned at the owner, and readers check that first. An
/// address of 0 would say that only messages of other kinds reach the region.
constexpr std::uint64_t largest_alignment = 8;

std::uint64_t stand_in_for(std::uint64_t address) noexcept {
  return address == 0 ? 0 : largest_alignment + address % largest_alignment;
}

}  // namespace

remote_descriptor told_descriptor(remote_descriptor whole, access wanted, const peer_reach& to) {
  remote_descriptor told = std::move(whole);
  told.granted = wanted;
  if (!to.takes_keys) {
    told.remote_key.clear();
    told.device_rma = {};
  }
  // Those of this host go by the driver, and libraries of before the key would refuse it.
  if (to.shares_host || !to.has_rma) told.device_rma = {};
  if (to.shares_host) return told;
  told.host = {};
  told.shareable = false;
  told.memfd = {};
  told.cma = {};
  told.cuda_ipc = {};
  if (to.has_rma && !told.remote_key.empty()) return told;
  told.remote_key.clear();
  told.address = stand_in_for(told.address);
  return told;
}

}  // namespace ucx::detail
