#include "detail/endpoint_core.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "detail/connection_table.hpp"
#include "detail/message_operation.hpp"
#include "detail/message_router.hpp"
#include "detail/operation_pools.hpp"
#include "detail/protocol.hpp"
#include "detail/status.hpp"
#include "detail/worker_core.hpp"

namespace ucx::detail {
namespace {

/// So many of our questions may be on the wire of one connection; the owner refuses more than four
/// times as many.
constexpr std::size_t most_asked = 256;

}  // namespace

endpoint_core::endpoint_core(worker_core& worker, std::shared_ptr<worker_core> keep_alive,
                             role side, endpoint_options options)
    : worker_(worker),
      keep_alive_(std::move(keep_alive)),
      role_(side),
      options_(std::move(options)),
      heartbeat_(worker.options().heartbeat_interval, worker.options().heartbeat_timeout) {
  const bool watched = options_.failure == peer_failure::automatic
                           ? !worker.context().same_host_only()
                           : options_.failure == peer_failure::detected;
  detects_failure_ = watched;
}

std::shared_ptr<endpoint_core> endpoint_core::make(worker_core& worker,
                                                   std::shared_ptr<worker_core> keep_alive,
                                                   ucp_ep_params_t& params, role side,
                                                   endpoint_options options, std::error_code& ec) {
  // The last reference may go inside UCX's callback, where an endpoint can not be closed.
  std::shared_ptr<endpoint_core> made(
      new endpoint_core(worker, std::move(keep_alive), side, std::move(options)),
      [](endpoint_core* last) { last->retire(); });
  params.field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
  params.err_mode =
      made->detects_failure_ ? UCP_ERR_HANDLING_MODE_PEER : UCP_ERR_HANDLING_MODE_NONE;
  if (made->detects_failure_) {
    params.field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLER;
    params.err_handler.cb = &endpoint_core::on_ucx_error;
    params.err_handler.arg = made.get();
  }
  const ucs_status_t status = worker.api().ep_create(worker.handle(), &params, &made->handle_);
  if (status != UCS_OK) {
    made->handle_ = nullptr;
    made->words_ = detail::words(status);
    made->state_ = endpoint_state::closed;
    ec = make_error(status);
    return nullptr;
  }
  worker.connections().add(*made);
  if (!worker.context().has(feature::am)) made->state_ = endpoint_state::ready;
  return made;
}

/// What happens when nobody holds the connection any more: it is closed, and for that held once
/// more.
void endpoint_core::retire() noexcept {
  if (worker_.in_handler() && worker_.inside_ucx()) {
    worker_.defer([this] { retire(); });
    return;
  }
  std::unique_lock guard(worker_.lock());
  const bool open = state_ == endpoint_state::connecting || state_ == endpoint_state::ready;
  guard.unlock();
  if (open) {
    const std::shared_ptr<endpoint_core> again(this, [](endpoint_core* last) { last->retire(); });
    std::error_code ignored;
    close(worker_.in_handler() ? close_mode::abort : close_mode::flush, ignored);
    return;  // and retires for good
  }
  // The worker goes after the endpoint, if this was the last to keep it.
  const std::shared_ptr<worker_core> kept = std::move(keep_alive_);
  guard.lock();
  drop();
  const bool ended = dropped() && transfers_ == 0;
  if (!ended) worker_.bury(*this);  // UCX may still call back
  guard.unlock();
  if (ended) delete this;
}

endpoint_core::~endpoint_core() {
  const std::lock_guard guard(worker_.lock());
  worker_.connections().remove(*this);
}

std::error_code endpoint_core::status() const noexcept {
  if (state_ == endpoint_state::closed || taking_leave_) return errc::closed;
  return state_ == endpoint_state::failed ? error_ : std::error_code();
}

std::string endpoint_core::words() const {
  const std::lock_guard guard(worker_.lock());
  return words_;
}

std::string endpoint_core::peer_name() const {
  const std::lock_guard guard(worker_.lock());
  if (!peer_.empty()) return to_string(peer_);
  char text[32];
  std::snprintf(text, sizeof text, "session %016llx", static_cast<unsigned long long>(session_));
  return text;
}

std::vector<std::string> endpoint_core::transports() {
  std::vector<std::string> found;
  if (handle_ == nullptr) return found;
  char* text = nullptr;
  std::size_t size = 0;
  std::FILE* file = ::open_memstream(&text, &size);
  if (file == nullptr) return found;
  worker_.api().ep_print_info(handle_, file);
  std::fclose(file);
  found = parse_transports(std::string_view(text, size));
  std::free(text);
  return found;
}

/// UCX prints a line a lane: "lane[0]:  2:tcp/lo.0 md[1] -> md[1]/tcp/sysdev[255] am ...".
std::vector<std::string> parse_transports(std::string_view printed) {
  std::vector<std::string> found;
  for (std::size_t at = printed.find("lane["); at != std::string_view::npos;
       at = printed.find("lane[", at + 1)) {
    const std::size_t number = printed.find_first_not_of(' ', printed.find(':', at) + 1);
    const std::size_t begin = printed.find(':', number);
    if (begin == std::string_view::npos) break;
    std::string_view name = printed.substr(begin + 1);
    name = name.substr(0, name.find_first_of(" \n"));
    // What follows the last dot is UCX's number of the path within the device.
    std::string transport(name.substr(0, name.rfind('.')));
    if (transport.find('/') == std::string::npos) continue;  // the connection manager's own lane
    if (std::find(found.begin(), found.end(), transport) == found.end()) {
      found.push_back(std::move(transport));
    }
  }
  return found;
}

void endpoint_core::say_hello(clock::time_point connect_deadline) {
  if (state_ != endpoint_state::connecting) return;
  connect_deadline_ = connect_deadline;
  while (session_ == 0 || worker_.connections().find(session_) != nullptr) {
    session_ = worker_.random();
  }
  worker_.connections().name(*this);
  worker_.tick_soon();
  frame hello;
  hello.code = opcode::hello;
  hello.session = session_;
  std::vector<std::byte> address;
  if (peer_.empty()) {  // connected by worker address: the peer has none of ours yet
    std::error_code ec;
    address = worker_.address(ec).encode();
    if (ec) return lost(UCS_ERR_NO_RESOURCE);
  }
  worker_.router().send(*this, hello, address, true);
}

void endpoint_core::await_hello() {
  connect_deadline_ = worker_.api().now() + worker_.options().connect_timeout;
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

void endpoint_core::accept_session(std::uint64_t session) {
  session_ = session;
  worker_.connections().name(*this);
  if (state_ != endpoint_state::connecting) return;
  state_ = endpoint_state::ready;
  send_queued();
}

void endpoint_core::welcomed(std::error_code refusal, unsigned peer_version) {
  if (state_ != endpoint_state::connecting) return;
  if (refusal) {
    worker_.defer([weak = weak_from_this(), refusal, peer_version] {
      if (const auto self = weak.lock())
        self->fail(refusal, "the peer speaks version " + std::to_string(peer_version) +
                                " of the wire format, this side version " +
                                std::to_string(unsigned{protocol_version_number}));
    });
    return;
  }
  state_ = endpoint_state::ready;
  send_queued();
}

void endpoint_core::peer_said_bye() noexcept {
  leaving_ = true;
  frame answer;
  answer.code = opcode::farewell;
  answer.session = session_;
  send(answer);
  // A peer that says goodbye and stays is dropped.
  connect_deadline_ = worker_.api().now() + worker_.options().heartbeat_interval;
  worker_.tick_soon();
}

void endpoint_core::say_bye() {
  if (session_ == 0 || std::exchange(said_bye_, true)) return;
  frame bye;
  bye.code = opcode::bye;
  bye.session = session_;
  send(bye);
}

void endpoint_core::send(const frame& sent) { worker_.router().send(*this, sent); }

void endpoint_core::add(message_operation& started) {
  if (const std::error_code unusable = status()) return started.connection_failed(unusable);
  if (state_ == endpoint_state::ready && asked_.size() < most_asked && queued_.empty()) {
    started.was_asked = true;
    asked_.push_back(started);
    return started.ask();
  }
  started.was_asked = false;
  queued_.push_back(started);
}

void endpoint_core::remove(message_operation& ended) noexcept {
  (ended.was_asked ? asked_ : queued_).remove(ended);
  if (ended.was_asked && !queued_.empty() && !sending_queued_ && state_ == endpoint_state::ready) {
    worker_.defer([weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->send_queued();
    });
    sending_queued_ = true;
  }
}

void endpoint_core::write_ended(std::uint64_t epoch) {
  writes_.end(epoch);
  for (flush_operation* flush = flushes_.front(); flush != nullptr;) {
    flush_operation* next = flushes_.next(*flush);
    if (writes_.settled(flush->epoch())) flush->writes_settled();
    flush = next;
  }
}

void endpoint_core::remove(flush_operation& ended) noexcept {
  if (static_cast<list_hook<flush_tag>&>(ended).linked()) flushes_.remove(ended);
}

void endpoint_core::send_queued() {
  sending_queued_ = false;
  while (state_ == endpoint_state::ready && asked_.size() < most_asked) {
    message_operation* next = queued_.front();
    if (next == nullptr) return;
    queued_.remove(*next);
    next->was_asked = true;
    asked_.push_back(*next);
    next->ask();
  }
}

void endpoint_core::on_ucx_error(void* self, ucp_ep_h, ucs_status_t status) {
  static_cast<endpoint_core*>(self)->lost(status);
}

void endpoint_core::note(ucs_status_t status) {
  if (words_.empty()) words_ = "UCX: " + detail::words(status);
}

void endpoint_core::lost(ucs_status_t status) noexcept {
  if (handle_ == nullptr || state_ == endpoint_state::failed || losing_) return;
  losing_ = true;
  worker_.defer([self = weak_from_this(), status] {
    const std::shared_ptr<endpoint_core> endpoint = self.lock();
    if (!endpoint) return;
    std::error_code why = make_error(status);
    // One death has many names in UCX; before the peer answered, a reset is a refusal.
    if (why == errc::canceled || why == errc::timed_out || why == errc::io_error ||
        why == errc::unexpected) {
      why = errc::connection_reset;
    }
    if (endpoint->state_ == endpoint_state::connecting && !endpoint->peer_.empty() &&
        endpoint->role_ == role::initiator && why == errc::connection_reset) {
      why = errc::connection_refused;
    }
    endpoint->fail(why, endpoint->leaving_ ? "the peer closed the connection"
                                           : "UCX: " + detail::words(status));
  });
}

void endpoint_core::fail(std::error_code why, const std::string& words) {
  if (state_ == endpoint_state::failed || state_ == endpoint_state::closed) return;
  const std::shared_ptr<endpoint_core> kept = weak_from_this().lock();
  const bool was_ready = state_ == endpoint_state::ready;
  state_ = endpoint_state::failed;
  error_ = why;
  words_ = words;
  fail_operations(why);
  // UCX keeps a socket that the peer opened, so a peer that is still there has to be told.
  if (was_ready && !losing_ && !leaving_) say_bye();
  start_drop();
  if (options_.on_error) {
    worker_.defer([handler = std::move(options_.on_error), why]() mutable { handler(why); });
  }
}

void endpoint_core::fail_operations(std::error_code why) {
  for (auto* list : {&asked_, &queued_}) {
    for (message_operation* op = list->front(); op != nullptr;) {
      message_operation* next = list->next(*op);
      op->connection_failed(why);
      op = next;
    }
  }
  worker_.fail_outstanding_of(*this, why);
}

void endpoint_core::cancel_operations_of(const remote_region_core& region) noexcept {
  for (auto* list : {&asked_, &queued_}) {
    for (message_operation* op = list->front(); op != nullptr;) {
      message_operation* next = list->next(*op);
      if (op->region() == &region) op->give_up(errc::canceled);
      op = next;
    }
  }
}

clock::time_point endpoint_core::tick(clock::time_point now) {
  if (state_ == endpoint_state::failed || state_ == endpoint_state::closed) {
    return clock::time_point::max();
  }
  if (state_ == endpoint_state::connecting || leaving_) {
    if (now < connect_deadline_) return connect_deadline_;
    if (leaving_) {
      fail(make_error_code(errc::connection_reset), "the peer closed the connection");
    } else {
      fail(make_error_code(errc::timed_out), "the peer did not answer in our protocol in time");
    }
    return clock::time_point::max();
  }
  if (asked_.empty()) {
    heartbeat_.rest();
    return clock::time_point::max();
  }
  switch (heartbeat_.look(now)) {
    case heartbeat::verdict::quiet:
      break;
    case heartbeat::verdict::ask: {
      frame ping;
      ping.code = opcode::ping;
      ping.session = session_;
      send(ping);
      break;
    }
    case heartbeat::verdict::dead:
      fail(make_error_code(errc::connection_reset),
           "no sign of life for " +
               std::to_string(
                   std::chrono::duration_cast<std::chrono::milliseconds>(heartbeat_.timeout())
                       .count()) +
               " ms");
      return clock::time_point::max();
  }
  return heartbeat_.next_look();
}

}  // namespace ucx::detail
