// What a client makes of a server's stores where the server says what can not be.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "connection/channel.hpp"
#include "connection/endpoint_channel.hpp"
#include "connection/endpoint_core.hpp"
#include "support/basics/soon.hpp"
#include "ucx/client.hpp"
#include "ucx/context.hpp"
#include "ucx/error.hpp"
#include "ucx/fstream.hpp"
#include "ucx/listener.hpp"
#include "ucx/many_files.hpp"
#include "ucx/memory_region.hpp"
#include "ucx/ticket.hpp"
#include "ucx/url.hpp"
#include "ucx/worker.hpp"
#include "wire/control_message.hpp"
#include "wire/frame.hpp"
#include "worker/core_access.hpp"
#include "worker/worker_core.hpp"

namespace ucx::test {
namespace {

using namespace detail;
using namespace std::chrono_literals;
using packed = std::vector<std::byte>;

/// Answers each question as the test says, and greets.
class scripted_session final : public channel_receiver {
 public:
  using script = std::function<std::optional<packed>(control_header, std::span<const std::byte>)>;
  scripted_session(endpoint_core& peer, const script& told, std::uint64_t features)
      : channel_(peer), told_(told), features_(features) {}

  void received(std::span<const std::byte> asked) override {
    const std::optional<control_header> header = decode_control(asked);
    if (!header) return;
    control_header answer;
    answer.request = header->request;
    if (header->type == control_type::hello) {
      answer.type = control_type::welcome;
      welcome_body welcome;
      welcome.features = features_;
      return channel_.send(encode_control(answer, welcome));
    }
    answer.type = header->type;
    if (const std::optional<packed> said = told_(answer, asked)) channel_.send(*said);
  }
  void ended(std::error_code) noexcept override {}

 private:
  endpoint_channel channel_;
  const script& told_;
  const std::uint64_t features_;
};

/// A server whose one region has 64 KiB, whatever it says.
class HostileStore : public testing::Test, private control_server {
 protected:
  static constexpr std::size_t size = std::size_t{64} << 10U;

  HostileStore() {
    const std::lock_guard guard(core_access::core(driver_)->lock());
    core_access::core(driver_)->set_control_server(this);
  }
  ~HostileStore() override {
    const std::lock_guard guard(core_access::core(driver_)->lock());
    core_access::core(driver_)->set_control_server(nullptr);
  }

  url at(const std::string& name = {}) const {
    return url("127.0.0.1", listening_.address().port(), name);
  }
  /// Has files opened with this limit and window.
  void open_with(std::uint64_t limit, std::uint64_t window) {
    script_ = [this, limit, window](control_header answer, std::span<const std::byte>) {
      if (answer.type == control_type::commit) {
        answer.type = control_type::described;
        return encode_control(answer, described_body{{.name = "file"}});
      }
      answer.type = control_type::opened;
      opened_body body{{.name = "file"}, region_.descriptor().encode(), limit, window, true};
      return encode_control(answer, body);
    };
  }

  context parent_{{.transports = {"tcp"}, .devices = {"lo"}, .share_memory = false}};
  std::vector<std::byte> memory_ = std::vector<std::byte>(size);
  memory_region region_{parent_, std::span<std::byte>(memory_), access::read_write};
  scripted_session::script script_;
  std::uint64_t features_ = control_feature::stores | control_feature::contents;

 private:
  void accept(endpoint_core& peer) override {
    sessions_.push_back(std::make_unique<scripted_session>(peer, script_, features_));
    peer.control().set_receiver(sessions_.back().get());
  }

  std::vector<std::unique_ptr<scripted_session>> sessions_;
  worker driver_{parent_, {.progress = progress_mode::sleeping_thread}};
  listener listening_{driver_, socket_address("127.0.0.1:0")};
};

constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();

TEST_F(HostileStore, LimitsAreOnlyWhatTheOwnerRefusesBy) {
  const std::vector<std::byte> bytes(10'000, std::byte{7});
  for (const std::uint64_t limit : {std::uint64_t{1}, std::uint64_t{size - 1}, std::uint64_t{size},
                                    std::uint64_t{size + 1}, most >> 1U, most - 1, most}) {
    for (const std::uint64_t window :
         {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{4095}, std::uint64_t{1} << 20U, most}) {
      SCOPED_TRACE(std::to_string(limit) + " " + std::to_string(window));
      open_with(limit, window);
      client asking(at());
      remote_region file = asking.create("file", {.readable = true});
      std::fill(memory_.begin(), memory_.end(), std::byte{});
      for (std::uint64_t i = 0; i < 6; ++i) file.write_at(i * bytes.size(), bytes);
      file.flush();
      EXPECT_EQ(std::count(memory_.begin(), memory_.end(), std::byte{7}), 60'000);
      std::error_code ec;
      file.write_at(size, bytes, {}, ec);
      if (!ec) file.flush({}, ec);
      EXPECT_TRUE(ec == errc::out_of_range || ec == errc::no_space) << ec.message();
      ec.clear();
      file.write_at(most - 5'000, bytes, {}, ec);
      EXPECT_TRUE(ec == errc::out_of_range || ec == errc::no_space) << ec.message();
      ec.clear();
      file.write_at(most - bytes.size(), bytes, {}, ec);
      if (!ec) file.flush({}, ec);
      EXPECT_TRUE(ec == errc::out_of_range || ec == errc::no_space) << ec.message();
    }
  }
}

TEST_F(HostileStore, LimitsDoNotLeadAStreamAstray) {
  for (const std::uint64_t limit : {std::uint64_t{1}, std::uint64_t{size + 1}, most}) {
    for (const std::uint64_t window : {std::uint64_t{0}, std::uint64_t{1}, most}) {
      SCOPED_TRACE(std::to_string(limit) + " " + std::to_string(window));
      open_with(limit, window);
      client asking(at());
      ofstream out(asking, "file");
      ASSERT_TRUE(out) << out.error_message();
      out << std::string(size, 'x') << std::flush;
      EXPECT_TRUE(out) << out.error_message();
      EXPECT_EQ(memory_.back(), std::byte{'x'});
      out.seekp(std::numeric_limits<std::streamoff>::max() - 2);
      out << "long" << std::flush;
      EXPECT_FALSE(out);
      out.close();
      EXPECT_FALSE(out);
    }
  }
}

TEST_F(HostileStore, OpenedAsSomethingElseIsBlamed) {
  client asking(at());
  script_ = [this](control_header answer, std::span<const std::byte>) {
    answer.type = control_type::opened;
    return encode_control(answer, opened_body{{.name = "another"}, region_.descriptor().encode()});
  };
  std::error_code ec;
  asking.create("file", {}, {}, ec);
  EXPECT_EQ(ec, errc::protocol_error);
}

TEST_F(HostileStore, ListsThatDoNotGoOnAreBlamed) {
  struct page {
    std::vector<std::string> names;
    bool more;
  };
  const auto lists = [this](const page& told) {
    script_ = [told](control_header answer, std::span<const std::byte>) {
      answer.type = control_type::listed;
      listed_body body;
      body.more = told.more;
      for (const std::string& each : told.names) body.entries.push_back({.name = each});
      return encode_control(answer, body);
    };
  };
  std::error_code ec;
  for (const page& each : std::vector<page>{{{}, true},
                                            {{"d/a"}, true},  // the same page again and again
                                            {{"d/b", "d/a"}, false},
                                            {{"d/a", "d/a"}, false}}) {
    lists(each);
    client asking(at());
    EXPECT_TRUE(asking.list({}, ec).empty());
    EXPECT_EQ(ec, errc::protocol_error);
    EXPECT_TRUE(asking.list_directory("d", {}, ec).entries.empty());
    EXPECT_EQ(ec, errc::protocol_error);
  }
  for (const std::string wrong : {"d", "d/", "e", "d/..", "d/.", "d/a/b", "d/../e", "d//a", "da"}) {
    lists({{wrong}, false});
    client asking(at());
    EXPECT_TRUE(asking.list_directory("d", {}, ec).entries.empty()) << wrong;
    EXPECT_EQ(ec, errc::protocol_error) << wrong;
  }
  lists({{"d/a", "d/b"}, false});
  client asking(at());
  EXPECT_EQ(asking.list_directory("d", {}, ec).entries.size(), 2U);
  EXPECT_FALSE(ec) << ec.message();
}

TEST_F(HostileStore, SendsOtherContentsThanItWasAskedFor) {
  using contents = decltype(fetched_body::contents);
  const packed some(8, std::byte{7});
  for (const contents& each :
       {contents{}, contents{some, some, some}, contents{packed(9, std::byte{7}), some}}) {
    SCOPED_TRACE(each.size());
    script_ = [&each](control_header answer, std::span<const std::byte>) {
      answer.type = control_type::fetched;
      return encode_control(answer, fetched_body{each});
    };
    client asking(at());
    const std::vector<std::string> names{"a", "b"};
    const std::vector<read_result> fetched = read_many(asking, names, 8);
    EXPECT_EQ(fetched.at(0).error, errc::protocol_error);
    EXPECT_TRUE(fetched.at(0).bytes.empty());
  }
}

TEST_F(HostileStore, SendsFilesOneByOne) {
  script_ = [](control_header answer, std::span<const std::byte> asked) -> std::optional<packed> {
    const std::optional<fetch_body> names = decode_fetch(asked);
    if (!names) return std::nullopt;  // a farewell
    answer.type = control_type::fetched;
    const std::size_t length = names->names.at(0).size();
    return encode_control(answer, fetched_body{{packed(length, std::byte{7})}});
  };
  client asking(at());
  const std::vector<std::string> names{"a", "bb", "ccc"};
  const std::vector<read_result> fetched = read_many(asking, names, 8);
  for (std::size_t i = 0; i < names.size(); ++i) {
    EXPECT_FALSE(fetched.at(i).error);
    EXPECT_EQ(fetched.at(i).bytes.size(), i + 1);
  }
}

TEST_F(HostileStore, TellsMoreOutcomesThanThereWereFiles) {
  script_ = [](control_header answer, std::span<const std::byte>) {
    answer.type = control_type::stored;
    return encode_control(answer, stored_body{{{}, {}, {}}});
  };
  client asking(at());
  const std::vector<short_file> files(2, short_file{.name = "f"});
  const std::vector<std::error_code> outcomes = write_many(asking, files);
  ASSERT_EQ(outcomes.size(), 2U);
  EXPECT_EQ(outcomes[0], errc::protocol_error);
  EXPECT_EQ(outcomes[1], errc::protocol_error);
}

TEST_F(HostileStore, IsAskedForNoMoreWhereItDoesNotAnswerInTime) {
  // A question may arrive behind the test.
  struct counts {
    std::atomic<int> puts{0};
    std::atomic<int> fetches{0};
    std::atomic<int> opens{0};
  };
  const auto asked = std::make_shared<counts>();
  script_ = [asked](control_header answer, std::span<const std::byte>) {
    if (answer.type == control_type::put) ++asked->puts;
    if (answer.type == control_type::fetch) ++asked->fetches;
    if (answer.type == control_type::open) ++asked->opens;
    return std::optional<packed>();
  };
  client asking(at());
  const io_options soon{.timeout = 100ms};
  const std::vector<short_file> files(2000, short_file{.name = "f"});
  for (const std::error_code& each : write_many(asking, files, creation::replace, soon)) {
    EXPECT_EQ(each, errc::timed_out);
  }
  const std::vector<std::string> names(300, "f");
  for (const read_result& each : read_many(asking, names, 100, soon)) {
    EXPECT_EQ(each.error, errc::timed_out);
  }
  const std::vector<open_result> opened = open_many(asking, names, access::read, soon);
  ASSERT_EQ(opened.size(), names.size());
  for (const open_result& each : opened) EXPECT_EQ(each.error, errc::timed_out);
  EXPECT_LE(asked->puts, 4) << "256 files, 64 a message";
  EXPECT_LE(asked->fetches, 6) << "64 names, 12 a message";
  EXPECT_LE(asked->opens, 64);
  EXPECT_EQ(asking.statistics().failures, files.size() + 2 * names.size());
}

TEST_F(HostileStore, IsAskedAgainForWhatItHadNoRoomFor) {
  const auto refusals = std::make_shared<std::atomic<int>>(3);
  script_ = [refusals](control_header answer, std::span<const std::byte> asked) {
    answer.type = control_type::stored;
    if ((*refusals)-- > 0) {
      answer.status = error_status(errc::busy);
      return encode_control(answer);
    }
    const std::optional<put_body> body = decode_put(asked);
    const std::size_t count = body ? body->files.size() : 0;
    return encode_control(answer, stored_body{std::vector<std::error_code>(count)});
  };
  client asking(at());
  const std::vector<short_file> files(100, short_file{.name = "f"});
  for (const std::error_code& each : write_many(asking, files)) EXPECT_FALSE(each);
  EXPECT_LT(*refusals, 0);
  *refusals = 1 << 20;
  const io_options soon{.timeout = 100ms};
  for (const std::error_code& each : write_many(asking, files, creation::replace, soon)) {
    EXPECT_TRUE(each == errc::busy || each == errc::timed_out) << each.message();
  }
}

/// One from before tickets lets a client in that shows one, as if it had shown none.
TEST_F(HostileStore, IsLeftWhereItKnowsNoTickets) {
  const auto left = std::make_shared<std::atomic<int>>(0);
  const auto asked = std::make_shared<std::atomic<int>>(0);
  script_ = [left, asked](control_header answer, std::span<const std::byte>) {
    ++*(answer.type == control_type::bye ? left : asked);
    return std::optional<packed>();
  };
  std::error_code ec;
  const client none = ticket().connect(at(), {}, ec);
  EXPECT_EQ(ec, errc::not_supported) << ec.message();
  EXPECT_TRUE(soon([&] { return *left == 1; }));
  client lender(at());
  ticket().lend(lender, {}, ec);
  EXPECT_EQ(ec, errc::not_supported) << ec.message();
  EXPECT_EQ(*asked, 0);
}

/// What is asked of a server from before short files travelled whole.
TEST_F(HostileStore, IsWrittenOneByOneWhereItIsOld) {
  features_ = control_feature::stores;
  open_with(size, std::uint64_t{1} << 20U);
  client asking(at());
  const std::string text = "text";
  const std::vector<short_file> files(2, short_file{"file", std::as_bytes(std::span(text))});
  for (const std::error_code& each : write_many(asking, files)) {
    EXPECT_FALSE(each) << each.message();
  }
  EXPECT_EQ(std::memcmp(memory_.data(), text.data(), text.size()), 0);
  std::error_code ec;
  asking.make_directory("directory", {}, ec);
  EXPECT_EQ(ec, errc::not_supported);
}

}  // namespace
}  // namespace ucx::test
