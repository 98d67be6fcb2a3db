#include "message/message_link.hpp"

#include <new>

#include "connection/endpoint_core.hpp"
#include "connection/frame_sender.hpp"
#include "ucp/rdma.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

message_link::message_link(endpoint_core& endpoint, std::size_t window)
    : endpoint_(endpoint), outgoing_(endpoint, *this), incoming_(endpoint, *this, window) {}

message_link::~message_link() = default;

void message_link::open(std::uint64_t room, bool same_host) noexcept {
  same_host_ = same_host;
  outgoing_.open(room);
  // The last look may have been at a deadline of connecting: from here on the heart is watched.
  if (awaits_peer()) endpoint_.worker().tick_soon();
  incoming_.open(same_host);
  outgoing_.send_queued();
}

bool message_link::received(const read_parcel& read, std::span<const std::byte> payload,
                            void* lasting) {
  const parcel& said = read.said;
  if (given_up_) return false;
  if (said.credit > 0 && !outgoing_.add_room(said.credit)) return false;
  switch (said.code) {
    case parcel_code::message:
    case parcel_code::announce:
      return incoming_.arrived(read, payload, lasting);
    case parcel_code::piece:
      incoming_.piece(said, payload);
      break;
    case parcel_code::grant:
    case parcel_code::refusal:
      outgoing_.answered(said);
      break;
    case parcel_code::withdrawal:
      incoming_.withdrawn(said);
      break;
    case parcel_code::credit:
      break;
    case parcel_code::loan:
      told_of_loan(said);
      break;
  }
  return false;
}

bool message_link::received(const read_brief_parcel& read, std::span<const std::byte> payload,
                            void* lasting) {
  if (given_up_) return false;
  if (read.said.credit > 0 && !outgoing_.add_room(read.said.credit)) return false;
  return incoming_.arrived(read, payload, lasting);
}

void message_link::told_of_loan(const parcel& said) {
  const std::uint64_t units = said.length;
  switch (static_cast<loan_change>(said.tag)) {
    case loan_change::more:
      return outgoing_.lent_more(units);
    case loan_change::less:
      return outgoing_.lent_less(units);
    case loan_change::recall:
      return outgoing_.recalled(units);
    case loan_change::back:
      return incoming_.given_back(units);
    case loan_change::want:
      return incoming_.wanted();
  }
}

void message_link::say(loan_change what, std::size_t units) noexcept {
  parcel said;
  said.code = parcel_code::loan;
  said.tag = static_cast<std::uint64_t>(what);
  said.length = units;
  send(said);
}

bool message_link::is_flexible() const noexcept { return endpoint_.session().theirs().lends; }

void message_link::send(parcel& said) noexcept {
  // Also while connecting: a peer's message may overtake its welcome.
  const endpoint_state state = endpoint_.state();
  if (state == endpoint_state::failed || state == endpoint_state::closed) return;
  said.session = endpoint_.session().number();
  said.credit = incoming_.take_credit();
  try {
    endpoint_.worker().sender().send(endpoint_, said);
  } catch (const std::bad_alloc&) {
    blame_memory();
  }
}

void message_link::blame(const char* words) noexcept {
  given_up_ = true;
  endpoint_.blame(errc::protocol_error, words);
}

void message_link::blame_memory(const char* words) noexcept {
  given_up_ = true;
  endpoint_.blame(errc::no_memory, words);
}

/// UCX changes its lanes while it connects. Where it does not watch the connection, a read could
/// not be stopped.
bool message_link::has_rma() const {
  return !same_host_ && endpoint_.detects_failure() &&
         endpoint_.worker().context().has(feature::rma) &&
         any_has_rma(endpoint_.ucx().transports());
}

bool message_link::offers_keys() const { return endpoint_.session().theirs().fetches && has_rma(); }

transfer_method message_link::long_messages() const {
  if (lends()) return transfer_method::cma;
  return offers_keys() ? transfer_method::rma : transfer_method::message;
}

/// Offers memory only to a process that the system lets share memory with this one.
bool message_link::lends() const noexcept {
  return same_host_ && endpoint_.session().theirs().borrows;
}

}  // namespace ucx::detail
