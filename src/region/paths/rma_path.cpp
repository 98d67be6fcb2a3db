#include "region/paths/rma_path.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>
#include <utility>

#include "connection/connection_words.hpp"
#include "connection/endpoint_core.hpp"
#include "connection/write_tracker.hpp"
#include "region/paths/rma_operation.hpp"
#include "region/paths/staged_operation.hpp"
#include "ucp/packed_key.hpp"
#include "ucp/rdma.hpp"
#include "ucp/resource_error.hpp"
#include "ucp/status.hpp"
#include "ucx/error.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {
namespace {

constexpr const char* only_by_cma =
    "UCX writes the memory by CMA only, which the owner can not revoke: open it to read; "
    "remote_region_options::trusted_peer allows it";
constexpr const char* would_help = "; remote_region_options::trusted_peer allows it";
constexpr const char* would_help_here =
    "; UCX maps memory that it allocated itself (UCP_MEM_MAP_ALLOCATE), and over TCP "
    "remote_region_options::trusted_peer allows it";

}  // namespace

result<std::unique_ptr<transfer_path>> rma_path::open(peer_region& region, bool trusted) {
  endpoint_core& connection = region.endpoint();
  if (!connection.worker().context().has(feature::rma)) {
    return failure{errc::feature_disabled, "the context was made without feature::rma"};
  }
  if (region.descriptor().remote_key.empty()) {
    return failure{errc::not_supported,
                   "the descriptor has no key for RMA: its owner did not register the memory, or "
                   "serves it from another context of UCX's"};
  }
  const std::vector<std::string> transports = connection.ucx().transports();
  if (!any_has_rma(transports) && connection.detects_failure() && !trusted) {
    return failure{errc::not_supported,
                   "UCX only emulates RMA over these transports: " +
                       why_no_rma(transports, connection.worker().context().resources(),
                                  rdma_told_by(connection.session().theirs())) +
                       (region.descriptor().foreign ? would_help : "")};
  }
  std::unique_ptr<rma_path> made(new rma_path(region));
  if (auto taken = made->take_key(transports, trusted); !taken) return std::move(taken).why();
  return std::unique_ptr<transfer_path>(std::move(made));
}

result<void> rma_path::take_key(const std::vector<std::string>& transports, bool trusted) {
  endpoint_core& connection = region_.endpoint();
  const padded_key packed(region_.descriptor().remote_key);
  if (packed.data() == nullptr) {
    return failure{errc::bad_descriptor, "the key is none that UCX could read"};
  }
  const ucs_status_t unpacked =
      connection.worker().api().ep_rkey_unpack(connection.handle(), packed.data(), &key_);
  if (unpacked != UCS_OK) {
    key_ = nullptr;
    return failure{errc::bad_descriptor, "UCX refused the key: " + words(unpacked), unpacked};
  }
  if (any_has_rma(transports)) return {};
  if (connection.detects_failure()) {
    emulated_ = true;
    connection.log(log_level::info, "a foreign region is reached by RMA that UCX emulates");
    return {};
  }
  const bool cma = std::any_of(transports.begin(), transports.end(),
                               [](const std::string& each) { return each.starts_with("cma"); });
  return look_at_memory(cma, trusted);
}

/// Within one host: RMA is real where the memory is mapped, or read by CMA.
result<void> rma_path::look_at_memory(bool cma, bool trusted) {
  ucp_api& api = region_.endpoint().worker().api();
  void* local = nullptr;
  if (api.rkey_ptr(key_, region_.descriptor().address, &local) == UCS_OK) {
    mapped_ = static_cast<std::byte*>(local);
    // Without CMA, UCX from 1.14 on asks the owner for what is read, and waits for its progress.
    copied_ = !cma;
    return {};
  }
  // Caller's memory is never written by CMA: a stopped writer could not be revoked.
  writes_ = trusted;
  const bool wants_to_write = includes(region_.descriptor().granted, access::write);
  unsigned major = 0;
  unsigned minor = 0;
  unsigned patch = 0;
  api.get_version(&major, &minor, &patch);
  const bool reads_by_cma = std::pair(major, minor) >= std::pair(1U, 22U);
  if (cma && reads_by_cma) {
    if (writes_ || !wants_to_write || region_.has_answers()) return {};
    return failure{errc::not_supported, only_by_cma};
  }
  const std::string why = std::string("the memory is not shareable, and ") +
                          (reads_by_cma ? "the connection has no transport \"cma\" to read it"
                                        : "UCX before 1.22 does not read it by CMA");
  return failure{errc::not_supported, why + (region_.descriptor().foreign ? would_help_here : "")};
}

void rma_path::drop_key() noexcept {
  mapped_ = nullptr;
  if (key_ != nullptr) region_.endpoint().worker().api().rkey_destroy(std::exchange(key_, nullptr));
}

bool rma_path::is_copied_here() const noexcept {
  return copied_ && mapped_ != nullptr && !region_.endpoint().operations().fenced();
}

bool rma_path::takes(access wanted) const noexcept {
  if (copied_) return is_copied_here();
  if (key_ == nullptr || (wanted == access::write && !writes_)) return false;
  return !region_.endpoint().operations().fenced_behind_messages();
}

transfer_path::outcome rma_path::read(std::uint64_t offset, std::span<std::byte> into,
                                      const io_options& options, std::error_code& ec) {
  return read_kept(offset, into, nullptr, options, ec);
}

transfer_path::outcome rma_path::read_kept(std::uint64_t offset, std::span<std::byte> into,
                                           const std::shared_ptr<const void>& keeper,
                                           const io_options& options, std::error_code& ec) {
  if (!takes(access::read)) return std::nullopt;
  if (copied_) {
    std::memcpy(into.data(), mapped_ + offset, into.size());
    log_done("read of ", offset, into.size());
    return nullptr;
  }
  const clock::time_point deadline = region_.endpoint().worker().deadline_after(options.timeout);
  if (emulated_) {
    return staged_operation::read(region_.share(), key_, offset, into, keeper, deadline, ec);
  }
  operation* const begun = rma_operation::read(region_.share(), key_, offset, into, deadline, ec);
  if (begun != nullptr || !is_unregistered(ec)) return begun;
  tell_of_unregistered(into.size(), ec);
  ec.clear();
  return std::nullopt;
}

/// UCX could not register the caller's memory, and did nothing. A message needs no registration.
bool rma_path::is_unregistered(std::error_code ec) const noexcept {
  return mapped_ == nullptr && (ec == errc::io_error || ec == errc::no_memory) &&
         region_.has_answers();
}

void rma_path::tell_of_unregistered(std::size_t size, std::error_code ec) {
  if (std::exchange(told_, true)) return;
  region_.endpoint().log(
      log_level::warning, "a read goes by message, because UCX can not register its memory: ",
      std::to_string(size) + " bytes, " + ec.message() + "; " + words_of_lock_limit());
}

transfer_path::outcome rma_path::write(const std::shared_ptr<write_tracker>& tracker,
                                       std::uint64_t offset, std::span<const std::byte> from,
                                       const io_options& options, std::error_code& ec) {
  if (!takes(access::write)) return std::nullopt;
  if (copied_) {
    std::memcpy(mapped_ + offset, from.data(), from.size());
    std::atomic_thread_fence(std::memory_order_release);  // before what tells the owner of it
    tracker->wrote_in_place();
    log_done("write of ", offset, from.size());
    return nullptr;
  }
  const clock::time_point deadline = region_.endpoint().worker().deadline_after(options.timeout);
  if (emulated_) {
    return staged_operation::write(region_.share(), key_, tracker, offset, from, deadline, ec);
  }
  return rma_operation::write(region_.share(), key_, tracker, offset, from, deadline, ec);
}

transfer_path::outcome rma_path::move_device(const device_bytes& bytes, std::uint64_t offset,
                                             access wanted, const io_options& options,
                                             std::error_code& ec) {
  if (!is_copied_here()) return std::nullopt;
  return copy_device(bytes, mapped_ + offset, nullptr, offset, wanted, options, ec);
}

}  // namespace ucx::detail
