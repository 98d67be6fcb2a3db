#include "pipes/broker_core.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "pipes/pipe_frame.hpp"
#include "ucx/access.hpp"
#include "ucx/audit.hpp"
#include "ucx/error.hpp"
#include "ucx/request.hpp"
#include "ucx/ticket.hpp"

namespace ucx::detail {
namespace {

/// The pipe by which clients call agents, and below which they meet them.
constexpr std::string_view agents_name = ".ucxio-agent";

bool is_conversation(std::string_view name) {
  return name.starts_with(std::string(agents_name) + '/');
}

/// Returns whether the server's rules allow the meeting. A peer that reads the calls to agents is
/// one. The names below, which callers choose, have no rules.
bool is_allowed(const endpoint& peer, const pipe_question& said) {
  const std::string_view name = said.name;
  const bool is_call = name == agents_name;
  if (!is_call && !is_conversation(name)) {
    return peer.is_allowed(access_right::pipes, name);
  }
  const bool serves = is_call && said.role == pipe_role::reader;
  return peer.is_allowed(serves ? access_right::agent | access_right::pipes : access_right::agent,
                         agents_name);
}

/// Returns whether one can connect to the other: a context of UCX's speaks one family over TCP.
bool speak_alike(const socket_address& one, const socket_address& other) noexcept {
  return one.empty() || other.empty() || one.is_v6() == other.is_v6();
}

/// Returns the line of the audit about an end, and about the one that it was introduced to.
audit_event event_of(const pipe_question& said, const endpoint* other) {
  audit_event made;
  made.event = "meet";
  made.name = said.name;
  made.access = to_string(said.role == pipe_role::reader   ? access::read
                          : said.role == pipe_role::writer ? access::write
                                                           : access::read_write);
  made.other = other;
  return made;
}

}  // namespace

/// A question that is too long for a message that comes at once.
struct broker_core::coming_question {
  coming_question(place at, endpoint&& asks) noexcept : from(at), peer(std::move(asks)) {}
  coming_question(const coming_question&) = delete;
  coming_question& operator=(const coming_question&) = delete;
  ~coming_question() { has_come(); }

  void has_come() noexcept {
    const std::shared_ptr<broker_core> told = std::exchange(counted_by, {}).lock();
    if (!told) return;
    const std::lock_guard guard(told->mutex_);
    const auto one = std::ranges::find(told->fetching_, from);
    if (one != told->fetching_.end()) told->fetching_.erase(one);
  }

  const place from;
  endpoint peer;
  std::weak_ptr<broker_core> counted_by;
  std::vector<std::byte> bytes;
  request receive;
};

broker_core::party::party(place at, endpoint&& from_peer, pipe_question&& asked)
    : from(at), peer(std::move(from_peer)), said(std::move(asked)) {
  if (peer.native_handle() != nullptr) over_ucx = peer.peer();
}

void broker_core::asked(std::size_t worker, message question) noexcept {
  std::optional<endpoint> peer;
  try {
    peer = question.peer();
  } catch (const std::bad_alloc&) {  // nor is there any for an answer
    return;
  }
  if (peer->status()) return;
  if (question.length() > pipe_question::longest)
    return refuse(*peer, errc::protocol_error, nullptr);
  const place from{worker, peer->id()};
  if (question.has_payload()) return hear(from, std::move(*peer), question.data());
  fetch(from, std::move(*peer), std::move(question));
}

void broker_core::fetch(place from, endpoint peer, message question) noexcept {
  std::shared_ptr<coming_question> coming;
  try {
    coming = std::make_shared<coming_question>(from, std::move(peer));
    {
      const std::lock_guard guard(mutex_);
      forget_the_gone();
      if (is_full_for(from)) return refuse(coming->peer, errc::busy, nullptr);
      fetching_.push_back(from);
      coming->counted_by = weak_from_this();
    }
    coming->bytes.resize(static_cast<std::size_t>(question.length()));
    coming->receive = question.start_receive(std::span(coming->bytes));
    // Until it has run it keeps what is received into.
    coming->receive.then([coming](std::error_code lost) {
      const std::shared_ptr<broker_core> self = coming->counted_by.lock();
      if (!self) return refuse(coming->peer, errc::closed_by_peer, nullptr);
      coming->has_come();
      if (lost == errc::no_memory) return refuse(coming->peer, errc::no_memory, nullptr);
      if (!lost) self->hear(coming->from, std::move(coming->peer), coming->bytes);
    });
  } catch (const std::bad_alloc&) {
    refuse(coming ? coming->peer : peer, errc::no_memory, nullptr);
  }
}

void broker_core::hear(place from, endpoint peer, std::span<const std::byte> question) noexcept {
  std::list<party> came;  // whose place among those who wait is made with it
  try {
    auto said = decode_pipe_question(question);
    if (!said) return refuse(peer, errc::protocol_error, nullptr);
    if (!is_allowed(peer, *said)) return refuse(peer, errc::permission_denied, &*said);
    came.emplace_back(from, std::move(peer), std::move(*said));
  } catch (const std::bad_alloc&) {
    return refuse(peer, errc::no_memory, nullptr);
  }
  party& one = came.front();
  const std::uint32_t wanted = one.said.wanted;
  const std::lock_guard guard(mutex_);
  forget_the_gone();
  try {
    meet(one);
  } catch (const std::bad_alloc&) {  // the other end goes on waiting
    return refuse(one.peer, errc::no_memory, &one.said);
  }
  if (one.said.wanted == 0) return;
  if (const auto apart = one.said.wanted == wanted ? what_keeps_apart(one) : std::nullopt) {
    return refuse(one.peer, *apart, &one.said);
  }
  if (is_full_for(one.from)) return refuse(one.peer, errc::busy, &one.said);
  waiting_.splice(waiting_.end(), came);
}

void broker_core::forget_the_gone() noexcept {
  waiting_.remove_if([](const party& each) { return static_cast<bool>(each.peer.status()); });
}

bool broker_core::is_full_for(const place& from) const noexcept {
  const auto of_it = std::count_if(waiting_.begin(), waiting_.end(),
                                   [&](const party& each) { return each.from == from; }) +
                     std::count(fetching_.begin(), fetching_.end(), from);
  return waiting_.size() + fetching_.size() >= most_ ||
         static_cast<std::size_t>(of_it) >= most_of_one;
}

bool broker_core::seek_each_other(const party& here, const party& came) {
  const bool both = here.said.role == pipe_role::both;
  return here.said.name == came.said.name && both == (came.said.role == pipe_role::both) &&
         (both || here.said.role != came.said.role) && speak_alike(here.over_ucx, came.over_ucx);
}

/// Returns whether both connect by the key of their meeting, or neither does. Over the Unix socket
/// there are no keys.
bool broker_core::agree_on_key(const party& here, const party& came) {
  const bool is_by_port = !here.peer.peer().is_unix() && !came.peer.peer().is_unix();
  return !is_by_port || (here.said.version == keyed_meeting_version) ==
                            (came.said.version == keyed_meeting_version);
}

/// Returns whether one has come by the Unix socket of the server, and the other by its port. Either
/// listens where it has come, and the other one could not connect there.
bool broker_core::miss_each_other(const party& here, const party& came) {
  return here.peer.peer().is_unix() != came.peer.peer().is_unix();
}

bool broker_core::fit(const party& here, const party& came) {
  return seek_each_other(here, came) && agree_on_key(here, came) && !miss_each_other(here, came);
}

/// Returns why it could not connect to one that waits for it; nothing where none waits.
std::optional<errc> broker_core::what_keeps_apart(const party& came) const {
  for (const party& each : waiting_) {
    if (!seek_each_other(each, came)) continue;
    if (miss_each_other(each, came)) return errc::not_secure;
    if (!agree_on_key(each, came)) return errc::version_mismatch;
  }
  return std::nullopt;
}

void broker_core::meet(party& came) {
  for (auto each = waiting_.begin(); each != waiting_.end() && came.said.wanted > 0;) {
    if (!fit(*each, came)) {
      ++each;
      continue;
    }
    if (!is_allowed(each->peer, each->said)) {  // any more
      refuse(each->peer, errc::permission_denied, &each->said);
      each = waiting_.erase(each);
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
    return refuse(connects.peer, errc::not_supported, &connects.said);
  }
  pipe_answer said;
  std::random_device random;
  for (std::size_t i = 0; i < said.token.size(); i += 4) {
    put_pipe_number(std::span(said.token).subspan(i, 4), random());
  }
  if (is_conversation(listens.said.name)) {
    // An agent acts for its client by it. Where it is not taken, the agent can do nothing.
    std::error_code ignored;
    ticket(said.token)
        .expect(listens.peer, connects.peer, access_right::agent, agents_name, ignored);
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
  append_to_audit(listens.peer, event_of(listens.said, &connects.peer));
}

void broker_core::answer(endpoint& to, const pipe_answer& said) {
  std::error_code gone;  // who has gone needs no answer; who leaves no room for it gets none
  to.post_send(pipe_answer_tag, encode(said), 0,
               {.memory = send_memory::copied, .backpressure = backpressure::fail}, gone);
}

/// In the version that every end can read. An end that is not told for want of memory gives up by
/// itself.
void broker_core::refuse(endpoint& to, errc why, const pipe_question* asked) noexcept {
  try {
    audit_event line = asked != nullptr ? event_of(*asked, nullptr) : audit_event{.event = "meet"};
    line.outcome = why;
    append_to_audit(to, line);
    pipe_answer said;
    said.version = oldest_meeting_version;
    said.status = static_cast<std::uint32_t>(why);
    answer(to, said);
  } catch (const std::bad_alloc&) {
  }
}

void broker_core::close() noexcept {
  const std::lock_guard guard(mutex_);
  for (party& each : waiting_) refuse(each.peer, errc::closed_by_peer, &each.said);
  waiting_.clear();
}

std::size_t broker_core::waiting() const {
  const std::lock_guard guard(mutex_);
  // The next end that comes has those forgotten that have gone.
  return static_cast<std::size_t>(std::count_if(
      waiting_.begin(), waiting_.end(), [](const party& each) { return !each.peer.status(); }));
}

std::size_t broker_core::introduced() const {
  const std::lock_guard guard(mutex_);
  return introduced_;
}

}  // namespace ucx::detail
