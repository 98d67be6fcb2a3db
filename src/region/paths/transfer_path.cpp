#include "region/paths/transfer_path.hpp"

#include <atomic>
#include <utility>

#include "connection/endpoint_core.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

transfer_path::transfer_path(peer_region& region) noexcept
    : region_(region),
      logged_(region.endpoint().worker().context().log().writes(log_level::debug)) {}

transfer_path::outcome transfer_path::move_device(const device_bytes&, std::uint64_t, access,
                                                  const io_options&, std::error_code&) {
  return std::nullopt;
}

std::unique_ptr<direct_move> transfer_path::mover(const device_bytes&, access) { return nullptr; }

bool transfer_path::was_moved(std::uint64_t, std::error_code) { return true; }

transfer_path::outcome transfer_path::copy_device(const device_bytes& bytes, std::byte* owners,
                                                  std::shared_ptr<const void> keeps,
                                                  std::uint64_t offset, access wanted,
                                                  const io_options& options,
                                                  std::error_code& ec) const {
  const bool reads = wanted == access::read;
  ec = bytes.copier->copy(std::move(keeps), bytes.where.data(), {owners, bytes.where.size()}, reads,
                          bytes.after, region_.endpoint().worker().deadline_after(options.timeout));
  if (!reads) std::atomic_thread_fence(std::memory_order_release);  // before what tells the owner
  if (!ec) log_done(reads ? "read of " : "write of ", offset, bytes.where.size());
  return nullptr;
}

void transfer_path::write_done(const char* what, std::uint64_t offset, std::size_t length) const {
  std::string line = what + std::to_string(length);
  line.append(" bytes at offset ").append(std::to_string(offset)).append(" of ");
  endpoint_core& connection = region_.endpoint();
  connection.worker().log_done(line + region_.description() + ", within the call", connection);
}

}  // namespace ucx::detail
