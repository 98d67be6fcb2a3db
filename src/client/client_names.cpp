#include "client/client_names.hpp"

#include <cstddef>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>

#include "base/store_path.hpp"
#include "client/client_call.hpp"
#include "client/client_questions.hpp"
#include "ucx/error.hpp"
#include "worker/failed_operation.hpp"

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

/// A server says how much there is, and may never end: of that not all is kept.
constexpr std::size_t most_listed = std::size_t{512} << 20U;

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

/// Reads a page, which is the answer to `asked`, and lets that ask for the next one.
result<listed_body> read_page(list_body& asked, std::span<const std::byte> answer,
                              const std::string& doing) {
  std::optional<listed_body> listed = decode_listed(answer);
  if (!listed || !continues(asked, *listed)) return failure{errc::protocol_error, doing};
  if (!listed->entries.empty()) asked.after = listed->entries.back().name;
  return *std::move(listed);
}

/// Asks for one page after another, and keeps them. `found` gets all at the end.
template <class Found>
class page_by_page final : public conversation {
 public:
  page_by_page(list_body first, std::string doing, Found& found)
      : page_(std::move(first)), doing_(std::move(doing)), found_(found) {}

  void ask(client_session& session, client_session::question& asked) override {
    asked.answer_type = control_type::listed;
    session.ask(asked, control_type::list, page_);
  }
  result<bool> take(std::span<const std::byte> answer) override {
    auto listed = read_page(page_, answer, doing_);
    if (!listed) return std::move(listed.why());
    if (all_.entries.empty()) all_.unserved = listed->unserved;
    for (const entry& each : listed->entries) taken_ += sizeof each + each.name.size();
    if (taken_ > most_listed) {
      return failure{errc::no_memory, doing_ + ": the list takes more than " +
                                          std::to_string(most_listed >> 20U) + " MiB"};
    }
    std::move(listed->entries.begin(), listed->entries.end(), std::back_inserter(all_.entries));
    if (listed->more) return false;
    if constexpr (std::is_same_v<Found, directory_listing>) {
      found_ = std::move(all_);
    } else {
      found_ = std::move(all_.entries);
    }
    return true;
  }
  failure explain(failure why, std::span<const std::byte>) const override {
    return page_.directory ? unlisted(std::move(why)) : why;
  }

 private:
  list_body page_;
  std::string doing_;
  Found& found_;
  directory_listing all_;
  std::size_t taken_ = 0;
};

}  // namespace

request client_names::start_list(std::vector<entry>& found, const io_options& options) {
  std::string doing = "listing what " + questions_.server().place() + " publishes";
  auto pages = std::make_unique<page_by_page<std::vector<entry>>>(list_body{}, doing, found);
  return client_call::start(questions_, options, std::move(doing), std::move(pages));
}

request client_names::start_list_directory(std::string_view directory, directory_listing& found,
                                           const io_options& options) {
  auto doing = questions_.server().attempt_at_directory(directory);
  if (!doing) return failed_request(std::move(doing.why()));
  auto pages =
      std::make_unique<page_by_page<directory_listing>>(entries_of(directory), *doing, found);
  return client_call::start(questions_, options, *std::move(doing), std::move(pages));
}

request client_names::start_stat(std::string_view name, entry& found, const io_options& options) {
  if (auto fit = known_server::check_name(name); !fit) return failed_request(std::move(fit.why()));
  std::string doing = questions_.server().attempt("asking about", name);
  const auto take = [doing, name = std::string(name),
                     &found](std::span<const std::byte> answer) -> result<void> {
    std::optional<described_body> described = decode_described(answer);
    if (!described || described->described.name != name)
      return failure{errc::protocol_error, doing};
    found = std::move(described->described);
    return {};
  };
  const auto explain = [](failure why) {
    return known_server::of_unserved(std::move(why), "neither a file nor a directory");
  };
  return client_call::start(
      questions_, options, std::move(doing),
      std::make_unique<one_question<stat_body>>(control_type::stat, control_type::described,
                                                stat_body{std::string(name)}, take, explain));
}

result<std::vector<entry>> client_names::list(const io_options& options) {
  std::vector<entry> found;
  const auto listed = questions_.wait_for([&] { return start_list(found, options); });
  if (!listed) return listed.why();
  return found;
}

result<void> client_names::visit(const entry_visitor& visitor, const io_options& options) {
  const auto listed = list_pages({}, visitor, options,
                                 "listing what " + questions_.server().place() + " publishes");
  if (!listed) return listed.why();
  return {};
}

result<directory_listing> client_names::list_directory(std::string_view directory,
                                                       const io_options& options) {
  directory_listing found;
  const auto listed =
      questions_.wait_for([&] { return start_list_directory(directory, found, options); });
  if (!listed) return listed.why();
  return found;
}

result<std::uint64_t> client_names::visit_directory(std::string_view directory,
                                                    const entry_visitor& visitor,
                                                    const io_options& options) {
  const auto doing = questions_.server().attempt_at_directory(directory);
  if (!doing) return doing.why();
  auto listed = list_pages(entries_of(directory), visitor, options, *doing);
  if (!listed) return unlisted(listed.why());
  return listed;
}

result<entry> client_names::stat(std::string_view name, const io_options& options) {
  entry found;
  const auto told = questions_.wait_for([&] { return start_stat(name, found, options); });
  if (!told) return told.why();
  return found;
}

result<bool> client_names::exists(std::string_view name, const io_options& options) {
  const auto found = stat(name, options);
  if (!found && found.why().code != errc::no_such_name) return found.why();
  return static_cast<bool>(found);
}

result<std::uint64_t> client_names::list_pages(list_body page, const entry_visitor& visit,
                                               const io_options& options,
                                               const std::string& doing) {
  std::uint64_t unserved = 0;
  for (bool more = true, first = true; more; first = false) {
    listed_body listed;
    const auto take = [&](std::span<const std::byte> answer) -> result<void> {
      auto read = read_page(page, answer, doing);
      if (!read) return std::move(read.why());
      listed = *std::move(read);
      return {};
    };
    const auto explain = [](failure why) { return why; };
    const auto told = questions_.wait_for([&] {
      auto asks = std::make_unique<one_question<list_body>>(
          control_type::list, control_type::listed, page, take, explain);
      return client_call::start(questions_, options, doing, std::move(asks));
    });
    if (!told) return told.why();
    if (first) unserved = listed.unserved;
    more = visit(std::move(listed.entries)) && listed.more;
  }
  return unserved;
}

}  // namespace ucx::detail
