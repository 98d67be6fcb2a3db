#include "region/exposed/device_region.hpp"

#include <cstring>
#include <mutex>
#include <new>
#include <string>
#include <unordered_map>
#include <utility>

#include "connection/endpoint_core.hpp"
#include "cuda/adapter_writes.hpp"
#include "region/exposed/notification_queue.hpp"
#include "region/exposed/region_extras.hpp"
#include "region/exposed/region_service.hpp"
#include "region/exposed/write_room.hpp"
#include "ucx/error.hpp"
#include "wire/frame.hpp"
#include "worker/context_core.hpp"
#include "worker/worker_copy.hpp"

namespace ucx::detail {

/// Bytes that connections have written and the driver has not copied. A peer that keeps to the
/// protocol has at most one window in flight for each handle. Above `most_of_one`, writes of a
/// connection are refused. Safe from any thread.
class device_region::uncopied_bytes {
 public:
  static constexpr std::uint64_t most_of_one = 16 * device_write_window;

  bool take(const endpoint_core* writer, std::uint64_t bytes) noexcept {
    try {
      const std::lock_guard guard(mutex_);
      std::uint64_t& taken = taken_[writer];
      if (bytes > most_of_one - taken) return false;
      taken += bytes;
      return true;
    } catch (const std::bad_alloc&) {
      return false;
    }
  }
  void give_back(const endpoint_core* writer, std::uint64_t bytes) noexcept {
    const std::lock_guard guard(mutex_);
    const auto found = taken_.find(writer);
    if ((found->second -= bytes) == 0) taken_.erase(found);
  }

 private:
  std::mutex mutex_;
  std::unordered_map<const endpoint_core*, std::uint64_t> taken_;
};

device_region::device_region(std::shared_ptr<context_core> context,
                             std::shared_ptr<device_memory> memory, access granted)
    : exposed_region(std::move(context), granted),
      place_(memory->place()),
      where_(memory->where()),
      memory_(std::move(memory)),
      uncopied_(std::make_shared<uncopied_bytes>()) {}

result<std::shared_ptr<exposed_region>> device_region::make(std::shared_ptr<context_core> context,
                                                            std::shared_ptr<device_memory> memory,
                                                            access granted) {
  if (!context->has(feature::am)) {
    return failure{errc::feature_disabled,
                   "exposing memory of a device: its context was made without feature::am"};
  }
  std::shared_ptr<device_region> made(
      new device_region(std::move(context), std::move(memory), granted));
  made->lend();
  made->register_for_adapters();
  made->expose();
  return made;
}

device_region::~device_region() { close(); }

/// Memory that may only be written is not lent. The driver's handle gives access to the whole
/// allocation. The caller's memory is never written that way: a writer process that was stopped
/// could still write after the region is withdrawn.
void device_region::lend() {
  if (!includes(granted(), access::read) || !context().shares_memory()) return;
  const std::shared_ptr<device_memory> memory = memory_.get();
  if (memory->place().kind != memory_kind::cuda) return;
  share_ = cuda_share::of(memory->context(), where_);
  handle_ = share_.handle();
  if (handle_.size == 0) {
    if (!context().log().writes(log_level::warning)) return;
    context().log().write(log_level::warning,
                          "device memory is not shared within its host: region " +
                              std::to_string(id()) + " (" + std::to_string(where_.size()) +
                              " bytes): " + share_.why_not());
    return;
  }
  owned_ = memory->is_owned();
  record_ = std::make_unique<region_record>(describe());
  loan_ = record_->location();  // now: a child that is forked does not speak for this process
}

/// Memory that moves between the device and the host, managed memory, is not registered.
void device_region::register_for_adapters() {
  if (place_.kind != memory_kind::cuda) return;
  const auto plane = context().made_plane();
  if (!plane) return;
  auto made = plane_memory::map(**plane, memory_.get()->context(), where_, granted());
  if (made) {
    registered_ = *std::move(made);
    flushes_ = includes(granted(), access::write) && !sees_adapter_writes(memory_.get()->context());
    return;
  }
  if (!context().log().writes(log_level::warning)) return;
  context().log().write(log_level::warning,
                        "device memory is not registered for RMA between hosts: region " +
                            std::to_string(id()) + " (" + std::to_string(where_.size()) +
                            " bytes): " + made.why().text);
}

remote_descriptor device_region::descriptor() const {
  remote_descriptor made = describe();
  if (registered_) made.device_rma = registered_->handle();
  made.cuda_ipc.by_descriptors = handle_.by_descriptors;
  if (!record_) return made;
  made.cma = loan_;
  made.cuda_ipc = handle_;
  made.shareable = owned_;
  return made;
}

/// The record ends first, so that no peer takes the memory for the region after its release.
void device_region::release() noexcept {
  record_.reset();
  registered_.reset();
  if (const std::shared_ptr<device_memory> memory = memory_.get()) memory->withdraw();
  memory_.reset();
  share_ = {};
}

/// Its bytes are copied twice: here by the processor, out of memory that is UCX's, and by the
/// driver.
class device_region::write_copy final : public worker_copy {
 public:
  write_copy(endpoint_core& from, std::shared_ptr<uncopied_bytes> account,
             std::shared_ptr<device_memory> into, const frame& asked, staging_buffer through)
      : worker_copy(from.worker(), std::move(through)),
        from_(from.weak_from_this()),
        writer_(&from),
        account_(std::move(account)),
        into_(std::move(into)),
        asked_(asked) {
    into_device = true;
  }

 private:
  void copied() noexcept override {
    if (into_) account_->give_back(writer_, asked_.length);
    into_.reset();
  }
  void arrived() override {
    const std::shared_ptr<endpoint_core> still = from_.lock();
    const std::error_code ec = error == errc::closed ? make_error_code(errc::revoked) : error;
    if (!still || still->status()) return;
    try {
      region_service::answer_write(*still, asked_, ec);
    } catch (const std::bad_alloc&) {
      still->blame(errc::no_memory, "no memory to answer a write");
    }
  }

  const std::weak_ptr<endpoint_core> from_;
  const endpoint_core* const writer_;
  const std::shared_ptr<uncopied_bytes> account_;
  std::shared_ptr<device_memory> into_;
  const frame asked_;
};

void device_region::write(endpoint_core& from, const frame& asked,
                          std::span<const std::byte> payload) {
  const auto refuse = [&](std::error_code ec) { region_service::answer_write(from, asked, ec); };
  const std::shared_ptr<device_memory> into = memory_.get();
  if (!into) return refuse(errc::revoked);
  if (!uncopied_->take(&from, asked.length)) return refuse(errc::busy);
  std::error_code ec = errc::no_memory;
  try {
    staging_buffer through = from.worker().staging_shelf().take(payload.size());
    if (through) {
      std::memcpy(through.get(), payload.data(), payload.size());
      const auto copy =
          std::make_shared<write_copy>(from, uncopied_, into, asked, std::move(through));
      copy->host = {copy->buffer.get(), payload.size()};
      ec = into->start(copy, asked.offset);
    }
  } catch (const std::bad_alloc&) {
  }
  if (!ec) return;
  uncopied_->give_back(&from, asked.length);
  refuse(ec);
}

/// Copies nothing: its turn is behind all that the region's copier was given before.
class device_region::notify_flush final : public worker_copy {
 public:
  notify_flush(endpoint_core& from, std::shared_ptr<device_memory> memory,
               std::shared_ptr<notification_queue> queue, const frame& asked)
      : worker_copy(from.worker(), {}),
        from_(from.weak_from_this()),
        memory_(std::move(memory)),
        queue_(std::move(queue)),
        asked_(asked) {
    staging = nullptr;
  }

 private:
  std::error_code prepare() noexcept override {
    flushed_ = flush_adapter_writes(memory_->context());
    return errc::canceled;
  }
  void copied() noexcept override { memory_.reset(); }
  void arrived() override {
    const std::shared_ptr<endpoint_core> still = from_.lock();
    if (!still || still->status()) return;
    std::error_code ec = errc::io_error;
    if (error == errc::closed) ec = errc::revoked;
    try {
      if (flushed_) {
        ec = queue_->push({asked_.offset, still->session().number(), still->peer()},
                          still->worker());
      }
      region_extras::answer_notification(*still, asked_, ec);
    } catch (const std::bad_alloc&) {
      still->blame(errc::no_memory, "no memory to answer a notification");
    }
  }

  const std::weak_ptr<endpoint_core> from_;
  std::shared_ptr<device_memory> memory_;
  const std::shared_ptr<notification_queue> queue_;
  const frame asked_;
  bool flushed_ = false;
};

bool device_region::notify_later(endpoint_core& from, const frame& asked) {
  if (!flushes_) return false;
  const std::shared_ptr<device_memory> memory = memory_.get();
  std::error_code ec = errc::revoked;
  if (memory) {
    ec = memory->start(std::make_shared<notify_flush>(from, memory, notifications(), asked), 0);
  }
  if (ec) region_extras::answer_notification(from, asked, ec);
  return true;
}

}  // namespace ucx::detail
