#include "server/server_session.hpp"

#include <algorithm>
#include <iterator>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "connection/client_ledger.hpp"
#include "connection/endpoint_channel.hpp"
#include "server/audited_channel.hpp"
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

/// `audited` is the channel, if there is an audit.
std::unique_ptr<channel> audited_if(std::unique_ptr<channel> by, const session_policy& policy,
                                    audited_channel*& audited) {
  if (!policy.audit) return by;
  auto made = std::make_unique<audited_channel>(std::move(by), policy.audit);
  audited = made.get();
  return made;
}

}  // namespace

server_session::server_session(std::unique_ptr<channel> by, const catalogue& names,
                               file_watcher& watcher, file_hasher& hasher,
                               session_counters& counters, const session_policy& policy,
                               std::function<void()> on_end)
    : channel_(audited_if(std::move(by), policy, audited_)),
      catalogue_(names),
      counters_(counters),
      on_end_(std::move(on_end)),
      account_(channel_->facts().account),
      tickets_(policy.tickets),
      on_principal_left_(policy.on_principal_left),
      own_{channel_->facts().worker, channel_->facts().id},
      rights_(channel_->facts().identity, policy.rules),
      grants_(*channel_, rights_),
      files_(
          names, rights_, grants_, channel_->longest(),
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
          names, rights_, channel_->longest(),
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
          }),
      self_(std::make_shared<server_session*>(this)) {
  if (audited_ == nullptr) return;
  audited_->set_names([this](std::uint64_t region) {
    const auto named = opened_.find(region);
    const auto what = named != opened_.end() ? named->second.what.lock() : nullptr;
    return what ? what->described().name : files_.find(region).described.name;
  });
}

server_session::~server_session() {
  *self_ = nullptr;
  if (tickets_) {
    tickets_->leave(own_);
    tickets_->ended(own_);
  }
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
  if (audited_ != nullptr && !audited_->asked(*asked, message)) return;
  if (account_ && state_ == state::greeted && !has_no_answer(*asked)) {
    const std::error_code refused = account_->ask(channel_->now());
    if (refused) return refuse(*asked, control_type::done, refused);
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
      if (audited_ != nullptr) audited_->ended({});
      return let_go();
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
      return pass_on(decode_release(message), [&](auto& body) { release(body); });
    case control_type::measure:
      return pass_on(decode_measure(message), [&](auto& body) { measure(*asked, body); });
    case control_type::digest:
      return pass_on(decode_digest(message), [&](auto& body) { digest(*asked, body); });
    case control_type::remove:
      return pass_on(decode_remove(message), [&](auto& body) { files_.remove(*asked, body); });
    case control_type::make_directory:
      return pass_on(decode_make_directory(message),
                     [&](auto& body) { files_.make_directory(*asked, body); });
    case control_type::rename:
      return pass_on(decode_rename(message), [&](auto& body) { files_.rename(*asked, body); });
    case control_type::resize:
      return pass_on(decode_resize(message), [&](auto& body) { resize(*asked, body); });
    case control_type::lend:
      return pass_on(decode_lend(message), [&](auto& body) { lend(*asked, body); });
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

/// The client has nothing of the server's any more.
void server_session::let_go() noexcept {
  --counters_.greeted;
  state_ = state::over;
  leave_tickets();
  watches_.close();
  digests_.close();
  grants_.end_all();
  files_.left();
}

void server_session::leave_tickets() noexcept {
  if (tickets_ && tickets_->leave(own_) && on_principal_left_) on_principal_left_(own_);
}

void server_session::ended(std::error_code why) noexcept {
  if (audited_ != nullptr) audited_->ended(why);
  leave_tickets();
  const std::function<void()> told = std::move(on_end_);
  if (told) told();
}

void server_session::greet(const control_header& asked, std::span<const std::byte> message) {
  const std::optional<hello_body> hello = decode_hello(message);
  if (!hello || state_ != state::fresh) return blame("the peer said a hello that is none");
  files_.set_features(hello->features);
  control_header answer = answer_to(asked, control_type::welcome);
  const std::error_code refused = admit(*hello);
  welcome_body welcome;
  welcome.library = to_string(ucx::version());
  welcome.features = hello->features & control_feature::all;
  welcome.identity = to_string(rights_.who());
  if (acts_for_ && !refused) welcome.identity += " for " + rights_.principals();
  if (refused) answer.status = error_status(refused);
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

/// Returns why the client is not taken. One that shows a ticket acts for others, and holds none.
std::error_code server_session::admit(const hello_body& hello) {
  if (hello.oldest > control_version || hello.newest < control_version) {
    return errc::version_mismatch;
  }
  if (counters_.greeted >= counters_.most) return errc::busy;
  if (!hello.ticket) {
    if (tickets_) tickets_->enter(own_, rights_.identity());
    return {};
  }
  if (tickets_) acts_for_ = tickets_->take(*hello.ticket, own_);
  if (!acts_for_) return errc::permission_denied;
  rights_.act_for(acts_for_->who);
  if (audited_ != nullptr) audited_->act_for(rights_.principals());
  const ticket_book::condition& needed = acts_for_->while_allowed;
  const bool may = rights_.others_have(needed.needed, needed.name);
  return may ? std::error_code() : errc::permission_denied;
}

void server_session::lend(const control_header& asked, const lend_body& body) {
  std::error_code refused = errc::permission_denied;  // what was lent is not lent again
  if (!acts_for_ && tickets_) refused = tickets_->add(body.ticket, std::span(&own_, 1), {});
  if (refused) return refuse(asked, control_type::done, refused);
  channel_->send(encode_control(answer_to(asked, control_type::done)));
}

void server_session::principal_left(const ticket_book::connection& gone) noexcept {
  if (!acts_for_ || state_ != state::greeted) return;
  if (std::count(acts_for_->of.begin(), acts_for_->of.end(), gone) == 0) return;
  stop_acting({}, "the client that it acts for has left");
}

/// As if the client had left: nothing that it did is wrong.
void server_session::stop_acting(std::error_code outcome, const char* why) noexcept {
  let_go();
  try {
    if (audited_ != nullptr) return audited_->end(outcome, why);
    channel_->blame(errc::closed_by_peer, why);
  } catch (const std::bad_alloc&) {  // it can not do anything any more
  }
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
  const std::string& name = found->described().name;
  access_right needed = right_of(wanted);
  if (const std::error_code refused = rights_.check(needed, name)) {
    return refuse(asked, control_type::opened, refused);
  }
  if (!includes(found->described().granted, wanted)) {
    return refuse(asked, control_type::opened, errc::permission_denied);
  }
  if (const std::error_code refused = grants_.may_begin(found->region())) {
    return refuse(asked, control_type::opened, refused);
  }
  published_name::state now = found->look();
  const std::vector<std::byte> answer = encode_control(
      answer_to(asked, control_type::opened),
      opened_body{.described = std::move(now.described),
                  .descriptor = grants_.descriptor(now.descriptor, wanted, name),
                  .held = files_.knows_stores(),  // else the client knows of no release
                  .identity = now.identity});
  if (answer.size() > channel_->longest()) {
    return refuse(asked, control_type::opened, errc::message_truncated);
  }
  if (grants_.tells_places(name)) needed = needed | access_right::fabric;
  opened_name& known = opened_[found->region()];
  known = {found, known.needed | needed};
  grants_.begin(found->region(), wanted, name);
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
  if (!rights_.show(body->name)) {
    return refuse(asked, control_type::opened, errc::no_such_name);
  }
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
  if (!rights_.show(body->name)) {
    return refuse(asked, control_type::described, errc::no_such_name);
  }
  described_body answer{found->described_now()};
  rights_.limit(answer.described);
  channel_->send(encode_control(answer_to(asked, control_type::described), answer));
}

void server_session::release(const release_body& body) {
  const auto named = opened_.find(body.region);
  if (named == opened_.end() && !files_.holds(body.region)) return grants_.forget(body.region);
  if (named == opened_.end()) return files_.release(body);
  if (!grants_.release(body.region)) return;
  opened_.erase(named);
  watches_.withdrawn(body.region);
  digests_.withdrawn(body.region);
}

void server_session::measure(const control_header& asked, const measure_body& body) {
  const auto named = opened_.find(body.region);
  if (named != opened_.end()) {
    const std::shared_ptr<published_name> found = named->second.what.lock();
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
    const std::shared_ptr<published_name> found = named->second.what.lock();
    region = found ? found->exposed() : nullptr;
    if (!region) return refuse(asked, control_type::digested, errc::revoked);
  } else {
    region = files_.find(body.region).region;
    if (!region) return refuse(asked, control_type::digested, errc::no_such_region);
  }
  digests_.digest(asked, body, region);
}

void server_session::resize(const control_header& asked, const resize_body& body) {
  if (body.region != 0 && !body.name.empty()) return blame("the peer resized what has two names");
  files_.resize(asked, body);
}

void server_session::list(const control_header& asked, std::span<const std::byte> message) {
  const std::optional<list_body> body = decode_list(message);
  if (!body) return blame("the peer sent a list that is none");
  if (body->directory && catalogue_.find(*body->directory)) {
    const bool exists = rights_.show(*body->directory);
    return refuse(asked, control_type::listed, exists ? errc::not_supported : errc::no_such_name);
  }
  if (body->directory) return files_.list(asked, *body, {});
  list_from(asked, *body, body->after);
}

/// Names that the client may not see are passed over some at a time, with others' turns between.
void server_session::list_from(const control_header& asked, const list_body& body,
                               const std::string& behind) {
  catalogue::page page = catalogue_.list(behind, channel_->longest() - page_overhead,
                                         [this](const entry& each) { return rights_.list(each); });
  if (!page.looked_to.empty()) {
    if (lists_ >= most_lists) return refuse(asked, control_type::listed, errc::busy);
    channel_->take_turn([self = self_, asked, body, next = std::move(page.looked_to)] {
      if (*self == nullptr) return;
      --(*self)->lists_;
      if ((*self)->state_ == state::greeted) (*self)->list_from(asked, body, next);
    });
    ++lists_;
    return;
  }
  for (entry& each : page.entries) rights_.limit(each);
  files_.list(asked, body, std::move(page));
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
  tell_revoked(region, name);
}

void server_session::tell_revoked(std::uint64_t region, const std::string& name) {
  grants_.end(region);
  watches_.withdrawn(region);
  digests_.withdrawn(region);
  control_header told;
  told.type = control_type::revoke;
  channel_->send(encode_control(told, revoke_body{region, name}));
}

void server_session::set_rules(std::shared_ptr<const rule_list> rules) noexcept {
  rights_.set(std::move(rules));
  if (state_ != state::greeted) return;
  if (acts_for_) {
    const ticket_book::condition& needed = acts_for_->while_allowed;
    if (!rights_.others_have(needed.needed, needed.name)) {
      return stop_acting(errc::revoked, "the client that it acts for may have no agent any more");
    }
  }
  try {
    revoke_disallowed();
  } catch (const std::bad_alloc&) {
    grants_.end_all();  // rather all than too little
  }
}

void server_session::revoke_disallowed() {
  for (auto each = opened_.begin(); each != opened_.end();) {
    const std::uint64_t region = each->first;
    const std::shared_ptr<published_name> what = each->second.what.lock();
    const bool stays = !what || rights_.allow(each->second.needed, what->described().name);
    each = stays ? std::next(each) : opened_.erase(each);
    if (!stays) revoke_disallowed(region, what->described().name);
  }
  for (const revoke_body& file : files_.take_disallowed()) {
    revoke_disallowed(file.region, file.name);
  }
}

void server_session::revoke_disallowed(std::uint64_t region, const std::string& name) {
  grants_.revoke(region);
  if (audited_ != nullptr) audited_->revoked(name);
  tell_revoked(region, name);
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
