#include "connection/endpoint_session.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/deadline.hpp"
#include "connection/client_ledger.hpp"
#include "connection/connection_messages.hpp"
#include "connection/connection_table.hpp"
#include "connection/endpoint_core.hpp"
#include "connection/frame_sender.hpp"
#include "os/device_name.hpp"
#include "ucp/rdma.hpp"
#include "ucp/transport_group.hpp"
#include "wire/protocol.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {
namespace {

/// So many sessions are drawn for one connection: that even one of them is taken is very unlikely.
constexpr unsigned most_hellos = 4;

/// The `request` of a welcome that refuses, and would refuse another session too.
constexpr std::uint64_t refused_finally = 1;

}  // namespace

endpoint_session::endpoint_session(endpoint_core& connection, connection_messages& messages,
                                   connection_terms terms)
    : connection_(connection), messages_(messages), terms_(std::move(terms)) {}

void endpoint_session::say_hello(clock::time_point connect_deadline) {
  if (connection_.state() != endpoint_state::connecting) return;
  worker_core& worker = connection_.worker();
  deadline_ = connect_deadline;
  if (connection_.is_plain()) {
    worker.tick_soon();
    return connection_.wire_up();
  }
  draw_number();
  number_ = number_here_;
  worker.tick_soon();
  ++hellos_;
  frame said;
  said.code = opcode::hello;
  said.session = number_;
  said.length = messages_.granted(false);
  std::vector<std::byte> payload;
  if (connection_.peer().empty()) {  // connected by worker address: the peer does not know ours
    const result<worker_address> own = worker.address();
    if (!own) return connection_.lost(UCS_ERR_NO_RESOURCE);
    payload = own->encode();
  }
  const std::vector<std::byte> ours = introduce({});
  payload.insert(payload.end(), ours.begin(), ours.end());
  // A server tells peers on the same host where memory is, but not over sockets.
  if (worker.context().is_of_ucx()) {
    const std::vector<std::byte> host = encode_host(host_identity());
    payload.insert(payload.end(), host.begin(), host.end());
  }
  worker.sender().send(connection_, said, payload, frame_sender::kind::hello);
}

void endpoint_session::wired_up() {
  if (connection_.state() != endpoint_state::connecting) return;
  if (const auto fit = check_transports(); !fit) {
    return connection_.fail(fit.why().code, fit.why().text);
  }
  connection_.establish(0);
}

/// Returns what this side says of itself.
std::vector<std::byte> endpoint_session::introduce(std::string words) const {
  const worker_core& worker = connection_.worker();
  const context_core& context = worker.context();
  introduction ours;
  ours.identity = worker.identity();
  ours.features = context.features();
  ours.borrows = context.reads_processes();
  ours.fetches = context.has(feature::rma) && any_has_rma(context.resources());
  ours.lends = true;
  ours.takes_files = connection_.files().begin();
  ours.unique = terms_.unique;
  ours.segment = context.segment_size();
  ours.largest_eager = std::min(context.answer_piece(), context.write_piece());
  ours.largest_header = worker.ucx().largest_header();
  ours.name = worker.options().name;
  ours.info = terms_.info;
  ours.words = std::move(words);
  std::vector<std::byte> said = ours.encode();
  const auto process =
      connection_.liveness().tells_process() ? process_identity::own() : std::nullopt;
  if (!process) return said;
  const std::vector<std::byte> whose = process->encode();
  said.insert(said.end(), whose.begin(), whose.end());
  return said;
}

void endpoint_session::await_hello(std::chrono::nanoseconds limit) {
  worker_core& worker = connection_.worker();
  if (limit <= limit.zero()) limit = worker.options().connect_timeout;
  deadline_ = after(worker.api().now(), limit);
  worker.tick_soon();
}

void endpoint_session::take_number(std::uint64_t number) {
  number_ = number_here_ = number;
  connection_.worker().connections().name(connection_);
}

void endpoint_session::take_number_beside(endpoint_session& other) {
  draw_number();
  number_ = other.number_here_;
  other.number_ = number_here_;
}

/// Draws one that no connection of the worker has, and is found by it from here on.
void endpoint_session::draw_number() {
  worker_core& worker = connection_.worker();
  connection_table& table = worker.connections();
  while (number_here_ == 0 || table.find(number_here_) != nullptr) number_here_ = worker.random();
  table.name(connection_);
}

bool endpoint_session::came_by(std::span<const std::byte> address, ucp_ep_h over) const noexcept {
  if (address.empty()) return over == connection_.handle();
  return std::equal(address.begin(), address.end(), address_.begin(), address_.end());
}

result<void> endpoint_session::check(const introduction& theirs) const {
  if (refuses_hello()) return refusal_;
  const auto& account = connection_.account();
  if (account && account->refusal().code) return account->refusal();
  if ((terms_.unique || theirs.unique) &&
      connection_.worker().connections().has_connection_to(theirs.identity, connection_)) {
    return failure{errc::already_exists, "there is a connection between the two workers already"};
  }
  return check_transports();
}

result<void> endpoint_session::check_transports() const {
  if (!terms_.require_rdma && terms_.transports.empty()) return {};
  const std::vector<std::string> lanes = connection_.ucx().transports();
  for (const std::string& lane : lanes) {
    if (terms_.require_rdma && !is_rdma(lane)) {
      return failure{errc::no_rdma,
                     "the connection goes over " + lane + ", and RDMA hardware was asked for"};
    }
    const bool named =
        terms_.transports.empty() ||
        std::any_of(terms_.transports.begin(), terms_.transports.end(),
                    [&](const std::string& name) { return stands_for(name, transport_of(lane)); });
    if (!named) {
      return failure{errc::not_supported,
                     "the connection goes over " + lane + ", which was not asked for"};
    }
  }
  if (!lanes.empty()) return {};
  return failure{errc::not_supported, "UCX does not tell the transports of the connection"};
}

void endpoint_session::welcome(introduction&& theirs, std::uint64_t room) {
  frame answer;
  answer.code = opcode::welcome;
  answer.session = number_;
  answer.length = messages_.granted(theirs.lends);
  connection_.reply(answer, introduce({}));
  // A worker that connects to itself hears its own answer.
  if (connection_.side() == endpoint_core::role::acceptor) establish(std::move(theirs), room);
}

void endpoint_session::refuse(const failure& why) {
  frame answer;
  answer.code = opcode::welcome;
  answer.session = number_;
  answer.status = error_status(why.code);
  answer.request = refused_finally;
  connection_.reply(answer, introduce(why.text));
  peer_said_bye(why.code);
  if (!why.text.empty()) leaving_as_.text = why.text;
}

void endpoint_session::welcomed(const frame& answer, std::span<const std::byte> payload) {
  if (connection_.state() != endpoint_state::connecting || hello_ == hello::refused) {
    return;
  }
  const bool ours = answer.version == protocol_version_number;
  failure refusal{ours ? status_error(answer.status) : make_error_code(errc::version_mismatch)};
  const greeting read = ours ? read_greeting(payload) : greeting{.intact = true};
  std::optional<introduction> theirs = decode_introduction(read.introduction);
  if (!read.intact || !theirs) {
    return connection_.blame(errc::protocol_error, "the peer's introduction is damaged");
  }
  theirs->process = decode_process_identity(read.process);
  const bool accepted = !refusal.code;
  const bool finally = !ours || answer.request == refused_finally;
  if (accepted) {
    result<void> checked = check(*theirs);
    if (checked) return establish(std::move(*theirs), answer.length);
    refusal = std::move(checked).why();
  } else if (refusal.code == errc::version_mismatch) {
    refusal.text = "the peer speaks version " + std::to_string(unsigned{answer.version}) +
                   " of the wire format, this side version " +
                   std::to_string(unsigned{protocol_version_number});
  } else {
    refusal.text = std::move(theirs->words);
  }
  hello_ = hello::refused;
  connection_.worker().defer(
      [weak = connection_.weak_from_this(), accepted, finally, why = std::move(refusal)] {
        const std::shared_ptr<endpoint_core> kept = weak.lock();
        if (!kept) return;
        if (accepted) return kept->session().decline(why);
        kept->session().refused(why, finally);
      });
}

void endpoint_session::refused(const failure& why, bool finally) {
  hello_ = hello::sent;
  if (connection_.state() != endpoint_state::connecting) return;
  if (finally || why.code != errc::busy) {
    return connection_.fail(why.code,
                            why.text.empty() ? "the peer refused the connection" : why.text);
  }
  // Another connection of the peer's has our session.
  if (hellos_ == most_hellos) {
    return connection_.fail(why.code, "the peer takes no session that was offered");
  }
  connection_.worker().connections().unname(connection_);
  number_ = number_here_ = 0;
  say_hello(deadline_);
}

/// The peer believes that the connection stands: it is told, before the connection is dropped.
void endpoint_session::decline(const failure& why) {
  if (connection_.state() != endpoint_state::connecting) return;
  say_bye(why.code);
  const clock::time_point until = deadline_;
  leave_soon(why.code);
  leaving_as_.text = why.text;
  deadline_ = std::min(deadline_, until);
}

void endpoint_session::establish(introduction&& theirs, std::uint64_t room) {
  if (connection_.state() != endpoint_state::connecting) return;
  theirs_ = std::move(theirs);
  connection_.establish(room);
}

void endpoint_session::say_bye(std::error_code why) {
  if (number_ == 0 || bye_ != bye::unsaid) return;
  bye_ = bye::said;
  frame said;
  said.code = opcode::bye;
  said.session = number_;
  said.status = error_status(why);
  connection_.send(said);
}

void endpoint_session::peer_said_bye(std::error_code why) {
  leave_soon(why ? why : make_error_code(errc::closed_by_peer));
  leaving_as_.text = why ? "the peer gave the connection up" : "the peer closed the connection";
  frame answer;
  answer.code = opcode::farewell;
  answer.session = number_;
  connection_.reply(answer);
  connection_.closing().look();
}

/// A peer that is to go and stays is dropped.
void endpoint_session::leave_soon(std::error_code why) noexcept {
  worker_core& worker = connection_.worker();
  leaving_ = true;
  leaving_as_.code = why;
  deadline_ = after(worker.api().now(), worker.options().heartbeat_interval);
  worker.tick_soon();
}

void endpoint_session::part_soon(std::error_code why) noexcept {
  if (!leaving_) leaving_as_.code = why;
  leaving_ = true;
  deadline_ = clock::time_point::min();
  connection_.worker().tick_soon();
}

void endpoint_session::peer_said_farewell() noexcept {
  if (bye_ == bye::unsaid) return;
  bye_ = bye::answered;
  connection_.closing().look();
  if (!leaving_ || connection_.state() != endpoint_state::connecting) return;
  connection_.owe(endpoint_core::to_part);  // it was declined here
}

}  // namespace ucx::detail
