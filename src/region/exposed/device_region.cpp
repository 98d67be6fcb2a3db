#include "region/exposed/device_region.hpp"

#include <cstring>
#include <mutex>
#include <new>
#include <string>
#include <unordered_map>
#include <utility>

#include "connection/endpoint_core.hpp"
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

remote_descriptor device_region::descriptor() const {
  remote_descriptor made = describe();
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

}  // namespace ucx::detail
