// Many short files that a client fetches or stores at once.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>

#include "base/forked_child.hpp"
#include "base/name.hpp"
#include "client/client_core.hpp"
#include "cuda/device_pointer.hpp"
#include "ucx/error.hpp"
#include "wire/control_message.hpp"
#include "worker/core_access.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {
namespace {

/// Room in a message for what is not its files, and for each of them beside name and content.
constexpr std::size_t put_overhead = control_header::size + 32;
constexpr std::size_t file_overhead = 16;

/// A server keeps them all until its disk has taken them.
constexpr std::size_t most_bytes_at_once = std::size_t{2} << 20U;
constexpr std::size_t most_files_at_once = 256;

/// The threads of a client share this: a server of several workers blames for 16 MiB of questions,
/// of which each takes 4 KiB by itself, and takes 1024 files of one client at a time.
constexpr std::size_t most_bytes_of_all = std::size_t{8} << 20U;
constexpr std::size_t most_files_of_all = 1024;

/// Between two attempts to have the server take what it had no room for.
constexpr std::chrono::milliseconds first_pause{1};
constexpr std::chrono::milliseconds longest_pause{50};

/// Files of a page each fit one answer together.
constexpr std::size_t names_of_one_question = 12;

/// A store may let a client have few files open (a quarter of its process's limit, unless told
/// otherwise), and several threads may be at this.
constexpr std::size_t most_open = 12;

}  // namespace

std::vector<fetched_name> client_core::fetch_each(std::span<const std::string> names,
                                                  std::size_t most, const io_options& options) {
  std::vector<fetched_name> all(names.size());
  for (std::size_t i = 0; i < names.size(); i += most_at_once) {
    const std::size_t count = std::min(names.size() - i, most_at_once);
    const auto some = std::span(all).subspan(i, count);
    fetch_some(names.subspan(i, count), most, options, some);
    // A server that does not answer in time is not asked for the rest, which would take as long.
    const bool answers = std::none_of(some.begin(), some.end(), [](const fetched_name& each) {
      return each.error == errc::timed_out;
    });
    if (answers) continue;
    for (fetched_name& each : std::span(all).subspan(i + count)) each.error = errc::timed_out;
    break;
  }
  const auto failures = std::count_if(all.begin(), all.end(), [](const fetched_name& each) {
    return static_cast<bool>(each.error);
  });
  failures_.fetch_add(static_cast<std::uint64_t>(failures), std::memory_order_relaxed);
  return all;
}

/// What does not come with the answers is opened and read.
void client_core::fetch_some(std::span<const std::string> names, std::size_t most,
                             const io_options& options, std::span<fetched_name> all) {
  std::vector<std::size_t> wanted;
  for (std::size_t i = 0; i < names.size(); ++i) {
    check_name(names[i]).or_tell(all[i].error);
    if (!all[i].error) wanted.push_back(i);
  }
  std::vector<std::size_t> missing;
  if ((features_ & control_feature::contents) == 0) missing = std::exchange(wanted, {});
  // An answer has the first of the names that were asked for, as many as fit: one at least.
  const clock::time_point deadline = deadline_after(options);
  while (!wanted.empty()) wanted = fetch_now(wanted, names, most, deadline, all, missing);
  for (std::span<const std::size_t> left = missing; !left.empty();) {
    const auto some = left.first(std::min(left.size(), most_open));
    read_each(some, names, most, options, all);
    left = left.subspan(some.size());
    const bool answers = std::none_of(
        some.begin(), some.end(), [&](std::size_t i) { return all[i].error == errc::timed_out; });
    if (answers) continue;
    for (const std::size_t i : std::exchange(left, {})) all[i].error = errc::timed_out;
  }
}

/// Returns those that no answer had room for.
std::vector<std::size_t> client_core::fetch_now(const std::vector<std::size_t>& wanted,
                                                std::span<const std::string> names,
                                                std::size_t most, clock::time_point deadline,
                                                std::span<fetched_name> all,
                                                std::vector<std::size_t>& missing) {
  const std::size_t room = channel_.longest() - put_overhead;
  std::vector<fetch_body> bodies;
  std::size_t length = room;
  for (const std::size_t i : wanted) {
    length += names[i].size() + file_overhead;
    if (length > room || bodies.back().names.size() == names_of_one_question) {
      bodies.push_back({.most = most});
      length = names[i].size() + file_overhead;
    }
    bodies.back().names.push_back(names[i]);
  }
  std::vector<client_session::question> asked(bodies.size(), {control_type::fetched});
  const auto send = [&](std::size_t i) { session_.ask(asked[i], control_type::fetch, bodies[i]); };
  ask_all(asked, send, deadline);
  std::vector<std::size_t> left;
  auto next = wanted.begin();
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    const std::size_t count = bodies[i].names.size();
    std::optional<fetched_body> said;
    if (!asked[i].outcome) said = decode_fetched(asked[i].answer);
    const bool is_meant = said && !said->contents.empty() && said->contents.size() <= count;
    if (!asked[i].outcome && !is_meant) asked[i].outcome = errc::protocol_error;
    for (std::size_t of = 0; of < count; ++of) {
      const std::size_t number = *next++;
      if (asked[i].outcome) {
        all[number].error = asked[i].outcome;
      } else if (of >= said->contents.size()) {
        left.push_back(number);
      } else if (!said->contents[of]) {
        missing.push_back(number);
      } else if (said->contents[of]->size() > most) {
        all[number].error = errc::protocol_error;
      } else {
        all[number].bytes = std::move(*said->contents[of]);
      }
    }
  }
  return left;
}

/// Opens and reads those of these numbers.
void client_core::read_each(std::span<const std::size_t> numbers,
                            std::span<const std::string> names, std::size_t most,
                            const io_options& options, std::span<fetched_name> all) {
  struct reading {
    fetched_name* into;
    remote_region from;
    request started;
  };
  std::vector<std::string> missing;
  for (const std::size_t i : numbers) missing.push_back(names[i]);
  const std::vector<client_session::question> asked = ask_names(missing, access::read, options);
  std::vector<reading> started;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    fetched_name& made = all[numbers[i]];
    made.error = asked[i].outcome;
    if (made.error) continue;
    auto opened = region_of(asked[i].answer, missing[i], access::read, {});
    if (!opened) made.error = opened.why().code;
    if (opened && opened->size() > most) made.error = errc::message_truncated;
    if (made.error) continue;
    made.bytes.resize(static_cast<std::size_t>(opened->size()));
    started.push_back({&made, *std::move(opened), {}});
  }
  // The memory that is read into stays where it is, whatever becomes of the list.
  for (reading& each : started) {
    each.started = each.from.start_read_at(0, each.into->bytes, options);
  }
  for (reading& each : started) {
    each.started.wait(each.into->error);
    if (each.into->error) each.into->bytes.clear();
  }
}

std::vector<std::error_code> client_core::store_each(std::span<const short_file> files,
                                                     creation how, const io_options& options) {
  std::vector<std::error_code> all;
  all.reserve(files.size());
  while (all.size() < files.size()) {
    const std::span<const short_file> left = files.subspan(all.size());
    std::error_code given_up;
    if (can_be_put(left.front())) {
      given_up = put_some(left, how, options, all);
    } else {
      all.push_back(store_alone(left.front(), how, options));
      if (all.back() == errc::timed_out) given_up = all.back();
    }
    if (!given_up) continue;
    // The rest would take as long, each batch of it.
    const std::size_t asked = all.size();
    all.resize(files.size(), given_up);
    count_failures(std::span(all).subspan(asked));
  }
  return all;
}

void client_core::count_failures(std::span<const std::error_code> outcomes) noexcept {
  const auto failures = std::count_if(outcomes.begin(), outcomes.end(),
                                      [](auto each) { return static_cast<bool>(each); });
  failures_.fetch_add(static_cast<std::uint64_t>(failures), std::memory_order_relaxed);
}

/// What some short files take, as long as they are on their way: other threads wait for it.
class client_core::put_room {
 public:
  put_room(client_core& of, std::size_t bytes, std::size_t files, clock::time_point deadline)
      : of_(of), bytes_(bytes), files_(files) {
    worker_core& core = *core_access::core(of.worker_);
    if (core.in_handler() || is_forked_child()) return;  // nothing will be asked
    taken_ = core.wait_until(deadline, [this] {
      const bool fits = of_.put_bytes_ + bytes_ <= most_bytes_of_all &&
                        of_.put_files_ + files_ <= most_files_of_all;
      if (!fits) return false;
      of_.put_bytes_ += bytes_;
      of_.put_files_ += files_;
      return true;
    });
  }
  put_room(const put_room&) = delete;
  put_room& operator=(const put_room&) = delete;
  /// Returns whether they may go; whoever asks inside a handler is told otherwise.
  explicit operator bool() const noexcept {
    return taken_ || is_forked_child() || core_access::core(of_.worker_)->in_handler();
  }
  ~put_room() {
    if (!taken_) return;
    worker_core& core = *core_access::core(of_.worker_);
    const std::lock_guard guard(core.lock());
    of_.put_bytes_ -= bytes_;
    of_.put_files_ -= files_;
    core.wake_waiters();
  }

 private:
  client_core& of_;
  const std::size_t bytes_;
  const std::size_t files_;
  bool taken_ = false;
};

/// What has no name to begin with is told so one by one: a server ends a connection that says it. A
/// device's memory goes as other files do.
bool client_core::can_be_put(const short_file& file) const {
  const std::size_t room = channel_.longest() - put_overhead - file_overhead;
  return (features_ & control_feature::contents) != 0 && complaint_about_name(file.name).empty() &&
         file.name.size() <= room && file.bytes.size() <= room - file.name.size() &&
         is_on_host(file.bytes);
}

/// Stores as many of the first of them as are well put together: one at least. Returns why no more
/// are to be tried: their time was up.
/// REQUIRES: the first can be put.
std::error_code client_core::put_some(std::span<const short_file> files, creation how,
                                      const io_options& options,
                                      std::vector<std::error_code>& all) {
  const std::size_t room = channel_.longest() - put_overhead;
  std::vector<put_body> bodies;
  std::size_t length = room;
  std::size_t bytes = 0;
  std::size_t count = 0;
  for (const short_file& each : files.first(std::min(files.size(), most_files_at_once))) {
    if (!can_be_put(each) || bytes >= most_bytes_at_once) break;
    const std::size_t its = each.name.size() + each.bytes.size() + file_overhead;
    length += its;
    if (length > room || bodies.back().files.size() == put_body::most_files) {
      if (bodies.size() == most_at_once) break;
      bodies.push_back({.exclusive = how == creation::fresh});
      length = its;
    }
    bodies.back().files.push_back({each.name, {each.bytes.begin(), each.bytes.end()}});
    bytes += each.bytes.size();
    ++count;
  }
  const clock::time_point deadline = deadline_after(options);
  const put_room room_there(*this, bytes + bodies.size() * room_of_message, count, deadline);
  std::error_code given_up;
  if (!room_there) {
    given_up = errc::busy;
    all.insert(all.end(), count, given_up);
    count_failures(std::span(all).last(count));
    return given_up;
  }
  const std::vector<client_session::question> asked = ask_to_put(bodies, deadline);
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    const std::error_code refused = asked[i].outcome;
    if (refused == errc::timed_out || refused == errc::busy) given_up = refused;
    const std::size_t expected = bodies[i].files.size();
    std::optional<stored_body> said;
    if (!refused) said = decode_stored(asked[i].answer);
    if (said && said->outcomes.size() == expected) {
      all.insert(all.end(), said->outcomes.begin(), said->outcomes.end());
    } else {
      all.insert(all.end(), expected, refused ? refused : make_error_code(errc::protocol_error));
    }
  }
  count_failures(std::span(all).last(count));
  return given_up;
}

/// A server that has no room for a message says `busy` of all of it, and has done nothing: then it
/// is asked again, as long as there is time.
std::vector<client_session::question> client_core::ask_to_put(const std::vector<put_body>& bodies,
                                                              clock::time_point deadline) {
  std::vector<client_session::question> asked(bodies.size(), {control_type::stored});
  std::chrono::milliseconds pause = first_pause;
  for (;;) {
    const auto send = [&](std::size_t i) { session_.ask(asked[i], control_type::put, bodies[i]); };
    ask_all(asked, send, deadline);
    const auto is_refused = [](const client_session::question& each) {
      return each.outcome == errc::busy;
    };
    if (std::none_of(asked.begin(), asked.end(), is_refused)) return asked;
    core_access::core(worker_)->wait_until(std::min(deadline, now() + pause), [] { return false; });
    if (now() >= deadline) return asked;
    pause = std::min(2 * pause, longest_pause);
    for (client_session::question& each : asked) {
      if (is_refused(each)) each = {control_type::stored};
    }
  }
}

std::error_code client_core::store_alone(const short_file& file, creation how,
                                         const io_options& options) {
  auto made = create(file.name, {.mode = how}, options);
  if (!made) return made.why().code;
  std::error_code ec;
  if (!file.bytes.empty()) made->write_at(0, file.bytes, ec, options);
  if (!ec) commit(*made, false, true, options).or_tell(ec);
  return ec;
}

}  // namespace ucx::detail
