#include "server/server_session.hpp"

#include <utility>

#include "base/name.hpp"
#include "server/catalogue.hpp"
#include "server/published_name.hpp"
#include "ucx/error.hpp"
#include "ucx/version.hpp"
#include "wire/control_message.hpp"
#include "wire/frame.hpp"

namespace ucx::detail {
namespace {

/// A client that does not take so many bytes of answers is asking for them in bad faith.
constexpr std::size_t most_unsent = std::size_t{16} << 20U;

}  // namespace

server_session::server_session(std::unique_ptr<channel> by, const catalogue& names,
                               file_watcher& watcher, file_hasher& hasher,
                               session_counters& counters, std::function<void()> on_end)
    : channel_(std::move(by)),
      catalogue_(names),
      counters_(counters),
      on_end_(std::move(on_end)),
      files_(
          names, channel_->longest(),
          [this](const control_header& asked, control_type type, std::error_code why) {
            refuse(asked, type, why);
          },
          [this](const std::vector<std::byte>& answer) {
            if (state_ != state::greeted) return;
            const std::optional<control_header> said = decode_control(answer);
            if (said && said->type == control_type::opened) ++counters_.opens;
            channel_->send(answer);
          },
          // The region's watches and digests have the file open.
          [this](std::uint64_t region) {
            watches_.withdrawn(region);
            digests_.withdrawn(region);
          }),
      contents_(
          names, channel_->longest(),
          [this](const control_header& asked, control_type type, std::error_code why) {
            if (state_ == state::greeted) refuse(asked, type, why);
          },
          [this](const std::vector<std::byte>& answer) {
            if (state_ == state::greeted) channel_->send(answer);
          }),
      watches_(
          watcher,
          [this](const control_header& asked, control_type type, std::error_code why) {
            if (state_ == state::greeted) refuse(asked, type, why);
          },
          [this](const std::vector<std::byte>& answer) {
            if (state_ == state::greeted) channel_->send(answer);
          }),
      digests_(
          hasher,
          [this](const control_header& asked, control_type type, std::error_code why) {
            if (state_ == state::greeted) refuse(asked, type, why);
          },
          [this](const std::vector<std::byte>& answer) {
            if (state_ == state::greeted) channel_->send(answer);
          }) {}

server_session::~server_session() {
  if (state_ == state::greeted) --counters_.greeted;
}

void server_session::received(std::span<const std::byte> message) {
  if (state_ == state::over) return;
  const std::optional<control_header> asked = decode_control(message);
  const auto unknown = asked ? std::nullopt : refuse_unknown(message);
  if (unknown && state_ == state::greeted) {
    ++counters_.refusals;
    return channel_->send(*unknown);
  }
  if (!asked) return blame("the peer sent a control message that is none");
  if (channel_->unsent() > most_unsent) return blame("the peer does not take its answers");
  if (state_ == state::fresh && asked->type != control_type::hello) {
    return blame("the peer asked before it said hello");
  }
  switch (asked->type) {
    case control_type::hello:
      return greet(*asked, message);
    case control_type::open:
      return open(*asked, message);
    case control_type::stat:
      return stat(*asked, message);
    case control_type::list:
      return list(*asked, message);
    case control_type::bye:
      --counters_.greeted;
      state_ = state::over;
      watches_.close();
      digests_.close();
      return;
    case control_type::create:
      return create(*asked, message);
    case control_type::commit:
      return pass_on(decode_commit(message), [&](auto& body) { files_.commit(*asked, body); });
    case control_type::put:
      return pass_on(decode_put(message),
                     [&](auto& body) { contents_.put(*asked, std::move(body)); });
    case control_type::fetch:
      return pass_on(decode_fetch(message), [&](auto& body) { contents_.fetch(*asked, body); });
    case control_type::release:
      return pass_on(decode_release(message), [&](auto& body) { files_.release(body); });
    case control_type::measure:
      return pass_on(decode_measure(message), [&](auto& body) { measure(*asked, body); });
    case control_type::digest:
      return pass_on(decode_digest(message), [&](auto& body) { digest(*asked, body); });
    case control_type::remove:
      return pass_on(decode_remove(message), [&](auto& body) {
        if (!is_published(*asked, body.name)) files_.remove(*asked, body);
      });
    case control_type::rename:
      return pass_on(decode_rename(message), [&](auto& body) {
        if (!is_published(*asked, body.from) && !is_published(*asked, body.to)) {
          files_.rename(*asked, body);
        }
      });
    case control_type::resize:
      return pass_on(decode_resize(message), [&](auto& body) {
        if (!is_published(*asked, body.name)) files_.resize(*asked, body);
      });
    case control_type::done:
    case control_type::welcome:
    case control_type::opened:
    case control_type::described:
    case control_type::listed:
    case control_type::digested:
    case control_type::stored:
    case control_type::fetched:
    case control_type::revoke:
      return blame("the peer sent an answer to a server");
  }
}

void server_session::ended(std::error_code) noexcept {
  const std::function<void()> told = std::move(on_end_);
  if (told) told();
}

void server_session::greet(const control_header& asked, std::span<const std::byte> message) {
  const std::optional<hello_body> hello = decode_hello(message);
  if (!hello || state_ != state::fresh) return blame("the peer said a hello that is none");
  files_.set_features(hello->features);
  control_header answer = answer_to(asked, control_type::welcome);
  welcome_body welcome;
  welcome.library = to_string(ucx::version());
  welcome.features = hello->features & control_feature::all;
  if (hello->oldest > control_version || hello->newest < control_version) {
    answer.status = error_status(errc::version_mismatch);
  } else if (counters_.greeted >= counters_.most) {
    answer.status = error_status(errc::busy);
  }
  channel_->send(encode_control(answer, welcome));
  if (answer.status != 0) {
    ++counters_.refusals;
    state_ = state::over;
    return;
  }
  state_ = state::greeted;
  ++counters_.greeted;
  ++counters_.served;
}

void server_session::open(const control_header& asked, std::span<const std::byte> message) {
  const std::optional<open_body> body = decode_open(message);
  if (!body) return blame("the peer sent an open that is none");
  const std::shared_ptr<published_name> found = catalogue_.find(body->name);
  if (!found) return files_.open(asked, *body);
  open_published(asked, found, body->wanted);
}

void server_session::open_published(const control_header& asked,
                                    const std::shared_ptr<published_name>& found, access wanted) {
  if (!includes(found->described().granted, wanted)) {
    return refuse(asked, control_type::opened, errc::permission_denied);
  }
  published_name::state now = found->look();
  const std::vector<std::byte> answer = encode_control(
      answer_to(asked, control_type::opened), opened_body{.described = std::move(now.described),
                                                          .descriptor = std::move(now.descriptor),
                                                          .identity = now.identity});
  if (answer.size() > channel_->longest()) {
    return refuse(asked, control_type::opened, errc::message_truncated);
  }
  opened_.insert_or_assign(found->region(), found);
  ++counters_.opens;
  channel_->send(answer);
}

void server_session::create(const control_header& asked, std::span<const std::byte> message) {
  const std::optional<create_body> body = decode_create(message);
  if (!body) return blame("the peer sent a create that is none");
  const std::shared_ptr<published_name> found = catalogue_.find(body->name);
  if (!found) return files_.create(asked, *body);
  // A published name has a fixed size.
  if (body->mode == create_mode::overwrite) return open_published(asked, found, body->wanted);
  const bool exists = body->mode == create_mode::fresh;
  refuse(asked, control_type::opened, exists ? errc::already_exists : errc::not_supported);
}

template <class Body, class Handle>
void server_session::pass_on(std::optional<Body> body, Handle&& handle) {
  if (!body) return blame("the peer sent a question that is none");
  handle(*body);
}

void server_session::stat(const control_header& asked, std::span<const std::byte> message) {
  const std::optional<stat_body> body = decode_stat(message);
  if (!body) return blame("the peer sent a stat that is none");
  const std::shared_ptr<published_name> found = catalogue_.find(body->name);
  if (!found) return files_.stat(asked, *body);
  channel_->send(encode_control(answer_to(asked, control_type::described),
                                described_body{found->described_now()}));
}

void server_session::measure(const control_header& asked, const measure_body& body) {
  const auto named = opened_.find(body.region);
  if (named != opened_.end()) {
    const std::shared_ptr<published_name> found = named->second.lock();
    const std::shared_ptr<exposed_region> region = found ? found->exposed() : nullptr;
    if (!region) return refuse(asked, control_type::described, errc::revoked);
    return watches_.measure(asked, body, region, found->described());
  }
  session_files::file_in_use used = files_.find(body.region);
  if (!used.region) return refuse(asked, control_type::described, errc::no_such_region);
  watches_.measure(asked, body, used.region, std::move(used.described));
}

void server_session::digest(const control_header& asked, const digest_body& body) {
  const auto named = opened_.find(body.region);
  std::shared_ptr<exposed_region> region;
  if (named != opened_.end()) {
    const std::shared_ptr<published_name> found = named->second.lock();
    region = found ? found->exposed() : nullptr;
    if (!region) return refuse(asked, control_type::digested, errc::revoked);
  } else {
    region = files_.find(body.region).region;
    if (!region) return refuse(asked, control_type::digested, errc::no_such_region);
  }
  digests_.digest(asked, body, region);
}

void server_session::list(const control_header& asked, std::span<const std::byte> message) {
  const std::optional<list_body> body = decode_list(message);
  if (!body) return blame("the peer sent a list that is none");
  if (body->directory && catalogue_.find(*body->directory)) {
    return refuse(asked, control_type::listed, errc::not_supported);
  }
  catalogue::page page = catalogue_.list(body->after, channel_->longest() - page_overhead);
  files_.list(asked, *body, std::move(page));
}

/// Returns whether a name was published, and hides what a store has there: then nothing of a file's
/// is done to it.
bool server_session::is_published(const control_header& asked, const std::string& name) {
  if (!catalogue_.find(name)) return false;
  refuse(asked, control_type::done, errc::not_supported);
  return true;
}

void server_session::refuse(const control_header& asked, control_type type, std::error_code why) {
  ++counters_.refusals;
  control_header answer = answer_to(asked, type);
  answer.status = error_status(why);
  channel_->send(encode_control(answer));
}

void server_session::revoke(std::uint64_t region, const std::string& name) {
  if (state_ != state::greeted || (opened_.erase(region) == 0 && !files_.holds(region))) return;
  files_.withdrawn(region);
  watches_.withdrawn(region);
  digests_.withdrawn(region);
  control_header told;
  told.type = control_type::revoke;
  channel_->send(encode_control(told, revoke_body{region, name}));
}

void server_session::leave() {
  if (state_ != state::greeted) return;
  --counters_.greeted;
  state_ = state::over;
  channel_->send(encode_control(control_header{}));
}

void server_session::blame(const char* what) {
  ++counters_.refusals;
  channel_->blame(errc::protocol_error, what);
}

}  // namespace ucx::detail
