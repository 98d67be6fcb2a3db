#include "detail/remote_region_core.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "detail/operation_pools.hpp"
#include "detail/status.hpp"
#include "detail/worker_core.hpp"
#include "detail/write_tracker.hpp"

namespace ucx::detail {
namespace {

ucx::way wanted_way(ucx::way asked) {
  if (asked != way::automatic) return asked;
  const char* forced = std::getenv("UCXIO_WAY");
  if (forced == nullptr) return way::automatic;
  if (std::string_view(forced) == "message") return way::message;
  if (std::string_view(forced) == "rma") return way::rma;
  return way::automatic;
}

bool begins_with_any(std::string_view text, std::span<const std::string_view> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](std::string_view prefix) { return text.starts_with(prefix); });
}

/// What a handle holds: the connection goes after the region.
struct lease {
  std::shared_ptr<endpoint_core> connection;
  std::shared_ptr<remote_region_core> region;
};

}  // namespace

remote_region_core::remote_region_core(endpoint_core& endpoint, const remote_descriptor& descriptor)
    : endpoint_(endpoint), descriptor_(descriptor) {
  endpoint_.add(*this);
}

std::shared_ptr<remote_region_core> remote_region_core::make(
    std::shared_ptr<endpoint_core> endpoint, const remote_descriptor& descriptor,
    const remote_region_options& options, std::string& what, std::error_code& ec) {
  const std::lock_guard guard(endpoint->worker().lock());
  std::shared_ptr<remote_region_core> made(new remote_region_core(*endpoint, descriptor));
  if ((ec = endpoint->status())) {
    what = "opening " + made->description();
    return nullptr;
  }
  made->choose_way(wanted_way(options.way), what, ec);
  if (ec) return nullptr;
  remote_region_core* core = made.get();
  auto held = std::make_shared<lease>(lease{std::move(endpoint), std::move(made)});
  return {std::move(held), core};
}

remote_region_core::~remote_region_core() {
  const std::lock_guard guard(endpoint_.worker().lock());
  drop_key();
  endpoint_.remove(*this);
}

void remote_region_core::drop_key() noexcept {
  if (key_ != nullptr) endpoint_.worker().api().rkey_destroy(std::exchange(key_, nullptr));
}

void remote_region_core::choose_way(ucx::way wanted, std::string& what, std::error_code& ec) {
  context_core& context = endpoint_.worker().context();
  const bool messages = context.has(feature::am);
  std::string why_not;
  if (wanted != way::message && rma_is_real(why_not)) {
    way_ = way::rma;
    return;
  }
  if (wanted == way::rma || !messages) {
    if (!messages && why_not.empty()) why_not = "the context was made without feature::am";
    what = "opening " + description() + ": no way to move its bytes: " + why_not;
    ec = errc::not_supported;
    return;
  }
  way_ = way::message;
}

/// RMA counts as real where the transport moves the bytes without the owner's CPU: RDMA hardware,
/// and on one host memory that is mapped, or read by CMA. UCX emulates it everywhere else.
bool remote_region_core::rma_is_real(std::string& why_not) {
  worker_core& worker = endpoint_.worker();
  ucp_api& api = worker.api();
  if (!worker.context().has(feature::rma)) {
    why_not = "the context was made without feature::rma";
    return false;
  }
  if (descriptor_.remote_key.empty()) {
    why_not = "the descriptor has no key for RMA";
    return false;
  }
  static constexpr std::array<std::string_view, 4> hardware{"rc_", "dc_", "ud_", "gga"};
  const std::vector<std::string> transports = endpoint_.transports();
  const bool rdma = std::any_of(transports.begin(), transports.end(),
                                [](const std::string& t) { return begins_with_any(t, hardware); });
  if (!rdma && endpoint_.detects_failure()) {
    why_not = "UCX only emulates RMA over these transports";
    return false;
  }
  const ucs_status_t unpacked =
      api.ep_rkey_unpack(endpoint_.handle(), descriptor_.remote_key.data(), &key_);
  if (unpacked != UCS_OK) {
    key_ = nullptr;
    why_not = "UCX refused the key: " + words(unpacked);
    return false;
  }
  if (rdma) return true;
  void* local = nullptr;
  if (api.rkey_ptr(key_, descriptor_.address, &local) == UCS_OK) return true;
  // Caller's memory is never written by CMA: a stopped writer could not be revoked.
  writes_by_rma_ = false;
  unsigned major = 0;
  unsigned minor = 0;
  unsigned patch = 0;
  api.get_version(&major, &minor, &patch);
  const bool cma = std::any_of(transports.begin(), transports.end(),
                               [](const std::string& t) { return t.starts_with("cma"); });
  if (cma && std::pair(major, minor) >= std::pair(1U, 16U)) return true;
  api.rkey_destroy(std::exchange(key_, nullptr));
  why_not = "the memory is not shareable, and this UCX does not read it by CMA";
  return false;
}

std::string remote_region_core::description() const {
  return "region " + std::to_string(descriptor_.region) + " (" + std::to_string(descriptor_.size) +
         " bytes) at " + endpoint_.peer_name();
}

std::error_code remote_region_core::status() const noexcept {
  return closed_ ? make_error_code(errc::closed) : endpoint_.status();
}

std::error_code remote_region_core::check(std::uint64_t offset, std::uint64_t length,
                                          access wanted) const noexcept {
  if (const std::error_code unusable = status()) return unusable;
  if (!includes(descriptor_.granted, wanted)) return errc::permission_denied;
  if (offset > descriptor_.size || length > descriptor_.size - offset) return errc::out_of_range;
  return {};
}

operation* remote_region_core::start_read(std::uint64_t offset, std::span<std::byte> into,
                                          const io_options& options, std::error_code& ec) {
  if ((ec = check(offset, into.size(), access::read)) || into.empty()) return nullptr;
  worker_core& worker = endpoint_.worker();
  const clock::time_point deadline = worker.deadline_after(options.timeout);
  if (way_ == way::rma) {
    return rma_operation::read(shared_from_this(), offset, into, deadline, ec);
  }
  message_read* operation = worker.pools().reads.take();
  operation->begin(shared_from_this(), offset, into, deadline);
  return operation;
}

operation* remote_region_core::start_write(const std::shared_ptr<write_tracker>& tracker,
                                           std::uint64_t offset, std::span<const std::byte> from,
                                           const io_options& options, std::error_code& ec) {
  if ((ec = check(offset, from.size(), access::write)) || from.empty()) return nullptr;
  worker_core& worker = endpoint_.worker();
  const clock::time_point deadline = worker.deadline_after(options.timeout);
  if (way_ == way::rma && writes_by_rma_) {
    return rma_operation::write(shared_from_this(), tracker, offset, from, deadline, ec);
  }
  if (!worker.context().has(feature::am)) {
    ec = errc::not_supported;
    return nullptr;
  }
  message_write* operation = worker.pools().writes.take();
  operation->begin(shared_from_this(), tracker, offset, from, deadline);
  return operation;
}

operation* remote_region_core::start_flush(const std::shared_ptr<write_tracker>& tracker,
                                           const io_options& options, std::error_code& ec) {
  if (closed_) {
    ec = tracker->settled() ? tracker->take_failure() : std::error_code();
    if (!ec) ec = errc::closed;
    return nullptr;
  }
  const bool by_ucx = tracker->has_unconfirmable();
  if (!by_ucx && tracker->settled()) {
    ec = tracker->take_failure();
    return nullptr;
  }
  worker_core& worker = endpoint_.worker();
  flush_operation* operation = worker.pools().flushes.take();
  operation->begin(worker, endpoint_.shared_from_this(), tracker, by_ucx,
                   worker.deadline_after(options.timeout));
  return operation;
}

void remote_region_core::close() noexcept {
  const std::lock_guard guard(endpoint_.worker().lock());
  if (std::exchange(closed_, true)) return;
  endpoint_.cancel_operations_of(*this);
}

}  // namespace ucx::detail
