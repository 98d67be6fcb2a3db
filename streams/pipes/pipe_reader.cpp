#include "pipes/pipe_reader.hpp"

#include <algorithm>
#include <atomic>

#include "pipes/pipe_end.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {

void pipe_reader::open(endpoint& peer, pipe_slots& slots) {
  peer_ = &peer;
  slots_ = &slots;
  for (hearing& each : said_) {
    each.memory = std::make_shared<std::array<std::byte, longest_of_reader>>();
    listen(each);
  }
}

void pipe_reader::listen(hearing& next) {
  next.receive =
      peer_->start_receive(pipe_of_reader(), std::span(*next.memory), {.timeout = pipe_patience});
}

bool pipe_reader::look(std::uint64_t sent) {
  const bool was_over = is_over();
  hear_all(sent);
  while (!sends_.empty() && sends_.front().send.done()) {
    const std::error_code ec = sends_.front().send.error();
    slots_->take_back(sends_.front().from);
    sends_.pop_front();
    if (!ec) continue;
    hear_all(sent);  // one that left said so before its connection ended
    lose(ec);
  }
  return is_over() && !was_over;
}

void pipe_reader::hear_all(std::uint64_t sent) {
  while (!is_over() && next_word().done()) {
    hearing& heard = said_[next_said_];
    if (const std::error_code ec = heard.receive.error()) {
      lose(ec == errc::message_truncated ? make_error_code(errc::protocol_error) : ec);
      break;
    }
    const message_info info = heard.receive.received();
    const auto said = *heard.memory;
    listen(heard);  // which may throw, and then it is heard later
    next_said_ = (next_said_ + 1) % said_.size();
    hear(info.tag, std::span(said).first(static_cast<std::size_t>(info.length)), sent);
  }
}

void pipe_reader::hear(std::uint64_t tag, std::span<const std::byte> said, std::uint64_t sent) {
  switch (pipe_said_of(tag)) {
    case pipe_said::hello:
      return greet(said, sent);
    case pipe_said::taken:
      return count(said, sent, false);
    case pipe_said::left:
      return count(said, sent, true);
    case pipe_said::ring:
      return use_places(said);
    default:
      return lose(errc::protocol_error);
  }
}

void pipe_reader::greet(std::span<const std::byte> said, std::uint64_t sent) {
  const std::optional<pipe_hello> hello = decode_pipe_hello(said);
  if (!hello || hello_) return lose(errc::protocol_error);
  hello_ = hello;
  if (hello->version != pipe_version) drop(sent, errc::version_mismatch);
}

void pipe_reader::use_places(std::span<const std::byte> said) {
  const std::optional<pipe_ring> offered = decode_pipe_ring(said);
  if (!offered || !hello_ || std::exchange(has_offered_, true)) return lose(errc::protocol_error);
  if (!slots_->takes_places()) return;
  slots_->use(mapped_places::open(*peer_, *offered, static_cast<std::size_t>(hello_->piece)));
}

void pipe_reader::count(std::span<const std::byte> said, std::uint64_t sent, bool leaves) {
  const std::optional<std::uint64_t> taken = decode_pipe_count(said);
  if (!taken || !hello_ || *taken < taken_ || *taken > sent) return lose(errc::protocol_error);
  // Else a reader could keep a writer awake with nothing.
  if (*taken == taken_ && !leaves) return lose(errc::protocol_error);
  taken_ = *taken;
  while (!waiting_.empty() && waiting_.front() <= taken_) waiting_.pop_front();
  std::atomic_thread_fence(std::memory_order_acquire);  // behind the reader's last look there
  while (!placed_.empty() && placed_.front().first <= taken_) {
    slots_->free(placed_.front().second);
    placed_.pop_front();
  }
  if (leaves) stage_ = stage::left;
}

void pipe_reader::lose(std::error_code why) noexcept {
  if (is_over()) return;
  stage_ = stage::lost;
  why_over_ = why;
}

bool pipe_reader::has_everything(std::uint64_t sent) const noexcept {
  if (stage_ == stage::left && taken_ == sent) return true;
  return stage_ != stage::dropped && has_end();
}

bool pipe_reader::has_room(std::size_t size, std::uint64_t sent,
                           std::uint64_t window) const noexcept {
  if (is_over() || waiting_.empty()) return true;
  // Its own window, by which it decides when to tell what it has taken.
  return sent + size - taken_ + pipe_message_cost * (waiting_.size() + 1) <=
         std::min(window, hello_->window);
}

void pipe_reader::send(std::span<const std::byte> bytes, std::uint16_t number, std::size_t from,
                       std::uint64_t end) {
  const auto memory = from == pipe_slots::copied ? send_memory::copied : send_memory::borrowed;
  // A send that was started is kept, whatever memory is left.
  sends_.reserve();
  waiting_.reserve();
  sends_.push_back({peer_->start_send(pipe_tag(pipe_said::data, number), bytes,
                                      {.timeout = pipe_patience, .memory = memory}),
                    from});
  slots_->lend(from);
  waiting_.push_back(end);
}

void pipe_reader::send_place(std::size_t size, std::uint16_t number, std::size_t from,
                             std::uint64_t end) {
  const pipe_place_bytes said =
      encode(pipe_place{.place = static_cast<std::uint32_t>(slots_->number_of(from)),
                        .length = static_cast<std::uint32_t>(size)});
  sends_.reserve();
  waiting_.reserve();
  // Taken before it is said: whatever fails then, nothing else is put there.
  placed_.push_back({end, from});
  slots_->give(from);
  std::atomic_thread_fence(std::memory_order_release);
  sends_.push_back({peer_->start_send(pipe_tag(pipe_said::placed, number), said, short_pipe_send)});
  waiting_.push_back(end);
}

std::size_t pipe_reader::borrowed() const noexcept {
  std::size_t count = 0;
  for (std::size_t i = 0; i < sends_.size(); ++i) {
    if (sends_[i].from == pipe_slots::callers) ++count;
  }
  return count;
}

void pipe_reader::say_end(std::uint64_t total) {
  if (ending_ != ending::unsaid) return;  // a close that is tried again
  end_ = peer_->start_send(
      pipe_tag(pipe_said::end), encode(pipe_end{total, 0}),
      {.timeout = pipe_patience, .memory = send_memory::copied, .until = send_until::matched});
  ending_ = ending::said;
}

bool pipe_reader::look_at_end() {
  if (is_over() || !end_.error()) return false;
  lose(end_.error());
  return true;
}

void pipe_reader::drop(std::uint64_t sent, std::error_code why) noexcept {
  stage_ = stage::dropped;
  why_over_ = why;
  cancel_sends();
  std::error_code unusable;
  const pipe_end_bytes end = encode(pipe_end{sent, pipe_error_status(why)});
  try {
    peer_->post_send(pipe_tag(pipe_said::end), end, 0, short_pipe_send, unusable);
  } catch (...) {  // without memory the end of the connection says it
  }
}

void pipe_reader::add_awaited(std::vector<pipe_request*>& to) {
  if (!is_over()) to.push_back(&next_word());
  if (!sends_.empty()) to.push_back(&sends_.front().send);
  if (!is_over() && ending_ == ending::said) to.push_back(&end_);
}

void pipe_reader::leave_sends() noexcept {
  for (std::size_t i = 0; i < sends_.size(); ++i) {
    sends_[i].send.leave(slots_->owner_of(sends_[i].from));
  }
  if (!end_.done()) {
    end_.leave();
    ending_ = ending::unsaid;  // as far as is known
  }
  forget_sends();
}

void pipe_reader::leave_words() noexcept {
  for (hearing& each : said_) each.receive.leave(each.memory);
}

bool pipe_reader::cancel_sends() noexcept {
  for (std::size_t i = 0; i < sends_.size(); ++i) sends_[i].send.cancel();
  return !sends_.empty();
}

}  // namespace ucx::detail
