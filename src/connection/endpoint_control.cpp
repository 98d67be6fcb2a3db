#include "connection/endpoint_control.hpp"

#include <algorithm>
#include <memory>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "connection/channel.hpp"
#include "connection/connection_table.hpp"
#include "connection/control_queue.hpp"
#include "connection/endpoint_channel.hpp"
#include "connection/endpoint_core.hpp"
#include "connection/frame_sender.hpp"
#include "ucx/error.hpp"
#include "ucx/version.hpp"
#include "wire/control_message.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

std::size_t endpoint_control::longest() const noexcept {
  return std::min(most, connection_.pieces().answer);
}

void endpoint_control::send(std::span<const std::byte> message) {
  frame carrier;
  carrier.code = opcode::control;
  carrier.session = connection_.session().number();
  carrier.length = message.size();
  if (connection_.handle() == nullptr) return;
  unsent_ += message.size();
  connection_.worker().sender().send(connection_, carrier, message, frame_sender::kind::control);
}

void endpoint_control::arrived(std::uint64_t length, std::span<const std::byte> message) {
  if (length != message.size() || length > most) {
    return connection_.blame(errc::protocol_error,
                             "the peer sent a control message of a wrong length");
  }
  auto work = [weak = connection_.weak_from_this(),
               copy = std::vector<std::byte>(message.begin(), message.end())] {
    const std::shared_ptr<endpoint_core> kept = weak.lock();
    if (!kept || kept->status()) return;
    try {
      kept->control().deliver(copy);
    } catch (const std::bad_alloc&) {  // who asked would wait for an answer that does not come
      kept->blame(errc::no_memory, "no memory for what the peer asks");
      throw;
    }
  };
  worker_core& worker = connection_.worker();
  // A server's answers were asked for.
  if (connection_.side() == endpoint_core::role::initiator) return worker.defer(std::move(work));
  if (!has_room(message)) return;
  worker.connections().turns().add(&connection_, message.size() + room_of_message, std::move(work));
}

void endpoint_control::deliver(std::span<const std::byte> message) {
  control_server* const server = connection_.worker().control_server();
  if (receiver_ == nullptr && server != nullptr) server->accept(connection_);
  if (receiver_ != nullptr) return receiver_->received(message);
  if (const auto refusal = refuse_greeting(message, to_string(version()))) send(*refusal);
}

/// Returns whether a peer's message can wait for its turn. Else the peer is told so, or has asked
/// for too much without waiting for answers.
bool endpoint_control::has_room(std::span<const std::byte> message) {
  control_queue& turns = connection_.worker().connections().turns();
  const std::size_t taken = turns.room_of(&connection_) + message.size() + room_of_message;
  if (taken <= control_queue::most_waiting) return true;
  const std::optional<control_header> said = decode_control(message);
  if (said && has_no_answer(*said) && taken <= control_queue::most_unanswerable) return true;
  if (!said || !turns.may_refuse(&connection_) || !endpoint_channel(connection_).refuse(*said)) {
    connection_.blame(errc::protocol_error, "the peer does not wait for its answers");
  }
  return false;
}

void endpoint_control::end(std::error_code why) noexcept {
  if (channel_receiver* const told = std::exchange(receiver_, nullptr)) told->ended(why);
}

}  // namespace ucx::detail
