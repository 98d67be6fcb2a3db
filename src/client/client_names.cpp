#include "client/client_names.hpp"

#include <cstddef>
#include <iterator>
#include <optional>
#include <utility>

#include "base/store_path.hpp"
#include "client/client_questions.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

failure unlisted(failure why) {
  if (why.code == errc::permission_denied) why.text += ", which the server may not read";
  return why;
}

list_body entries_of(std::string_view directory) {
  list_body page;
  page.directory = std::string(directory);
  return page;
}

/// Returns whether `listed` can follow what was asked for. A page that does not go on would be
/// asked for again and again. A caller that lists a directory relies on getting names in it alone.
bool continues(const list_body& asked, const listed_body& listed) {
  if (listed.more && listed.entries.empty()) return false;
  const std::string* before = &asked.after;
  const std::string inside =
      asked.directory && !asked.directory->empty() ? *asked.directory + '/' : std::string();
  for (const entry& each : listed.entries) {
    if (each.name <= *before) return false;
    before = &each.name;
    if (!asked.directory) continue;
    if (!each.name.starts_with(inside)) return false;
    const std::string_view leaf = std::string_view(each.name).substr(inside.size());
    if (!complaint_about_path(leaf).empty() || leaf.find('/') != leaf.npos) return false;
  }
  return true;
}

}  // namespace

result<std::vector<entry>> client_names::list(const io_options& options) {
  auto found = list_all({}, questions_.deadline_after(options),
                        "listing what " + questions_.server().place() + " publishes");
  if (!found) return found.why();
  return std::move(found->entries);
}

result<void> client_names::visit(const entry_visitor& visitor, const io_options& options) {
  const auto listed = list_pages(
      {}, visitor, [&] { return questions_.deadline_after(options); },
      "listing what " + questions_.server().place() + " publishes");
  if (!listed) return listed.why();
  return {};
}

result<directory_listing> client_names::list_directory(std::string_view directory,
                                                       const io_options& options) {
  const auto doing = questions_.server().attempt_at_directory(directory);
  if (!doing) return doing.why();
  auto found = list_all(entries_of(directory), questions_.deadline_after(options), *doing);
  if (!found) return unlisted(found.why());
  return found;
}

result<std::uint64_t> client_names::visit_directory(std::string_view directory,
                                                    const entry_visitor& visitor,
                                                    const io_options& options) {
  const auto doing = questions_.server().attempt_at_directory(directory);
  if (!doing) return doing.why();
  auto listed = list_pages(
      entries_of(directory), visitor, [&] { return questions_.deadline_after(options); }, *doing);
  if (!listed) return unlisted(listed.why());
  return listed;
}

result<entry> client_names::stat(std::string_view name, const io_options& options) {
  if (const auto fit = known_server::check_name(name); !fit) return fit.why();
  const std::string doing = questions_.server().attempt("asking about", name);
  const auto answer =
      questions_.ask(control_type::stat, control_type::described, stat_body{std::string(name)},
                     questions_.deadline_after(options), doing);
  if (!answer) {
    return known_server::of_unserved(answer.why(), "neither a file nor a directory");
  }
  std::optional<described_body> described = decode_described(*answer);
  if (described && described->described.name == name) return std::move(described->described);
  return failure{errc::protocol_error, doing};
}

result<bool> client_names::exists(std::string_view name, const io_options& options) {
  const auto found = stat(name, options);
  if (!found && found.why().code != errc::no_such_name) return found.why();
  return static_cast<bool>(found);
}

result<std::uint64_t> client_names::list_pages(list_body page, const entry_visitor& visit,
                                               const std::function<clock::time_point()>& deadline,
                                               const std::string& doing) {
  std::uint64_t unserved = 0;
  for (bool more = true, first = true; more; first = false) {
    const auto answer =
        questions_.ask(control_type::list, control_type::listed, page, deadline(), doing);
    if (!answer) return answer.why();
    std::optional<listed_body> listed = decode_listed(*answer);
    if (!listed || !continues(page, *listed)) return failure{errc::protocol_error, doing};
    if (first) unserved = listed->unserved;
    if (!listed->entries.empty()) page.after = listed->entries.back().name;
    more = visit(std::move(listed->entries)) && listed->more;
  }
  return unserved;
}

/// A server says how much there is, and may never end: of that not all is kept.
result<directory_listing> client_names::list_all(list_body page, clock::time_point deadline,
                                                 const std::string& doing) {
  constexpr std::size_t most = std::size_t{512} << 20U;
  directory_listing found;
  std::size_t taken = 0;
  const auto take = [&](std::vector<entry>&& some) {
    for (const entry& each : some) taken += sizeof each + each.name.size();
    if (taken > most) return false;
    std::move(some.begin(), some.end(), std::back_inserter(found.entries));
    return true;
  };
  const auto unserved = list_pages(
      std::move(page), take, [deadline] { return deadline; }, doing);
  if (!unserved) return unserved.why();
  if (taken > most) {
    return failure{errc::no_memory,
                   doing + ": the list takes more than " + std::to_string(most >> 20U) + " MiB"};
  }
  found.unserved = *unserved;
  return found;
}

}  // namespace ucx::detail
