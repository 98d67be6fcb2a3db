#include "server/audited_channel.hpp"

#include <new>
#include <optional>
#include <utility>

#include "ucx/error.hpp"
#include "wire/frame.hpp"

namespace ucx::detail {
namespace {

bool is_answer(control_type type) noexcept {
  switch (type) {
    case control_type::welcome:
    case control_type::opened:
    case control_type::described:
    case control_type::listed:
    case control_type::done:
    case control_type::digested:
    case control_type::stored:
    case control_type::fetched:
      return true;
    default:
      return false;
  }
}

}  // namespace

std::string audited_outcome(std::error_code outcome) {
  if (!outcome) return "ok";
  if (outcome.category() == make_error_code(errc::closed).category()) {
    return std::string(to_string(static_cast<errc>(outcome.value())));
  }
  return outcome.message();
}

audited_channel::audited_channel(std::unique_ptr<channel> by, std::shared_ptr<audit_file> to)
    : by_(std::move(by)),
      to_(std::move(to)),
      peer_(by_->facts()),
      who_(to_string(peer_.identity ? *peer_.identity : peer_identity())) {
  if (peer_.identity) share_->who = who_;
}

/// A message that can not be read has no event: the session blames the peer.
audited_channel::question audited_channel::look_at(const control_header& header,
                                                   std::span<const std::byte> message) const {
  const auto named = [this](std::uint64_t region) { return names_ ? names_(region) : ""; };
  switch (header.type) {
    case control_type::hello:
      return {"connect", {""}};
    case control_type::open:
      if (auto body = decode_open(message)) {
        return {"open", {std::move(body->name)}, {}, std::string(to_string(body->wanted))};
      }
      break;
    case control_type::create:
      if (auto body = decode_create(message)) {
        return {"create", {std::move(body->name)}, {}, std::string(to_string(body->wanted))};
      }
      break;
    case control_type::lend:
      return {"lend", {""}};
    case control_type::commit:
      if (auto body = decode_commit(message)) return {"commit", {named(body->region)}};
      break;
    case control_type::remove:
      if (auto body = decode_remove(message)) return {"remove", {std::move(body->name)}};
      break;
    case control_type::make_directory:
      if (auto body = decode_make_directory(message)) {
        return {"make_directory", {std::move(body->name)}};
      }
      break;
    case control_type::rename:
      if (auto body = decode_rename(message)) {
        return {"rename", {std::move(body->from)}, std::move(body->to)};
      }
      break;
    case control_type::resize:
      if (auto body = decode_resize(message)) {
        return {"resize", {body->region != 0 ? named(body->region) : std::move(body->name)}};
      }
      break;
    case control_type::put:
      if (auto body = decode_put(message)) {
        question made{"put"};
        for (put_body::file& each : body->files) made.names.push_back(std::move(each.name));
        return made;
      }
      break;
    case control_type::fetch:
      if (auto body = decode_fetch(message)) return {"fetch", std::move(body->names)};
      break;
    case control_type::stat:
      if (auto body = decode_stat(message)) return {"stat", {std::move(body->name)}, {}, {}, false};
      break;
    case control_type::list:
      if (auto body = decode_list(message)) {
        return {"list", {body->directory.value_or("")}, {}, {}, false};
      }
      break;
    case control_type::measure:
      if (auto body = decode_measure(message))
        return {"measure", {named(body->region)}, {}, {}, false};
      break;
    case control_type::digest:
      if (auto body = decode_digest(message))
        return {"digest", {named(body->region)}, {}, {}, false};
      break;
    default:
      break;
  }
  return {};
}

bool audited_channel::asked(const control_header& header, std::span<const std::byte> message) {
  question made = look_at(header, message);
  switch (header.type) {
    case control_type::commit:
    case control_type::remove:
    case control_type::make_directory:
    case control_type::rename:
    case control_type::resize:
    case control_type::put:
      made.changes = true;
      break;
    default:
      break;
  }
  if (*made.event == '\0') return true;
  if (asked_.try_emplace(header.request, std::move(made)).second) return true;
  blame(errc::protocol_error, "the peer gave a number twice");
  return false;
}

audit_file::line audited_channel::line_of(const question& of, const std::string& name,
                                          std::error_code outcome) const {
  return {{"event", of.event},
          {"who", who_},
          {"for", principals_},
          {"from", peer_.address},
          {"connection", std::to_string(peer_.id)},
          {"name", name},
          {"to", of.to},
          {"access", of.rights},
          {"outcome", audited_outcome(outcome)}};
}

void audited_channel::tell(const question& of, const std::string& name,
                           std::error_code outcome) noexcept {
  if (!outcome && !of.tells_success) return;
  try {
    const bool is_limited = outcome || !peer_.identity;
    const audit_file::line one = line_of(of, name, outcome);
    to_->write(std::span(&one, 1),
               !outcome && of.changes ? audit_file::weight::change
               : is_limited           ? audit_file::weight::limited
                                      : audit_file::weight::usual,
               share_);
  } catch (const std::bad_alloc&) {  // it is answered all the same
  }
}

/// Several names have an outcome each.
void audited_channel::tell_each(const question& of, const control_header& answer,
                                std::span<const std::byte> message) {
  const std::error_code all = status_error(answer.status);
  std::optional<stored_body> stored;
  std::optional<fetched_body> fetched;
  if (!all && answer.type == control_type::stored) stored = decode_stored(message);
  if (!all && answer.type == control_type::fetched) fetched = decode_fetched(message);
  std::vector<audit_file::line> done;
  std::vector<audit_file::line> refused;
  for (std::size_t i = 0; i < of.names.size(); ++i) {
    std::error_code outcome = all;
    if (stored && i < stored->outcomes.size()) outcome = stored->outcomes[i];
    // A client that wants such a file opens it.
    if (fetched && (i >= fetched->contents.size() || !fetched->contents[i])) continue;
    if (!outcome && !of.tells_success) continue;
    (outcome ? refused : done).push_back(line_of(of, of.names[i], outcome));
  }
  using weight = audit_file::weight;
  const weight usual = peer_.identity ? weight::usual : weight::limited;
  if (!done.empty()) to_->write(done, of.changes ? weight::change : usual, share_);
  if (!refused.empty()) to_->write(refused, weight::limited, share_);
}

void audited_channel::send(std::span<const std::byte> message) {
  const std::optional<control_header> said = decode_control(message);
  if (said && said->type == control_type::welcome) is_connected_ = said->status == 0;
  if (said && is_answer(said->type)) {
    const auto found = asked_.find(said->request);
    if (found != asked_.end()) {
      const question of = std::move(found->second);
      asked_.erase(found);
      tell_each(of, *said, message);
    }
  }
  by_->send(message);
}

void audited_channel::blame(std::error_code why, const std::string& words) {
  tell({.event = "blame", .names = {}}, {}, why);
  by_->blame(why, words);
}

void audited_channel::ended(std::error_code why) noexcept {
  if (!std::exchange(is_connected_, false)) return;
  const bool has_left = !why || why == errc::closed_by_peer;
  tell({.event = "disconnect", .names = {}}, {}, has_left ? std::error_code() : why);
}

void audited_channel::end(std::error_code why, const std::string& words) {
  ended(why);
  by_->blame(errc::closed_by_peer, words);
}

void audited_channel::revoked(const std::string& name) noexcept {
  tell({.event = "revoke", .names = {}, .changes = true}, name, {});
}

}  // namespace ucx::detail
