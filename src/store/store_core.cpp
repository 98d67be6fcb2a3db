#include "store/store_core.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <new>
#include <system_error>
#include <utility>
#include <vector>

#include "base/room_ahead.hpp"
#include "base/store_path.hpp"
#include "file/file_source.hpp"
#include "store/commit_job.hpp"
#include "store/store_host.hpp"
#include "ucx/error.hpp"
#include "worker/context_core.hpp"
#include "worker/core_access.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {
namespace {

/// Jobs that may wait for a disk; more are refused with `busy`.
constexpr std::size_t most_waiting = 4096;

/// So many writers have the whole window, however many there may be.
constexpr std::size_t most_whole_windows = 64;
constexpr std::size_t short_window = std::size_t{1} << 20U;

/// Returns `options` with what was left open, by what the process may have open.
store_options decided(store_options options) noexcept {
  ::rlimit files = {};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) files.rlim_cur = 0;
  constexpr ::rlim_t least = 64;
  constexpr ::rlim_t most = 65536;
  constexpr std::size_t most_writers =
      2048;  // each takes memory, however many descriptors there are
  const ::rlim_t half = std::clamp(files.rlim_cur / 2, least, most);
  if (options.most_open_files == 0) options.most_open_files = static_cast<std::size_t>(half);
  const std::size_t share = std::max<std::size_t>(options.most_open_files / 2, 1);
  if (options.most_open_files_of_one_client == 0) options.most_open_files_of_one_client = share;
  if (options.most_writers == 0) options.most_writers = std::min(share, most_writers);
  return options;
}

/// Hands an answer to the worker, or keeps it where there is no memory for that.
void deliver(worker_core& to, disk_queue::answer& answer) {
  const auto kept = std::make_shared<disk_queue::answer>(std::move(answer));
  try {
    to.post_work([kept] { std::exchange(*kept, nullptr)(); });
  } catch (const std::bad_alloc&) {
    answer = std::move(*kept);
    throw;
  }
}

}  // namespace

store_core::store_core(const std::shared_ptr<store_host>& server,
                       std::shared_ptr<context_core> context,
                       std::shared_ptr<store_directory> directory, const store_options& options,
                       std::uint64_t used)
    : server_(server),
      home_(server->home()),
      context_(std::move(context)),
      directory_(std::move(directory)),
      options_(decided(options)),
      shares_descriptors_(options.most_open_files == 0),
      open_of_all_(server->open_files_of_stores()),
      quota_(std::make_shared<store_quota>(options.quota, used)) {
  described_.name = options.prefix;
  described_.type = entry_type::directory;
  described_.granted = options.writable ? access::read_write : access::read;
}

result<std::shared_ptr<store_core>> store_core::make(const std::shared_ptr<store_host>& server,
                                                     std::shared_ptr<context_core> context,
                                                     const std::filesystem::path& directory,
                                                     const store_options& options) {
  auto top = store_directory::open(directory, options.writable);
  if (!top) return top.why();
  if (!context->has(feature::am)) {
    return failure{errc::feature_disabled,
                   "publishing a store: its context was made without feature::am"};
  }
  std::error_code ec;
  std::uint64_t used = 0;
  if (options.quota != store_options().quota) used = (*top)->total_size(ec);
  if (ec) return failure{ec, "counting what is in the directory \"" + directory.string() + "\""};
  return std::shared_ptr<store_core>(
      new store_core(server, std::move(context), *std::move(top), options, used));
}

store_core::~store_core() { *open_of_all_ -= open_; }

std::string store_core::url() const {
  const std::shared_ptr<store_host> server = server_.lock();
  return server ? server->url(described_.name) : std::string();
}

std::string store_core::name_of(std::string_view path) const {
  if (path.empty()) return options_.prefix;
  return options_.prefix.empty() ? std::string(path) : options_.prefix + '/' + std::string(path);
}

entry store_core::describe(std::string name, const file_facts& facts) const {
  entry made = described_;
  made.name = std::move(name);
  made.type = facts.is_directory ? entry_type::directory : entry_type::file;
  tell(made, facts);
  return made;
}

std::size_t store_core::window() const noexcept {
  if (writers_ <= most_whole_windows) return options_.write_window;
  return std::min(options_.write_window, std::max(short_window, context_->write_piece()));
}

std::shared_ptr<disk_queue> store_core::queue(lane which) {
  if (!is_open()) return nullptr;
  std::optional<disk_thread>& thread = threads_[static_cast<std::size_t>(which)];
  try {
    if (!thread) {
      thread.emplace(most_waiting, [server = server_](disk_queue::answer& answer) {
        if (const std::shared_ptr<store_host> to = server.lock()) {
          deliver(*to->home(), answer);
        }
      });
    }
  } catch (const std::system_error&) {
    return nullptr;
  }
  return thread->queue();
}

bool store_core::write_later(disk_queue::work job) {
  const std::shared_ptr<disk_queue> disk = queue(lane::writing);
  // Bounded by the windows of the writers.
  return disk && disk->start_always(std::move(job));
}

bool store_core::is_path(std::string_view path) const noexcept {
  return path.size() <= longest_path() && complaint_about_path(path).empty();
}

/// Notes that a file is about to be opened; `forget` takes it back.
std::error_code store_core::admit(const store_place& place) {
  if (!is_open()) return errc::no_such_name;
  const std::size_t open = shares_descriptors_ ? open_of_all_->load() : open_;
  if (open >= options_.most_open_files) return errc::too_many_of_store;
  if (place.is_written) {
    if (!options_.writable) return errc::permission_denied;
    if (writers_ >= options_.most_writers) return errc::too_many_writers;
  }
  if (!is_path(place.path)) {
    return place.is_written ? errc::bad_name : errc::no_such_name;
  }
  if (place.is_written && !written_.insert(place.path).second) return errc::busy;
  writers_ += place.is_written ? 1U : 0U;
  ++open_;
  ++*open_of_all_;
  return {};
}

template <class Work>
void store_core::open_by(store_place place, access wanted, Work work, opened answer) {
  if (const std::error_code refused = admit(place)) return answer(refused, nullptr, {});
  struct result {
    store_place place;
    owned_descriptor file;
    file_facts facts;
  };
  // The handler of what may be answered at once says so too: `place` was admitted.
  ask<result>(
      lane::quick,
      [place, directory = directory_, work = std::move(work)](std::error_code& ec) {
        result made;
        made.place = place;
        made.file = work(*directory, made.place, made.facts, ec);
        return made;
      },
      [weak = weak_from_this(), place, wanted, answer](std::error_code ec, result made) {
        const std::shared_ptr<store_core> self = weak.lock();
        if (!self) return answer(errc::no_such_name, nullptr, {});
        if (!ec) {
          return self->let_in(made.place, wanted, std::move(made.file), made.facts, answer);
        }
        self->forget(place);
        answer(ec, nullptr, {});
      });
}

void store_core::let_in(const store_place& place, access wanted, owned_descriptor file,
                        const file_facts& facts, const opened& answer) {
  const std::shared_ptr<disk_queue> closing = queue(lane::quick);
  if (!closing) {  // it was closed meanwhile
    forget(place);
    return answer(errc::no_such_name, nullptr, {});
  }
  // What is not in the spool others may change as well.
  const bool is_new = !place.spooled.empty() && directory_->room_ahead_helps();
  room_ahead ahead = is_new ? room_ahead(file.get()) : room_ahead();
  std::shared_ptr<store_region> region;
  try {
    region = store_region::make(context_, shared_from_this(),
                                std::make_shared<store_file>(std::move(file), closing, ahead),
                                place, wanted, facts.size);
    regions_.emplace(region->id(), region);
  } catch (const std::bad_alloc&) {
    if (!place.spooled.empty()) discard(place.spooled);
    forget(place);
    return answer(errc::no_memory, nullptr, {});
  }
  answer({}, region, facts);
}

void store_core::open(const std::string& path, access wanted, opened answer) {
  const bool writes = includes(wanted, access::write);
  const store_place known{.path = path};
  if (!writes && !admit(known)) {
    file_facts facts;
    std::optional<owned_descriptor> file = directory_->open_now(path, facts);
    if (file) return let_in(known, wanted, std::move(*file), facts, answer);
    forget(known);
  }
  open_by(
      {.path = path, .is_written = writes}, wanted,
      [writes](store_directory& in, store_place& place, file_facts& facts, std::error_code& ec) {
        return in.open_file(place.path, writes, facts, ec);
      },
      std::move(answer));
}

std::optional<store_core::content> store_core::content_now(const std::string& path,
                                                           std::size_t most) const {
  if (!is_open() || !is_path(path)) return std::nullopt;
  content made;
  const std::optional<owned_descriptor> file = directory_->open_now(path, made.facts);
  if (!file || made.facts.size > most) return std::nullopt;
  made.bytes.resize(static_cast<std::size_t>(made.facts.size));
  const auto source = open_file::adopt(file->get());
  if (source->read_now(0, made.bytes) < made.bytes.size()) return std::nullopt;
  // Changed meanwhile, it is a matter for who opens it.
  const std::optional<file_facts> now = known_facts(file->get());
  if (!now || now->generation != made.facts.generation) return std::nullopt;
  return made;
}

void store_core::create(const std::string& path, access wanted, bool exclusive, opened answer) {
  open_by(
      {.path = path, .exclusive = exclusive, .is_written = true}, wanted,
      [](store_directory& in, store_place& place, file_facts& facts, std::error_code& ec) {
        in.find_replaced(place.path, place.exclusive, ec);
        if (ec) return owned_descriptor();
        owned_descriptor made = in.create_unnamed(place.spooled, ec);
        if (!made) return made;
        facts = facts_of(made.get(), ec);
        if (ec) in.discard(place.spooled);
        return made;
      },
      std::move(answer));
}

void store_core::append(const std::string& path, access wanted, opened answer) {
  open_by(
      {.path = path, .is_written = true}, wanted,
      [](store_directory& in, store_place& place, file_facts& facts, std::error_code& ec) {
        return in.open_or_create(place.path, facts, ec);
      },
      std::move(answer));
}

void store_core::commit(const std::shared_ptr<store_region>& region, bool durable, found answer) {
  store_place& place = region->place();
  if (!is_open() || place.is_lost) return answer(errc::no_such_name, {});
  const std::shared_ptr<store_file> file = region->stored();
  if (!place.is_written || !file) return answer(errc::permission_denied, {});
  if (place.is_committing) return answer(errc::busy, {});
  commit_job job{.file = file,
                 .spooled = place.spooled,
                 .path = place.path,
                 .exclusive = place.exclusive,
                 .durable = durable || options_.sync_on_commit,
                 .directory = directory_,
                 .quota = quota_,
                 .account = region->account(),
                 .by = queue(lane::writing)};
  const auto end = [kept = std::weak_ptr(region), answer](std::error_code ec,
                                                          const commit_job::outcome& made) {
    if (const std::shared_ptr<store_region> of = kept.lock()) {
      of->place().is_committing = false;
      if (made.ended) of->place().spooled.clear();
      of->place().is_lost = made.ended && !made.named;
    }
    answer(ec, made.facts);
  };
  // Before it is asked, which may be answered at once.
  place.is_committing = true;
  try {
    // Behind the writes, which may not all have been waited for. One of each writer waits at most.
    ask<commit_job::outcome>(lane::writing, std::move(job), end, true);
  } catch (const std::bad_alloc&) {
    place.is_committing = false;
    throw;
  }
}

std::uint64_t store_core::largest_file() const noexcept {
  constexpr auto longest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  return std::min(options_.largest_file, longest);
}

void store_core::stat(const std::string& path, found answer) {
  if (!path.empty() && !is_path(path)) {
    return answer(errc::no_such_name, {});
  }
  if (!path.empty() && is_open()) {
    if (const std::optional<file_facts> known = directory_->stat_now(path)) {
      return answer({}, *known);
    }
  }
  ask<file_facts>(
      lane::quick,
      [path, directory = directory_](std::error_code& ec) { return directory->stat(path, ec); },
      std::move(answer));
}

void store_core::list_files(const std::string& after, std::size_t most, listed answer) {
  ask<store_directory::page>(
      lane::listing,
      [after, most, longest = longest_path(), directory = directory_](std::error_code& ec) {
        return directory->list_files(after, most, ec, longest);
      },
      std::move(answer));
}

void store_core::list_directory(const std::string& directory, const std::string& after,
                                std::size_t most, listed answer) {
  if (!directory.empty() && !is_path(directory)) {
    return answer(errc::no_such_name, {});
  }
  ask<store_directory::page>(
      lane::listing,
      [directory, after, most, longest = longest_path(), top = directory_](std::error_code& ec) {
        return top->list_directory(directory, after, most, ec, longest);
      },
      std::move(answer));
}

/// Returns why the file of that name can not be taken away from under it.
std::error_code store_core::check_change(const std::string& path) const {
  if (!options_.writable) return errc::permission_denied;
  if (!is_path(path)) return errc::bad_name;
  return written_.contains(path) ? make_error_code(errc::busy) : std::error_code();
}

bool store_core::is_written_below(const std::string& path) const {
  const std::string below = path + '/';
  const auto first = written_.lower_bound(below);
  return first != written_.end() && first->starts_with(below);
}

void store_core::remove(const std::string& path, done answer) {
  if (const std::error_code refused = check_change(path)) return answer(refused);
  ask<file_facts>(
      lane::quick,
      [path, directory = directory_, quota = quota_](std::error_code& ec) {
        const file_facts gone = directory->remove(path, ec);
        if (!ec) quota->refund(gone.size);
        return gone;
      },
      [answer](std::error_code ec, const file_facts&) { answer(ec); });
}

void store_core::rename(const std::string& from, const std::string& to, bool exclusive,
                        done answer) {
  std::error_code refused = check_change(from);
  if (!refused) refused = check_change(to);
  if (!refused && (is_written_below(from) || is_written_below(to))) refused = errc::busy;
  if (refused) return answer(refused);
  ask<file_facts>(
      lane::quick,
      [from, to, exclusive, directory = directory_, quota = quota_](std::error_code& ec) {
        const file_facts replaced = directory->rename(from, to, exclusive, ec);
        quota->refund(replaced.size);
        return replaced;
      },
      [answer](std::error_code ec, const file_facts&) { answer(ec); });
}

void store_core::resize(const std::string& path, std::uint64_t size, done answer) {
  std::error_code refused = check_change(path);
  if (!refused && size > largest_file()) refused = errc::no_space;
  if (refused) return answer(refused);
  ask<file_facts>(
      lane::quick,
      [path, size, directory = directory_, quota = quota_,
       closing = queue(lane::quick)](std::error_code& ec) {
        file_facts was;
        owned_descriptor kept = directory->open_file(path, true, was, ec);
        if (ec) return was;
        const std::uint64_t growth = size - std::min(size, was.size);
        if (!quota->charge(growth)) {
          ec = errc::no_space;
          return was;
        }
        store_file file(std::move(kept), closing);
        ec = file.resize(size);
        const std::uint64_t counted = was.size + growth;
        quota->refund(counted - std::min(counted, file.size_now().value_or(counted)));
        return was;
      },
      [answer](std::error_code ec, const file_facts&) { answer(ec); });
}

void store_core::resize(const std::shared_ptr<store_region>& region, std::uint64_t size,
                        done answer) {
  const store_place& place = region->place();
  const std::shared_ptr<store_file> file = region->stored();
  std::error_code refused;
  if (!is_open() || place.is_lost) {
    refused = errc::no_such_name;
  } else if (!place.is_written || !file) {
    refused = errc::permission_denied;
  } else if (size > largest_file()) {
    refused = errc::no_space;
  } else if (place.is_committing) {
    refused = errc::busy;
  } else {
    refused = region->account()->begin_resize(size);
  }
  if (refused) return answer(refused);
  struct nothing {};
  const std::shared_ptr<file_account> account = region->account();
  bool asked = false;
  try {
    asked = ask<nothing>(
        lane::writing,
        [file, size, account](std::error_code& ec) {
          ec = file->resize(size);
          account->resized(*file);
          return nothing();
        },
        [answer](std::error_code ec, nothing) { answer(ec); });
  } catch (const std::bad_alloc&) {
    account->resized(*file);
    throw;
  }
  if (!asked) account->resized(*file);
}

}  // namespace ucx::detail
