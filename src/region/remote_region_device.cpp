// Reads and writes whose bytes are in the memory of a device: on this side, or on the owner's where
// the driver reaches it from here. Apart from remote_region_core.cpp, which decides that they are.
#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>

#include "cuda/device_copiers.hpp"
#include "cuda/device_pointer.hpp"
#include "region/message_read.hpp"
#include "region/message_write.hpp"
#include "region/remote_region_core.hpp"
#include "ucx/error.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {
namespace {

/// Finds who copies at `address`, and marks where the program's stream is now.
std::shared_ptr<device_copier> copier_of(worker_core& worker, const void* address,
                                         const io_options& options,
                                         std::shared_ptr<const stream_mark>& after,
                                         std::error_code& ec) {
  std::shared_ptr<device_copier> found = worker.copiers().of(address, ec);
  if (!ec && options.cuda_stream != nullptr) {
    after = stream_mark::of(found->context(), options.cuda_stream, ec);
  }
  return found;
}

}  // namespace

/// Finds out whether the driver may copy from the owner's memory: whether it does is seen when the
/// first bytes are wanted, because CUDA may come into use until then, and opening takes long.
bool remote_region_core::borrow_device(ucx::way wanted) {
  if (!is_copied_by_driver(descriptor_.kind)) return false;
  const context_core& context = endpoint_.worker().context();
  if (!context.shares_memory() || !context.has(feature::am)) {
    why_not_read_ = "the context was made to share no memory, or for no messages";
    return false;
  }
  lent_ = borrowed_device::open(endpoint_.worker().api(), descriptor_, why_not_read_);
  if (!lent_) return false;
  if (cuda_driver::find()->is_in_use()) {
    way_ = way::rma;
  } else {
    why_not_read_ = "this process does not use CUDA";
    if (wanted == way::rma) lent_.reset();
  }
  return lent_ != nullptr;
}

/// What UCX has mapped may be gone before the driver is done with it.
bool remote_region_core::moves_later() const noexcept {
  return mapping_ && endpoint_.worker().context().has(feature::am);
}

std::unique_ptr<direct_move> remote_region_core::mover(const std::shared_ptr<device_copier>& copier,
                                                       access wanted,
                                                       std::shared_ptr<const stream_mark> after) {
  direct_move::owners_memory there;
  if (mapping_) {
    there.host = mapping_->data();
    there.keeps = mapping_;
  } else {
    if (!lent_ || (wanted == access::write && !descriptor_.shareable)) return nullptr;
    if (!copier) {  // CUDA is in use, and no device yet
      way_ = way::message;
      why_not_read_ = "this process uses no device";
      return nullptr;
    }
    there.device = lent_->mapping_for(copier);
    if (!there.device) return nullptr;
  }
  return std::make_unique<direct_move>(endpoint_.worker(), copier, std::move(there),
                                       std::move(after));
}

bool remote_region_core::was_moved(std::uint64_t bytes, std::error_code outcome) {
  // Of what is mapped here it is this side's device that fails, which it would by message, too.
  if (mapping_) return is_lent();
  if (outcome || !is_lent()) {
    stays_staged();
    return false;
  }
  endpoint_.worker().staging_shelf().account().count_direct(bytes);
  way_ = way::rma;
  return true;
}

void remote_region_core::stays_staged() {
  endpoint_.worker().staging_shelf().account().count_not_direct();
  if (!is_lent()) {
    why_not_read_ = "its owner lends it no more";
    way_ = way::message;
    lent_.reset();
  } else if (std::string refused = lent_->refusal(); !refused.empty()) {
    why_not_read_ = std::move(refused);
    way_ = way::message;
  }
}

std::string remote_region_core::why_not_read() const {
  const std::lock_guard guard(endpoint_.worker().lock());
  if (lent_ && way_ == way::rma) return {};
  return why_not_read_;
}

operation* remote_region_core::read_from_device(std::uint64_t offset, std::span<std::byte> into,
                                                const io_options& options, std::error_code& ec) {
  worker_core& worker = endpoint_.worker();
  if (!worker.context().has(feature::am)) {
    ec = errc::feature_disabled;
    return nullptr;
  }
  std::unique_ptr<message_read> started(worker.pool_of<message_read>().take());
  started->move_by(mover(lent_->copier_of_host(worker), access::read, nullptr));
  started->begin(shared_from_this(), offset, into, worker.deadline_after(options.timeout));
  return started.release();
}

/// UCX is given memory of the host's only: where the driver does not reach the owner's memory, and
/// it is not mapped here, the way is by message.
operation* remote_region_core::read_into_device(std::uint64_t offset, std::span<std::byte> into,
                                                const io_options& options, std::error_code& ec) {
  worker_core& worker = endpoint_.worker();
  if (options.verify) {  // the processor can not look at what came
    ec = errc::not_supported;
    return nullptr;
  }
  std::shared_ptr<const stream_mark> after;
  std::shared_ptr<device_copier> copier = copier_of(worker, into.data(), options, after, ec);
  if (ec) return nullptr;
  if (copied_here() && !moves_later()) {
    ec = copier->copy(mapping_, into.data(), {mapped_ + offset, into.size()}, true,
                      std::move(after), worker.deadline_after(options.timeout));
    if (!ec) log_done("read of ", offset, into.size());
    return nullptr;
  }
  if (!worker.context().has(feature::am)) {
    ec = errc::feature_disabled;
    return nullptr;
  }
  std::unique_ptr<message_read> started(worker.pool_of<message_read>().take());
  started->move_by(mover(copier, access::read, after));
  started->copy_by(std::move(copier), std::move(after));
  started->begin(shared_from_this(), offset, into, worker.deadline_after(options.timeout));
  return started.release();
}

operation* remote_region_core::write_from_device(const std::shared_ptr<write_tracker>& tracker,
                                                 std::uint64_t offset,
                                                 std::span<const std::byte> from,
                                                 const io_options& options, std::error_code& ec) {
  worker_core& worker = endpoint_.worker();
  std::shared_ptr<const stream_mark> after;
  std::shared_ptr<device_copier> copier = copier_of(worker, from.data(), options, after, ec);
  if (ec) return nullptr;
  if (copied_here() && !moves_later()) {
    ec =
        copier->copy(mapping_, const_cast<std::byte*>(from.data()), {mapped_ + offset, from.size()},
                     false, std::move(after), worker.deadline_after(options.timeout));
    std::atomic_thread_fence(std::memory_order_release);  // before what tells the owner of it
    if (!ec) log_done("write of ", offset, from.size());
    return nullptr;
  }
  if (!worker.context().has(feature::am)) {
    ec = errc::feature_disabled;
    return nullptr;
  }
  if (limit_ > 0) size_ = std::max<std::uint64_t>(size_, offset + from.size());
  std::unique_ptr<message_write> started(worker.pool_of<message_write>().take());
  started->move_by(mover(copier, access::write, after));
  started->copy_by(std::move(copier), std::move(after));
  started->begin(shared_from_this(), tracker, offset, from, worker.deadline_after(options.timeout));
  return started.release();
}

}  // namespace ucx::detail
