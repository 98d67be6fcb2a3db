// The session of a connection: hello, welcome and goodbye, and the frames that nobody waits for.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/deadline.hpp"
#include "connection/channel.hpp"
#include "connection/connection_table.hpp"
#include "connection/control_turns.hpp"
#include "connection/endpoint_channel.hpp"
#include "connection/endpoint_core.hpp"
#include "connection/message_sender.hpp"
#include "ucp/rdma.hpp"
#include "ucx/version.hpp"
#include "wire/control_message.hpp"
#include "wire/introduction.hpp"
#include "wire/parcel.hpp"
#include "wire/protocol.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {
namespace {

/// So many of our short answers may wait for a peer to take them. One that asks no more than it may
/// is far below.
constexpr unsigned most_replies = 4096;

/// So many sessions are drawn for one connection: that even one of them is taken is very unlikely.
constexpr unsigned most_hellos = 4;

/// The `request` of a welcome that refuses, and would refuse another session too.
constexpr std::uint64_t refused_finally = 1;

/// Returns whether what a peer asks can wait for its turn; else it is told so, or has asked for too
/// much without waiting for answers.
bool has_room(endpoint_core& peer, std::span<const std::byte> message) {
  control_turns& turns = peer.worker().connections().turns();
  const std::size_t taken = turns.room_of(&peer) + message.size() + room_of_message;
  if (taken <= control_turns::most_waiting) return true;
  const std::optional<control_header> said = decode_control(message);
  if (said && has_no_answer(*said) && taken <= control_turns::most_unanswerable) return true;
  if (!said || !turns.may_refuse(&peer) || !endpoint_channel(peer).refuse(*said)) {
    peer.blame(errc::protocol_error, "the peer does not wait for its answers");
  }
  return false;
}

/// Returns what the log says of an established connection. UCX takes TCP in silence where RDMA
/// hardware is on one side only.
std::string said_of(const introduction& theirs, const std::vector<std::string>& lanes,
                    const std::vector<std::string>& resources) {
  std::string text = theirs.name.empty() ? std::string() : " with " + theirs.name;
  for (const std::string& each : lanes)
    text.append(&each == &lanes.front() ? " over " : ", ") += each;
  if (any_is_rdma(resources) && !any_is_rdma(lanes))
    text += "; RDMA hardware of this side is not used";
  return text;
}

}  // namespace

void endpoint_core::say_hello(clock::time_point connect_deadline) {
  if (state_ != endpoint_state::connecting) return;
  connect_deadline_ = connect_deadline;
  while (session_ == 0 || worker_.connections().find(session_) != nullptr) {
    session_ = worker_.random();
  }
  worker_.connections().name(*this);
  worker_.tick_soon();
  ++hellos_;
  frame hello;
  hello.code = opcode::hello;
  hello.session = session_;
  hello.length = messages_->granted();
  std::vector<std::byte> payload;
  if (peer_.empty()) {  // connected by worker address: the peer has none of ours yet
    std::error_code ec;
    payload = worker_.address(ec).encode();
    if (ec) return lost(UCS_ERR_NO_RESOURCE);
  }
  const std::vector<std::byte> said = introduce({});
  payload.insert(payload.end(), said.begin(), said.end());
  worker_.sender().send(*this, hello, payload, message_sender::kind::hello);
}

/// Returns what this side says of itself.
std::vector<std::byte> endpoint_core::introduce(std::string words) const {
  const context_core& context = worker_.context();
  introduction ours;
  ours.identity = worker_.identity();
  ours.features = context.features();
  ours.borrows = context.reads_processes();
  ours.unique = terms_.unique;
  ours.segment = context.segment_size();
  ours.largest_eager = std::min(context.answer_piece(), context.write_piece());
  ours.largest_header = worker_.largest_header();
  ours.name = worker_.options().name;
  ours.info = terms_.info;
  ours.words = std::move(words);
  std::vector<std::byte> said = ours.encode();
  const auto process = tells_process() ? process_identity::own() : std::nullopt;
  if (!process) return said;
  const std::vector<std::byte> whose = process->encode();
  said.insert(said.end(), whose.begin(), whose.end());
  return said;
}

void endpoint_core::await_hello(std::chrono::nanoseconds limit) {
  if (limit <= limit.zero()) limit = worker_.options().connect_timeout;
  connect_deadline_ = after(worker_.api().now(), limit);
  worker_.tick_soon();
}

void endpoint_core::wait_connected(std::error_code& ec) {
  ec.clear();
  if (worker_.in_handler() && state_ == endpoint_state::connecting) {
    ec = errc::would_deadlock;
    return;
  }
  // tick() fails the connection at its deadline.
  worker_.wait_until(clock::time_point::max(),
                     [&] { return state_ != endpoint_state::connecting; });
  const std::lock_guard guard(worker_.lock());
  ec = status();
}

void endpoint_core::take_session(std::uint64_t session) {
  session_ = session;
  worker_.connections().name(*this);
}

std::error_code endpoint_core::objection(const introduction& theirs, std::string& words) {
  if (refusal_) {
    words = refusal_words_;
    return refusal_;
  }
  if ((terms_.unique || theirs.unique) &&
      worker_.connections().has_connection_to(theirs.identity, *this)) {
    words = "there is a connection between the two workers already";
    return errc::already_exists;
  }
  return unacceptable_transport(words);
}

void endpoint_core::welcome(introduction&& theirs, std::uint64_t room) {
  frame answer;
  answer.code = opcode::welcome;
  answer.session = session_;
  answer.length = messages_->granted();
  reply(answer, introduce({}));
  // A worker that connects to itself hears its own answer.
  if (role_ == role::acceptor) establish(std::move(theirs), room);
}

void endpoint_core::refuse(std::error_code why, const std::string& words) {
  frame answer;
  answer.code = opcode::welcome;
  answer.session = session_;
  answer.status = error_status(why);
  answer.request = refused_finally;
  reply(answer, introduce(words));
  peer_said_bye(why);
  if (!words.empty()) leaving_words_ = words;
}

void endpoint_core::refuse_hello(std::error_code why, std::string words) {
  refusal_ = why;
  refusal_words_ = std::move(words);
}

void endpoint_core::welcomed(const frame& answer, std::span<const std::byte> payload) {
  if (state_ != endpoint_state::connecting || answered_) return;
  const bool ours = answer.version == protocol_version_number;
  std::error_code refusal =
      ours ? status_error(answer.status) : make_error_code(errc::version_mismatch);
  const greeting read = ours ? read_greeting(payload) : greeting{.intact = true};
  std::optional<introduction> theirs = decode_introduction(read.introduction);
  if (!read.intact || !theirs)
    return blame(errc::protocol_error, "the peer's introduction is damaged");
  theirs->process = decode_process_identity(read.process);
  std::string words = std::move(theirs->words);
  bool finally = !ours || answer.request == refused_finally;
  const bool accepted = !refusal;
  if (accepted) {
    refusal = objection(*theirs, words);
  } else if (refusal == errc::version_mismatch) {
    words = "the peer speaks version " + std::to_string(unsigned{answer.version}) +
            " of the wire format, this side version " +
            std::to_string(unsigned{protocol_version_number});
  }
  if (!refusal) return establish(std::move(*theirs), answer.length);
  answered_ = true;
  worker_.defer([weak = weak_from_this(), accepted, refusal, words = std::move(words), finally] {
    const auto self = weak.lock();
    if (!self) return;
    if (accepted) return self->decline(refusal, words);
    self->refused(refusal, words, finally);
  });
}

void endpoint_core::refused(std::error_code why, const std::string& words, bool finally) {
  answered_ = false;
  if (state_ != endpoint_state::connecting) return;
  if (finally || why != errc::busy) {
    return fail(why, words.empty() ? "the peer refused the connection" : words);
  }
  // Another connection of the peer's has our session.
  if (hellos_ == most_hellos) return fail(why, "the peer takes no session that was offered");
  worker_.connections().unname(*this);
  session_ = 0;
  say_hello(connect_deadline_);
}

/// The peer believes that the connection stands: it is told, before the connection is dropped.
void endpoint_core::decline(std::error_code why, const std::string& words) {
  if (state_ != endpoint_state::connecting) return;
  say_bye(why);
  leaving_ = true;
  leaving_why_ = why;
  leaving_words_ = words;
  connect_deadline_ =
      std::min(connect_deadline_, after(worker_.api().now(), worker_.options().heartbeat_interval));
  worker_.tick_soon();
}

void endpoint_core::establish(introduction&& theirs, std::uint64_t room) {
  if (state_ != endpoint_state::connecting) return;
  theirs_ = std::move(theirs);
  // One that says nothing of its segments may have UCX's: longer ones would end it (1.13.1).
  const std::size_t ours = worker_.context().segment_size();
  pieces_ = piece_sizes::of_segment(std::min<std::size_t>(ours, theirs_.segment));
  const bool same_host = shares_memory();
  // Where a header has room as a whole, so have a header and what comes with it.
  const std::size_t whole = worker_.largest_header();
  if (same_host && whole > parcel::size) pieces_.fit_elements(whole - parcel::size);
  state_ = endpoint_state::ready;
  if (worker_.context().log().writes(log_level::info)) {
    log(log_level::info, "established",
        said_of(theirs_, transports(), worker_.context().resources()));
  }
  if (same_host) watch_process();
  operations_.send_queued();
  messages_->open(room, same_host);
  queue_tell(event::established);
  tell_observer(event::established);
}

bool endpoint_core::came_by(std::span<const std::byte> address, ucp_ep_h over) const noexcept {
  if (address.empty()) return over == handle_;
  return std::equal(address.begin(), address.end(), address_.begin(), address_.end());
}

void endpoint_core::peer_said_bye(std::error_code why) {
  leaving_ = true;
  leaving_why_ = why ? why : make_error_code(errc::closed_by_peer);
  leaving_words_ = why ? "the peer gave the connection up" : "the peer closed the connection";
  frame answer;
  answer.code = opcode::farewell;
  answer.session = session_;
  reply(answer);
  // A peer that says goodbye and stays is dropped.
  connect_deadline_ = after(worker_.api().now(), worker_.options().heartbeat_interval);
  worker_.tick_soon();
  look_at_closing();
}

void endpoint_core::peer_said_farewell() noexcept {
  farewell_ = true;
  look_at_closing();
  if (!leaving_ || state_ != endpoint_state::connecting) return;
  owe(to_part);  // it was declined here
}

void endpoint_core::say_bye(std::error_code why) {
  if (session_ == 0 || std::exchange(said_bye_, true)) return;
  frame bye;
  bye.code = opcode::bye;
  bye.session = session_;
  bye.status = error_status(why);
  send(bye);
}

void endpoint_core::send(const frame& sent) { worker_.sender().send(*this, sent); }

void endpoint_core::reply(const frame& answer, std::span<const std::byte> payload) {
  if (handle_ == nullptr || !may_reply()) return;
  worker_.sender().send(*this, answer, payload, message_sender::kind::reply);
}

bool endpoint_core::may_reply() {
  if (replies_ > most_replies) return false;
  if (++replies_ > most_replies) blame(errc::protocol_error, "the peer does not take its answers");
  return true;
}

void endpoint_core::send_control(std::span<const std::byte> message) {
  frame carrier;
  carrier.code = opcode::control;
  carrier.session = session_;
  carrier.length = message.size();
  if (handle_ == nullptr) return;
  unsent_control_ += message.size();
  worker_.sender().send(*this, carrier, message, message_sender::kind::control);
}

void endpoint_core::control_arrived(std::uint64_t length, std::span<const std::byte> message) {
  if (length != message.size() || length > endpoint_channel::most) {
    return blame(errc::protocol_error, "the peer sent a control message of a wrong length");
  }
  const auto deliver = [weak = weak_from_this()](const std::vector<std::byte>& copy) {
    const std::shared_ptr<endpoint_core> self = weak.lock();
    if (!self || self->status()) return;
    if (self->receiver_ == nullptr && self->worker_.control_server() != nullptr) {
      self->worker_.control_server()->accept(*self);
    }
    if (self->receiver_ != nullptr) return self->receiver_->received(copy);
    if (const auto refusal = refuse_greeting(copy, to_string(version()))) {
      self->send_control(*refusal);
    }
  };
  auto work = [deliver, copy = std::vector<std::byte>(message.begin(), message.end())] {
    deliver(copy);
  };
  // A server's answers were asked for.
  if (role_ == role::initiator) return worker_.defer(std::move(work));
  if (!has_room(*this, message)) return;
  worker_.connections().turns().add(this, message.size() + room_of_message, std::move(work));
}

void endpoint_core::expect_control() noexcept {
  ++controls_expected_;
  worker_.tick_by(worker_.api().now() + heartbeat_.step());
}

}  // namespace ucx::detail
