// The order in which the operations of a remote_file take effect, and what canceling all of a
// worker's operations does to calls that block, in virtual time.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "support/basics/soon.hpp"
#include "support/bytes/bytes_of.hpp"
#include "support/simulated/stored_files.hpp"
#include "ucx/client.hpp"
#include "ucx/entry.hpp"
#include "ucx/error.hpp"
#include "ucx/remote_file.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/request.hpp"
#include "ucx/scheduled_call.hpp"
#include "ucx/worker.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

class FileOrder : public testing::Test {
 protected:
  static constexpr int states = 10;

  /// The server may not have thrown away yet what had the name before.
  remote_file make(const std::string& name = "made", std::chrono::nanoseconds timeout = {}) {
    std::optional<remote_file> made;
    std::error_code ec;
    soon([&] {
      made.emplace(
          *at_.asking, name,
          remote_file_options{
              .wanted = access::read_write, .create = creation::replace, .timeout = timeout},
          ec);
      return ec != errc::busy;
    });
    EXPECT_FALSE(ec) << ec.message();
    return std::move(*made);
  }
  std::string content() const { return content_of(at_.folder / "made"); }

  stored_files at_{{.latency = 2ms}};
  const std::span<const std::byte> text_ = bytes_of("0123456789");
};

TEST_F(FileOrder, WritesWaitForAnEarlierResize) {
  remote_file file = make();
  request first = file.start_write_at(0, text_);
  request cut = file.start_resize(4);
  request behind = file.start_write_at(6, text_.first(2));
  std::vector<std::byte> into(100);
  std::size_t count = 0;
  request reading = file.start_read_at(0, into, count);
  request longer = file.start_resize(9);
  request last = file.start_write_at(4, text_.first(1));
  request synced = file.start_sync();
  for (request* each : {&first, &cut, &behind, &reading, &longer, &last, &synced}) {
    at_.succeed(std::move(*each));
  }
  EXPECT_EQ(count, 8U) << "it was read before the second resize";
  file.close();
  EXPECT_EQ(content(), std::string("0123\0\0"
                                   "01\0",
                                   9)
                           .replace(4, 1, "0"));
}

TEST_F(FileOrder, ResizesAndCommitsWaitForEachOther) {
  remote_file file = make();
  request first = file.start_write_at(0, text_);
  request committed = file.start_commit();
  request cut = file.start_resize(4);
  request again = file.start_commit();
  request longer = file.start_resize(6);
  request closed = file.start_close();
  for (request* each : {&first, &committed, &cut, &again, &longer, &closed}) {
    at_.succeed(std::move(*each));
  }
  EXPECT_EQ(content(), std::string("0123\0\0", 6));
}

/// The server may have begun with a resize that was given up. It cuts nothing that is written
/// behind it.
TEST_F(FileOrder, WritesWaitForAResizeThatWasGivenUp) {
  for (int state = 0; state < states; ++state) {
    SCOPED_TRACE(state);
    remote_file file = make();
    request first = file.start_write_at(0, text_);
    request cut = file.start_resize(0);
    for (int i = 0; i < state; ++i) at_.round();
    cut.cancel();
    EXPECT_TRUE(cut.done());
    request behind = file.start_write_at(3, text_.first(2));
    request closed = file.start_close();
    at_.succeed(std::move(behind));
    at_.succeed(std::move(closed));
    at_.finish(first);
    const std::string made = content();
    EXPECT_TRUE(made == std::string("\0\0\0"
                                    "01",
                                    5) ||
                made == "0120156789")
        << made.size();
  }
}

/// Each lets the next one in when it ends, which it does at once.
TEST_F(FileOrder, OfVeryManyThatFailTogetherNeedsNoDeepStack) {
  remote_file file = make();
  at_.served.process.stop();
  const request cut = file.start_resize(4);
  std::vector<request> behind;
  for (int i = 0; i < 20'000; ++i) behind.push_back(file.start_write_at(0, text_.first(1)));
  at_.served.process.kill();
  std::error_code ec;
  behind.back().wait(ec);
  EXPECT_EQ(ec, errc::connection_reset);
  for (const request& each : behind) EXPECT_TRUE(each.done());
  EXPECT_TRUE(cut.done());
}

TEST_F(FileOrder, OneThatIsGivenUpWhileItWaitsHoldsUpNobody) {
  remote_file file = make();
  file.write_at(0, text_);
  request cut = file.start_resize(4);
  request behind = file.start_write_at(0, text_.first(2));
  request longer = file.start_resize(8);
  behind.cancel();
  longer.cancel();
  EXPECT_EQ(behind.error(), errc::canceled);
  EXPECT_EQ(longer.error(), errc::canceled);
  at_.succeed(file.start_sync());
  at_.succeed(std::move(cut));
  std::error_code ec;
  file.commit(ec);
  EXPECT_EQ(ec, errc::canceled) << "a write is missing";
  file.write_at(0, text_.first(2));
  file.close();
  EXPECT_EQ(content(), "0123");
}

TEST_F(FileOrder, WhatWaitsEndsWithTheServer) {
  remote_file file = make();
  request cut = file.start_resize(4);
  request behind = file.start_write_at(0, text_);
  request closed = file.start_close();
  at_.served.process.kill();
  std::error_code ec;
  for (request* each : {&cut, &behind, &closed}) {
    each->wait(ec);
    EXPECT_EQ(ec, errc::connection_reset);
  }
}

TEST_F(FileOrder, WhatWaitsHasItsDeadline) {
  remote_file file = make("made", 2s);
  file.write_at(0, text_);
  file.sync();
  at_.served.process.stop();
  const auto start = at_.served.network.now();
  request cut = file.start_resize(4);
  request behind = file.start_write_at(0, text_.first(1));
  std::error_code ec;
  behind.wait(ec);
  EXPECT_EQ(ec, errc::timed_out);
  cut.wait(ec);
  EXPECT_EQ(ec, errc::timed_out);
  EXPECT_LE(at_.served.network.now() - start, 2s + 100ms);
  at_.served.process.resume();
  at_.succeed(file.start_write_at(0, text_.first(6)));
  file.close();
  EXPECT_EQ(content(), "012345") << "it waited for the answer";
}

/// Writes that were canceled are missing, though a flush behind them may have been given up, too.
TEST_F(FileOrder, ACloseGivesNoNameToWhatCanceledWritesHaveLeft) {
  for (int state = 0; state < states; ++state) {
    SCOPED_TRACE(state);
    remote_file file = make();
    request writing = file.start_write_at(0, text_);
    for (int i = 0; i < state; ++i) at_.round();
    request closed = file.start_close();
    at_.asking->worker().cancel_all();
    at_.finish(closed);
    std::error_code ec;
    const bool has_name = at_.asking->exists("made");
    if (has_name) {
      EXPECT_EQ(content(), "0123456789");
    }
    at_.asking->remove("made", {}, ec);
  }
}

TEST_F(FileOrder, CanceledWritesMayBeWrittenAgain) {
  remote_file file = make();
  request writing = file.start_write_at(0, text_);
  writing.cancel();
  at_.finish(writing);
  std::error_code ec;
  file.sync(ec);
  if (writing.error()) {
    file.commit(ec);
    EXPECT_EQ(ec, errc::canceled);
  }
  file.write_at(0, text_);
  file.close();
  EXPECT_EQ(content(), "0123456789");
}

/// A handler that cancels everything in each round, as another thread would.
class CancelAllBeside : public FileOrder {
 protected:
  int canceled_ = 0;
  const scheduled_call canceling_ = at_.asking->worker().call_every(1ms, [this] {
    ++canceled_;
    at_.asking->worker().cancel_all();
  });
};

TEST_F(CancelAllBeside, CallsOfAClientGoOn) {
  const std::vector<std::byte> much(3'000'000, std::byte{5});
  remote_region file = at_.asking->create("made", {.readable = true});
  at_.asking->resize(file, 20);
  request writing = file.start_write_at(0, much);
  const entry committed = at_.asking->commit(file);
  EXPECT_EQ(committed.size, much.size());
  writing.wait();
  EXPECT_EQ(at_.asking->digest(file, {.offset = 0, .length = 9, .chunk = 9}).size(), 1U);
  EXPECT_EQ(at_.asking->refresh_size(file).size, much.size());
  EXPECT_EQ(at_.asking->stat("made").size, much.size());
  EXPECT_EQ(std::filesystem::file_size(at_.folder / "made"), much.size());
  EXPECT_GT(canceled_, 10);
}

TEST_F(CancelAllBeside, CallsOfAFileGoOn) {
  const std::vector<std::byte> much(3'000'000, std::byte{5});
  remote_file file = make();
  file.write_at(0, much);
  file.write_at(much.size(), text_);
  file.sync();
  file.resize(much.size() + 4);
  std::vector<std::byte> into(1000);
  EXPECT_EQ(file.read_at(much.size(), into), 4U);
  file.write_at(0, text_);
  file.commit();
  file.write_at(10, text_);
  file.close();
  EXPECT_EQ(content().size(), much.size() + 4);
  EXPECT_EQ(content().substr(0, 20), "01234567890123456789");
  EXPECT_GT(canceled_, 10);
}

TEST_F(CancelAllBeside, RequestsAreCanceled) {
  std::vector<entry> found;
  request listing = at_.asking->start_list(found);
  at_.finish(listing);
  EXPECT_EQ(listing.error(), errc::canceled);
  remote_file file = make();
  request committing = file.start_commit();
  at_.finish(committing);
  EXPECT_EQ(committing.error(), errc::canceled);
}

}  // namespace
}  // namespace ucx::test
