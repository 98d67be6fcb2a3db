#include "server/session_files.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/name.hpp"
#include "ucx/error.hpp"
#include "wire/control_message.hpp"

namespace ucx::detail {
namespace {

/// Entries of files have names that are as long as these at least.
constexpr std::size_t shortest_entry = 65;

/// Takes as many entries as fit; returns whether all did.
bool fill(std::vector<entry>& page, std::vector<entry>&& from, std::size_t budget) {
  std::size_t used = 0;
  for (entry& each : from) {
    used += encoded_size(each);
    if (used > budget && !page.empty()) return false;
    page.push_back(std::move(each));
  }
  return true;
}

/// A new file holds nothing but what the client writes.
access_right right_to_create(const create_body& body) noexcept {
  if (body.mode == create_mode::fresh) return access_right::create;
  const access_right made = access_right::create | access_right::write;
  const bool reads_old = body.mode == create_mode::append && includes(body.wanted, access::read);
  return reads_old ? made | access_right::read : made;
}

/// Returns what of `after` concerns the files of a store, or nothing where none of them is behind
/// it.
std::optional<std::string> path_behind(const std::string& prefix, const std::string& after) {
  if (prefix.empty()) return after;
  const std::string begin = prefix + '/';
  if (after.starts_with(begin)) return after.substr(begin.size());
  if (after < begin) return std::string();
  return std::nullopt;
}

}  // namespace

session_files::session_files(const catalogue& names, const session_rights& rights,
                             session_grants& grants, std::size_t longest, refusal refuse,
                             sender send, release_listener released)
    : catalogue_(names),
      rights_(rights),
      grants_(grants),
      longest_(longest),
      refuse_(std::move(refuse)),
      send_(std::move(send)),
      released_(std::move(released)),
      self_(std::make_shared<session_files*>(this)) {}

session_files::~session_files() {
  *self_ = nullptr;
  close();
}

void session_files::close() noexcept {
  for (const auto& [id, each] : std::exchange(open_, {})) each.store->files().let_go(*each.region);
}

std::vector<revoke_body> session_files::take_disallowed() {
  std::vector<revoke_body> taken;
  for (const auto& [id, each] : open_) {
    std::string name = each.store->name_of(each.region->place().path);
    if (!rights_.allow(each.needed, name)) taken.push_back({id, std::move(name)});
  }
  for (const revoke_body& each : taken) {
    const auto gone = open_.extract(each.region);
    gone.mapped().store->files().let_go(*gone.mapped().region);
  }
  return taken;
}

session_files::file_in_use session_files::find(std::uint64_t region) const {
  const auto found = open_.find(region);
  if (found == open_.end()) return {};
  const open_file& used = found->second;
  entry described = used.store->describe(used.store->name_of(used.region->place().path), {});
  described.granted = used.region->granted();
  return {used.region, std::move(described)};
}

/// Counts a question that is going to be answered; refuses it, and returns false, where too many
/// are not.
bool session_files::begin(const control_header& asked, control_type answer) {
  if (unanswered_ >= most_unanswered) {
    refuse_(asked, answer, errc::busy);
    return false;
  }
  ++unanswered_;
  return true;
}

/// Likewise, of an open. A client that does not know how to release files has them open until it
/// leaves.
bool session_files::begin_open(const control_header& asked, const store_core& store) {
  std::error_code refused = grants_.may_begin(0);
  if (open_.size() + opening_ >= store.options().max_open_files_per_client) {
    refused = errc::too_many_client_files;
  }
  if (refused) refuse_(asked, control_type::opened, refused);
  if (refused || !begin(asked, control_type::opened)) return false;
  ++opening_;
  return true;
}

/// Makes a handler that calls `then(this, ...)`, or with nullptr when this is gone.
template <class Then>
auto session_files::later(Then then) {
  return [self = self_, then = std::move(then)](auto&&... results) {
    if (*self != nullptr) --(*self)->unanswered_;
    then(*self, std::forward<decltype(results)>(results)...);
  };
}

store_files::opened session_files::on_opened(const control_header& asked,
                                             std::shared_ptr<store_core> store, std::string name,
                                             access_right needed) {
  return later([asked, store = std::move(store), name = std::move(name), needed](
                   session_files* self, std::error_code ec,
                   const std::shared_ptr<store_region>& region, const file_facts& facts) {
    if (self != nullptr) --self->opening_;
    // The rules may be others by now.
    if (self != nullptr && !ec) ec = self->rights_.check(needed, name);
    if (self != nullptr && !ec) ec = self->grants_.may_begin(region->id());
    if (self == nullptr || self->has_left_ || ec) {
      if (region) store->files().let_go(*region);
    }
    if (self == nullptr || self->has_left_) return;
    if (ec) return self->refuse_(asked, control_type::opened, ec);
    opened_body body;
    body.described = store->describe(name, facts);
    body.described.granted = region->granted();
    body.descriptor = self->grants_.descriptor(region->descriptor(), region->granted(), name);
    if (includes(region->granted(), access::write)) {
      body.limit = region->writable_size();
      body.window = region->window();
    }
    body.held = true;
    body.identity = file_identity(region->source()->descriptor());
    const message answer = encode_control(answer_to(asked, control_type::opened), body);
    if (answer.size() > self->longest_) {
      store->files().let_go(*region);
      return self->refuse_(asked, control_type::opened, errc::message_truncated);
    }
    const access_right places =
        self->grants_.tells_places(name) ? access_right::fabric : access_right::none;
    self->open_.emplace(region->id(), open_file{store, region, needed | places});
    self->grants_.begin(region->id(), region->granted(), name);
    self->send_(answer);
  });
}

store_names::done session_files::on_done(const control_header& asked) {
  return later([asked](session_files* self, std::error_code ec) {
    if (self == nullptr) return;
    if (ec) return self->refuse_(asked, control_type::done, ec);
    self->send_(encode_control(answer_to(asked, control_type::done)));
  });
}

void session_files::open(const control_header& asked, const open_body& body) {
  const access_right needed = right_of(body.wanted);
  if (const std::error_code refused = rights_.check(needed, body.name)) {
    return refuse_(asked, control_type::opened, refused);
  }
  const catalogue::stored_name found = catalogue_.find_stored(body.name);
  if (!found.store) return refuse_(asked, control_type::opened, errc::no_such_name);
  if (!begin_open(asked, *found.store)) return;
  found.store->files().open(found.path, body.wanted,
                            on_opened(asked, found.store, body.name, needed));
}

void session_files::create(const control_header& asked, const create_body& body) {
  const access_right needed = right_to_create(body);
  if (const std::error_code refused = rights_.check(needed, body.name)) {
    return refuse_(asked, control_type::opened, refused);
  }
  const catalogue::stored_name found = catalogue_.find_stored(body.name);
  if (!found.store) return refuse_(asked, control_type::opened, errc::no_such_name);
  if (!includes(body.wanted, access::write)) {
    return refuse_(asked, control_type::opened, errc::invalid_argument);
  }
  if (!begin_open(asked, *found.store)) return;
  store_files::opened answer = on_opened(asked, found.store, body.name, needed);
  if (body.mode == create_mode::append) {
    found.store->files().append(found.path, body.wanted, std::move(answer));
  } else {
    found.store->files().create(found.path, body.wanted, body.mode == create_mode::fresh,
                                std::move(answer));
  }
}

void session_files::commit(const control_header& asked, const commit_body& body) {
  const auto found = open_.find(body.region);
  if (found == open_.end()) return refuse_(asked, control_type::described, errc::no_such_region);
  if (!begin(asked, control_type::described)) return;
  // Held: the answer may come at once, and release them.
  const std::shared_ptr<store_core> store = found->second.store;
  const std::shared_ptr<store_region> region = found->second.region;
  const std::string name = store->name_of(region->place().path);
  store->writing().commit(
      region, body.durable,
      later([asked, store, name, body](session_files* self, std::error_code ec,
                                       const file_facts& facts) {
        if (self == nullptr) return;
        // Before the answer: then the name is free when the client has it.
        if (body.released && (!ec || self->has_lost(body.region))) {
          self->release({body.region});
        }
        if (ec) return self->refuse_(asked, control_type::described, ec);
        self->send_(encode_control(answer_to(asked, control_type::described),
                                   described_body{store->describe(name, facts)}));
      }));
}

/// Returns whether there is nothing more to commit: a commit has thrown it away.
bool session_files::has_lost(std::uint64_t region) const {
  const auto found = open_.find(region);
  return found != open_.end() && found->second.region->place().is_lost;
}

void session_files::release(const release_body& body) {
  const auto found = open_.find(body.region);
  if (found == open_.end()) return;  // it was withdrawn, and the client did not know yet
  const open_file gone = std::move(found->second);
  open_.erase(found);
  grants_.end(body.region);
  gone.store->files().let_go(*gone.region);
  released_(body.region);
}

void session_files::stat(const control_header& asked, const stat_body& body) {
  const catalogue::stored_name found = catalogue_.find_stored(body.name);
  if (!found.store || !rights_.show_directory(body.name)) {
    return refuse_(asked, control_type::described, errc::no_such_name);
  }
  if (!begin(asked, control_type::described)) return;
  found.store->names().stat(
      found.path, later([asked, store = found.store, name = body.name](
                            session_files* self, std::error_code ec, const file_facts& facts) {
        if (self == nullptr) return;
        const bool exists = facts.is_directory ? self->knows_stores() : self->rights_.show(name);
        if (!ec && !exists) ec = errc::no_such_name;
        // A client that may not see what is there is not told more of what is not.
        if (ec && !self->rights_.show(name)) ec = errc::no_such_name;
        if (ec) return self->refuse_(asked, control_type::described, ec);
        described_body body{store->describe(name, facts)};
        self->rights_.limit(body.described);
        self->send_(encode_control(answer_to(asked, control_type::described), body));
      }));
}

/// A page that the catalogue and several stores have a part of. The stores are asked one after the
/// other, in the order of their first names, until it is full. A store whose names come behind it
/// is not asked.
struct session_files::gathered_page {
  struct asked_store {
    std::shared_ptr<store_core> store;
    std::string behind;  // a path in the store
    std::string first;   // no wanted name of the store comes before this one
  };

  control_header asked;
  std::size_t budget = 0;
  std::size_t used = 0;
  std::vector<entry> entries;  // in order; nothing comes between them any more
  struct found_entry {
    entry described;
    bool is_published = false;
  };
  std::map<std::string, found_entry> found;  // other stores' names may come between
  std::vector<asked_store> stores;           // still to be asked, the next one last
  std::optional<std::string> horizon;        // behind this, not all have told their names
  bool more = false;

  /// A part that has more is not empty.
  void add(std::vector<entry>&& part, bool part_has_more, bool is_published) {
    if (part_has_more && !part.empty() && (!horizon || part.back().name < *horizon)) {
      horizon = part.back().name;
    }
    more = more || part_has_more;
    for (entry& each : part) {
      // A name that was published hides a file of a store, and a store what another one has there.
      found_entry& known = found[each.name];
      if (!known.is_published) known = {std::move(each), is_published};
    }
  }
  /// Puts into the page what is before `next`; returns whether more than fits is there.
  bool take_until(const std::string* next) {
    auto at = found.begin();
    for (; at != found.end() && (next == nullptr || at->first < *next); ++at) {
      if (horizon && at->first > *horizon) break;
      used += encoded_size(at->second.described);
      entries.push_back(std::move(at->second.described));
      if (used > budget) return true;
    }
    found.erase(found.begin(), at);
    return false;
  }
};

void session_files::list(const control_header& asked, const list_body& body, catalogue::page page) {
  if (body.directory) return list_directory(asked, body);
  const auto all = std::make_shared<gathered_page>();
  all->asked = asked;
  all->budget = longest_ - page_overhead;
  all->add(std::move(page.entries), page.more, true);
  for (const std::shared_ptr<store_core>& store : catalogue_.stores()) {
    const std::string& prefix = store->options().prefix;
    std::optional<std::string> behind = path_behind(prefix, body.after);
    if (!behind) continue;
    const std::string begin = prefix.empty() ? prefix : prefix + '/';
    all->stores.push_back({store, std::move(*behind), std::max(begin, body.after)});
  }
  // Of two that begin at once the one within the other is the later one, by its prefix.
  const auto later = [](const auto& a, const auto& b) { return a.first < b.first; };
  std::stable_sort(all->stores.begin(), all->stores.end(), later);
  std::reverse(all->stores.begin(), all->stores.end());
  if (begin(asked, control_type::listed)) gather(all);
}

/// Asks the next store for its part, or sends the page when that is complete.
void session_files::gather(const std::shared_ptr<gathered_page>& all) {
  const std::string* const next = all->stores.empty() ? nullptr : &all->stores.back().first;
  const bool is_full = all->take_until(next);
  const bool is_far = next != nullptr && all->horizon && *all->horizon < *next;
  if (is_full || is_far || next == nullptr) return send_page(*all, is_full);
  const gathered_page::asked_store asked = std::move(all->stores.back());
  all->stores.pop_back();
  const std::size_t most = all->budget / shortest_entry + 1;
  asked.store->names().list_files(
      asked.behind, most,
      [self = self_, all, store = asked.store](std::error_code ec, store_listing::page found) {
        if (*self == nullptr) return;
        if (ec) {  // a list that lacks something is none
          --(*self)->unanswered_;
          return (*self)->refuse_(all->asked, control_type::listed, ec);
        }
        (*self)->take_part(all, store, found);
      });
}

void session_files::take_part(const std::shared_ptr<gathered_page>& all,
                              const std::shared_ptr<store_core>& store,
                              const store_listing::page& found) {
  std::vector<entry> part;
  for (const store_listing::item& each : found.items) {
    entry made = store->describe(store->name_of(each.path), each.facts);
    if (made.name.size() > longest_name || !rights_.list(made)) continue;
    rights_.limit(made);
    part.push_back(std::move(made));
  }
  if (part.empty() && found.more && !found.items.empty()) {
    // The next part may have something for this client.
    const std::string& last = found.items.back().path;
    std::string first = store->name_of(last);
    const auto at = std::find_if(all->stores.begin(), all->stores.end(),
                                 [&](const auto& each) { return each.first < first; });
    all->stores.insert(at, {store, last, std::move(first)});
  } else {
    all->add(std::move(part), found.more, false);
  }
  gather(all);
}

void session_files::send_page(gathered_page& all, bool is_full) {
  --unanswered_;
  if (is_full && all.entries.size() > 1) all.entries.pop_back();
  listed_body body;
  body.more = all.more || is_full || !all.stores.empty();
  body.entries = std::move(all.entries);
  send_(encode_control(answer_to(all.asked, control_type::listed), body));
}

void session_files::list_directory(const control_header& asked, const list_body& body) {
  const catalogue::stored_name found = catalogue_.find_stored(*body.directory);
  if (!found.store || !rights_.show_directory(*body.directory)) {
    return refuse_(asked, control_type::listed, errc::no_such_name);
  }
  if (!begin(asked, control_type::listed)) return;
  std::string above = body.directory->empty() ? std::string() : *body.directory + '/';
  std::string behind =
      body.after.starts_with(above) ? body.after.substr(above.size()) : std::string();
  read_directory({asked, found.store, found.path, std::move(above), std::move(behind)});
}

void session_files::read_directory(const directory_page& wanted) {
  const std::size_t most = (longest_ - page_overhead) / shortest_entry + 1;
  wanted.store->names().list_directory(
      wanted.path, wanted.behind, most,
      later([wanted](session_files* self, std::error_code ec, const store_listing::page& page) {
        if (self == nullptr) return;
        // As of a `stat`: a client that may not see what is there is not told that it is a file.
        const std::string_view above = wanted.above;
        if (ec && !self->rights_.show(above.substr(0, above.size() - (above.empty() ? 0 : 1)))) {
          ec = errc::no_such_name;
        }
        if (ec) return self->refuse_(wanted.asked, control_type::listed, ec);
        self->send_directory(wanted, page);
      }));
}

void session_files::send_directory(const directory_page& wanted, const store_listing::page& page) {
  std::vector<entry> all;
  for (const store_listing::item& each : page.items) {
    entry made = wanted.store->describe(wanted.above + each.path, each.facts);
    if (made.name.size() > longest_name || !rights_.list(made)) continue;
    rights_.limit(made);
    all.push_back(std::move(made));
  }
  const std::uint64_t unserved = wanted.unserved + page.unserved;
  if (all.empty() && page.more && !page.items.empty()) {
    // The next page may have something for this client.
    directory_page next = wanted;
    next.behind = page.items.back().path;
    next.unserved = unserved;
    ++unanswered_;
    return read_directory(next);
  }
  listed_body answer;
  const bool fits = fill(answer.entries, std::move(all), longest_ - page_overhead);
  answer.more = page.more || !fits;
  answer.unserved = std::min(unserved, most_unserved);
  send_(encode_control(answer_to(wanted.asked, control_type::listed), answer));
}

/// Returns whether a name was published, and hides what a store has there: then nothing of a file's
/// is done to it.
bool session_files::is_published(const control_header& asked, const std::string& name) {
  if (!catalogue_.find(name)) return false;
  const bool exists = rights_.show(name);
  refuse_(asked, control_type::done, exists ? errc::not_supported : errc::no_such_name);
  return true;
}

void session_files::remove(const control_header& asked, const remove_body& body) {
  if (const std::error_code refused = rights_.check(access_right::remove, body.name)) {
    return refuse_(asked, control_type::done, refused);
  }
  if (is_published(asked, body.name)) return;
  const catalogue::stored_name found = catalogue_.find_stored(body.name);
  if (!found.store) return refuse_(asked, control_type::done, errc::no_such_name);
  if (begin(asked, control_type::done)) found.store->names().remove(found.path, on_done(asked));
}

void session_files::make_directory(const control_header& asked, const make_directory_body& body) {
  if (const std::error_code refused = rights_.check_create(body.name, false)) {
    return refuse_(asked, control_type::done, refused);
  }
  if (is_published(asked, body.name)) return;
  const catalogue::stored_name found = catalogue_.find_stored(body.name);
  if (!found.store) return refuse_(asked, control_type::done, errc::no_such_name);
  if (!begin(asked, control_type::done)) return;
  found.store->names().make_directory(found.path, on_done(asked));
}

void session_files::rename(const control_header& asked, const rename_body& body) {
  if (const std::error_code refused = rights_.check_rename(body.from, body.to, !body.exclusive)) {
    return refuse_(asked, control_type::done, refused);
  }
  if (is_published(asked, body.from) || is_published(asked, body.to)) return;
  const catalogue::stored_name from = catalogue_.find_stored(body.from);
  const catalogue::stored_name to = catalogue_.find_stored(body.to);
  if (!from.store || !to.store) return refuse_(asked, control_type::done, errc::no_such_name);
  if (from.store != to.store) return refuse_(asked, control_type::done, errc::not_supported);
  if (!begin(asked, control_type::done)) return;
  // The names in a directory may have other rules than the directory.
  from.store->names().rename(from.path, to.path, body.exclusive,
                             !rights_.allow_move_below(body.from, body.to), on_done(asked));
}

void session_files::resize(const control_header& asked, const resize_body& body) {
  if (body.region != 0) {
    const auto open = open_.find(body.region);
    if (open == open_.end()) return refuse_(asked, control_type::done, errc::no_such_region);
    if (!begin(asked, control_type::done)) return;
    return open->second.store->writing().resize(open->second.region, body.size, on_done(asked));
  }
  if (const std::error_code refused = rights_.check(access_right::write, body.name)) {
    return refuse_(asked, control_type::done, refused);
  }
  if (is_published(asked, body.name)) return;
  const catalogue::stored_name found = catalogue_.find_stored(body.name);
  if (!found.store) return refuse_(asked, control_type::done, errc::no_such_name);
  if (!begin(asked, control_type::done)) return;
  found.store->names().resize(found.path, body.size, on_done(asked));
}

}  // namespace ucx::detail
