// What a pipe's writer hears of its readers.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include "pipes/pipe_output.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {

void pipe_output::listen(link& to, hearing& next) {
  next.receive =
      to.peer->start_receive(pipe_of_reader(), std::span(next.memory), {.timeout = pipe_patience});
}

void pipe_output::look() {
  for (link& each : links_) look(each);
}

/// Hears what the reader said, and notices which sends have ended.
void pipe_output::look(link& at) {
  hear_all(at);
  while (!at.sends.empty() && at.sends.front().send.done()) {
    const std::error_code ec = at.sends.front().send.error();
    let_go(at.sends.front().from);
    at.sends.pop_front();
    if (!ec) continue;
    hear_all(at);  // one that left said so before its connection ended
    lose(at, ec);
  }
}

void pipe_output::hear_all(link& at) {
  while (!at.over && at.said[at.next_said].receive.done()) {
    hearing& heard = at.said[at.next_said];
    if (const std::error_code ec = heard.receive.error()) {
      lose(at, ec == errc::message_truncated ? make_error_code(errc::protocol_error) : ec);
      break;
    }
    const message_info info = heard.receive.received();
    const auto said = heard.memory;
    listen(at, heard);  // which may throw, and then it is heard later
    at.next_said = (at.next_said + 1) % at.said.size();
    hear(at, info.tag, std::span(said).first(static_cast<std::size_t>(info.length)));
  }
}

void pipe_output::let_go(std::size_t from) noexcept {
  if (from == callers) {
    --borrowed_;
  } else if (from != copied_slot) {
    --slots_[from].in_flight;
  }
}

void pipe_output::hear(link& at, std::uint64_t tag, std::span<const std::byte> said) {
  switch (pipe_said_of(tag)) {
    case pipe_said::hello:
      return greet(at, said);
    case pipe_said::taken:
      return count(at, said, false);
    case pipe_said::left:
      return count(at, said, true);
    case pipe_said::ring:
      return use_places(at, said);
    default:
      return lose(at, errc::protocol_error);
  }
}

void pipe_output::greet(link& at, std::span<const std::byte> said) {
  const std::optional<pipe_hello> hello = decode_pipe_hello(said);
  if (!hello || at.hello) return lose(at, errc::protocol_error);
  if (hello->version != pipe_version) {
    failure_.set(make_error_code(errc::version_mismatch),
                 path_.name + ": the reader speaks version " + std::to_string(hello->version) +
                     " of pipes, and this side " + std::to_string(pipe_version));
    return drop(at, errc::version_mismatch);
  }
  at.hello = hello;
}

/// What is written for several readers has to be copied for each of them anyway.
void pipe_output::use_places(link& at, std::span<const std::byte> said) {
  const std::optional<pipe_ring> offered = decode_pipe_ring(said);
  if (!offered || !at.hello || std::exchange(at.offered, true)) {
    return lose(at, errc::protocol_error);
  }
  if (links_.size() > 1 || !options_.context.share_memory) return;
  places_ = mapped_places::open(*at.peer, *offered, static_cast<std::size_t>(at.hello->piece));
  if (!slots_.empty()) add_places();
}

void pipe_output::count(link& at, std::span<const std::byte> said, bool leaves) {
  const std::optional<std::uint64_t> taken = decode_pipe_count(said);
  if (!taken || !at.hello || *taken < at.taken || *taken > sent_) {
    return lose(at, errc::protocol_error);
  }
  // Else a reader could keep a writer awake with nothing.
  if (*taken == at.taken && !leaves) return lose(at, errc::protocol_error);
  at.taken = *taken;
  while (!at.waiting.empty() && at.waiting.front() <= at.taken) at.waiting.pop_front();
  std::atomic_thread_fence(std::memory_order_acquire);  // behind the reader's last look there
  while (!at.placed.empty() && at.placed.front().first <= at.taken) {
    slots_[at.placed.front().second].in_flight = 0;
    at.placed.pop_front();
  }
  if (!leaves) return;
  at.over = true;
  at.left = true;
  // One that has had everything so far is missed only if more comes.
  if (at.taken != sent_) miss(at);
}

void pipe_output::miss(const link& gone) {
  if (goes_on()) return;
  failure_.set(make_error_code(errc::broken_pipe), path_.name + ": the reader left, having taken " +
                                                       std::to_string(gone.taken) + " of " +
                                                       pipe_bytes_text(sent_));
}

void pipe_output::lose(link& at, std::error_code why) {
  if (at.over) return;
  at.over = true;
  // Who has everything may leave before this side has looked.
  if (ending_ && at.end.done() && !at.end.error()) return;
  if (goes_on()) return;
  const std::string taken =
      ", having taken " + std::to_string(at.taken) + " of " + pipe_bytes_text(sent_);
  if (why == errc::protocol_error) {
    return failure_.set(why, path_.name + ": the reader broke the rules" + taken);
  }
  failure_.set(make_error_code(errc::connection_reset),
               path_.name + ": the reader was lost (" + why.message() + ")" + taken);
}

/// Returns whether a reader that is over is not missed, because there are others.
bool pipe_output::goes_on() const noexcept {
  return options_.slow == slow_reader::drop && present() > 0;
}

std::size_t pipe_output::readers() const noexcept {
  if (!closed_) return present();
  const auto has_everything = [this](const link& each) {
    if (each.left && each.taken == sent_) return true;
    return each.told_end && each.end.done() && !each.end.error();
  };
  return static_cast<std::size_t>(std::count_if(links_.begin(), links_.end(), has_everything));
}

std::size_t pipe_output::present() const noexcept {
  return static_cast<std::size_t>(
      std::count_if(links_.begin(), links_.end(), [](const link& each) { return !each.over; }));
}

/// Tells a reader that nothing more will come, and why.
void pipe_output::drop(link& at, std::error_code why) noexcept {
  at.over = true;
  at.told_end = false;
  for (sending& each : at.sends) each.send.cancel();
  std::error_code unusable;
  const pipe_end_bytes end = encode(pipe_end{sent_, pipe_error_status(why)});
  try {
    at.peer->post_send(pipe_tag(pipe_said::end), end, 0, unusable, short_pipe_send);
  } catch (...) {  // without memory the end of the connection says it
  }
}

}  // namespace ucx::detail
