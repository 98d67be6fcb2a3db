#include "message/receive_operation.hpp"

#include <new>
#include <optional>
#include <utility>

#include "base/deadline.hpp"
#include "base/if_there_is_memory.hpp"
#include "connection/endpoint_core.hpp"
#include "message/arrived_message.hpp"
#include "message/message_exchange.hpp"
#include "message/message_link.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {
namespace {

std::string words_for(const tag_match& wanted) {
  if (wanted.mask == 0) return " with any tag";
  std::string text = " with tag " + std::to_string(wanted.tag);
  if (wanted.mask != tag_match::every_bit) text += " by mask " + std::to_string(wanted.mask);
  return text;
}

}  // namespace

void receive_operation::begin(worker_core& worker, kept_alive&& held, clock::time_point deadline,
                              source kind, const tag_match& wanted, std::span<std::byte> into) {
  const std::error_code unreachable = place_.begin(worker, into);
  begin(worker, std::move(held), deadline, kind, wanted, unreachable);
}

void receive_operation::begin(worker_core& worker, kept_alive&& held, clock::time_point deadline,
                              source kind, const tag_match& wanted, const receive_place& into) {
  const std::error_code unreachable = place_.begin(worker, into);
  begin(worker, std::move(held), deadline, kind, wanted, unreachable);
}

/// The other members are as the end of the previous receive left them.
void receive_operation::begin(worker_core& worker, kept_alive&& held, clock::time_point deadline,
                              source kind, const tag_match& wanted,
                              std::error_code unreachable) noexcept {
  source_ = kind;
  wanted_ = wanted;
  message_.begin();
  reach(step::begun);
  start(worker, std::move(held), deadline);
  from_ = endpoint();
  if (from_ != nullptr) endpoint()->messages().wait_began();
  if (unreachable) finish(unreachable);
}

void receive_operation::wait_for_buffer(arrived_message* held) noexcept {
  reach(held != nullptr ? step::held_up : step::lacking);
  held_ = held;
  if (held_ != nullptr) held_->receive = this;
}

void receive_operation::needs_no_buffer() noexcept {
  reach(held_ != nullptr ? step::begun : step::waiting);
  if (held_ != nullptr) held_->receive = nullptr;
  held_ = nullptr;
  place_.leave_line();
}

void receive_operation::take(arrived_message& found) {
  found.owner = arrived_message::whose::taken;
  message_.found(found.said);
  if (found.failure) return finish(found.failure);
  if (!found.here()) return take(*found.from, found.said, found.offer());
  finish(place_.fill(found.bytes, deadline()));
}

void receive_operation::take(std::uint64_t tag, std::span<const std::byte> payload) {
  message_.found(tag, payload.size());
  finish(place_.fill(payload, deadline()));
}

void receive_operation::take(endpoint_core& from, const parcel& said,
                             std::span<const std::byte> payload) {
  message_link& link = from.messages();
  message_.found(said);
  if (said.code == parcel_code::message) {
    if (said.acknowledge) link.incoming().tell_taken(said);
    return finish(place_.fill(payload, deadline()));
  }
  if (const std::error_code ec = place_.prepare(said.length)) {
    link.incoming().refuse(said, ec);
    return finish(ec);
  }
  if (said.length == 0) {
    link.incoming().tell_taken(said);
    return finish({});
  }
  try {
    id_ = worker().messages().receiving().add(*this);
  } catch (const std::bad_alloc&) {
    link.incoming().refuse(said, make_error_code(errc::no_memory));
    return finish(make_error_code(errc::no_memory));
  }
  reach(step::coming);
  if (endpoint() == nullptr) attach(from.shared_from_this());
  if (from_ == nullptr) link.wait_began();
  link.incoming().add(*this);
  worker().tick_soon();  // from here on the peer's heart is watched
  if (said.lends && !place_.on_device() && borrow(link, said, payload)) return;
  if (said.keyed && fetch(link, said, payload)) return;
  link.incoming().grant(said, id_);
}

bool receive_operation::borrow(message_link& link, const parcel& said,
                               std::span<const std::byte> offer) {
  const std::optional<cma_offer> lent = decode_offer(offer);
  if (!lent) return false;
  loan_.begin(*lent, said);
  if (!link.incoming().borrow(loan_)) return false;
  reach(step::reading);
  worker().messages().loans().borrow(*this);
  return true;
}

/// Has the hardware read the message; returns whether that can be done.
bool receive_operation::fetch(message_link& link, const parcel& said,
                              std::span<const std::byte> offer) {
  const std::optional<rma_offer> key = decode_rma_offer(offer, said.length);
  if (!key || place_.on_device() || !place_.bytes().contiguous()) return false;
  const std::span<std::byte> into = place_.bytes().from(0).first(said.length);
  try {
    if (!link.has_rma() || !rma_.begin(*endpoint(), *this, *key, into)) return false;
  } catch (const std::bad_alloc&) {  // the message comes in pieces, which need less
    return false;
  }
  reach(step::fetching);
  ending_.clear();
  part_ended();
  return true;
}

/// Goes on, or ends where UCX has nothing of it any more.
void receive_operation::part_ended() noexcept {
  rma_.go();
  if (!rma_.in_flight()) fetched();
}

void receive_operation::fetched() noexcept {
  const bool whole = rma_.is_whole();
  rma_.end();
  reach(step::coming);
  const parcel said = message_.announced();
  incoming_messages& incoming = endpoint()->messages().incoming();
  if (whole) {
    incoming.tell_taken(said);
    finish({});
  } else if (ending_) {
    incoming.refuse(said, make_error_code(errc::message_refused));
    finish(ending_);
  } else {
    incoming.grant(said, id_);  // UCX could not register the memory; or the connection is lost
  }
}

void receive_operation::stop_fetching(std::error_code why) noexcept {
  if (ending_) return;
  ending_ = why;
  rma_.stop();
  move_deadline(after(worker().api().now(), worker().options().heartbeat_timeout));
  worker().tick_soon();
}

/// UCX had the time to let go of the memory, and did not: the connection has to end.
void receive_operation::linger() noexcept {
  const clock::time_point now = worker().api().now();
  if (now < deadline()) return;
  move_deadline(after(now, worker().options().heartbeat_timeout));
  endpoint()->fail(make_error_code(errc::connection_reset),
                   if_there_is_memory("a message that was given up was still being read by RMA"));
}

void receive_operation::withdrawn(std::error_code why) noexcept {
  if (step_ == step::fetching) return stop_fetching(why);
  finish(why);
}

bool receive_operation::read_loan(std::size_t most) {
  const cma_read::outcome read = loan_.read(worker().api(), place_.bytes(), most);
  if (read == cma_read::outcome::more) return true;
  reach(step::coming);
  worker().messages().loans().borrowed(*this);
  const parcel said = message_.announced();
  incoming_messages& incoming = endpoint()->messages().incoming();
  if (read == cma_read::outcome::whole) {
    incoming.tell_taken(said);
    finish({});
  } else {
    // The sender gave it up, and says so; or the system changed its mind, and it sends it.
    incoming.grant(said, id_);
  }
  return false;
}

void receive_operation::piece(std::uint64_t offset, std::span<const std::byte> payload) {
  if (step_ == step::fetching || !message_.lacks(offset, payload.size())) {
    return endpoint()->blame(errc::protocol_error,
                             "a message came with other bytes than were announced");
  }
  const std::error_code ec = place_.copy_in(static_cast<std::size_t>(offset), payload, deadline());
  if (ec) return give_up_for(ec);
  if (message_.received(payload.size())) finish({});
}

void receive_operation::leave_lists() noexcept {
  if (lacks_buffer()) worker().messages().needs_no_buffer(*this);
  if (step_ == step::waiting) worker().messages().remove(*this);
  if (step_ == step::reading) worker().messages().loans().borrowed(*this);
  if (is_coming()) {
    worker().messages().receiving().remove(std::exchange(id_, 0));
    endpoint()->messages().incoming().remove(*this);
  }
}

void receive_operation::finish(std::error_code outcome) noexcept {
  leave_lists();
  place_.leave_pool();
  if (from_ != nullptr || is_coming()) endpoint()->messages().wait_ended();
  reach(step::over);
  complete(place_.ended(outcome));
}

void receive_operation::give_up_for(std::error_code why) noexcept {
  if (done()) return;
  if (step_ == step::fetching) return ending_ ? linger() : stop_fetching(why);
  // Data on its way is dropped when it comes, and the sender is told to stop.
  if (is_coming()) {
    endpoint()->messages().incoming().refuse(message_.announced(),
                                             make_error_code(errc::message_refused));
  }
  finish(why);
}

void receive_operation::connection_failed(std::error_code why) noexcept {
  if (done()) return;
  if (step_ == step::fetching) return stop_fetching(why);  // UCX ends it with the connection
  // A message that is here outlives its connection: the receive waits for a buffer, not for a peer.
  if (lacks_buffer() && worker().messages().is_here(*this)) return;
  finish(why);
}

std::string receive_operation::describe() const {
  std::string text = "receive of a message";
  if (source_ == source::tagged) text += words_for(wanted_);
  text += endpoint() != nullptr ? " from " + endpoint()->peer_name() : " from anybody";
  if (!message_.is_found()) return text;
  text.append(" (of ").append(std::to_string(message_.info().length)).append(" bytes");
  text += message_.kind() == message_kind::active ? ", for handler " : ", with tag ";
  return text.append(std::to_string(message_.info().tag)).append(")");
}

void receive_operation::recycle() noexcept {
  place_.end();
  worker().pool_of<receive_operation>().give_back(this);
}

}  // namespace ucx::detail
