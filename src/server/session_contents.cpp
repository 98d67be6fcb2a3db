#include "server/session_contents.hpp"

#include <algorithm>
#include <map>
#include <new>
#include <utility>

#include "base/name.hpp"
#include "server/published_name.hpp"
#include "store/store_core.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

/// Room in an answer for what is not the contents of files, and that for each of those.
constexpr std::size_t answer_overhead = control_header::size + 32;
constexpr std::size_t content_overhead = 8;

}  // namespace

session_contents::session_contents(const catalogue& names, const session_rights& rights,
                                   std::size_t longest, refusal refuse, sender send)
    : catalogue_(names),
      rights_(rights),
      longest_(longest),
      refuse_(std::move(refuse)),
      send_(std::move(send)),
      self_(std::make_shared<session_contents*>(this)) {}

/// One `put`, whose files may belong to several stores.
struct session_contents::storing {
  control_header asked;
  std::vector<std::error_code> outcomes;
  std::size_t awaited = 1;  // stores; and one until all were asked
};

void session_contents::put(const control_header& asked, put_body&& body) {
  if (body.files.empty() || body.files.size() > put_body::most_files) {
    return refuse_(asked, control_type::stored, errc::invalid_argument);
  }
  if (unanswered_ >= most_unanswered ||
      body.files.size() > most_files_unanswered - files_unanswered_) {
    return refuse_(asked, control_type::stored, errc::busy);
  }
  const auto all = std::make_shared<storing>();
  all->asked = asked;
  all->outcomes.resize(body.files.size());
  struct part {
    std::vector<whole_file> files;
    std::vector<std::size_t> numbers;
  };
  std::map<std::shared_ptr<store_core>, part> parts;
  for (std::size_t i = 0; i < body.files.size(); ++i) {
    put_body::file& each = body.files[i];
    if (!complaint_about_name(each.name).empty()) {
      all->outcomes[i] = errc::bad_name;
    } else if (const std::error_code refused = rights_.check_create(each.name, !body.exclusive)) {
      all->outcomes[i] = refused;
    } else if (catalogue_.find(each.name)) {  // what is published by name is not replaced
      all->outcomes[i] = body.exclusive ? errc::already_exists : errc::not_supported;
    } else if (const catalogue::stored_name found = catalogue_.find_stored(each.name);
               found.store) {
      part& its = parts[found.store];
      its.files.push_back({.path = found.path, .bytes = std::move(each.content)});
      its.numbers.push_back(i);
    } else {
      all->outcomes[i] = errc::no_such_name;
    }
  }
  // All of them or none, so that who is told `busy` of a file knows that somebody writes that.
  const bool is_room = std::all_of(parts.begin(), parts.end(), [](const auto& each) {
    return each.first->contents().has_room(each.second.files);
  });
  if (!is_room) return refuse_(asked, control_type::stored, errc::busy);
  ++unanswered_;
  files_unanswered_ += body.files.size();
  for (auto& [store, its] : parts) {
    ++all->awaited;
    try {
      const auto answered = [self = self_, all,
                             numbers = its.numbers](const std::vector<std::error_code>& outcomes) {
        for (std::size_t i = 0; i < numbers.size(); ++i) all->outcomes[numbers[i]] = outcomes[i];
        --all->awaited;
        if (*self != nullptr) (*self)->stored(*all);
      };
      store->contents().put(std::move(its.files), body.exclusive, body.durable, answered);
    } catch (const std::bad_alloc&) {  // then it has answered nothing, and will not
      for (const std::size_t i : its.numbers) all->outcomes[i] = errc::no_memory;
      --all->awaited;
    }
  }
  --all->awaited;
  stored(*all);
}

/// Answers when all stores have.
void session_contents::stored(const storing& part) {
  if (part.awaited > 0) return;
  --unanswered_;
  files_unanswered_ -= part.outcomes.size();
  send_(encode_control(answer_to(part.asked, control_type::stored), stored_body{part.outcomes}));
}

void session_contents::fetch(const control_header& asked, const fetch_body& body) {
  if (body.names.empty() || body.names.size() > put_body::most_files) {
    return refuse_(asked, control_type::fetched, errc::invalid_argument);
  }
  fetched_body answer;
  std::size_t room = longest_ - answer_overhead;
  for (const std::string& each : body.names) {
    const std::size_t most = room - std::min(room, content_overhead);
    std::optional<std::vector<std::byte>> content =
        content_now(each, static_cast<std::size_t>(std::min<std::uint64_t>(body.most, longest_)));
    if (content && content->size() > most) {
      // The first that does not fit where nothing else is does not come like this.
      if (!answer.contents.empty()) break;
      content.reset();
    }
    if (room < content_overhead) break;
    room -= content_overhead + (content ? content->size() : 0);
    answer.contents.push_back(std::move(content));
  }
  send_(encode_control(answer_to(asked, control_type::fetched), answer));
}

/// Returns all that is in a file of a store that is not longer, where that is known at once.
std::optional<std::vector<std::byte>> session_contents::content_now(const std::string& name,
                                                                    std::size_t most) const {
  if (!complaint_about_name(name).empty() || catalogue_.find(name)) return std::nullopt;
  if (!rights_.allow(access_right::read, name)) return std::nullopt;
  const catalogue::stored_name found = catalogue_.find_stored(name);
  if (!found.store) return std::nullopt;
  std::optional<store_contents::content> now =
      found.store->contents().content_now(found.path, most);
  if (!now) return std::nullopt;
  return std::move(now->bytes);
}

}  // namespace ucx::detail
