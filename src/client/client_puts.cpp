#include "client/client_puts.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>

#include "base/name.hpp"
#include "client/client_files.hpp"
#include "cuda/device_pointer.hpp"
#include "ucx/error.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {
namespace {

/// A server keeps them all until its disk has taken them.
constexpr std::size_t most_bytes_at_once = std::size_t{2} << 20U;
constexpr std::size_t most_files_at_once = 256;

/// The threads of a client share this. A server of several workers blames a peer for 16 MiB of
/// questions, of which each takes 4 KiB by itself. It takes 1024 files of one client at a time.
constexpr std::size_t most_bytes_of_all = std::size_t{8} << 20U;
constexpr std::size_t most_files_of_all = 1024;

/// Between two attempts to have the server take what it had no room for.
constexpr std::chrono::milliseconds first_pause{1};
constexpr std::chrono::milliseconds longest_pause{50};

}  // namespace

std::vector<std::error_code> client_puts::write_many(std::span<const short_file> files,
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

void client_puts::count_failures(std::span<const std::error_code> outcomes) noexcept {
  const auto failures = std::count_if(outcomes.begin(), outcomes.end(),
                                      [](auto each) { return static_cast<bool>(each); });
  questions_.count_failures(static_cast<std::uint64_t>(failures));
}

/// Room for some short files, as long as they are on their way: other threads wait for it.
class client_puts::taken_room {
 public:
  taken_room(client_puts& of, std::size_t bytes, std::size_t files, clock::time_point deadline)
      : of_(of), worker_(of.questions_.worker()), bytes_(bytes), files_(files) {
    if (worker_.in_handler() || worker_.is_inherited()) return;  // nothing will be asked
    taken_ = worker_.wait_until(deadline, [this] {
      const bool fits = of_.bytes_on_their_way_ + bytes_ <= most_bytes_of_all &&
                        of_.files_on_their_way_ + files_ <= most_files_of_all;
      if (!fits) return false;
      of_.bytes_on_their_way_ += bytes_;
      of_.files_on_their_way_ += files_;
      return true;
    });
  }
  taken_room(const taken_room&) = delete;
  taken_room& operator=(const taken_room&) = delete;
  /// Returns whether they may go. True inside a handler, where the question itself is refused.
  explicit operator bool() const noexcept {
    return taken_ || worker_.is_inherited() || worker_.in_handler();
  }
  ~taken_room() {
    if (!taken_) return;
    const std::lock_guard guard(worker_.lock());
    of_.bytes_on_their_way_ -= bytes_;
    of_.files_on_their_way_ -= files_;
    worker_.wake_waiters();
  }

 private:
  client_puts& of_;
  worker_core& worker_;
  const std::size_t bytes_;
  const std::size_t files_;
  bool taken_ = false;
};

/// A file with a bad name goes by itself, and is refused on this side: a server ends a connection
/// that sends such a name. A device's memory goes as other files do.
bool client_puts::can_be_put(const short_file& file) const {
  const std::size_t room = questions_.room() - client_questions::overhead_of_each;
  return questions_.server().knows(control_feature::contents) &&
         complaint_about_name(file.name).empty() && file.name.size() <= room &&
         file.bytes.size() <= room - file.name.size() && is_on_host(file.bytes);
}

/// Stores as many of the first of them as are well put together: one at least. Returns why no more
/// are to be tried: their time was up.
/// REQUIRES: the first can be put.
std::error_code client_puts::put_some(std::span<const short_file> files, creation how,
                                      const io_options& options,
                                      std::vector<std::error_code>& all) {
  const std::size_t room = questions_.room();
  std::vector<put_body> bodies;
  std::size_t length = room;
  std::size_t bytes = 0;
  std::size_t count = 0;
  for (const short_file& each : files.first(std::min(files.size(), most_files_at_once))) {
    if (!can_be_put(each) || bytes >= most_bytes_at_once) break;
    const std::size_t its =
        each.name.size() + each.bytes.size() + client_questions::overhead_of_each;
    length += its;
    if (length > room || bodies.back().files.size() == put_body::most_files) {
      if (bodies.size() == client_questions::most_at_once) break;
      bodies.push_back({.exclusive = how == creation::exclusive});
      length = its;
    }
    bodies.back().files.push_back({each.name, {each.bytes.begin(), each.bytes.end()}});
    bytes += each.bytes.size();
    ++count;
  }
  const clock::time_point deadline = questions_.deadline_after(options);
  const taken_room room_there(*this, bytes + bodies.size() * room_of_message, count, deadline);
  std::error_code given_up;
  if (!room_there) {
    given_up = errc::busy;
    all.insert(all.end(), count, given_up);
    count_failures(std::span(all).last(count));
    return given_up;
  }
  const std::vector<client_questions::question> asked = ask_to_put(bodies, deadline);
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

/// A server that has no room for a message says `busy` of all of it, and has done nothing. Then it
/// is asked again, as long as there is time.
std::vector<client_questions::question> client_puts::ask_to_put(const std::vector<put_body>& bodies,
                                                                clock::time_point deadline) {
  std::vector<client_questions::question> asked(bodies.size(), {control_type::stored});
  std::chrono::milliseconds pause = first_pause;
  for (;;) {
    const auto body_of = [&](std::size_t i) -> const put_body& { return bodies[i]; };
    questions_.ask_each(asked, control_type::put, body_of, deadline);
    const auto is_refused = [](const client_questions::question& each) {
      return each.outcome == errc::busy;
    };
    if (std::none_of(asked.begin(), asked.end(), is_refused)) return asked;
    questions_.worker().wait_until(std::min(deadline, questions_.now() + pause),
                                   [] { return false; });
    if (questions_.now() >= deadline) return asked;
    pause = std::min(2 * pause, longest_pause);
    for (client_questions::question& each : asked) {
      if (is_refused(each)) each = {control_type::stored};
    }
  }
}

std::error_code client_puts::store_alone(const short_file& file, creation how,
                                         const io_options& options) {
  auto made = files_.create(file.name, {.mode = how}, options);
  if (!made) return made.why().code;
  std::error_code ec;
  if (!file.bytes.empty()) made->write_at(0, file.bytes, options, ec);
  if (!ec) files_.commit(*made, {.close = true}, options).or_tell(ec);
  return ec;
}

}  // namespace ucx::detail
