#include "detail/connection_table.hpp"

#include <algorithm>
#include <utility>

#include "detail/endpoint_core.hpp"
#include "detail/message_router.hpp"
#include "detail/protocol.hpp"
#include "detail/worker_core.hpp"
#include "ucx/worker_address.hpp"

namespace ucx::detail {

void connection_table::add(endpoint_core& made) { all_.push_back(&made); }

void connection_table::remove(endpoint_core& gone) noexcept {
  std::erase(all_, &gone);
  const auto named = by_session_.find(gone.session());
  if (named != by_session_.end() && named->second == &gone) by_session_.erase(named);
}

void connection_table::name(endpoint_core& named) { by_session_[named.session()] = &named; }

endpoint_core* connection_table::find(std::uint64_t session) const noexcept {
  const auto found = by_session_.find(session);
  return found == by_session_.end() ? nullptr : found->second;
}

void connection_table::hello(const frame& said, std::span<const std::byte> payload,
                             ucp_ep_h reply_endpoint) {
  worker_.defer(
      [this, said, address = std::vector<std::byte>(payload.begin(), payload.end()),
       reply_endpoint]() mutable { answer_hello(said, std::move(address), reply_endpoint); });
}

void connection_table::answer_hello(const frame& said, std::vector<std::byte> address,
                                    ucp_ep_h reply_endpoint) {
  if (said.session == 0 || closed_) return;
  endpoint_core* peer = nullptr;
  if (endpoint_core* known = find(said.session)) {
    // A worker that connects to itself: its own endpoint is the one to answer by.
    peer = known->side() == endpoint_core::role::initiator ? known : nullptr;
  } else if (!address.empty()) {
    peer = connect_back(address);
  } else {
    const auto accepted = std::find_if(all_.begin(), all_.end(), [&](const endpoint_core* e) {
      return e->handle() == reply_endpoint && e->session() == 0;
    });
    if (accepted != all_.end()) peer = *accepted;
  }
  if (peer == nullptr) return;
  const std::shared_ptr<endpoint_core> kept = peer->shared_from_this();
  if (peer->session() == 0) peer->accept_session(said.session);
  frame answer;
  answer.code = opcode::welcome;
  answer.session = said.session;
  if (said.version != protocol_version_number) {
    answer.status = error_status(make_error_code(errc::version_mismatch));
  }
  peer->send(answer);
  if (answer.status != 0) peer->peer_said_bye();
}

endpoint_core* connection_table::connect_back(std::span<const std::byte> framed) {
  std::error_code ec;
  const worker_address address = worker_address::decode(framed, ec);
  if (ec || address.empty()) return nullptr;
  ucp_ep_params_t params = {};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
  params.address = reinterpret_cast<const ucp_address_t*>(address.native().data());
  std::shared_ptr<endpoint_core> made = endpoint_core::make(
      worker_, nullptr, params, endpoint_core::role::acceptor, endpoint_options(), ec);
  if (!made) return nullptr;
  serve(made);
  return made.get();
}

void connection_table::serve(std::shared_ptr<endpoint_core> peer) {
  served_.push_back(std::move(peer));
}

void connection_table::reap() {
  for (std::size_t i = 0; i < served_.size();) {
    if (served_[i]->state() == endpoint_state::failed && served_[i]->transfers() == 0 &&
        served_[i]->answers() == 0) {
      const std::shared_ptr<endpoint_core> gone = std::move(served_[i]);
      served_[i] = std::move(served_.back());
      served_.pop_back();
    } else {
      ++i;
    }
  }
}

clock::time_point connection_table::tick(clock::time_point now) {
  clock::time_point next = clock::time_point::max();
  for (std::size_t i = 0; i < all_.size(); ++i) next = std::min(next, all_[i]->tick(now));
  return next;
}

void connection_table::close() noexcept {
  closed_ = true;
  // Taken out first: closing makes progress, which looks at the table.
  const std::vector<std::shared_ptr<endpoint_core>> gone = std::exchange(served_, {});
  std::error_code ignored;
  for (const std::shared_ptr<endpoint_core>& peer : gone) peer->close(close_mode::abort, ignored);
}

}  // namespace ucx::detail
