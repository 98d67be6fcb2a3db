#include "cuda/cuda_fd_mapping.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <new>
#include <system_error>
#include <utility>

#include "cuda/imported_pool_memory.hpp"
#include "wire/process_identity.hpp"

namespace ucx::detail {
namespace {

/// As the driver takes it.
void* shared_by(const owned_descriptor& descriptor) noexcept {
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(descriptor.get()));
}

}  // namespace

cuda_fd_mapping::cuda_fd_mapping(std::shared_ptr<const cuda_context> context,
                                 const remote_descriptor& described, cuda_fd_table table) noexcept
    : device_mapping(std::move(context)),
      table_(std::move(table)),
      process_(described.cma.process),
      offset_(described.cuda_ipc.offset),
      mapped_in_(::getpid()) {}

std::shared_ptr<device_mapping> cuda_fd_mapping::make(const std::shared_ptr<device_copier>& copier,
                                                      const remote_descriptor& described,
                                                      cuda_fd_table table) {
  return closed_by(copier, std::unique_ptr<device_mapping>(new cuda_fd_mapping(
                               copier->context(), described, std::move(table))));
}

cuda_fd_mapping::~cuda_fd_mapping() {
  // A child that is forked has nothing of the driver's, and locks may be taken there for ever.
  if (::getpid() == mapped_in_) unmap();
}

std::byte* cuda_fd_mapping::map() noexcept {
  const peer_descriptors owner(process_);
  if (!(table_.pointer ? map_pool(owner) : map_allocations(owner))) {
    unmap();
    return nullptr;
  }
  return reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(begin_ + offset_));
}

bool cuda_fd_mapping::succeeded(const char* call, cuda::result said) noexcept {
  if (said == cuda::success) return true;
  call_ = call;
  said_ = said;
  return false;
}

bool cuda_fd_mapping::failed(const char* why) noexcept {
  call_ = why;
  return false;
}

/// The file is looked at, because the owner may have closed it meanwhile: another one could have
/// got its number.
owned_descriptor cuda_fd_mapping::take(const peer_descriptors& owner,
                                       const cuda_fd_table::part& part) noexcept {
  owned_descriptor taken = owner.duplicate(part.descriptor);
  if (!taken) {
    errno_ = errno;
    return {};
  }
  struct ::stat found = {};
  if (::fstat(taken.get(), &found) != 0 || found.st_dev != part.device ||
      found.st_ino != part.inode) {
    failed("the owner's descriptor is of another file by now");
    return {};
  }
  return taken;
}

bool cuda_fd_mapping::map_allocations(const peer_descriptors& owner) noexcept {
  const cuda_driver& driver = context()->driver();
  const std::uint64_t size = table_.size();
  if (!succeeded("cuMemAddressReserve", driver.reserve_addresses(&begin_, size, 0, 0, 0))) {
    return false;
  }
  reserved_ = size;
  for (const cuda_fd_table::part& each : table_.parts) {
    if (!map_part(owner, each)) return false;
  }
  return allow();
}

/// The mapping keeps the allocation. The driver refuses a size that the allocation has not.
bool cuda_fd_mapping::map_part(const peer_descriptors& owner,
                               const cuda_fd_table::part& part) noexcept {
  const cuda_driver& driver = context()->driver();
  const owned_descriptor taken = take(owner, part);
  if (!taken) return false;
  cuda::allocation imported = 0;
  if (!succeeded(
          "cuMemImportFromShareableHandle",
          driver.import_allocation(&imported, shared_by(taken), cuda::handle_type_descriptor))) {
    return false;
  }
  const bool mapped =
      succeeded("cuMemMap", driver.map(begin_ + mapped_, part.size, 0, imported, 0));
  driver.release_allocation(imported);
  if (mapped) mapped_ += part.size;
  return mapped;
}

/// Nothing but reads goes by it, so that the driver shall forbid the rest. Not every device can.
bool cuda_fd_mapping::allow() noexcept {
  const cuda_driver& driver = context()->driver();
  cuda::access wanted{.device = context()->device(), .flags = cuda::access_read};
  if (driver.set_access(begin_, reserved_, &wanted, 1) == cuda::success) return true;
  wanted.flags = cuda::access_read_write;
  return succeeded("cuMemSetAccess", driver.set_access(begin_, reserved_, &wanted, 1));
}

bool cuda_fd_mapping::map_pool(const peer_descriptors& owner) noexcept {
  const cuda_fd_table::part& part = table_.parts.front();
  const owned_descriptor taken = take(owner, part);
  if (!taken) return false;
  try {
    const std::uint64_t started = start_of_process(process_);
    if (started == 0) return failed("the system does not say when the owner began");
    pool_ = imported_pool_memory::find({process_, started, *table_.pointer});
  } catch (const std::bad_alloc&) {
    return failed("there is no memory for it");
  }
  const auto opened = pool_->open(context()->driver(), taken.get(), context()->device(), part.size);
  if (!succeeded(opened.call, opened.said)) {
    imported_pool_memory::drop(std::move(pool_));
    pool_ = nullptr;
    return false;
  }
  begin_ = opened.address;
  return true;
}

void cuda_fd_mapping::unmap() noexcept {
  const cuda_driver& driver = context()->driver();
  if (pool_) {
    // The context may be over. Memory of a pool is freed in any that is there.
    const current_context own(*context());
    const std::shared_ptr<const cuda_context> other =
        own.result() != cuda::success ? cuda_context::primary_in_use(context()->device()) : nullptr;
    if (other) {
      const current_context current(*other);
      pool_->close(driver);
    } else {
      pool_->close(driver);
    }
    imported_pool_memory::drop(std::move(pool_));
    pool_ = nullptr;
  }
  if (reserved_ == 0) return;
  const beside_captures guard(driver);
  cuda::address at = begin_;
  for (const cuda_fd_table::part& each : table_.parts) {
    if (at - begin_ == mapped_) break;
    driver.unmap(at, each.size);
    at += each.size;
  }
  driver.free_addresses(begin_, std::exchange(reserved_, 0));
  mapped_ = 0;
}

std::string cuda_fd_mapping::refusal() const {
  if (said_ != cuda::success) return cuda_words(context()->driver(), call_, said_);
  if (errno_ == 0) return call_;
  return "the system does not give this process the owner's descriptor (pidfd_getfd: " +
         std::generic_category().message(errno_) + ")";
}

}  // namespace ucx::detail
