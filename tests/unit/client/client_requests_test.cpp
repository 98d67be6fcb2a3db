// The calls of a client that are requests: about names, in virtual time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "support/files/temporary_directory.hpp"
#include "support/simulated/simulated_server.hpp"
#include "ucx/client.hpp"
#include "ucx/entry.hpp"
#include "ucx/error.hpp"
#include "ucx/request.hpp"
#include "ucx/server.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

/// A server of a writable store with many files, and a client whose worker this thread drives.
class ClientRequests : public testing::Test {
 protected:
  static constexpr std::size_t files = 700;  // some pages
  // The threads of the store get half a minute of real time, and more, before a deadline passes.
  static constexpr std::chrono::milliseconds pause{1};
  static constexpr int rounds = 60000;

  ClientRequests() {
    for (std::size_t i = 0; i < files; ++i) folder_.make("f" + std::to_string(1000 + i), "1234");
    stored_.emplace(served_.server().publish_store(folder_ / "", {.writable = true}));
    asking_.emplace(served_.connect());
  }
  /// Drives both sides until it is done.
  void finish(request& awaited) {
    for (int i = 0; i < rounds && !awaited.done(); ++i) {
      asking_->worker().progress();
      served_.server().worker().progress();
      served_.network.advance(1ms);
    }
    ASSERT_TRUE(awaited.done()) << awaited.description();
  }

  const temporary_directory folder_;
  simulated_server served_{{.pause = pause}};
  std::optional<publication> stored_;
  std::optional<client> asking_;
};

TEST_F(ClientRequests, ListAllPages) {
  std::vector<entry> found(1);
  request listing = asking_->start_list(found);
  EXPECT_FALSE(listing.done());
  EXPECT_EQ(found.size(), 1U) << "it is filled at the end";
  finish(listing);
  EXPECT_FALSE(listing.error()) << listing.description();
  ASSERT_EQ(found.size(), files);
  EXPECT_EQ(found.front().name, "f1000");
  EXPECT_EQ(found.back().name, "f1699");
  directory_listing listed;
  request directory = asking_->start_list_directory("", listed);
  finish(directory);
  EXPECT_FALSE(directory.error()) << directory.description();
  EXPECT_EQ(listed.entries.size(), files);
}

TEST_F(ClientRequests, RunSideBySide) {
  std::vector<entry> found(64);
  std::vector<request> asked;
  for (std::size_t i = 0; i < found.size(); ++i)
    asked.push_back(asking_->start_stat("f" + std::to_string(1000 + i), found[i]));
  for (request& each : asked) finish(each);
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_FALSE(asked[i].error()) << asked[i].description();
    EXPECT_EQ(found[i].name, "f" + std::to_string(1000 + i));
    EXPECT_EQ(found[i].size, 4U);
  }
}

TEST_F(ClientRequests, ChangeNames) {
  request renamed = asking_->start_rename("f1000", "renamed");
  finish(renamed);
  EXPECT_FALSE(renamed.error()) << renamed.description();
  request resized = asking_->start_resize("renamed", 9);
  finish(resized);
  EXPECT_FALSE(resized.error()) << resized.description();
  EXPECT_EQ(std::filesystem::file_size(folder_ / "renamed"), 9U);
  request removed = asking_->start_remove("renamed");
  finish(removed);
  EXPECT_FALSE(removed.error()) << removed.description();
  EXPECT_FALSE(std::filesystem::exists(folder_ / "renamed"));
}

/// The text of a request is that of the blocking call.
TEST_F(ClientRequests, SayWhatTheServerRefuses) {
  entry found;
  request missing = asking_->start_stat("nothing", found);
  finish(missing);
  EXPECT_EQ(missing.error(), errc::no_such_name);
  EXPECT_THAT(missing.description(), HasSubstr("asking about \"nothing\""));
  std::string blocking;
  try {
    asking_->remove("nothing");
  } catch (const error& thrown) {
    blocking = thrown.what();
  }
  request removed = asking_->start_remove("nothing");
  finish(removed);
  EXPECT_EQ(removed.error(), errc::no_such_name);
  EXPECT_THAT(blocking, HasSubstr(removed.description()));
}

TEST_F(ClientRequests, ThatCanNotBeAskedAreDoneAtOnce) {
  entry found;
  request bad = asking_->start_stat(std::string(5000, 'x'), found);
  EXPECT_TRUE(bad.done());
  EXPECT_EQ(bad.error(), errc::bad_name);
  client moved = std::move(*asking_);
  std::vector<entry> all;
  EXPECT_EQ(asking_->start_list(all).error(), errc::closed);
}

TEST_F(ClientRequests, EndWithTheirDeadline) {
  served_.process.stop();
  std::vector<entry> found;
  const auto begin = served_.network.now();
  request listing = asking_->start_list(found, {.timeout = 2s});
  std::error_code ec;
  listing.wait(ec);
  EXPECT_EQ(ec, errc::timed_out);
  EXPECT_LT(served_.network.now() - begin, 3s);
  served_.process.resume();
  EXPECT_EQ(asking_->list().size(), files) << "a late answer is dropped";
  EXPECT_TRUE(found.empty());
}

TEST_F(ClientRequests, AreCanceledInTheMiddle) {
  std::vector<entry> found;
  for (int before = 0; before < 12; ++before) {
    request listing = asking_->start_list(found);
    for (int i = 0; i < before; ++i) {
      asking_->worker().progress();
      served_.server().worker().progress();
      served_.network.advance(1ms);
    }
    listing.cancel();
    std::error_code ec;
    listing.wait(ec);
    if (ec) {
      EXPECT_EQ(ec, errc::canceled);
      EXPECT_TRUE(found.empty());
    }
    found.clear();
  }
  EXPECT_EQ(asking_->list().size(), files);
}

TEST_F(ClientRequests, EndWithTheServer) {
  std::vector<entry> found;
  request listing = asking_->start_list(found);
  stored_.reset();
  served_.made.reset();
  std::error_code ec;
  listing.wait(ec);
  EXPECT_TRUE(ec);
  request late = asking_->start_list(found);
  late.wait(ec);
  EXPECT_TRUE(ec);
}

TEST_F(ClientRequests, EndWithTheirClient) {
  std::vector<entry> found;
  request listing = asking_->start_list(found);
  asking_.reset();
  EXPECT_TRUE(listing.done());
  EXPECT_EQ(listing.error(), errc::closed);
}

TEST_F(ClientRequests, CallTheirHandlers) {
  entry found;
  bool called = false;
  request asked = asking_->start_stat("f1001", found);
  asked.then([&](std::error_code ec) {
    called = true;
    EXPECT_FALSE(ec);
    EXPECT_EQ(found.size, 4U);
  });
  for (int i = 0; i < rounds && !called; ++i) {
    asking_->worker().progress();
    served_.server().worker().progress();
    served_.network.advance(1ms);
  }
  EXPECT_TRUE(called);
}

}  // namespace
}  // namespace ucx::test
