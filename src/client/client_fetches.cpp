#include "client/client_fetches.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "client/client_questions.hpp"
#include "client/client_regions.hpp"
#include "ucx/error.hpp"
#include "ucx/request.hpp"
#include "wire/control_message.hpp"

namespace ucx::detail {
namespace {

/// Files of a page each fit one answer together.
constexpr std::size_t names_of_one_question = 12;

/// A store may let a client have few files open: a quarter of the process's limit, unless told
/// otherwise. Several threads may be at this.
constexpr std::size_t most_open = 12;

}  // namespace

std::vector<read_result> client_fetches::read_many(std::span<const std::string> names,
                                                   std::size_t most, const io_options& options) {
  constexpr std::size_t most_at_once = client_questions::most_at_once;
  std::vector<read_result> all(names.size());
  for (std::size_t i = 0; i < names.size(); i += most_at_once) {
    const std::size_t count = std::min(names.size() - i, most_at_once);
    const auto some = std::span(all).subspan(i, count);
    fetch_some(names.subspan(i, count), most, options, some);
    // A server that does not answer in time is not asked for the rest, which would take as long.
    const bool answers = std::none_of(some.begin(), some.end(), [](const read_result& each) {
      return each.error == errc::timed_out;
    });
    if (answers) continue;
    for (read_result& each : std::span(all).subspan(i + count)) each.error = errc::timed_out;
    break;
  }
  const auto failures = std::count_if(all.begin(), all.end(), [](const read_result& each) {
    return static_cast<bool>(each.error);
  });
  questions_.count_failures(static_cast<std::uint64_t>(failures));
  return all;
}

/// Opens and reads what does not come with the answers.
void client_fetches::fetch_some(std::span<const std::string> names, std::size_t most,
                                const io_options& options, std::span<read_result> all) {
  std::vector<std::size_t> wanted;
  for (std::size_t i = 0; i < names.size(); ++i) {
    known_server::check_name(names[i]).or_tell(all[i].error);
    if (!all[i].error) wanted.push_back(i);
  }
  std::vector<std::size_t> missing;
  if (!questions_.server().knows(control_feature::contents)) missing = std::exchange(wanted, {});
  // An answer has the first of the names that were asked for, as many as fit: one at least.
  const clock::time_point deadline = questions_.deadline_after(options);
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
std::vector<std::size_t> client_fetches::fetch_now(const std::vector<std::size_t>& wanted,
                                                   std::span<const std::string> names,
                                                   std::size_t most, clock::time_point deadline,
                                                   std::span<read_result> all,
                                                   std::vector<std::size_t>& missing) {
  const std::size_t room = questions_.room();
  std::vector<fetch_body> bodies;
  std::size_t length = room;
  for (const std::size_t i : wanted) {
    length += names[i].size() + client_questions::overhead_of_each;
    if (length > room || bodies.back().names.size() == names_of_one_question) {
      bodies.push_back({.most = most});
      length = names[i].size() + client_questions::overhead_of_each;
    }
    bodies.back().names.push_back(names[i]);
  }
  std::vector<client_questions::question> asked(bodies.size(), {control_type::fetched});
  const auto body_of = [&](std::size_t i) -> const fetch_body& { return bodies[i]; };
  questions_.ask_each(asked, control_type::fetch, body_of, deadline);
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
void client_fetches::read_each(std::span<const std::size_t> numbers,
                               std::span<const std::string> names, std::size_t most,
                               const io_options& options, std::span<read_result> all) {
  struct reading {
    read_result* into;
    remote_region from;
    request started;
  };
  std::vector<std::string> missing;
  for (const std::size_t i : numbers) missing.push_back(names[i]);
  const std::vector<client_questions::question> asked =
      regions_.ask_for(missing, access::read, options);
  std::vector<reading> started;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    read_result& made = all[numbers[i]];
    made.error = asked[i].outcome;
    if (made.error) continue;
    auto opened = regions_.region_of(asked[i].answer, missing[i], access::read, {});
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

}  // namespace ucx::detail
