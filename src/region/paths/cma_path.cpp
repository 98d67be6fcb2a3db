#include "region/paths/cma_path.hpp"

#include <string>
#include <utility>

#include "connection/endpoint_core.hpp"
#include "os/huge_page.hpp"
#include "ucx/error.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {
namespace {

/// Longer reads would keep the worker from its peers: their owner sends them.
constexpr std::size_t max_read = std::size_t{16} << 20U;

}  // namespace

cma_path::cma_path(peer_region& region, std::unique_ptr<cma_region> memory) noexcept
    : transfer_path(region), memory_(std::move(memory)) {}

result<std::unique_ptr<transfer_path>> cma_path::open(peer_region& region) {
  const context_core& context = region.endpoint().worker().context();
  const remote_descriptor& described = region.descriptor();
  if (described.kind != memory_kind::host) {
    return failure{errc::not_supported, "it is memory of a device"};
  }
  if (described.shareable) {  // what can be mapped is better mapped
    return failure{errc::not_supported, "its owner lets it be mapped, and not be read"};
  }
  if (!region.has_answers()) return region.why_no_answers();
  if (!context.shares_memory()) {
    return failure{errc::not_supported, "the context was made to share no memory"};
  }
  if (!context.reads_processes()) {
    return failure{errc::not_supported, "the context has no transport `cma`"};
  }
  std::string why_not;
  std::unique_ptr<cma_region> memory =
      cma_region::open(region.endpoint().worker().api(), described, why_not);
  if (!memory) return failure{errc::not_supported, std::move(why_not)};
  return std::unique_ptr<transfer_path>(new cma_path(region, std::move(memory)));
}

bool cma_path::takes(access wanted) const noexcept {
  return wanted == access::read && !region_.endpoint().operations().fenced();
}

/// Where it fails the owner has gone, or taken the region back: asked by message, it says so.
transfer_path::outcome cma_path::read(std::uint64_t offset, std::span<std::byte> into,
                                      const io_options&, std::error_code&) {
  if (into.size() > max_read || !takes(access::read)) return std::nullopt;
  if (!memory_->read(offset, into)) return std::nullopt;
  log_done("read of ", offset, into.size());
  return nullptr;
}

transfer_path::outcome cma_path::write(const std::shared_ptr<write_tracker>&, std::uint64_t,
                                       std::span<const std::byte>, const io_options&,
                                       std::error_code&) {
  return std::nullopt;
}

std::optional<std::uint64_t> cma_path::bytes_in_huge_pages() const {
  const remote_descriptor& described = region_.descriptor();
  // The owner's record was seen: the number is its own.
  return huge_bytes(std::to_string(described.cma.process), described.address, described.size);
}

}  // namespace ucx::detail
