#include "region/exposed/memory_region_core.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "base/logger.hpp"
#include "os/huge_page.hpp"
#include "os/memory_rights.hpp"
#include "ucp/rdma.hpp"
#include "ucp/registration_cache.hpp"
#include "ucp/resource_error.hpp"
#include "ucp/status.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

memory_kind kind_of(ucs_memory_type_t type) noexcept {
  switch (type) {
    case UCS_MEMORY_TYPE_HOST:
      return memory_kind::host;
    case UCS_MEMORY_TYPE_CUDA:
      return memory_kind::cuda;
    case UCS_MEMORY_TYPE_CUDA_MANAGED:
      return memory_kind::cuda_managed;
    case UCS_MEMORY_TYPE_ROCM:
      return memory_kind::rocm;
    default:
      return memory_kind::other;
  }
}

unsigned protection(access granted) noexcept {
  unsigned bits = UCP_MEM_MAP_PROT_LOCAL_READ | UCP_MEM_MAP_PROT_LOCAL_WRITE;
  if (includes(granted, access::read)) bits |= UCP_MEM_MAP_PROT_REMOTE_READ;
  if (includes(granted, access::write)) bits |= UCP_MEM_MAP_PROT_REMOTE_WRITE;
  return bits;
}

}  // namespace

result<std::shared_ptr<exposed_region>> memory_region_core::make(
    std::shared_ptr<context_core> context, host_memory memory, access granted) {
  std::shared_ptr<memory_region_core> made(new memory_region_core(std::move(context), granted));
  made->place_ = memory.place;
  made->keeps_ = std::move(memory.keeps);
  if (const auto mapped = made->map(memory.bytes, memory.size); !mapped) return mapped.why();
  made->lend();
  made->expose();
  return made;
}

result<std::shared_ptr<exposed_region>> memory_region_core::adopt(
    std::shared_ptr<context_core> context, ucp_mem_h registered, access granted) {
  if (!context->has(feature::rma)) {
    return failure{errc::feature_disabled,
                   "adopting registered memory on a context without feature::rma"};
  }
  std::shared_ptr<memory_region_core> made(new memory_region_core(std::move(context), granted));
  if (const auto taken = made->take(registered); !taken) return taken.why();
  made->lend();
  made->expose();
  return made;
}

memory_region_core::~memory_region_core() { close(); }

result<void> memory_region_core::take(ucp_mem_h registered) {
  ucp_mem_attr_t attributes = {};
  attributes.field_mask =
      UCP_MEM_ATTR_FIELD_ADDRESS | UCP_MEM_ATTR_FIELD_LENGTH | UCP_MEM_ATTR_FIELD_MEM_TYPE;
  const ucs_status_t queried = context().api().mem_query(registered, &attributes);
  if (queried != UCS_OK) {
    return failure{make_error(queried),
                   "asking where adopted memory is (UCX: " + words(queried) + ")", queried};
  }
  if (attributes.mem_type != UCS_MEMORY_TYPE_HOST) {
    return failure{errc::not_supported, "adopting memory of kind " +
                                            std::string(to_string(kind_of(attributes.mem_type)))};
  }
  memory_ = registered;
  adopted_ = true;
  data_ = static_cast<std::byte*>(attributes.address);
  size_ = attributes.length;
  return pack_key();
}

result<void> memory_region_core::map(std::byte* bytes, std::size_t size) {
  ucp_api& api = context().api();
  data_ = bytes;
  size_ = size;
  if (bytes == nullptr) {
    if (const auto allocated = allocate_shared(size); !allocated) return allocated.why();
    bytes = data_;
  }
  const bool allocating = bytes == nullptr;
  if (!context().has(feature::rma) || size == 0) {
    // Only messages will reach it, and they need no registration.
    if (allocating) allocate_privately(size);
    return {};
  }
  if (allocating && context().same_host_only() && size > free_shared_memory()) {
    return failure{errc::no_shared_memory, "allocating " + std::to_string(size) +
                                               " bytes of shared memory: /dev/shm has " +
                                               std::to_string(free_shared_memory()) + " free"};
  }
  ucp_mem_map_params_t params = {};
  params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH |
                      UCP_MEM_MAP_PARAM_FIELD_FLAGS | UCP_MEM_MAP_PARAM_FIELD_PROT;
  params.address = bytes;
  params.length = size;
  params.prot = protection(granted());
  params.flags = allocating ? unsigned{UCP_MEM_MAP_ALLOCATE} : 0U;
  const ucs_status_t status = api.mem_map(context().handle(), &params, &memory_);
  if (status != UCS_OK) {
    memory_ = nullptr;
    const std::error_code refused = memory_error(status, allocating, context().same_host_only());
    std::string text = std::string(allocating ? "allocating " : "registering ") +
                       std::to_string(size) + " bytes (UCX: " + words(status) + ")";
    if (allocating || !does_without_key(status)) return failure{refused, std::move(text), status};
    // The processor would end the process where a peer uses it.
    const memory_use wanted{includes(granted(), access::read), includes(granted(), access::write)};
    const std::string unusable = why_unusable({bytes, size}, wanted);
    if (!unusable.empty()) return failure{refused, text + ": " + unusable, status};
    tell_of_no_key(status);
    return {};
  }
  ucp_mem_attr_t attributes = {};
  attributes.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS | UCP_MEM_ATTR_FIELD_MEM_TYPE;
  const ucs_status_t queried = api.mem_query(memory_, &attributes);
  if (queried == UCS_OK) {
    kind_ = kind_of(attributes.mem_type);
    if (allocating) data_ = static_cast<std::byte*>(attributes.address);
    if (kind_ != memory_kind::host) {  // the processor would be sent to it
      return failure{errc::not_supported, "exposing memory of kind " +
                                              std::string(to_string(kind_)) +
                                              ", which UCX knows of, and no driver here"};
    }
  } else if (allocating) {
    return failure{make_error(queried),
                   "asking where " + std::to_string(size) +
                       " allocated bytes are (UCX: " + words(queried) + ")",
                   queried};
  }
  shareable_ = shareable_ || (allocating && context().same_host_only());
  if (allocating) std::memset(data_, 0, size_);
  return pack_key();
}

/// RDMA hardware takes no pages that the process may not lock, or not write. Messages need no
/// registration. Memory of a device that only UCX knows of is nothing that a processor could copy.
bool memory_region_core::does_without_key(ucs_status_t status) const {
  const context_core& owner = context();
  const bool pinning = status == UCS_ERR_IO_ERROR || status == UCS_ERR_NO_MEMORY;
  if (!pinning || !any_is_rdma(owner.resources()) || !owner.has(feature::am)) return false;
  if (owner.requires_rdma()) return false;
  const result<context_attributes> told = owner.attributes();
  const auto is_unknown = [](memory_kind each) { return each == memory_kind::rocm; };
  if (!told || std::any_of(told->memory.begin(), told->memory.end(), is_unknown)) return false;
  return true;
}

void memory_region_core::tell_of_no_key(ucs_status_t status) const {
  logger& log = context().log();
  if (!log.writes(log_level::warning)) return;
  log.write(log_level::warning,
            std::to_string(size_) + " bytes are not registered for RDMA (UCX: " + words(status) +
                "; " + words_of_lock_limit() + "): peers reach them by message");
}

/// Allocates where peers on the host can map it, if there is such a place. On a context of one host
/// only that is UCX's affair. Memory that may only be written is not shared.
result<void> memory_region_core::allocate_shared(std::size_t size) {
  if (size == 0 || !context().shares_memory() || context().same_host_only()) return {};
  if (!includes(granted(), access::read)) return {};
  auto made =
      shared_memory::make(size, includes(granted(), access::write), context().incarnation(), id());
  if (made) {
    file_ = *std::move(made);
    data_ = file_->data();
    shareable_ = true;
    return {};
  }
  const failure& why = made.why();
  if (why.code != errc::not_supported) {
    return failure{why.code, "allocating " + std::to_string(size) + " bytes of memory"};
  }
  if (context().log().writes(log_level::info)) {
    context().log().write(
        log_level::info,
        std::to_string(size) + " allocated bytes can not be mapped by peers: " + why.text);
  }
  return {};
}

void memory_region_core::allocate_privately(std::size_t size) {
  owned_ = allocate_zeroed(size);
  data_ = owned_.get();
}

result<void> memory_region_core::pack_key() {
  void* packed = nullptr;
  std::size_t length = 0;
  const ucs_status_t status =
      context().api().rkey_pack(context().handle(), memory_, &packed, &length);
  if (status == UCS_ERR_UNSUPPORTED) return {};  // messages only
  if (status != UCS_OK) {
    return failure{make_error(status), "packing the key of " + std::to_string(size_) + " bytes",
                   status};
  }
  const auto release = [this](void* buffer) { context().api().rkey_buffer_release(buffer); };
  const std::unique_ptr<void, decltype(release)> owned(packed, release);
  const auto* bytes = static_cast<const std::byte*>(packed);
  key_.assign(bytes, bytes + length);
  return {};
}

/// Where it can not be mapped, it may be read. Memory that may only be written is not lent.
void memory_region_core::lend() {
  const bool readable = includes(granted(), access::read) && kind_ == memory_kind::host;
  if (!readable || shareable_ || size_ == 0 || !context().shares_memory()) return;
  record_ = std::make_unique<region_record>(describe());
  loan_ = record_->location();  // now: a child that is forked does not speak for this process
}

remote_descriptor memory_region_core::descriptor() const {
  remote_descriptor made = describe();
  made.address = reinterpret_cast<std::uintptr_t>(data_);
  made.shareable = shareable_;
  if (file_) made.memfd = file_->location();
  if (record_) made.cma = loan_;
  made.remote_key = key_;
  return made;
}

owned_descriptor memory_region_core::open_file(access rights) const noexcept {
  if (!file_ || !includes(granted(), rights) || !includes(rights, access::read)) return {};
  return file_->reopen(includes(rights, access::write));
}

void memory_region_core::release() noexcept {
  record_.reset();
  if (memory_ != nullptr && !adopted_) {
    context().api().mem_unmap(context().handle(), memory_);
    if (any_is_rdma(context().resources())) {
      end_registration(context().api(), context().handle(), {data_, size_});
    }
  }
  memory_ = nullptr;
  file_.reset();
  keeps_.reset();
}

}  // namespace ucx::detail
