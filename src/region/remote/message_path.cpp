#include "region/remote/message_path.hpp"

#include <utility>

#include "connection/endpoint_core.hpp"
#include "region/remote/region_atomic.hpp"
#include "region/remote/region_read.hpp"
#include "region/remote/region_write.hpp"
#include "region/remote/remote_region_core.hpp"
#include "ucx/error.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

message_path::message_path(remote_region_core& region)
    : transfer_path(region),
      own_(region),
      has_messages_(region.has_answers()),
      reads_(region.endpoint().worker().pool_of<region_read>()),
      writes_(region.endpoint().worker().pool_of<region_write>()) {}

operation* message_path::read(std::uint64_t offset, std::span<std::byte> into,
                              const io_options& options, std::unique_ptr<direct_move> by,
                              std::error_code& ec) {
  if (!may_begin(ec)) return nullptr;
  if (options.verify && region_.descriptor().kind != memory_kind::host) {
    ec = errc::not_supported;
    return nullptr;
  }
  worker_core& worker = region_.endpoint().worker();
  std::unique_ptr<region_read> started(reads_.take());
  started->move_by(std::move(by));
  started->begin(own_.shared_from_this(), offset, into, worker.deadline_after(options.timeout),
                 options.verify);
  return started.release();
}

operation* message_path::write(const std::shared_ptr<write_tracker>& tracker, std::uint64_t offset,
                               std::span<const std::byte> from, const io_options& options,
                               std::unique_ptr<direct_move> by, std::error_code& ec) {
  if (!may_begin(ec)) return nullptr;
  own_.extent().written_to(offset + from.size());
  worker_core& worker = region_.endpoint().worker();
  std::unique_ptr<region_write> started(writes_.take());
  started->move_by(std::move(by));
  started->begin(own_.shared_from_this(), tracker, offset, from,
                 worker.deadline_after(options.timeout));
  return started.release();
}

operation* message_path::read_into(const device_bytes& into, std::uint64_t offset,
                                   const io_options& options, std::unique_ptr<direct_move> by,
                                   std::error_code& ec) {
  if (!may_begin(ec)) return nullptr;
  worker_core& worker = region_.endpoint().worker();
  std::unique_ptr<region_read> started(reads_.take());
  started->move_by(std::move(by));
  started->copy_by(into.copier, into.after);
  started->begin(own_.shared_from_this(), offset, into.where,
                 worker.deadline_after(options.timeout));
  return started.release();
}

operation* message_path::write_from(const std::shared_ptr<write_tracker>& tracker,
                                    const device_bytes& from, std::uint64_t offset,
                                    const io_options& options, std::unique_ptr<direct_move> by,
                                    std::error_code& ec) {
  if (!may_begin(ec)) return nullptr;
  own_.extent().written_to(offset + from.where.size());
  worker_core& worker = region_.endpoint().worker();
  std::unique_ptr<region_write> started(writes_.take());
  started->move_by(std::move(by));
  started->copy_by(from.copier, from.after);
  started->begin(own_.shared_from_this(), tracker, offset, from.where,
                 worker.deadline_after(options.timeout));
  return started.release();
}

operation* message_path::perform(std::uint64_t offset, const atomic_access& wanted,
                                 std::span<std::byte> previous, const io_options& options,
                                 std::error_code& ec) {
  if (!may_begin(ec)) return nullptr;
  worker_core& worker = region_.endpoint().worker();
  std::unique_ptr<region_atomic> started(worker.pool_of<region_atomic>().take());
  started->begin(own_.shared_from_this(), offset, wanted, previous,
                 worker.deadline_after(options.timeout));
  return started.release();
}

}  // namespace ucx::detail
