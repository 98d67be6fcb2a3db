#include "pipe_meeting.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "ucx/error.hpp"
#include "ucx/listener.hpp"

namespace ucx::detail {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

/// Room for some messages of any length.
constexpr std::size_t least_room = std::size_t{1} << 20U;

/// Who was introduced is connected to within this, or was not meant.
constexpr std::chrono::nanoseconds most_for_connecting = 10s;

client_options options_for(const pipe_options& options) {
  client_options chosen;
  chosen.context = options.context;
  chosen.context.name = "ucxio pipe";
  // A peer's signs of life do not wait for this program's next call.
  chosen.worker.progress = progress_mode::sleeping_thread;
  chosen.worker.heartbeat_timeout = options.silence;
  chosen.worker.heartbeat_interval = std::min<std::chrono::nanoseconds>(1s, options.silence / 4);
  chosen.worker.close_timeout = 2s;
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
        path_(std::make_unique<pipe_path>()),
        end_(clock::now() + options.meeting) {
    path_->name = to_string(where);
    path_->introduced.emplace(where.server(), options_for(options));
    path_->driven = &path_->introduced->worker();
    waiter_.emplace(*path_->driven, options.stop, 2);
  }

  std::unique_ptr<pipe_path> run() {
    endpoint broker(*path_->driven, where_.host(), where_.port());
    std::optional<listener> door;
    pipe_question said{
        .role = role_, .wanted = static_cast<std::uint32_t>(wanted_), .name = where_.name()};
    if (role_ != pipe_role::writer) {
      listener_options awaited;
      awaited.awaited = true;
      door.emplace(*path_->driven, broker.local().with_port(0), std::move(awaited));
      said.address = to_string(door->address());
    }
    asking_ =
        broker.start_send_message(pipe_question_number, {}, encode(said),
                                  {.memory = send_memory::copied, .until = send_until::matched});
    while (path_->peers.size() < wanted_) {
      const pipe_answer found = next(broker);
      path_->peers.push_back(found.address.empty() && door ? accept(*door, found) : connect(found));
    }
    return std::move(path_);
  }

 private:
  /// Waits for the broker's next answer.
  pipe_answer next(endpoint& broker) {
    std::array<std::byte, pipe_answer::longest> bytes{};
    request answer = broker.start_receive(pipe_answer_tag, std::span(bytes), {pipe_patience});
    while (!answer.done()) {
      std::array<request*, 2> wanted{&answer, &asking_};
      const bool asking = !asking_.done();
      check(waiter_->wait(std::span(wanted).first(asking ? 2 : 1), left()));
      if (asking_.done()) check_asked();
    }
    std::error_code ec;
    answer.wait(ec);
    if (ec) fail(ec, "the server was lost while this side waited for the " + other());
    const auto length = static_cast<std::size_t>(answer.received().length);
    const auto heard = decode_pipe_answer(std::span<const std::byte>(bytes).first(length));
    if (!heard) fail(errc::protocol_error, "the server gave an answer that is none");
    if (heard->status != 0) {
      const auto why = make_error_code(static_cast<errc>(heard->status));
      fail(why, "the server did not introduce the " + other());
    }
    return *heard;
  }

  /// Takes who knows the token; whoever else knocks is turned away.
  endpoint accept(listener& door, const pipe_answer& found) {
    const clock::time_point until = std::min(end_, clock::now() + most_for_connecting);
    for (;;) {
      const std::chrono::nanoseconds limit = until - clock::now();
      if (limit <= limit.zero()) {
        fail(errc::timed_out, "the " + other() + " was introduced, and did not connect");
      }
      if (waiter_->stopped()) check(errc::canceled);
      std::error_code ec;
      connection_request knocks =
          door.accept().wait(ec, {.timeout = std::min<std::chrono::nanoseconds>(limit, 100ms)});
      if (ec == errc::timed_out) continue;
      if (ec) fail(ec, "waiting for the " + other() + " to connect");
      endpoint came(*path_->driven, std::move(knocks), {}, ec);
      if (!ec) came.wait_connected(ec);
      if (!ec && std::ranges::equal(came.peer_info(), found.token)) return came;
      came.close(close_mode::abort, ec);
    }
  }

  endpoint connect(const pipe_answer& found) {
    std::error_code ec;
    const socket_address at(found.address, ec);
    if (ec || at.empty()) fail(errc::protocol_error, "the server gave no address");
    endpoint_options options;
    options.connect_timeout = most_for_connecting;
    options.terms = connection_terms();
    options.terms->info.assign(found.token.begin(), found.token.end());
    endpoint made(*path_->driven, at, std::move(options), ec);
    if (ec) fail(ec, "connecting to the " + other() + " at " + found.address);
    return made;
  }

  void check_asked() {
    if (std::exchange(asked_, true)) return;
    std::error_code ec;
    asking_.wait(ec);
    if (ec == errc::no_such_handler) fail(errc::not_supported, "the server takes no pipes");
    if (ec) fail(ec, "asking the server for the " + other());
  }

  void check(std::error_code ec) {
    if (!ec) return;
    if (ec != errc::timed_out) fail(ec, "waiting for the " + other());
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
  std::unique_ptr<pipe_path> path_;
  const clock::time_point end_;
  std::optional<pipe_waiter> waiter_;
  request asking_;
  bool asked_ = false;
};

}  // namespace

std::unique_ptr<pipe_path> meet(const url& where, pipe_role role, const pipe_options& options,
                                std::string& what, std::error_code& ec) {
  ec.clear();
  try {
    return meeting(where, role, options).run();
  } catch (const error& failed) {
    ec = failed.code();
    what = failed.what();
    return nullptr;
  }
}

}  // namespace ucx::detail
