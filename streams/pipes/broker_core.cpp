#include "pipes/broker_core.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>
#include <optional>
#include <random>
#include <system_error>
#include <utility>

#include "pipes/pipe_frame.hpp"
#include "ucx/error.hpp"
#include "ucx/request.hpp"

namespace ucx::detail {

/// A question that is too long for a message that comes at once.
struct broker_core::coming_question {
  explicit coming_question(endpoint&& asks) noexcept : peer(std::move(asks)) {}
  coming_question(const coming_question&) = delete;
  coming_question& operator=(const coming_question&) = delete;
  ~coming_question() { has_come(); }

  void has_come() noexcept {
    const std::shared_ptr<broker_core> told = std::exchange(counted_by, {}).lock();
    if (!told) return;
    const std::lock_guard guard(told->mutex_);
    const auto one = std::ranges::find(told->fetching_, peer.id());
    if (one != told->fetching_.end()) told->fetching_.erase(one);
  }

  endpoint peer;
  std::weak_ptr<broker_core> counted_by;
  std::vector<std::byte> bytes;
  request receive;
};

void broker_core::asked(message question) noexcept {
  std::optional<endpoint> peer;
  try {
    peer = question.peer();
  } catch (const std::bad_alloc&) {  // nor is there any for an answer
    return;
  }
  if (peer->status()) return;
  if (question.length() > pipe_question::longest) return refuse(*peer, errc::protocol_error);
  if (question.has_payload()) return hear(std::move(*peer), question.data());
  fetch(std::move(*peer), std::move(question));
}

void broker_core::fetch(endpoint peer, message question) noexcept {
  std::shared_ptr<coming_question> coming;
  try {
    coming = std::make_shared<coming_question>(std::move(peer));
    {
      const std::lock_guard guard(mutex_);
      forget_the_gone();
      if (is_full_for(coming->peer)) return refuse(coming->peer, errc::busy);
      fetching_.push_back(coming->peer.id());
      coming->counted_by = weak_from_this();
    }
    coming->bytes.resize(static_cast<std::size_t>(question.length()));
    coming->receive = question.start_receive(std::span(coming->bytes));
    // Until it has run it keeps what is received into.
    coming->receive.then([coming](std::error_code lost) {
      const std::shared_ptr<broker_core> self = coming->counted_by.lock();
      if (!self) return refuse(coming->peer, errc::closed_by_peer);
      coming->has_come();
      if (lost == errc::no_memory) return refuse(coming->peer, errc::no_memory);
      if (!lost) self->hear(std::move(coming->peer), coming->bytes);
    });
  } catch (const std::bad_alloc&) {
    refuse(coming ? coming->peer : peer, errc::no_memory);
  }
}

void broker_core::hear(endpoint peer, std::span<const std::byte> question) noexcept {
  std::list<party> came;  // whose place among those who wait is made with it
  try {
    auto said = decode_pipe_question(question);
    if (!said) return refuse(peer, errc::protocol_error);
    came.emplace_back(std::move(peer), std::move(*said));
  } catch (const std::bad_alloc&) {
    return refuse(peer, errc::no_memory);
  }
  party& one = came.front();
  const std::lock_guard guard(mutex_);
  forget_the_gone();
  try {
    meet(one);
  } catch (const std::bad_alloc&) {  // the other end goes on waiting
    return refuse(one.peer, errc::no_memory);
  }
  if (one.said.wanted == 0) return;
  if (is_full_for(one.peer)) return refuse(one.peer, errc::busy);
  waiting_.splice(waiting_.end(), came);
}

void broker_core::forget_the_gone() noexcept {
  waiting_.remove_if([](const party& each) { return static_cast<bool>(each.peer.status()); });
}

bool broker_core::is_full_for(const endpoint& peer) const noexcept {
  const auto of_it = std::count_if(waiting_.begin(), waiting_.end(),
                                   [&](const party& each) { return each.peer.id() == peer.id(); }) +
                     std::count(fetching_.begin(), fetching_.end(), peer.id());
  return waiting_.size() + fetching_.size() >= most_ ||
         static_cast<std::size_t>(of_it) >= most_of_one;
}

bool broker_core::fit(const party& here, const party& came) {
  const bool both = here.said.role == pipe_role::both;
  return here.said.name == came.said.name && both == (came.said.role == pipe_role::both) &&
         (both || here.said.role != came.said.role);
}

void broker_core::meet(party& came) {
  for (auto each = waiting_.begin(); each != waiting_.end() && came.said.wanted > 0;) {
    if (!fit(*each, came)) {
      ++each;
      continue;
    }
    // The writer connects to the reader; of two that are both, who came later.
    if (came.said.role == pipe_role::reader) {
      introduce(came, *each);
    } else {
      introduce(*each, came);
    }
    each = each->said.wanted == 0 ? waiting_.erase(each) : std::next(each);
  }
}

void broker_core::introduce(party& listens, party& connects) {
  if (connects.said.version == oldest_meeting_version && !listens.said.worker.empty()) {
    connects.said.wanted = 0;  // it can not be told where, and not of the next one either
    return refuse(connects.peer, errc::not_supported);
  }
  pipe_answer said;
  std::random_device random;
  for (std::size_t i = 0; i < said.token.size(); i += 4) {
    put_pipe_number(std::span(said.token).subspan(i, 4), random());
  }
  said.version = listens.said.version;
  answer(listens.peer, said);
  said.version = connects.said.version;
  said.address = listens.said.address;
  said.worker = listens.said.worker;
  answer(connects.peer, said);
  --listens.said.wanted;
  --connects.said.wanted;
  ++introduced_;
}

void broker_core::answer(endpoint& to, const pipe_answer& said) {
  std::error_code gone;  // who has gone needs no answer; who leaves no room for it gets none
  to.post_send(pipe_answer_tag, encode(said), 0,
               {.memory = send_memory::copied, .backpressure = backpressure::fail}, gone);
}

/// In the version that every end can read. An end that is not told for want of memory gives up by
/// itself.
void broker_core::refuse(endpoint& to, errc why) noexcept {
  try {
    pipe_answer said;
    said.version = oldest_meeting_version;
    said.status = static_cast<std::uint32_t>(why);
    answer(to, said);
  } catch (const std::bad_alloc&) {
  }
}

void broker_core::close() noexcept {
  const std::lock_guard guard(mutex_);
  for (party& each : waiting_) refuse(each.peer, errc::closed_by_peer);
  waiting_.clear();
}

std::size_t broker_core::waiting() const {
  const std::lock_guard guard(mutex_);
  return waiting_.size();
}

std::size_t broker_core::introduced() const {
  const std::lock_guard guard(mutex_);
  return introduced_;
}

}  // namespace ucx::detail
