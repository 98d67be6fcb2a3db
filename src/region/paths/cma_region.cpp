#include "region/paths/cma_region.hpp"

#include <sys/types.h>

#include <algorithm>
#include <array>

#include "region/exposed/region_record.hpp"
#include "wire/host_identity.hpp"

namespace ucx::detail {
namespace {

/// Read by one call: what was read before a region was withdrawn is of no use, and is read again.
constexpr std::size_t longest_part = std::size_t{4} << 20U;

}  // namespace

cma_region::cma_region(ucp_api& api, const remote_descriptor& described) noexcept
    : api_(api),
      loan_(described.cma),
      address_(described.address),
      expected_{.token = described.cma.token, .about = subject_of(described)} {}

std::unique_ptr<cma_region> cma_region::open(ucp_api& api, const remote_descriptor& described,
                                             std::string& why_not) {
  if (described.cma.process == 0) {
    why_not = "its owner does not let processes of its host read it";
    return nullptr;
  }
  if (described.host != host_identity()) {
    why_not = "its owner is on another host";
    return nullptr;
  }
  std::unique_ptr<cma_region> made(new cma_region(api, described));
  if (made->read(0, {})) return made;
  why_not =
      "the system does not let this process read its owner's memory (another user, another "
      "container, or kernel.yama.ptrace_scope)";
  return nullptr;
}

bool cma_region::read_from(std::uint64_t address, std::span<std::byte> into) noexcept {
  do {
    const std::span<std::byte> part = into.first(std::min(into.size(), longest_part));
    if (!read_part(address, part)) return false;
    into = into.subspan(part.size());
    address += part.size();
  } while (!into.empty());
  return true;
}

bool cma_region::read_part(std::uint64_t address, std::span<std::byte> into) noexcept {
  cma_record::content found;
  const std::array<::iovec, 2> places{::iovec{into.data(), into.size()},
                                      ::iovec{&found, sizeof found}};
  // In this order, says process_vm_readv(2). Linux lets go of the bytes' pages, with full ordering,
  // before it turns to the record.
  const std::array from{memory_range{address, into.size()},
                        memory_range{loan_.record, sizeof found}};
  const auto process = static_cast<::pid_t>(loan_.process);
  return api_.read_process(process, places, from) == into.size() + sizeof found &&
         found == expected_;
}

}  // namespace ucx::detail
