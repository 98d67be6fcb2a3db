#include "client/client_session.hpp"

#include <utility>

#include "ucx/error.hpp"
#include "ucx/remote_descriptor.hpp"
#include "wire/frame.hpp"

namespace ucx::detail {

client_session::client_session(channel& by, std::function<void(std::uint64_t)> on_revoke)
    : channel_(by), on_revoke_(std::move(on_revoke)) {}

control_header client_session::enter(question& asked, control_type type) {
  control_header header;
  header.type = type;
  header.request = asked.id = ++last_id_;
  asked.done = over_;
  asked.outcome = why_;
  if (!over_) questions_.emplace(asked.id, &asked);
  return header;
}

void client_session::forget(question& asked) noexcept { questions_.erase(asked.id); }

void client_session::leave() {
  if (std::exchange(over_, true)) return;
  ended(errc::closed);
  channel_.send(encode_control(control_header{}));
}

void client_session::received(std::span<const std::byte> message) {
  if (over_) return;
  const std::optional<control_header> heard = decode_control(message);
  if (!heard) return channel_.blame(errc::protocol_error, "the server sent a message that is none");
  if (heard->type == control_type::bye) {
    ended(errc::connection_reset);
    return channel_.blame(errc::connection_reset, "the server ended");
  }
  if (heard->type == control_type::revoke) {
    if (const std::optional<revoke_body> body = decode_revoke(message)) on_revoke_(body->region);
    return;
  }
  const auto found = questions_.find(heard->request);
  if (found == questions_.end()) return release_unwanted(message);
  question& asked = *found->second;
  // A server that does not know the question says so in general terms.
  const bool refused = heard->type == control_type::done && heard->status != 0;
  if (heard->type != asked.answer_type && !refused) {
    return channel_.blame(errc::protocol_error, "the server answered another question");
  }
  questions_.erase(found);
  asked.outcome = status_error(heard->status);
  asked.answer.assign(message.begin(), message.end());
  asked.done = true;
  if (asked.by != nullptr) asked.by->answered();
}

void client_session::release_unwanted(std::span<const std::byte> answer) {
  const std::optional<opened_body> opened = decode_opened(answer);
  if (!opened || !opened->held) return;
  std::error_code damaged;
  const remote_descriptor descriptor = remote_descriptor::decode(opened->descriptor, damaged);
  if (!damaged) tell(control_type::release, release_body{descriptor.region});
}

void client_session::ended(std::error_code why) noexcept {
  over_ = true;
  if (!why_) why_ = why;
  for (const auto& [id, asked] : std::exchange(questions_, {})) {
    asked->outcome = why_;
    asked->done = true;
    if (asked->by != nullptr) asked->by->answered();
  }
}

}  // namespace ucx::detail
