// Reads and writes whose bytes, on this side, are in the memory of a device. Apart from
// remote_region_core.cpp, which decides that they are.
#include <algorithm>
#include <atomic>
#include <utility>

#include "detail/device_copiers.hpp"
#include "detail/message_read.hpp"
#include "detail/message_write.hpp"
#include "detail/operation_pools.hpp"
#include "detail/remote_region_core.hpp"
#include "detail/worker_core.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

/// Finds who copies at `address`, and marks where the program's stream is now.
std::shared_ptr<device_copier> copier_of(worker_core& worker, const void* address,
                                         const io_options& options,
                                         std::shared_ptr<const stream_mark>& after,
                                         std::error_code& ec) {
  std::shared_ptr<device_copier> found = worker.pools().copiers.of(address, ec);
  if (!ec && options.cuda_stream != nullptr) {
    after = stream_mark::of(found->context(), options.cuda_stream, ec);
  }
  return found;
}

}  // namespace

/// UCX is given memory of the host's only: where the owner's memory is not mapped here, the way is
/// by message.
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
  if (copied_here()) {
    ec = copier->copy(mapping_, into.data(), {mapped_ + offset, into.size()}, true,
                      std::move(after), worker.deadline_after(options.timeout));
    if (!ec) log_done("read of ", offset, into.size());
    return nullptr;
  }
  if (!worker.context().has(feature::am)) {
    ec = errc::feature_disabled;
    return nullptr;
  }
  message_read* const operation = worker.pools().reads.take();
  operation->copy_by(std::move(copier), std::move(after));
  operation->begin(shared_from_this(), offset, into, worker.deadline_after(options.timeout));
  return operation;
}

operation* remote_region_core::write_from_device(const std::shared_ptr<write_tracker>& tracker,
                                                 std::uint64_t offset,
                                                 std::span<const std::byte> from,
                                                 const io_options& options, std::error_code& ec) {
  worker_core& worker = endpoint_.worker();
  std::shared_ptr<const stream_mark> after;
  std::shared_ptr<device_copier> copier = copier_of(worker, from.data(), options, after, ec);
  if (ec) return nullptr;
  if (copied_here()) {
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
  message_write* const operation = worker.pools().writes.take();
  operation->copy_by(std::move(copier), std::move(after));
  operation->begin(shared_from_this(), tracker, offset, from,
                   worker.deadline_after(options.timeout));
  return operation;
}

}  // namespace ucx::detail
