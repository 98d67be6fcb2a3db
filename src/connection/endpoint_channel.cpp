#include "connection/endpoint_channel.hpp"

#include <memory>
#include <new>
#include <utility>

#include "connection/connection_table.hpp"
#include "connection/control_queue.hpp"
#include "connection/endpoint_core.hpp"
#include "os/network_device.hpp"
#include "ucp/rdma.hpp"
#include "wire/control_message.hpp"
#include "wire/host_identity.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {
namespace {

/// Answers of this side that a peer has not taken, where it goes on asking.
constexpr std::size_t most_refusals_unsent = std::size_t{1} << 20U;

}  // namespace

bool has_no_answer(const control_header& said) noexcept {
  return said.type == control_type::release || said.type == control_type::bye;
}

void endpoint_channel::send(std::span<const std::byte> message) {
  endpoint_.control().send(message);
}

std::size_t endpoint_channel::longest() const noexcept { return endpoint_.control().longest(); }

std::size_t endpoint_channel::unsent() const noexcept { return endpoint_.control().unsent(); }

void endpoint_channel::take_turn(move_only_handler<> work) {
  auto turn = [weak = endpoint_.weak_from_this(), work = std::move(work)]() mutable {
    const std::shared_ptr<endpoint_core> kept = weak.lock();
    if (!kept || kept->status()) return;
    try {
      work();
    } catch (const std::bad_alloc&) {  // who asked would wait for an answer that does not come
      kept->blame(errc::no_memory, "no memory for what the peer asks");
    }
  };
  endpoint_.worker().connections().turns().add(&endpoint_, room_of_message, std::move(turn));
}

void endpoint_channel::blame(std::error_code why, const std::string& words) {
  // Later: the caller stands inside what ends with the channel.
  endpoint_.worker().defer([weak = endpoint_.weak_from_this(), why, words] {
    if (const std::shared_ptr<endpoint_core> endpoint = weak.lock()) endpoint->fail(why, words);
  });
}

/// The peer's word alone is not enough where it came from an address: that has to be this
/// machine's. Of one that connected by worker address nothing else is known.
bool endpoint_channel::shares_host() const noexcept {
  const worker_core& worker = endpoint_.worker();
  if (worker.context().same_host_only()) return true;
  if (endpoint_.session().theirs().host != host_identity()) return false;
  const socket_address& from = endpoint_.peer();
  try {
    return from.empty() || from.is_loopback() || is_shown_by_interface(from);
  } catch (const std::bad_alloc&) {
    return false;
  }
}

peer_reach endpoint_channel::reach() const noexcept {
  const context_core& context = endpoint_.worker().context();
  if (!context.is_of_ucx()) {
    const ucp_ep_h handle = endpoint_.handle();
    return {.takes_files = handle != nullptr && endpoint_.worker().api().ep_carries_files(handle)};
  }
  if (!shares_host_) shares_host_ = shares_host();
  return {.shares_host = *shares_host_,
          .has_rma = context.has(feature::rma) && any_has_rma(context.resources()) &&
                     endpoint_.has_rdma_lane()};
}

peer_facts endpoint_channel::facts() const {
  const socket_address& at = endpoint_.peer();
  return {endpoint_.ucx().identity(), at.empty() ? std::string() : to_string(at),
          endpoint_.number(), endpoint_.account(), endpoint_.worker().identity()};
}

clock::time_point endpoint_channel::now() const noexcept { return endpoint_.worker().api().now(); }

void endpoint_channel::grant(std::uint64_t region, access rights) {
  endpoint_.grants().add(region, rights);
}

void endpoint_channel::pass_file(std::uint64_t region, access rights) {
  endpoint_.files().pass(region, rights);
}

void endpoint_channel::end_grant(std::uint64_t region) noexcept {
  endpoint_.grants().remove(region);
}

void endpoint_channel::end_grants() noexcept { endpoint_.grants().clear(); }

void endpoint_channel::revoke_grant(std::uint64_t region) noexcept {
  endpoint_.grants().revoke(region);
}

bool endpoint_channel::refuse(const control_header& said) {
  if (has_no_answer(said) || unsent() > most_refusals_unsent) return false;
  control_header answer = answer_to(said, control_type::done);
  answer.status = error_status(errc::busy);
  send(encode_control(answer));
  return true;
}

}  // namespace ucx::detail
