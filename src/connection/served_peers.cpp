#include "connection/served_peers.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/if_there_is_memory.hpp"
#include "connection/address_peers.hpp"
#include "connection/channel.hpp"
#include "connection/client_ledger.hpp"
#include "connection/connection_table.hpp"
#include "connection/endpoint_core.hpp"
#include "wire/introduction.hpp"
#include "wire/protocol.hpp"
#include "wire/wire.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {
namespace {

/// Returns whether this worker may have connected to itself by it. A connection that was answered
/// has said its hello before. So has one whose other end was found here. Then a hello with its
/// number is of another peer, whatever identity that tells.
bool awaits_its_own_hello(const endpoint_core& connection) noexcept {
  return connection.side() == endpoint_core::role::initiator &&
         connection.state() == endpoint_state::connecting &&
         connection.session().number() == connection.session().number_here();
}

}  // namespace

served_peers::served_peers(worker_core& worker, connection_table& table)
    : worker_(worker), table_(table), by_address_(std::make_shared<address_peers>(worker)) {}

served_peers::~served_peers() = default;

void served_peers::hello(const frame& said, std::span<const std::byte> payload,
                         ucp_ep_h reply_endpoint) {
  if (payload.size() > longest_worker_address + envelope::overhead + introduction::longest) return;
  worker_.defer([this, said, copy = std::vector<std::byte>(payload.begin(), payload.end()),
                 reply_endpoint] { answer_hello(said, copy, reply_endpoint); });
}

void served_peers::answer_hello(const frame& said, const std::vector<std::byte>& payload,
                                ucp_ep_h reply_endpoint) {
  if (said.session == 0 || closed_) return;
  const greeting read = read_greeting(payload);
  std::optional<introduction> theirs = decode_introduction(read.introduction);
  if (!read.intact || !theirs) return;
  theirs->process = decode_process_identity(read.process);
  theirs->host = decode_host(read.host);
  const bool by_ucx = worker_.context().is_of_ucx();
  endpoint_core* const known =
      by_ucx ? table_.find(said.session) : table_.find_over(reply_endpoint);
  const bool is_from_here = by_ucx && known != nullptr && theirs->identity == worker_.identity() &&
                            awaits_its_own_hello(*known);
  // A worker that connects to itself by its address: its own endpoint is the one to answer by.
  const bool ours = is_from_here && !read.address.empty();
  // Somebody else's already: who came later has to draw another.
  const bool taken = known != nullptr && !is_from_here;
  if (taken && known->session().came_by(read.address, reply_endpoint)) return;  // said twice
  endpoint_core* peer = known;
  if (!ours)
    peer = read.address.empty() ? table_.find_nameless(reply_endpoint) : connect_back(read.address);
  if (peer == nullptr) return;
  const std::shared_ptr<endpoint_core> kept = peer->shared_from_this();
  if (taken) {
    frame answer;
    answer.code = opcode::welcome;
    answer.session = said.session;
    answer.status = error_status(make_error_code(errc::busy));
    peer->reply(answer);
    // One that we connected back to does so again; one that a listener accepted goes on.
    if (!read.address.empty()) peer->session().peer_said_bye({});
    return;
  }
  endpoint_session& session = peer->session();
  if (is_from_here && !ours) {
    session.take_number_beside(known->session());
  } else if (session.number() == 0) {
    session.take_number(said.session);
  }
  const result<void> wanted = said.version == protocol_version_number
                                  ? session.check(*theirs)
                                  : failure{errc::version_mismatch};
  if (!wanted) return session.refuse(wanted.why());
  session.welcome(std::move(*theirs), said.length);
}

endpoint_core* served_peers::connect_back(std::span<const std::byte> framed) {
  // Of whatever version: a peer of another one has to be told so, and reached for that.
  const std::span<const std::byte> address = envelope(framed, worker_address_letters).any_body();
  if (address.empty() || address.size() > longest_worker_address) return nullptr;
  ucp_ep_params_t params = {};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
  params.address = reinterpret_cast<const ucp_address_t*>(address.data());
  const auto connected = endpoint_core::make(worker_, nullptr, params,
                                             endpoint_core::role::acceptor, endpoint_options());
  if (!connected) return nullptr;
  const std::shared_ptr<endpoint_core>& made = *connected;
  made->session().set_address({framed.begin(), framed.end()});
  made->observers().set_observer(by_address_);
  serve(made);
  return made.get();
}

void served_peers::serve(std::shared_ptr<endpoint_core> peer) {
  endpoint_core& added = *peers_.emplace_back(std::move(peer));
  control_server* const server = worker_.control_server();
  if (server == nullptr || added.session().refuses_hello()) return;
  const std::shared_ptr<const peer_identity> who = added.ucx().identity();
  try {
    added.set_account(server->admit(who.get(), added.peer()));
  } catch (const std::bad_alloc&) {  // uncounted it would have no limits
    added.blame(errc::no_memory, "no memory to count the connection");
    throw;
  }
  const auto& account = added.account();
  if (account && account->is_one_too_many()) {
    added.blame(errc::busy, "too many connections are being refused");
  }
}

bool served_peers::has(const std::shared_ptr<endpoint_core>& peer) const noexcept {
  return std::find(peers_.begin(), peers_.end(), peer) != peers_.end();
}

void served_peers::reap() {
  for (std::size_t i = 0; i < peers_.size();) {
    const endpoint_state state = peers_[i]->state();
    const bool over = state == endpoint_state::failed || state == endpoint_state::closed;
    if (over && peers_[i]->ucx().transfers() == 0 && peers_[i]->answers() == 0 &&
        !peers_[i]->observers().is_untold()) {
      const std::shared_ptr<endpoint_core> gone = std::move(peers_[i]);
      peers_[i] = std::move(peers_.back());
      peers_.pop_back();
    } else {
      ++i;
    }
  }
}

void served_peers::close() noexcept {
  closed_ = true;
  // Taken out first: closing makes progress, which looks at the table.
  const std::vector<std::shared_ptr<endpoint_core>> gone = std::exchange(peers_, {});
  for (const std::shared_ptr<endpoint_core>& peer : gone) {
    // The peer's own connection goes with UCX's worker, unless that stays.
    const auto tell_peer = [&peer] {
      peer->session().say_bye({});
      return std::string();
    };
    if (worker_.ucx().is_borrowed()) if_there_is_memory(tell_peer);
    peer->closing().close(close_mode::abort);
  }
}

}  // namespace ucx::detail
