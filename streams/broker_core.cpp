#include "broker_core.hpp"

#include <algorithm>
#include <random>
#include <utility>

#include "pipe_bytes.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

pipe_answer refusal(errc why) {
  pipe_answer made;
  made.status = static_cast<std::uint32_t>(why);
  return made;
}

}  // namespace

void broker_core::asked(message question) {
  endpoint peer = question.peer();
  if (peer.status()) return;
  const bool too_long = question.length() > pipe_question::longest || !question.is_here();
  auto said = too_long ? std::nullopt : decode_pipe_question(question.data());
  if (!said) return answer(peer, refusal(errc::protocol_error));
  party came{std::move(peer), std::move(*said)};
  const std::lock_guard guard(mutex_);
  forget_the_gone();
  meet(came);
  if (came.said.wanted == 0) return;
  if (is_full_for(came.peer)) return answer(came.peer, refusal(errc::busy));
  waiting_.push_back(std::move(came));
}

void broker_core::forget_the_gone() {
  waiting_.remove_if([](const party& each) { return static_cast<bool>(each.peer.status()); });
}

bool broker_core::is_full_for(const endpoint& peer) const noexcept {
  const auto of_it = std::count_if(waiting_.begin(), waiting_.end(),
                                   [&](const party& each) { return each.peer.id() == peer.id(); });
  return waiting_.size() >= most_ || static_cast<std::size_t>(of_it) >= most_of_one;
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
    introduce(*each, came);
    each = each->said.wanted == 0 ? waiting_.erase(each) : std::next(each);
  }
}

/// The writer connects to the reader; of two that are both, who came later.
void broker_core::introduce(party& here, party& came) {
  party& listens = came.said.role == pipe_role::reader ? came : here;
  party& connects = &listens == &came ? here : came;
  pipe_answer said;
  std::random_device random;
  for (std::size_t i = 0; i < said.token.size(); i += 4) {
    put_pipe_number(std::span(said.token).subspan(i, 4), random());
  }
  answer(listens.peer, said);
  said.address = listens.said.address;
  answer(connects.peer, said);
  --here.said.wanted;
  --came.said.wanted;
  ++introduced_;
}

void broker_core::answer(endpoint& to, const pipe_answer& said) {
  std::error_code gone;  // who has gone needs no answer; who leaves no room for it gets none
  to.post_send(pipe_answer_tag, encode(said), 0, gone,
               {.memory = send_memory::copied, .full = when_full::fail});
}

void broker_core::close() {
  const std::lock_guard guard(mutex_);
  for (party& each : waiting_) answer(each.peer, refusal(errc::closed_by_peer));
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
