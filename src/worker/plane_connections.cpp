#include "worker/plane_connections.hpp"

#include <algorithm>
#include <utility>

#include "ucp/packed_key.hpp"

namespace ucx::detail {

std::shared_ptr<plane_peer> plane_connections::peer(std::span<const std::byte> address) {
  const std::lock_guard guard(mutex_);
  for (const std::shared_ptr<plane_peer>& each : peers_) {
    if (each->lost() == UCS_OK && each->has(address)) return each;
  }
  peers_.push_back(std::make_shared<plane_peer>(address));
  return peers_.back();
}

std::shared_ptr<plane_key> plane_connections::key(std::shared_ptr<plane_peer> peer,
                                                  std::span<const std::byte> packed) {
  const std::lock_guard guard(mutex_);
  keys_.push_back(std::make_shared<plane_key>(std::move(peer), packed));
  return keys_.back();
}

ucs_status_t plane_connections::ready(plane_key& key, ucp_worker_h worker) noexcept {
  plane_peer& peer = *key.peer_;
  if (peer.endpoint_ == nullptr) {
    ucp_ep_params_t params = {};
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                        UCP_EP_PARAM_FIELD_ERR_HANDLER;
    params.address = reinterpret_cast<const ucp_address_t*>(peer.address_.data());
    params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    params.err_handler.cb = &plane_connections::on_lost;
    params.err_handler.arg = &peer;
    const ucs_status_t made = api_.ep_create(worker, &params, &peer.endpoint_);
    if (made != UCS_OK) {
      peer.endpoint_ = nullptr;
      peer.lose(made);
      return made;
    }
  }
  if (key.handle_ != nullptr) return UCS_OK;
  const padded_key packed(key.packed_);
  if (packed.data() == nullptr) return UCS_ERR_INVALID_PARAM;
  const ucs_status_t unpacked = api_.ep_rkey_unpack(peer.endpoint_, packed.data(), &key.handle_);
  if (unpacked != UCS_OK) key.handle_ = nullptr;
  return unpacked;
}

void plane_connections::on_lost(void* self, ucp_ep_h, ucs_status_t status) {
  static_cast<plane_peer*>(self)->lose(status);
}

bool plane_connections::drop_lost() noexcept {
  bool dropped = false;
  for (;;) {
    std::shared_ptr<plane_peer> lost;
    {
      const std::lock_guard guard(mutex_);
      for (const std::shared_ptr<plane_peer>& each : peers_) {
        if (each->lost() != UCS_OK && each->endpoint_ != nullptr) lost = each;
      }
    }
    if (!lost) return dropped;
    drop(*lost);
    dropped = true;
  }
}

bool plane_connections::drop_unheld() {
  bool dropped = false;
  for (;;) {
    std::shared_ptr<plane_key> key;
    std::shared_ptr<plane_peer> peer;
    {
      const std::lock_guard guard(mutex_);
      const auto unheld = [](const auto& each) { return each.use_count() == 1; };
      const auto first = std::find_if(keys_.begin(), keys_.end(), unheld);
      if (first != keys_.end()) {
        key = std::move(*first);
        keys_.erase(first);
      } else if (const auto left = std::find_if(peers_.begin(), peers_.end(), unheld);
                 left != peers_.end()) {
        peer = std::move(*left);
        peers_.erase(left);
      }
    }
    if (key && key->handle_ != nullptr) api_.rkey_destroy(std::exchange(key->handle_, nullptr));
    if (peer && peer->endpoint_ != nullptr) drop(*peer);
    if (!key && !peer) return dropped;
    dropped = true;
  }
}

/// Keys go before their endpoint, unless it has transfers, which use them.
void plane_connections::drop(plane_peer& peer) noexcept {
  if (peer.in_ucx_ == 0) destroy_keys(peer);
  ucp_request_param_t params = {};
  params.op_attr_mask =
      UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
  params.cb.send = &plane_connections::on_closed;
  params.user_data = this;
  params.flags = UCP_EP_CLOSE_FLAG_FORCE;
  const ucp_ep_h endpoint = std::exchange(peer.endpoint_, nullptr);
  ++closing_;
  if (!UCS_PTR_IS_PTR(api_.ep_close_nbx(endpoint, &params))) --closing_;
}

void plane_connections::on_closed(void* request, ucs_status_t, void* self) {
  auto& connections = *static_cast<plane_connections*>(self);
  connections.api_.request_free(request);
  --connections.closing_;
}

void plane_connections::destroy_keys(const plane_peer& peer) noexcept {
  const std::lock_guard guard(mutex_);
  for (const std::shared_ptr<plane_key>& each : keys_) {
    if (each->peer_.get() != &peer || each->handle_ == nullptr) continue;
    api_.rkey_destroy(std::exchange(each->handle_, nullptr));
  }
}

void plane_connections::lose() noexcept {
  const std::lock_guard guard(mutex_);
  for (const std::shared_ptr<plane_peer>& each : peers_) each->lose(UCS_ERR_CANCELED);
}

void plane_connections::destroy_keys() noexcept {
  const std::lock_guard guard(mutex_);
  for (const std::shared_ptr<plane_key>& each : keys_) {
    if (each->handle_ != nullptr) api_.rkey_destroy(std::exchange(each->handle_, nullptr));
  }
}

}  // namespace ucx::detail
