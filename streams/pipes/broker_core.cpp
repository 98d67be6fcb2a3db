#include "pipes/broker_core.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <random>
#include <system_error>
#include <utility>

#include "pipes/pipe_bytes.hpp"
#include "ucx/error.hpp"
#include "ucx/request.hpp"

namespace ucx::detail {
namespace {

/// In the version that everybody can read.
pipe_answer refusal(errc why) {
  pipe_answer made;
  made.version = oldest_meeting_version;
  made.status = static_cast<std::uint32_t>(why);
  return made;
}

/// A question that is too long for a message that comes at once.
struct coming_question {
  endpoint peer;
  std::vector<std::byte> bytes;
  request receive = {};
};

}  // namespace

void broker_core::asked(message question) {
  endpoint peer = question.peer();
  if (peer.status()) return;
  if (question.length() > pipe_question::longest) {
    return answer(peer, refusal(errc::protocol_error));
  }
  if (question.is_here()) return hear(std::move(peer), question.data());
  fetch(std::move(peer), std::move(question));
}

void broker_core::fetch(endpoint peer, message question) {
  {
    const std::lock_guard guard(mutex_);
    forget_the_gone();
    if (is_full_for(peer)) return answer(peer, refusal(errc::busy));
    fetching_.push_back(peer.id());
  }
  const auto coming = std::make_shared<coming_question>(coming_question{
      std::move(peer), std::vector<std::byte>(static_cast<std::size_t>(question.length()))});
  coming->receive = question.start_receive(std::span(coming->bytes));
  // Until it has run it keeps what is received into.
  coming->receive.then([coming, weak = weak_from_this()](std::error_code lost) {
    const std::shared_ptr<broker_core> self = weak.lock();
    if (!self) return answer(coming->peer, refusal(errc::closed_by_peer));
    {
      const std::lock_guard guard(self->mutex_);
      const auto one = std::ranges::find(self->fetching_, coming->peer.id());
      if (one != self->fetching_.end()) self->fetching_.erase(one);
    }
    if (!lost) self->hear(std::move(coming->peer), coming->bytes);
  });
}

void broker_core::hear(endpoint peer, std::span<const std::byte> question) {
  auto said = decode_pipe_question(question);
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
    return answer(connects.peer, refusal(errc::not_supported));
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
