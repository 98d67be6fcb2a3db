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

session_files::session_files(const catalogue& names, std::size_t longest, refusal refuse,
                             sender send, release_listener released)
    : catalogue_(names),
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

/// Makes a handler that calls `then(this, ...)`, or with nullptr when this is gone.
template <class Then>
auto session_files::later(Then then) {
  return [self = self_, then = std::move(then)](auto&&... results) {
    if (*self != nullptr) --(*self)->unanswered_;
    then(*self, std::forward<decltype(results)>(results)...);
  };
}

store_files::opened session_files::on_opened(const control_header& asked,
                                             std::shared_ptr<store_core> store, std::string name) {
  return later([asked, store = std::move(store), name = std::move(name)](
                   session_files* self, std::error_code ec,
                   const std::shared_ptr<store_region>& region, const file_facts& facts) {
    if (self == nullptr) {
      if (region) store->files().let_go(*region);
      return;
    }
    --self->opening_;
    if (ec) return self->refuse_(asked, control_type::opened, ec);
    opened_body body;
    body.described = store->describe(name, facts);
    body.described.granted = region->granted();
    body.descriptor = region->descriptor().encode();
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
    self->open_.emplace(region->id(), open_file{store, region});
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
  const catalogue::stored_name found = catalogue_.find_stored(body.name);
  if (!found.store) return refuse_(asked, control_type::opened, errc::no_such_name);
  // A client that does not know how to release files has them open until it leaves.
  if (open_.size() + opening_ >= found.store->options().max_open_files_per_client) {
    return refuse_(asked, control_type::opened, errc::too_many_client_files);
  }
  if (!begin(asked, control_type::opened)) return;
  ++opening_;
  found.store->files().open(found.path, body.wanted, on_opened(asked, found.store, body.name));
}

void session_files::create(const control_header& asked, const create_body& body) {
  const catalogue::stored_name found = catalogue_.find_stored(body.name);
  if (!found.store) return refuse_(asked, control_type::opened, errc::no_such_name);
  if (!includes(body.wanted, access::write)) {
    return refuse_(asked, control_type::opened, errc::invalid_argument);
  }
  if (open_.size() + opening_ >= found.store->options().max_open_files_per_client) {
    return refuse_(asked, control_type::opened, errc::too_many_client_files);
  }
  if (!begin(asked, control_type::opened)) return;
  ++opening_;
  store_files::opened answer = on_opened(asked, found.store, body.name);
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
  gone.store->files().let_go(*gone.region);
  released_(body.region);
}

void session_files::stat(const control_header& asked, const stat_body& body) {
  const catalogue::stored_name found = catalogue_.find_stored(body.name);
  if (!found.store) return refuse_(asked, control_type::described, errc::no_such_name);
  if (!begin(asked, control_type::described)) return;
  found.store->names().stat(
      found.path, later([asked, store = found.store, name = body.name](
                            session_files* self, std::error_code ec, const file_facts& facts) {
        if (self == nullptr) return;
        if (!ec && facts.is_directory && !self->knows_stores()) {
          ec = errc::no_such_name;
        }
        if (ec) return self->refuse_(asked, control_type::described, ec);
        self->send_(encode_control(answer_to(asked, control_type::described),
                                   described_body{store->describe(name, facts)}));
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
        std::vector<entry> part;
        for (const store_listing::item& each : found.items) {
          entry made = store->describe(store->name_of(each.path), each.facts);
          if (made.name.size() <= longest_name) part.push_back(std::move(made));
        }
        all->add(std::move(part), found.more, false);
        (*self)->gather(all);
      });
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
  if (!found.store) return refuse_(asked, control_type::listed, errc::no_such_name);
  if (!begin(asked, control_type::listed)) return;
  const std::string above = body.directory->empty() ? std::string() : *body.directory + '/';
  const std::string behind =
      body.after.starts_with(above) ? body.after.substr(above.size()) : std::string();
  const std::size_t most = (longest_ - page_overhead) / shortest_entry + 1;
  found.store->names().list_directory(
      found.path, behind, most,
      later([asked, above, store = found.store](session_files* self, std::error_code ec,
                                                const store_listing::page& page) {
        if (self == nullptr) return;
        if (ec) return self->refuse_(asked, control_type::listed, ec);
        std::vector<entry> all;
        for (const store_listing::item& each : page.items) {
          entry made = store->describe(above + each.path, each.facts);
          if (made.name.size() <= longest_name) all.push_back(std::move(made));
        }
        listed_body answer;
        const bool fits = fill(answer.entries, std::move(all), self->longest_ - page_overhead);
        answer.more = page.more || !fits;
        answer.unserved = std::min(page.unserved, most_unserved);
        self->send_(encode_control(answer_to(asked, control_type::listed), answer));
      }));
}

void session_files::remove(const control_header& asked, const remove_body& body) {
  const catalogue::stored_name found = catalogue_.find_stored(body.name);
  if (!found.store) return refuse_(asked, control_type::done, errc::no_such_name);
  if (begin(asked, control_type::done)) found.store->names().remove(found.path, on_done(asked));
}

void session_files::rename(const control_header& asked, const rename_body& body) {
  const catalogue::stored_name from = catalogue_.find_stored(body.from);
  const catalogue::stored_name to = catalogue_.find_stored(body.to);
  if (!from.store || !to.store) return refuse_(asked, control_type::done, errc::no_such_name);
  if (from.store != to.store) return refuse_(asked, control_type::done, errc::not_supported);
  if (!begin(asked, control_type::done)) return;
  from.store->names().rename(from.path, to.path, body.exclusive, on_done(asked));
}

void session_files::resize(const control_header& asked, const resize_body& body) {
  if (body.region != 0) {
    const auto open = open_.find(body.region);
    if (open == open_.end()) return refuse_(asked, control_type::done, errc::no_such_region);
    if (!begin(asked, control_type::done)) return;
    return open->second.store->writing().resize(open->second.region, body.size, on_done(asked));
  }
  const catalogue::stored_name found = catalogue_.find_stored(body.name);
  if (!found.store) return refuse_(asked, control_type::done, errc::no_such_name);
  if (!begin(asked, control_type::done)) return;
  found.store->names().resize(found.path, body.size, on_done(asked));
}

}  // namespace ucx::detail
