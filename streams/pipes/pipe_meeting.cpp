#include "pipes/pipe_meeting.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <utility>
#include <vector>

#include "pipes/pipe_door.hpp"
#include "pipes/pipe_end.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

/// An end that waits for a peer to connect looks around so often.
constexpr std::chrono::milliseconds one_look{20};

/// Room for some messages of any length.
constexpr std::size_t least_room = std::size_t{1} << 20U;

/// A peer that was introduced is connected to within this, or was not meant.
constexpr std::chrono::nanoseconds most_for_connecting = 10s;

/// The server answers within this; it is given the least, so that a short meeting says who is
/// missing.
constexpr std::chrono::nanoseconds most_for_the_server = 5s;
constexpr std::chrono::nanoseconds least_for_the_server = 1s;

/// So often somebody else is asked for, where who was introduced is not there.
constexpr std::size_t most_attempts = 3;

client_options options_for(const pipe_options& options) {
  client_options chosen;
  chosen.context = options.context;
  chosen.context.name = "ucxio pipe";
  // A peer's signs of life do not wait for this program's next call.
  chosen.worker.progress = progress_mode::sleeping_thread;
  chosen.worker.heartbeat_timeout = options.heartbeat_timeout;
  chosen.worker.heartbeat_interval =
      std::min<std::chrono::nanoseconds>(1s, options.heartbeat_timeout / 4);
  chosen.worker.close_timeout = 2s;
  chosen.worker.connect_timeout =
      std::clamp(options.connect_timeout, least_for_the_server, most_for_the_server);
  // Of honest writers the window is the bound, and not the room for their messages; of others that.
  chosen.worker.message_window = std::max<std::size_t>(2 * options.window, least_room);
  return chosen;
}

const char* name_of(pipe_role role) noexcept {
  if (role == pipe_role::both) return "other end";
  return role == pipe_role::reader ? "writer" : "reader";
}

/// One meeting; what it opens is the path's.
class meeting {
 public:
  meeting(const url& where, pipe_role role, const pipe_options& options)
      : where_(where),
        role_(role),
        wanted_(role == pipe_role::reader   ? options.writers
                : role == pipe_role::writer ? options.readers
                                            : 1),
        unasked_(wanted_),
        path_(std::make_unique<pipe_path>()),
        end_(clock::now() + options.connect_timeout) {
    path_->name = to_string(where);
    path_->introduced.emplace(where.server(), options_for(options));
    path_->driven = &path_->introduced->worker();
    waiter_.emplace(*path_->driven, options.stop, 2);
  }

  std::unique_ptr<pipe_path> run() {
    endpoint broker = path_->introduced->connection();
    std::optional<pipe_door> door;
    question_ = {.role = role_, .name = where_.name()};
    if (role_ != pipe_role::writer) {
      door.emplace(*path_->driven, has_ip() ? broker.local().with_port(0) : socket_address());
      question_.address = door->address();
      if (!has_ip()) question_.worker = own_address();
    }
    hear(broker);
    while (path_->peers.size() < wanted_) {
      ask(broker);
      if (expected_.empty()) {
        wait_for_answer();
      } else {
        welcome(*door);
      }
      take_answers(broker);
      match();
    }
    for (caller& each : knocked_) pipe_door::turn_away(each.peer);
    path_->until = end_;
    waiter_->end();
    return std::move(path_);
  }

 private:
  bool has_ip() const noexcept { return where_.address_file().empty(); }

  worker_address own_address() const {
    worker_address made = path_->driven->address();
    const std::size_t size = made.encode().size();
    if (size <= longest_pipe_worker) return made;
    fail(errc::not_supported, "this end's worker address has " + std::to_string(size) + " bytes, " +
                                  std::to_string(longest_pipe_worker) +
                                  " may have: name fewer devices (UCX_NET_DEVICES)");
  }

  void hear(endpoint& broker) {
    answer_ =
        broker.start_receive(pipe_answer_tag, std::span(answer_bytes_), {.timeout = pipe_patience});
  }

  /// Asks for as many as are missing, and were not asked for.
  void ask(endpoint& broker) {
    if (!asking_.done() || unasked_ == 0) return;
    question_.wanted = static_cast<std::uint32_t>(std::exchange(unasked_, 0));
    asked_ = false;
    asking_ = broker.start_send(active_message{pipe_question_number}, encode(question_),
                                {.memory = send_memory::copied, .until = send_until::matched});
  }

  /// The peer that was introduced is not there: the next one may be.
  void miss(std::error_code ec, const std::string& text) {
    if (ec == errc::canceled || ++missed_ > most_attempts) fail(ec, text);
    last_ = ec;
    last_text_ = text;
    ++unasked_;
  }

  /// Waits until it is known whether `made` is connected, within its own time; returns why not.
  std::error_code settle(endpoint& made) {
    std::chrono::nanoseconds next = 1ms;
    while (made.state() == connection_state::connecting) {
      waiter_->begin(next);
      const std::error_code ec = waiter_->wait({});
      if (ec && ec != errc::timed_out) return ec;
      next = std::min<std::chrono::nanoseconds>(2 * next, one_look);
    }
    std::error_code ec;
    made.wait_connected(ec);
    return ec;
  }

  void wait_for_answer() {
    waiter_->begin(left());
    while (!answer_.done()) {
      std::array<request*, 2> wanted{&answer_, &asking_};
      const bool asking = !asking_.done();
      // The outcome of the question may be known before it is waited for.
      if (!asking) check_asked();
      if (!asking && unasked_ > 0) return;
      check(waiter_->wait(std::span(wanted).first(asking ? 2 : 1)));
    }
  }

  /// Takes what the broker has said by now: whom to connect to, or who will connect.
  void take_answers(endpoint& broker) {
    while (answer_.done() && path_->peers.size() + expected_.size() < wanted_) {
      std::error_code ec;
      answer_.wait(ec);
      if (ec) fail(ec, "the server was lost while this side waited for the " + other());
      const auto length = static_cast<std::size_t>(answer_.received().length);
      const auto heard =
          decode_pipe_answer(std::span<const std::byte>(answer_bytes_).first(length));
      if (!heard) fail(errc::protocol_error, "the server gave an answer that is none");
      if (is_of_older(*heard)) {
        hear(broker);
        continue;
      }
      if (heard->status != 0) {
        fail(pipe_status_error(heard->status), "the server did not introduce the " + other());
      }
      hear(broker);
      if (role_ == pipe_role::writer || !heard->address.empty() || !heard->worker.empty()) {
        connect(*heard);
      } else {
        expected_.push_back({heard->token, clock::now() + most_for_connecting});
      }
    }
  }

  /// A server from before worker addresses does not understand the question, and says so in its own
  /// version. It is asked once more in that, where it can be.
  bool is_of_older(const pipe_answer& heard) {
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

  /// Lets in who knocks; who that is shows later.
  void welcome(pipe_door& door) {
    const clock::time_point now = clock::now();
    const std::string why = "the " + other() + " was introduced, and did not connect";
    if (now >= end_) fail(errc::timed_out, why);
    if (now >= expected_.front().until) {
      expected_.erase(expected_.begin());
      return miss(errc::timed_out, why);
    }
    if (waiter_->stopped()) check(errc::canceled);
    std::error_code ec;
    std::optional<endpoint> came = door.wait(one_look, ec);
    if (ec) fail(ec, "waiting for the " + other() + " to connect");
    if (came) knocked_.push_back({std::move(*came), now + most_for_connecting});
  }

  /// Keeps who knows a token, and turns others away: who knocks early may be introduced yet.
  void match() {
    const clock::time_point now = clock::now();
    for (auto each = knocked_.begin(); each != knocked_.end();) {
      const std::vector<std::byte> told = each->peer.peer_info();
      const auto meant = std::ranges::find_if(
          expected_, [&](const expectation& one) { return std::ranges::equal(told, one.token); });
      if (meant != expected_.end()) {
        path_->peers.push_back(std::move(each->peer));
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

  void connect(const pipe_answer& found) {
    endpoint_options options;
    options.connect_timeout = std::min(most_for_connecting, left());
    options.wait = connect_wait::none;
    options.terms = connection_terms();
    options.terms->info.assign(found.token.begin(), found.token.end());
    if (!found.worker.empty()) return connect_to_worker(found.worker, std::move(options));
    std::error_code ec;
    const socket_address at(found.address, ec);
    if (ec || at.empty()) fail(errc::protocol_error, "the server gave no address");
    endpoint made(*path_->driven, at, std::move(options), ec);
    if (!ec) ec = settle(made);
    if (ec) return miss(ec, "connecting to the " + other() + " at " + found.address);
    path_->peers.push_back(std::move(made));
  }

  /// Its worker has no listener that would tell the other end: that is told by a message.
  void connect_to_worker(const worker_address& at, endpoint_options options) {
    std::error_code ec;
    endpoint made(*path_->driven, at, std::move(options), ec);
    if (!ec) ec = settle(made);
    if (!ec) ec = knock(made);
    if (!ec) return path_->peers.push_back(std::move(made));
    pipe_door::turn_away(made);
    if (ec == errc::no_such_handler) ec = errc::closed_by_peer;
    miss(ec, "connecting to the " + other() + " by its worker address");
  }

  std::error_code knock(endpoint& at) {
    std::error_code ec;
    request knocking = at.start_send(active_message{pipe_knock_number}, {},
                                     {.memory = send_memory::copied, .until = send_until::matched});
    waiter_->begin(std::min(most_for_connecting, left()));
    while (!knocking.done()) {
      std::array<request*, 1> wanted{&knocking};
      ec = waiter_->wait(wanted);
      if (ec) return ec;
    }
    knocking.wait(ec);
    return ec;
  }

  void check_asked() {
    if (std::exchange(asked_, true)) return;
    std::error_code ec;
    asking_.wait(ec);
    if (ec == errc::no_such_handler) fail(errc::not_supported, "the server takes no pipes");
    if (ec == errc::message_refused) return;  // the answer says why
    if (ec) fail(ec, "asking the server for the " + other());
  }

  void check(std::error_code ec) {
    if (!ec) return;
    if (ec != errc::timed_out) fail(ec, "waiting for the " + other());
    if (last_) fail(last_, last_text_ + ", and no other one came in time");
    fail(ec, "no " + other() + " came in time: there are " + std::to_string(path_->peers.size()) +
                 " of " + std::to_string(wanted_));
  }
  [[noreturn]] void fail(std::error_code ec, const std::string& text) const {
    throw error(ec, path_->name + ": " + text);
  }
  std::string other() const { return name_of(role_); }
  std::chrono::nanoseconds left() const {
    return std::max<std::chrono::nanoseconds>(end_ - clock::now(), 1ns);
  }

  const url where_;
  const pipe_role role_;
  const std::size_t wanted_;
  std::size_t unasked_;
  std::unique_ptr<pipe_path> path_;
  const clock::time_point end_;
  std::optional<pipe_waiter> waiter_;
  struct expectation {
    pipe_token token;
    clock::time_point until;
  };
  struct caller {
    endpoint peer;
    clock::time_point until;
  };
  pipe_question question_;
  std::size_t missed_ = 0;
  std::error_code last_;
  std::string last_text_;
  request asking_;
  std::vector<std::byte> answer_bytes_ = std::vector<std::byte>(pipe_answer::longest);
  request answer_;
  std::vector<expectation> expected_;  // were introduced, and did not connect yet
  std::list<caller> knocked_;          // connected, and may be anybody
  bool asked_ = false;
};

}  // namespace

path_or_error meet(const url& where, pipe_role role, const pipe_options& options) {
  try {
    return meeting(where, role, options).run();
  } catch (const error& failed) {
    return failed;
  }
}

}  // namespace ucx::detail
