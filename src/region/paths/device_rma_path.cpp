#include "region/paths/device_rma_path.hpp"

#include <optional>
#include <utility>

#include "connection/endpoint_core.hpp"
#include "cuda/device_pointer.hpp"
#include "ucp/packed_key.hpp"
#include "ucx/error.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

/// Has the byte in itself, so that it needs nothing of the path's.
class device_rma_path::probe final : public plane_transfer {
 public:
  probe(std::shared_ptr<device_plane> plane, std::shared_ptr<plane_state> state)
      : plane_(std::move(plane)), state_(std::move(state)) {
    local = {&byte_, 1};
  }

 private:
  void ended() noexcept override {
    if (status() == UCS_OK) return state_->opened();
    if (std::optional<failure> why_not = plane_->why_not_made()) {
      return state_->lacks_plane(std::move(why_not->text));
    }
    const ucs_status_t lost = key->peer().lost();
    if (lost == UCS_OK && !plane_state::is_refusal(status())) return state_->not_opened(status());
    state_->failed(false, false, status(), lost);
  }

  const std::shared_ptr<device_plane> plane_;
  const std::shared_ptr<plane_state> state_;
  std::byte byte_{};
};

result<std::unique_ptr<transfer_path>> device_rma_path::open(peer_region& region) {
  const remote_descriptor& told = region.descriptor();
  if (told.kind != memory_kind::cuda) {
    return failure{errc::not_supported, "it is no memory of a CUDA device"};
  }
  if (!region.has_answers()) return region.why_no_answers();
  if (told.device_rma.key.empty()) {
    return failure{errc::not_supported,
                   "the owner told no key for adapters: its context has no second one of UCX's for "
                   "device memory, or the connection has no RDMA hardware"};
  }
  if (padded_key(told.device_rma.key).data() == nullptr) {
    return failure{errc::not_supported, "the key for adapters is none that UCX could read"};
  }
  if (told.device_rma.worker.size() < plane_peer::shortest_address) {
    return failure{errc::not_supported, "the address for adapters is none that UCX could read"};
  }
  worker_core& worker = region.endpoint().worker();
  auto found = worker.context().plane();
  if (!found) return std::move(found).why();
  const std::shared_ptr<device_plane>& plane = *found;
  const bool is_read = includes(told.granted, access::read) && told.size != 0;
  plane_move::way there{plane, plane->key(plane->peer(told.device_rma.worker), told.device_rma.key),
                        std::make_shared<plane_state>(plane->log(), is_read),
                        told.device_rma.address};
  std::unique_ptr<device_rma_path> made(new device_rma_path(region, std::move(there)));
  if (!is_read) {
    made->way_.state->opened();
    return std::unique_ptr<transfer_path>(std::move(made));
  }
  made->probe_ = made->start_probe();
  if (!made->probe_) return failure{errc::no_memory, "no memory to try a transfer by RMA"};
  return std::unique_ptr<transfer_path>(std::move(made));
}

std::shared_ptr<device_rma_path::probe> device_rma_path::start_probe() {
  auto started = std::make_shared<probe>(way_.plane, way_.state);
  started->key = way_.key;
  started->address = way_.address;
  started->deadline = region_.endpoint().worker().api().now() + longest_probe;
  if (way_.plane->start(started)) return nullptr;
  return started;
}

bool device_rma_path::may_move(access wanted, bool with_device) const noexcept {
  const bool writes = includes(wanted, access::write);
  if (way_.key == nullptr || !way_.state->may_move(writes, with_device)) return false;
  // Until the probe has come, nothing is known of the way.
  return !probe_ || probe_->is_over();
}

transfer_path::outcome device_rma_path::read(std::uint64_t offset, std::span<std::byte> into,
                                             const io_options& options, std::error_code& ec) {
  std::unique_ptr<direct_move> by = mover({}, access::read);
  if (!by) return std::nullopt;
  return region_.start_read_by(std::move(by), offset, into, options, ec);
}

transfer_path::outcome device_rma_path::write(const std::shared_ptr<write_tracker>& tracker,
                                              std::uint64_t offset, std::span<const std::byte> from,
                                              const io_options& options, std::error_code& ec) {
  std::unique_ptr<direct_move> by = mover({}, access::write);
  if (!by) return std::nullopt;
  return region_.start_write_by(std::move(by), tracker, offset, from, options, ec);
}

std::unique_ptr<direct_move> device_rma_path::mover(const device_bytes& bytes, access wanted) {
  const bool with_device = bytes.copier != nullptr;
  if (!may_move(wanted, with_device)) return nullptr;
  if (!with_device) {
    return std::make_unique<plane_move>(region_.endpoint().worker(), way_, nullptr, nullptr);
  }
  // Managed memory moves between the device and the host.
  if (place_of(bytes.where.data()).kind != memory_kind::cuda) return nullptr;
  return std::make_unique<plane_move>(region_.endpoint().worker(), way_, bytes.copier->context(),
                                      bytes.after);
}

bool device_rma_path::was_moved(std::uint64_t bytes, std::error_code outcome) {
  staging_account& account = region_.endpoint().worker().staging_shelf().account();
  if (outcome == errc::connection_reset || outcome == errc::io_error) return true;
  if (outcome || !is_lent()) {
    account.count_not_direct();
    return false;
  }
  account.count_direct(bytes);
  return true;
}

std::shared_ptr<plane_transfer> device_rma_path::first_transfer() const noexcept { return probe_; }

std::string device_rma_path::complaint() const {
  std::string why = way_.state->complaint();
  if (!why.empty()) return why;
  if (probe_ && !probe_->is_over()) return "the first byte by RMA has not come yet";
  return way_.key == nullptr ? "its owner lends it no more" : std::string();
}

void device_rma_path::drop_key() noexcept {
  if (way_.key == nullptr) return;
  // The probe goes on: its end by force would be that of the connection.
  probe_.reset();
  way_.key.reset();
}

}  // namespace ucx::detail
