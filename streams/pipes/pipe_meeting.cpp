#include "pipes/pipe_meeting.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "pipes/pipe_end.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

using namespace std::chrono_literals;

/// An end that waits for a peer to connect looks around so often, and at first more often.
constexpr std::chrono::milliseconds one_look{20};
constexpr std::chrono::milliseconds first_look{1};

/// Of ends that a server introduces which does not know the difference, and of others.
constexpr const char* other_build =
    ": by TLS both ends need a build with keys of meetings, or both one without";

/// Room for some messages of any length.
constexpr std::size_t least_room = std::size_t{1} << 20U;

/// A peer that was introduced is connected to within this, or was not meant.
constexpr std::chrono::nanoseconds most_for_connecting = 10s;

/// A short meeting gives the server this long, so that its error says who is missing.
constexpr std::chrono::nanoseconds least_for_the_server = 1s;

/// The other end has its key within this. It is called eight times meanwhile, behind pauses that
/// double: who named the address may have meant another program to be called.
constexpr std::chrono::seconds most_for_key{5};
constexpr std::chrono::milliseconds first_pause{20};

/// So often somebody else is asked for, where who was introduced is not there.
constexpr std::size_t most_attempts = 3;

client_options options_for(const pipe_options& options, std::size_t peers) {
  client_options chosen;
  chosen.context = options.context;
  chosen.context.name = "ucxio pipe";
  // A peer's signs of life do not wait for this program's next call.
  chosen.worker.progress = progress_mode::sleeping_thread;
  chosen.worker.heartbeat_timeout = options.heartbeat_timeout;
  chosen.worker.heartbeat_interval =
      std::min<std::chrono::nanoseconds>(1s, options.heartbeat_timeout / 4);
  chosen.worker.close_timeout = 2s;
  chosen.worker.connect_timeout = time_for_the_server(options);
  // Of honest writers the window is the bound, and not the room for their messages; of others that.
  chosen.worker.message_window = std::max<std::size_t>(2 * options.window, least_room);
  // A worker lends half of this to peers that have just come, and not all of that at once.
  chosen.worker.untaken_messages =
      std::max(chosen.worker.untaken_messages, 4 * (peers + 1) * chosen.worker.message_window);
  return chosen;
}

const char* name_of(pipe_role role) noexcept {
  if (role == pipe_role::both) return "other end";
  return role == pipe_role::reader ? "writer" : "reader";
}

/// A peer learns nothing of the token by the time that this takes.
bool is_token(std::span<const std::byte> told, const pipe_token& token) noexcept {
  if (told.size() != token.size()) return false;
  std::byte difference{0};
  for (std::size_t i = 0; i < token.size(); ++i) difference |= told[i] ^ token[i];
  return difference == std::byte{0};
}

std::size_t others_for(pipe_role role, const pipe_options& options) noexcept {
  if (role == pipe_role::both) return 1;
  return role == pipe_role::reader ? options.writers : options.readers;
}

}  // namespace

std::chrono::nanoseconds time_for_the_server(const pipe_options& options) noexcept {
  return std::max(options.connect_timeout, least_for_the_server);
}

pipe_meeting::pipe_meeting(const url& where, pipe_role role, const pipe_options& options,
                           bool in_call)
    : where_(where),
      role_(role),
      wanted_(others_for(role, options)),
      unasked_(wanted_),
      path_(std::make_unique<pipe_path>()),
      end_(clock::now() + options.connect_timeout),
      answer_bytes_(std::make_shared<std::vector<std::byte>>(pipe_answer::longest)),
      next_look_(first_look) {
  path_->name = to_string(where);
  if (in_call) {
    path_->introduced.emplace(where.server(), options_for(options, wanted_));
    path_->driven = &path_->introduced->worker();
  } else {
    path_->introduced.emplace();
  }
}

pipe_meeting::pipe_meeting(const url& where, pipe_role role, const pipe_options& options)
    : pipe_meeting(where, role, options, true) {
  waiter_.emplace(*path_, options.stop, wanted_ + 4);
}

pipe_meeting::pipe_meeting(worker& driven, const std::weak_ptr<pipe_woken>& told, const url& where,
                           pipe_role role, const pipe_options& options)
    : pipe_meeting(where, role, options, false) {
  path_->driven = &driven;
  path_->woken = told;
  waiter_.emplace(*path_, options.stop, 0);
  connecting_ = client::start_connect(driven, where.server(), *path_->introduced,
                                      {.timeout = time_for_the_server(options)});
}

pipe_meeting::~pipe_meeting() {
  if (!path_ || !path_->woken) return;
  connecting_.leave();
  answer_.leave(answer_bytes_);
  asking_.leave();
  for (called& each : called_) {
    each.telling.leave();
    pipe_door::turn_away(each.peer);
  }
  for (caller& each : knocked_) pipe_door::turn_away(each.peer);
  for (endpoint& each : path_->peers) pipe_door::turn_away(each);
}

client pipe_meeting::leave_server() noexcept {
  broker_.reset();
  connecting_.leave();
  pipe_path& path = path_ ? *path_ : *taken_;
  client server = path.introduced ? std::move(*path.introduced) : client();
  path.introduced.reset();
  return server;
}

/// The server is there.
void pipe_meeting::begin() {
  broker_.emplace(path_->introduced->connection());
  keys_.emplace(path_->driven->parent());
  question_ = {.role = role_, .name = where_.name()};
  if (keys_->is_used() && !broker_->peer().is_unix()) question_.version = keyed_meeting_version;
  if (role_ != pipe_role::writer) {
    const socket_address place = has_ip() ? broker_->local().with_port(0) : socket_address();
    door_.emplace(*path_->driven, place, *keys_);
    question_.address = door_->address();
    if (!has_ip()) question_.worker = own_address();
  }
  hear();
}

bool pipe_meeting::advance() {
  if (!connecting_.done()) return false;
  if (!broker_) {
    if (connecting_.error()) throw error(connecting_.error(), connecting_.description());
    begin();
  }
  ask();
  check_asked();
  look_after_called();
  take_answers();
  let_in();
  match();
  if (path_->peers.size() == wanted_) return true;
  check_time();
  return false;
}

bool pipe_meeting::wait() {
  awaited_.clear();
  std::chrono::nanoseconds limit = left();
  const auto add = [this](pipe_request& each) {
    if (!each.done()) awaited_.push_back(&each);
  };
  if (!broker_) {
    add(connecting_);
  } else {
    if (unasked_ > 0 && asking_.done()) return true;  // somebody else is to be asked for
    // What ended since it was looked at ends the wait.
    if (accounted_for() < wanted_) awaited_.push_back(&answer_);
    if (!asked_) awaited_.push_back(&asking_);
    if (door_) awaited_.push_back(&door_->knock());
    bool looks_around = !expected_.empty() || !knocked_.empty();
    for (called& each : called_) {
      looks_around = looks_around || each.telling.done();
      add(each.telling);
    }
    if (looks_around) limit = std::min(limit, next_look_);
    next_look_ = std::min<std::chrono::nanoseconds>(2 * next_look_, one_look);
  }
  waiter_->begin(limit);
  const std::error_code ec = waiter_->wait(awaited_);
  // Those who wait look at the time themselves.
  if (ec && ec != errc::timed_out && ec != errc::would_block) {
    fail(ec, "waiting for the " + other());
  }
  return ec != errc::would_block;
}

std::unique_ptr<pipe_path> pipe_meeting::take() {
  for (caller& each : knocked_) pipe_door::turn_away(each.peer);
  knocked_.clear();
  path_->until = end_;
  waiter_->end();
  if (!path_->woken) return std::move(path_);
  answer_.leave(answer_bytes_);
  asking_.leave();
  taken_ = path_.get();
  return std::move(path_);
}

worker_address pipe_meeting::own_address() const {
  worker_address made = path_->driven->address();
  const std::size_t size = made.encode().size();
  if (size <= longest_pipe_worker) return made;
  fail(errc::not_supported, "this end's worker address has " + std::to_string(size) + " bytes, " +
                                std::to_string(longest_pipe_worker) +
                                " may have: name fewer devices (UCX_NET_DEVICES)");
}

void pipe_meeting::hear() {
  answer_ = broker_->start_receive(pipe_answer_tag, std::span(*answer_bytes_),
                                   {.timeout = pipe_patience});
}

/// Asks for as many as are missing, and were not asked for.
void pipe_meeting::ask() {
  if (!asking_.done() || unasked_ == 0) return;
  check_asked();
  question_.wanted = static_cast<std::uint32_t>(std::exchange(unasked_, 0));
  asked_ = false;
  asking_ = broker_->start_send(active_message{pipe_question_number}, encode(question_),
                                {.memory = send_memory::copied, .until = send_until::matched});
}

void pipe_meeting::check_asked() {
  if (!asking_.done() || std::exchange(asked_, true)) return;
  const std::error_code ec = asking_.error();
  if (ec == errc::no_such_handler) fail(errc::not_supported, "the server takes no pipes");
  if (ec == errc::message_refused) return;  // the answer says why
  if (ec) fail(ec, "asking the server for the " + other());
}

/// The peer that was introduced is not there: the next one may be.
void pipe_meeting::miss(std::error_code ec, const std::string& text) {
  if (ec == errc::canceled || ++missed_ > most_attempts) fail(ec, text);
  last_ = ec;
  last_text_ = text;
  ++unasked_;
}

/// Takes what the broker has said by now: whom to connect to, or who will connect.
void pipe_meeting::take_answers() {
  while (answer_.done() && accounted_for() < wanted_) {
    if (const std::error_code ec = answer_.error()) {
      fail(ec, "the server was lost while this side waited for the " + other());
    }
    const auto length = static_cast<std::size_t>(answer_.received().length);
    const auto heard = decode_pipe_answer(std::span<const std::byte>(*answer_bytes_).first(length));
    if (!heard) fail(errc::protocol_error, "the server gave an answer that is none");
    if (is_of_older(*heard)) {
      hear();
      continue;
    }
    if (heard->status == static_cast<std::uint32_t>(errc::not_secure)) {
      fail(errc::not_secure,
           "the server did not introduce the " + other() +
               ": one end has come by the server's Unix socket, and one by TLS. Name a token on "
               "both sides (UCXIO_TOKEN, --token-file), or on neither");
    }
    if (heard->status != 0) {
      const std::error_code why = pipe_status_error(heard->status);
      fail(why, "the server did not introduce the " + other() +
                    (why == errc::version_mismatch ? other_build : ""));
    }
    hear();
    next_look_ = first_look;
    if (role_ == pipe_role::writer || !heard->address.empty() || !heard->worker.empty()) {
      connect(*heard);
    } else {
      keys_->expect(heard->token, most_for_connecting);
      expected_.push_back({heard->token, clock::now() + most_for_connecting});
    }
  }
}

/// A server from before worker addresses does not understand the question, and says so in its own
/// version. It is asked once more in that, where it can be.
bool pipe_meeting::is_of_older(const pipe_answer& heard) {
  if (heard.status != static_cast<std::uint32_t>(errc::protocol_error) ||
      heard.version >= question_.version) {
    return false;
  }
  if (!has_ip()) {
    fail(errc::not_supported,
         "the server is of a version that lets pipes meet at a URL of a host and a port only");
  }
  question_.version = heard.version;
  unasked_ = wanted_;
  return true;
}

void pipe_meeting::connect(const pipe_answer& found) {
  std::error_code ec;
  called made{.peer = call(found, ec)};
  made.is_told = found.worker.empty();
  made.to = "connecting to the " + other() +
            (made.is_told ? " at " + found.address : std::string(" by its worker address"));
  if (ec) return miss(ec, made.to);
  made.found = found;
  const clock::time_point now = clock::now();
  made.pause = first_pause;
  made.again = now + made.pause;
  made.until = std::min<clock::time_point>(now + most_for_key, end_);
  called_.push_back(std::move(made));
}

/// By worker address there is no listener that would tell the other end: that is told by a message.
/// By TLS the token is the key, too: it is said to who has proven to have it.
endpoint pipe_meeting::call(const pipe_answer& found, std::error_code& ec) {
  endpoint_options options;
  options.connect_timeout = std::min(most_for_connecting, left());
  options.wait = connect_wait::none;
  options.terms = connection_terms();
  options.terms->info.assign(found.token.begin(), found.token.end());
  if (!found.worker.empty()) {
    return endpoint(*path_->driven, found.worker, std::move(options), ec);
  }
  const socket_address at(found.address, ec);
  if (ec || at.empty()) fail(errc::protocol_error, "the server gave no address");
  return keys_->connect(*path_->driven, at, found.token, std::move(options), ec);
}

/// The server's answer may reach the other end later than this one, and the key with it. Returns
/// whether that is waited for.
bool pipe_meeting::waits_for_key(called& one, std::error_code ended) {
  const clock::time_point now = clock::now();
  const bool is_refused = ended == errc::permission_denied && one.found.worker.empty() &&
                          !one.found.address.starts_with("unix:");
  if (!is_refused || now >= one.until) return false;
  if (now < one.again) return true;
  one.pause *= 2;
  one.again = now + one.pause;
  std::error_code ec;
  pipe_door::turn_away(one.peer);
  one.peer = call(one.found, ec);
  return !ec;
}

/// Returns how it ended; nothing before that.
std::optional<std::error_code> pipe_meeting::outcome_of(called& one) {
  if (one.peer.state() == connection_state::connecting) return {};
  if (const std::error_code ec = one.peer.status()) return ec;
  if (!std::exchange(one.is_told, true)) {
    one.telling = one.peer.start_send(active_message{pipe_knock_number}, {},
                                      {.timeout = std::min(most_for_connecting, left()),
                                       .memory = send_memory::copied,
                                       .until = send_until::matched});
  }
  if (!one.telling.done()) return {};
  const std::error_code ec = one.telling.error();
  return ec == errc::no_such_handler ? make_error_code(errc::closed_by_peer) : ec;
}

void pipe_meeting::look_after_called() {
  for (auto each = called_.begin(); each != called_.end();) {
    const std::optional<std::error_code> ended = outcome_of(*each);
    if (!ended || waits_for_key(*each, *ended)) {
      ++each;
      continue;
    }
    if (!*ended) {
      path_->peers.push_back(std::move(each->peer));
      path_->key = each->found.token;
    } else {
      pipe_door::turn_away(each->peer);
      const bool may_be_older = *ended == errc::permission_denied && keys_->is_used() &&
                                question_.version != keyed_meeting_version;
      miss(*ended, each->to + (may_be_older ? other_build : ""));
    }
    each = called_.erase(each);
  }
  ask();
}

/// Lets in who knocks; who that is shows later.
void pipe_meeting::let_in() {
  while (door_) {
    std::optional<endpoint> came = door_->take();
    if (!came) return;
    knocked_.push_back({std::move(*came), clock::now() + most_for_connecting});
    next_look_ = first_look;
  }
}

/// Keeps who knows a token, and turns others away: who knocks early may be introduced yet.
void pipe_meeting::match() {
  const clock::time_point now = clock::now();
  for (auto each = knocked_.begin(); each != knocked_.end();) {
    const std::vector<std::byte> told = each->peer.peer_info();
    const auto meant = std::ranges::find_if(
        expected_, [&](const expectation& one) { return is_token(told, one.token); });
    if (meant != expected_.end()) {
      path_->peers.push_back(std::move(each->peer));
      path_->key = meant->token;
      expected_.erase(meant);
    } else if (!each->peer.status() && now < each->until &&
               knocked_.size() <= pipe_door::most_strangers) {
      ++each;
      continue;
    } else {
      pipe_door::turn_away(each->peer);
    }
    each = knocked_.erase(each);
  }
}

/// Those who are called have their own time.
void pipe_meeting::check_time() {
  const clock::time_point now = clock::now();
  if (!expected_.empty()) {
    const std::string why = "the " + other() + " was introduced, and did not connect";
    if (now >= end_) fail(errc::timed_out, why);
    if (now >= expected_.front().until) {
      expected_.erase(expected_.begin());
      miss(errc::timed_out, why);
    }
  }
  if (now < end_ || !called_.empty()) return;
  if (last_) fail(last_, last_text_ + ", and no other one came in time");
  fail(errc::timed_out, "no " + other() + " came in time: there are " +
                            std::to_string(path_->peers.size()) + " of " + std::to_string(wanted_));
}

void pipe_meeting::fail(std::error_code ec, const std::string& text) const {
  throw error(ec, path_->name + ": " + text);
}

std::string pipe_meeting::other() const { return name_of(role_); }

std::chrono::nanoseconds pipe_meeting::left() const {
  return std::max<std::chrono::nanoseconds>(end_ - clock::now(), std::chrono::nanoseconds(1));
}

path_or_error meet(const url& where, pipe_role role, const pipe_options& options) {
  try {
    pipe_meeting met(where, role, options);
    while (!met.advance()) met.wait();
    return met.take();
  } catch (const error& failed) {
    return failed;
  }
}

}  // namespace ucx::detail
