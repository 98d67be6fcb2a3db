#include "region/paths/cuda_ipc_path.hpp"

#include <utility>

#include "base/if_there_is_memory.hpp"
#include "connection/endpoint_core.hpp"
#include "cuda/cuda_driver.hpp"
#include "cuda/device_copiers.hpp"
#include "cuda/device_pointer.hpp"
#include "region/paths/driver_move.hpp"
#include "ucx/error.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

cuda_ipc_path::cuda_ipc_path(peer_region& region, std::unique_ptr<cuda_ipc_region> memory) noexcept
    : transfer_path(region), memory_(std::move(memory)) {}

result<std::unique_ptr<transfer_path>> cuda_ipc_path::open(peer_region& region, bool at_once) {
  const context_core& context = region.endpoint().worker().context();
  if (!is_copied_by_driver(region.descriptor().kind)) {
    return failure{errc::not_supported, "it is no memory of a CUDA device"};
  }
  if (!region.has_answers()) return region.why_no_answers();
  if (!context.shares_memory()) {
    return failure{errc::not_supported, "the context was made to share no memory"};
  }
  std::string why_not;
  std::unique_ptr<cuda_ipc_region> memory =
      cuda_ipc_region::open(region.endpoint().worker().api(), region.descriptor(), why_not);
  if (!memory) return failure{errc::not_supported, std::move(why_not)};
  std::unique_ptr<cuda_ipc_path> made(new cuda_ipc_path(region, std::move(memory)));
  if (!cuda_driver::find()->is_in_use()) {
    made->goes_by_message("this process does not use CUDA");
    if (at_once) return failure{errc::not_supported, made->complaint_};
  }
  return std::unique_ptr<transfer_path>(std::move(made));
}

/// Memory that is shared by descriptors is mapped for reading: a write there would end the context.
bool cuda_ipc_path::may_write() const noexcept {
  const remote_descriptor& told = region_.descriptor();
  return told.shareable && !told.cuda_ipc.by_descriptors;
}

void cuda_ipc_path::goes_by_message(std::string why) noexcept {
  complaint_ = std::move(why);
  method_ = transfer_method::message;
}

transfer_path::outcome cuda_ipc_path::read(std::uint64_t offset, std::span<std::byte> into,
                                           const io_options& options, std::error_code& ec) {
  if (!memory_) return std::nullopt;
  const device_bytes hosts{into, memory_->copier_of_host(region_.endpoint().worker()), nullptr};
  return region_.start_read_by(mover(hosts, access::read), offset, into, options, ec);
}

transfer_path::outcome cuda_ipc_path::write(const std::shared_ptr<write_tracker>& tracker,
                                            std::uint64_t offset, std::span<const std::byte> from,
                                            const io_options& options, std::error_code& ec) {
  if (!memory_ || !may_write()) return std::nullopt;
  const device_bytes hosts{{}, memory_->copier_of_host(region_.endpoint().worker()), nullptr};
  return region_.start_write_by(mover(hosts, access::write), tracker, offset, from, options, ec);
}

std::unique_ptr<direct_move> cuda_ipc_path::mover(const device_bytes& bytes, access wanted) {
  if (!memory_ || (wanted == access::write && !may_write())) return nullptr;
  if (!bytes.copier) {  // CUDA is in use, and no device yet
    goes_by_message("this process uses no device");
    return nullptr;
  }
  std::shared_ptr<device_mapping> there = memory_->mapping_for(bytes.copier);
  if (!there) return nullptr;
  return std::make_unique<driver_move>(region_.endpoint().worker(), bytes.copier,
                                       driver_move::owners_memory{.device = std::move(there)},
                                       bytes.after);
}

bool cuda_ipc_path::was_moved(std::uint64_t bytes, std::error_code outcome) {
  if (outcome || !is_lent()) {
    was_refused();
    return false;
  }
  region_.endpoint().worker().staging_shelf().account().count_direct(bytes);
  complaint_.clear();
  method_ = transfer_method::cuda_ipc;
  return true;
}

void cuda_ipc_path::was_refused() {
  region_.endpoint().worker().staging_shelf().account().count_not_direct();
  if (!is_lent()) {
    memory_.reset();
    goes_by_message(if_there_is_memory("its owner lends it no more"));
  } else if (std::string refused = if_there_is_memory([this] { return memory_->refusal(); });
             !refused.empty()) {
    goes_by_message(std::move(refused));
  }
}

}  // namespace ucx::detail
