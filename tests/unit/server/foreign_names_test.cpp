// A client with rights on one name sends each kind of control message about other names: it learns
// nothing, and changes nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "connection/channel.hpp"
#include "connection/endpoint_channel.hpp"
#include "file/file_hasher.hpp"
#include "file/file_watcher.hpp"
#include "server/catalogue.hpp"
#include "server/server_core.hpp"
#include "server/server_session.hpp"
#include "support/basics/soon.hpp"
#include "support/files/store_directories.hpp"
#include "support/simulated/simulated_server.hpp"
#include "ucx/access_rules.hpp"
#include "ucx/error.hpp"
#include "ucx/publication.hpp"
#include "ucx/remote_descriptor.hpp"
#include "wire/control_message.hpp"
#include "wire/frame.hpp"
#include "worker/core_access.hpp"

namespace ucx::test {
namespace {

using namespace detail;

using control_bytes = std::vector<std::byte>;

/// What a client says of something that it has no right to.
struct foreign_subject {
  std::string name;
  std::uint64_t region = 0;
};

/// The only name that the client may use.
constexpr const char* own_name = "one";
constexpr std::uint64_t asked_request = 7;

control_header asked_for(control_type type) {
  control_header made;
  made.type = type;
  made.request = asked_request;
  return made;
}

/// Returns the messages of this kind about the subject; none of a kind that is not known here. A
/// new kind needs its rows: without them this does not compile, and `HasARowForEachKind` fails.
std::vector<control_bytes> said_of(control_type type, const foreign_subject& about) {
  const control_header asked = asked_for(type);
  const auto message = [&](const auto& body) { return encode_control(asked, body); };
  switch (type) {
    case control_type::hello:
      return {message(hello_body{.features = control_feature::all}),
              message(hello_body{.features = control_feature::all, .ticket = ticket_secret{}})};
    case control_type::welcome:
      return {message(welcome_body{.features = control_feature::all, .identity = about.name})};
    case control_type::open:
      return {message(open_body{about.name, access::read}),
              message(open_body{about.name, access::write}),
              message(open_body{about.name, access::read_write})};
    case control_type::opened:
      return {message(opened_body{.described = {.name = about.name}})};
    case control_type::stat:
      return {message(stat_body{about.name})};
    case control_type::described:
      return {message(described_body{{.name = about.name}})};
    case control_type::list:
      return {message(list_body{.after = about.name}), message(list_body{.directory = about.name})};
    case control_type::listed:
      return {message(listed_body{.entries = {{.name = about.name}}})};
    case control_type::revoke:
      return {message(revoke_body{about.region, about.name})};
    case control_type::bye:
      return {encode_control(asked)};
    case control_type::create: {
      std::vector<control_bytes> all;
      for (const create_mode mode : {create_mode::replace, create_mode::fresh, create_mode::append,
                                     create_mode::overwrite}) {
        for (const access wanted : {access::write, access::read_write}) {
          all.push_back(message(create_body{about.name, wanted, mode}));
        }
      }
      return all;
    }
    case control_type::commit:
      return {message(commit_body{about.region, false, false}),
              message(commit_body{about.region, true, true})};
    case control_type::done:
      return {encode_control(asked)};
    case control_type::release:
      return {message(release_body{about.region})};
    case control_type::remove:
      return {message(remove_body{about.name})};
    case control_type::rename:
      return {message(rename_body{about.name, "taken", false}),
              message(rename_body{about.name, own_name, false}),
              message(rename_body{own_name, about.name, false}),
              message(rename_body{own_name, about.name, true})};
    case control_type::resize:
      return {message(resize_body{about.name, 1, 0}), message(resize_body{"", 1, about.region})};
    case control_type::measure:
      return {message(measure_body{about.region, 0, 0}),
              message(measure_body{about.region, 6, 1'000'000})};
    case control_type::digest:
      return {message(digest_body{about.region, 0, 4, 4})};
    case control_type::digested:
      return {message(digested_body{})};
    case control_type::put:
      return {message(put_body{false, false, {{about.name, control_bytes(3)}}}),
              message(put_body{true, true, {{about.name, control_bytes(3)}}})};
    case control_type::stored:
      return {message(stored_body{})};
    case control_type::fetch:
      return {message(fetch_body{1000, {about.name}})};
    case control_type::fetched:
      return {message(fetched_body{})};
    case control_type::make_directory:
      return {message(make_directory_body{about.name})};
    case control_type::lend:
      return {message(lend_body{})};
  }
  return {};
}

/// Returns each kind that the decoder of this library reads.
std::vector<control_type> all_control_types() {
  std::vector<control_type> all;
  control_bytes message = encode_control(control_header{});
  for (unsigned value = 0; value < 256; ++value) {
    message[3] = static_cast<std::byte>(value);
    const auto read = decode_control(message);
    if (read) all.push_back(read->type);
  }
  return all;
}

/// Keeps what a session says, and what it grants.
struct foreign_channel_log {
  std::vector<control_bytes> sent;
  std::error_code blamed;
  std::vector<std::uint64_t> grants;
  std::vector<move_only_handler<>> turns;
};

class foreign_channel final : public channel {
 public:
  explicit foreign_channel(foreign_channel_log& by) : kept_(by) {}
  void send(std::span<const std::byte> bytes) override {
    kept_.sent.emplace_back(bytes.begin(), bytes.end());
  }
  std::size_t longest() const noexcept override { return 4000; }
  std::size_t unsent() const noexcept override { return 0; }
  void take_turn(move_only_handler<> work) override { kept_.turns.push_back(std::move(work)); }
  void blame(std::error_code why, const std::string&) override { kept_.blamed = why; }
  peer_reach reach() const noexcept override { return {}; }
  peer_facts facts() const override { return {}; }
  void grant(std::uint64_t region, access) override { kept_.grants.push_back(region); }
  void end_grant(std::uint64_t region) noexcept override { std::erase(kept_.grants, region); }
  void end_grants() noexcept override { kept_.grants.clear(); }

 private:
  foreign_channel_log& kept_;
};

/// A server of a store and of memory; sessions of the owner, and of a client with one name.
class ForeignNames : public Store {
 protected:
  ForeignNames() {
    store_ = served_.server().publish_store(root(), {.writable = true});
    memory_ = served_.server().publish("memory", std::span(bytes_), access::read_write);
    rules_.rules = core_access::lines(access_rules().allow("anybody", access_right::all, own_name));
  }
  ~ForeignNames() override { settle(); }

  /// A session that has been greeted.
  std::unique_ptr<server_session> session(foreign_channel_log& log, const session_policy& policy) {
    auto made = std::make_unique<server_session>(std::make_unique<foreign_channel>(log),
                                                 core_access::core(served_.server())->names(),
                                                 watcher_, hasher_, counters_, policy, [] {});
    made->received(encode_control(asked_for(control_type::hello),
                                  hello_body{.features = control_feature::all}));
    EXPECT_EQ(log.sent.size(), 1U);
    log.sent.clear();
    return made;
  }
  void pump(foreign_channel_log& log) {
    served_.server().worker().progress();
    if (log.turns.empty()) return;
    move_only_handler<> next = std::move(log.turns.front());
    log.turns.erase(log.turns.begin());
    next();
  }
  void settle() {
    for (int i = 0; i < 20; ++i) served_.server().worker().progress();
  }
  /// Returns all that is answered, and whether the client is blamed.
  std::pair<std::vector<control_bytes>, std::error_code> answers_to(const control_bytes& said) {
    foreign_channel_log log = heard_after(said);
    EXPECT_TRUE(log.grants.empty()) << "a region was granted";
    return {std::move(log.sent), log.blamed};
  }
  /// Has the client say that, and returns what comes of it.
  foreign_channel_log heard_after(const control_bytes& said) {
    foreign_channel_log log;
    const auto asking = session(log, rules_);
    asking->received(said);
    const auto header = decode_control(said);
    const bool is_answered = header && !has_no_answer(*header);
    EXPECT_TRUE(soon([&] {
      pump(log);
      return !is_answered || !log.sent.empty() || log.blamed;
    })) << "no answer";
    for (int i = 0; i < 4; ++i) pump(log);
    return {std::move(log.sent), log.blamed, log.grants, {}};
  }
  /// Opens a name as one that may do all.
  std::uint64_t opened(server_session& by, foreign_channel_log& log, const std::string& name) {
    log.sent.clear();
    by.received(encode_control(asked_for(control_type::open), open_body{name, access::read}));
    EXPECT_TRUE(soon([&] {
      pump(log);
      return !log.sent.empty();
    }));
    const auto told = log.sent.empty() ? std::nullopt : decode_opened(log.sent.back());
    if (!told) {
      ADD_FAILURE() << name << " was not opened";
      return 0;
    }
    return remote_descriptor::decode(told->descriptor).region;
  }
  /// Returns each file of the store, with its content.
  std::vector<std::string> files() const {
    std::vector<std::string> all;
    for (const auto& each : std::filesystem::recursive_directory_iterator(root())) {
      std::ostringstream text;
      text << each.path().string();
      if (each.is_regular_file()) text << ": " << std::ifstream(each.path()).rdbuf();
      all.push_back(text.str());
    }
    std::sort(all.begin(), all.end());
    return all;
  }
  static bool holds_text(const control_bytes& all, std::string_view text) {
    const auto part = std::as_bytes(std::span(text));
    return std::search(all.begin(), all.end(), part.begin(), part.end()) != all.end();
  }

  std::array<std::byte, 64> bytes_ = {};
  simulated_server served_;
  publication store_;
  publication memory_;
  file_watcher watcher_{[](const disk_queue::answer& answer) { answer(); }};
  file_hasher hasher_{[](const disk_queue::answer& answer) { answer(); }};
  session_counters counters_ = [] {
    session_counters made;
    made.most = 1000;
    return made;
  }();
  session_policy rules_;
};

TEST_F(ForeignNames, HasARowForEachKind) {
  const std::vector<control_type> all = all_control_types();
  EXPECT_EQ(all.size(), 26U);
  for (const control_type each : all) {
    EXPECT_FALSE(said_of(each, {"x", 1}).empty()) << static_cast<int>(each);
    for (const control_bytes& said : said_of(each, {"x", 1})) {
      EXPECT_EQ(decode_control(said)->type, each);
    }
  }
}

/// Each pair is of one that is there, and one that is not.
TEST_F(ForeignNames, TellOfWhatIsThereNoMoreThanOfWhatIsNot) {
  foreign_channel_log owners;
  const auto owner = session(owners, {});
  const std::uint64_t memory = opened(*owner, owners, "memory");
  const std::uint64_t file = opened(*owner, owners, "a/two");
  const std::vector<std::pair<foreign_subject, foreign_subject>> pairs{
      {{"memory", memory}, {"nothing", memory + 1}},
      {{"a/two", file}, {"b/two", file + 1}},
      {{"a", file}, {"b", file + 1}},
      {{"a.txt", memory}, {"b.txt", file + 1}}};
  const std::vector<std::string> before = files();
  for (const control_type type : all_control_types()) {
    for (const auto& [there, missing] : pairs) {
      const std::vector<control_bytes> of_this = said_of(type, there);
      const std::vector<control_bytes> of_that = said_of(type, missing);
      ASSERT_EQ(of_this.size(), of_that.size());
      for (std::size_t i = 0; i < of_this.size(); ++i) {
        SCOPED_TRACE("kind " + std::to_string(static_cast<int>(type)) + ", row " +
                     std::to_string(i) + ", " + there.name);
        const auto told = answers_to(of_this[i]);
        EXPECT_EQ(told, answers_to(of_that[i]));
        for (const control_bytes& each : told.first) {
          for (const std::string_view hidden : {"memory", "a/two", "a.txt", "second", "between"}) {
            EXPECT_FALSE(holds_text(each, hidden)) << hidden;
          }
        }
      }
    }
  }
  EXPECT_EQ(files(), before);
  EXPECT_TRUE(std::ranges::all_of(bytes_, [](std::byte each) { return each == std::byte{0}; }));
  // The owner still has what it has opened.
  EXPECT_EQ(owners.grants.size(), 2U);
}

/// The questions are well-formed: of what the client may use they are answered otherwise.
TEST_F(ForeignNames, AreAskedForAsOnesOwnNameIs) {
  const auto outcome = [&](control_type type, std::size_t row) -> std::error_code {
    const auto answers = heard_after(said_of(type, {own_name, 0})[row]).sent;
    EXPECT_FALSE(answers.empty());
    return answers.empty() ? std::error_code() : status_error(decode_control(answers[0])->status);
  };
  EXPECT_FALSE(outcome(control_type::open, 0));
  EXPECT_FALSE(outcome(control_type::stat, 0));
  EXPECT_FALSE(outcome(control_type::resize, 0));
  EXPECT_FALSE(outcome(control_type::put, 0));
  EXPECT_EQ(outcome(control_type::make_directory, 0), errc::already_exists);
  EXPECT_FALSE(outcome(control_type::create, 0));
  EXPECT_FALSE(outcome(control_type::remove, 0));
}

}  // namespace
}  // namespace ucx::test
