#include "engine/reopening_source.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/stream_engine.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

using namespace std::chrono_literals;
using use = reopening_source::use;

/// A file on a server, and how the server is.
struct remote_thing {
  std::string bytes = {};
  content_id id = {1, 1};
  std::error_code status = {};
  std::size_t reads_left = 1'000'000;  // then the connection is lost
  bool unnamed = false;
  bool committed = false;
  int measured = 0;
  bool loses_who_measures = false;
  std::vector<std::chrono::nanoseconds> waits = {};
};

class thing_source final : public byte_source {
 public:
  explicit thing_source(remote_thing& of) : thing_(of) {}
  std::uint64_t size() const noexcept override { return thing_.bytes.size(); }
  std::uint64_t limit() const noexcept override { return 1 << 20; }
  bool can_be_measured() const noexcept override { return true; }
  std::uint64_t measure(std::uint64_t, std::chrono::nanoseconds wait) override {
    thing_.waits.push_back(wait);
    if (thing_.loses_who_measures) thing_.status = errc::connection_reset;
    check();
    ++thing_.measured;
    return thing_.bytes.size();
  }
  void commit() override {
    check();
    thing_.committed = true;
  }
  bool is_unnamed() const noexcept override { return thing_.unnamed; }
  request start_read_at(std::uint64_t offset, std::span<std::byte> into) override {
    if (thing_.reads_left == 0) thing_.status = errc::connection_reset;
    check();
    --thing_.reads_left;
    std::memcpy(into.data(), thing_.bytes.data() + offset, into.size());
    return {};
  }
  request start_write_at(std::uint64_t offset, std::span<const std::byte> from) override {
    check();
    thing_.bytes.resize(std::max<std::size_t>(thing_.bytes.size(), offset + from.size()));
    std::memcpy(thing_.bytes.data() + offset, from.data(), from.size());
    return {};
  }
  request start_flush() override {
    check();
    return {};
  }
  bool abandons_reads_at_once() const noexcept override { return true; }
  std::optional<std::uint64_t> first_unconfirmed() const override { return std::nullopt; }
  void forget_writes(std::uint64_t) override {}
  std::chrono::steady_clock::time_point now() const noexcept override {
    return std::chrono::steady_clock::now();
  }
  std::error_code status() const noexcept override { return thing_.status; }
  std::string description() const override { return "a thing"; }
  content_id content() const noexcept override { return thing_.id; }

 private:
  void check() const {
    if (thing_.status) throw error(thing_.status, "reaching the thing");
  }
  remote_thing& thing_;
};

class ReopeningSource : public testing::Test {
 protected:
  std::unique_ptr<byte_source> make(use how, std::chrono::nanoseconds patience = 10s) {
    return std::make_unique<reopening_source>(
        std::make_unique<thing_source>(first_), "name", how,
        [this]() -> std::unique_ptr<byte_source> {
          ++attempts_;
          if (!refusals_.empty()) {
            const std::error_code why = refusals_.front();
            refusals_.pop_front();
            throw error(why, "opening the thing");
          }
          first_.reads_left = next_.reads_left;
          return std::make_unique<thing_source>(next_);
        },
        patience);
  }
  /// Has the connection lost, and the next one lead to the same.
  void lose() {
    first_.status = errc::connection_reset;
    next_ = first_;
    next_.status.clear();
  }
  std::error_code error_of_recovery(byte_source& source) {
    try {
      EXPECT_TRUE(source.recover());
    } catch (const error& failed) {
      text_ = failed.what();
      return failed.code();
    }
    return {};
  }

  remote_thing first_{.bytes = "0123456789"};
  remote_thing next_;
  std::deque<std::error_code> refusals_;
  int attempts_ = 0;
  std::string text_;
};

TEST_F(ReopeningSource, OpensAgainOnlyWhatIsLost) {
  const auto source = make(use::reads);
  EXPECT_TRUE(source->recovers());
  EXPECT_FALSE(source->recover());
  for (const errc other : {errc::closed, errc::revoked, errc::protocol_error}) {
    first_.status = other;
    EXPECT_FALSE(source->recover());
  }
  EXPECT_EQ(attempts_, 0);
  lose();
  EXPECT_TRUE(source->recover());
  EXPECT_EQ(attempts_, 1);
  EXPECT_FALSE(source->status());
}

TEST_F(ReopeningSource, TriesAgainWhatMayPass) {
  const auto source = make(use::reads);
  lose();
  refusals_ = {errc::connection_refused, errc::no_such_name, errc::busy, errc::timed_out,
               errc::host_not_found};
  EXPECT_FALSE(error_of_recovery(*source));
  EXPECT_EQ(attempts_, 6);
}

TEST_F(ReopeningSource, GivesUpAtOnceWhatCanNotPass) {
  const auto source = make(use::reads);
  lose();
  refusals_ = {errc::permission_denied};
  EXPECT_EQ(error_of_recovery(*source), errc::permission_denied);
  EXPECT_EQ(attempts_, 1);
}

TEST_F(ReopeningSource, TriesOnceHoweverShortItsTimeIs) {
  const auto source = make(use::reads, 1ns);
  lose();
  refusals_.assign(100, errc::connection_refused);
  EXPECT_EQ(error_of_recovery(*source), errc::connection_refused);
  EXPECT_LE(attempts_, 3);
  EXPECT_GE(attempts_, 1);
}

TEST_F(ReopeningSource, ComparesWhatItsUserRelysOn) {
  struct {
    const char* what;
    use how;
    content_id id;
    std::string bytes;
    bool goes_on;
  } const cases[] = {
      {"same", use::reads, {1, 1}, "0123456789", true},
      {"edited", use::reads, {1, 2}, "0123456789", false},
      {"replaced", use::reads, {2, 1}, "0123456789", false},
      {"longer", use::follows, {1, 2}, "0123456789ab", true},
      {"shorter", use::follows, {1, 2}, "012345678", false},
      {"replaced", use::follows, {2, 1}, "0123456789ab", false},
      {"edited", use::edits, {1, 2}, "012345678", true},
      {"replaced", use::edits, {2, 1}, "0123456789", false},
      {"same", use::appends, {1, 2}, "0123456789", true},
      {"longer", use::appends, {1, 2}, "0123456789ab", false},
      {"shorter", use::appends, {1, 2}, "012345678", false},
      {"replaced", use::appends, {2, 1}, "0123456789", false},
  };
  for (const auto& each : cases) {
    SCOPED_TRACE(each.what);
    first_ = {.bytes = "0123456789"};
    const auto source = make(each.how);
    lose();
    first_.bytes = "0123456789";
    next_.id = each.id;
    next_.bytes = each.bytes;
    EXPECT_EQ(error_of_recovery(*source),
              each.goes_on ? std::error_code() : make_error_code(errc::content_changed));
  }
}

TEST_F(ReopeningSource, KnowsHowFarItHasWrittenItself) {
  const auto source = make(use::appends);
  const std::string more = "ab";
  EXPECT_TRUE(source->start_write_at(10, std::as_bytes(std::span(more))).done());
  lose();
  first_.bytes.resize(10);
  EXPECT_FALSE(error_of_recovery(*source)) << text_;
}

TEST_F(ReopeningSource, AppendsNothingBehindAHole) {
  const auto source = make(use::appends);
  const std::string more = "abcd";
  EXPECT_TRUE(source->start_write_at(10, std::as_bytes(std::span(more))).done());
  source->forget_writes(12);  // what is behind was lost, as far as is known
  lose();
  next_.bytes.resize(12);
  EXPECT_FALSE(error_of_recovery(*source)) << text_;
  EXPECT_TRUE(source->start_write_at(12, std::as_bytes(std::span(more))).done());
  next_.bytes.resize(15);
  next_.status = errc::connection_reset;
  EXPECT_EQ(error_of_recovery(*source), errc::content_changed);
  EXPECT_NE(text_.find("shorter"), std::string::npos) << text_;
}

TEST_F(ReopeningSource, FollowsOnFromTheSizeThatWasMeasuredLast) {
  const auto source = make(use::follows);
  first_.bytes.resize(4);
  EXPECT_EQ(source->measure(10, 0ns), 4U);
  lose();
  first_.bytes.resize(10);  // as a region says whose file was cut off
  EXPECT_FALSE(error_of_recovery(*source)) << text_;
}

TEST_F(ReopeningSource, NeverBringsANewFileBack) {
  first_.unnamed = true;
  const auto source = make(use::makes_new);
  lose();
  EXPECT_EQ(error_of_recovery(*source), errc::connection_reset);
  EXPECT_NE(text_.find("written again"), std::string::npos);
  EXPECT_EQ(attempts_, 0);
}

/// A stream over it.
class RecoveringStream : public ReopeningSource {
 protected:
  std::unique_ptr<stream_engine> stream(use how, std::ios_base::openmode mode) {
    stream_options options;
    options.buffer_size = 4;
    options.window = stream_options::min_window;
    return std::make_unique<stream_engine>(make(how), mode, options,
                                           stream_engine::seek_limit::none);
  }
  std::string read(stream_engine& from, std::size_t count) {
    std::string bytes(count, '#');
    std::size_t got = 0;
    outcome_ = from.read(std::as_writable_bytes(std::span(bytes)), got);
    return bytes.substr(0, got);
  }
  stream_engine::outcome outcome_ = stream_engine::outcome::done;
};

TEST_F(RecoveringStream, ReadsOnWhereItWasWheneverItIsLost) {
  first_.bytes.resize(1000);
  for (std::size_t i = 0; i < 1000; ++i) first_.bytes[i] = static_cast<char>('a' + i % 26);
  const std::string all = first_.bytes;
  for (std::size_t reads = 0; reads < 40; ++reads) {
    const auto engine = stream(use::reads, std::ios_base::in);
    first_.status.clear();
    first_.reads_left = reads;
    next_ = first_;
    next_.reads_left = 1'000'000;
    EXPECT_EQ(read(*engine, 3), all.substr(0, 3));
    EXPECT_EQ(read(*engine, 900), all.substr(3, 900));
    EXPECT_EQ(engine->position(), 903U);
    EXPECT_EQ(read(*engine, 900), all.substr(903));
    EXPECT_EQ(outcome_, stream_engine::outcome::end_of_data);
    EXPECT_FALSE(engine->error());
  }
}

TEST_F(RecoveringStream, DoesNotTryForEverWhatIsLostAgainAndAgain) {
  const auto engine = stream(use::reads, std::ios_base::in);
  first_.reads_left = 0;
  next_ = first_;
  EXPECT_EQ(read(*engine, 10), "");
  EXPECT_EQ(outcome_, stream_engine::outcome::failed);
  EXPECT_EQ(engine->error(), errc::connection_reset);
  EXPECT_EQ(engine->position(), 0U);
  EXPECT_LE(attempts_, 10);
}

TEST_F(RecoveringStream, RestoresThePositionWhenTheContentIsAnother) {
  const auto engine = stream(use::reads, std::ios_base::in);
  EXPECT_EQ(read(*engine, 2), "01");
  first_.reads_left = 0;
  next_ = first_;
  next_.reads_left = 100;
  next_.id.generation = 2;
  EXPECT_EQ(read(*engine, 8), "");
  EXPECT_EQ(engine->error(), errc::content_changed);
  EXPECT_EQ(engine->position(), 2U);
}

TEST_F(RecoveringStream, WritesOnWhereNothingIsMissing) {
  const auto engine = stream(use::edits, std::ios_base::in | std::ios_base::out);
  const std::string two = "ab";
  EXPECT_EQ(engine->write(std::as_bytes(std::span(two))), 2U);
  EXPECT_EQ(engine->sync(), stream_engine::outcome::done);
  lose();
  EXPECT_EQ(engine->write(std::as_bytes(std::span(two))), 2U);
  EXPECT_EQ(engine->sync(), stream_engine::outcome::done);
  EXPECT_EQ(next_.bytes, "abab456789");
  EXPECT_FALSE(engine->close());
  EXPECT_TRUE(next_.committed);
}

TEST_F(RecoveringStream, CommitsThroughTheConnectionThatIsThere) {
  const auto engine = stream(use::edits, std::ios_base::out);
  const std::string two = "ab";
  EXPECT_EQ(engine->write(std::as_bytes(std::span(two))), 2U);
  lose();
  EXPECT_FALSE(engine->close());
  EXPECT_EQ(next_.bytes, "ab23456789");
  EXPECT_TRUE(next_.committed);
  EXPECT_FALSE(first_.committed);
}

TEST_F(RecoveringStream, OpensNothingAgainToCloseWhatIsWritten) {
  for (const bool destroyed : {false, true}) {
    first_ = {.bytes = "0123456789"};
    auto engine = stream(use::edits, std::ios_base::in | std::ios_base::out);
    const std::string two = "ab";
    EXPECT_EQ(engine->write(std::as_bytes(std::span(two))), 2U);
    EXPECT_EQ(engine->sync(), stream_engine::outcome::done);
    EXPECT_EQ(read(*engine, 2), "23");
    lose();
    if (!destroyed) {
      EXPECT_FALSE(engine->close());
    }
    engine.reset();
    EXPECT_EQ(attempts_, 0);
  }
}

TEST_F(RecoveringStream, WaitsForAMomentOnlyWhereItIsDestroyed) {
  auto engine = std::make_unique<stream_engine>(make(use::edits, 24h), std::ios_base::out,
                                                stream_options{}, stream_engine::seek_limit::none);
  const std::string two = "ab";
  EXPECT_EQ(engine->write(std::as_bytes(std::span(two))), 2U);
  lose();
  refusals_.assign(1000, errc::connection_refused);
  engine.reset();  // the test's own limit ends it otherwise
  EXPECT_GE(attempts_, 1);
}

TEST_F(RecoveringStream, SpendsItsTimeOnceInOneCall) {
  const auto engine = stream(use::edits, std::ios_base::in | std::ios_base::out);
  const std::string two = "ab";
  EXPECT_EQ(engine->write(std::as_bytes(std::span(two))), 2U);
  lose();
  refusals_ = {errc::permission_denied, errc::permission_denied};
  EXPECT_EQ(read(*engine, 2), "");
  EXPECT_EQ(engine->error(), errc::permission_denied);
  EXPECT_EQ(attempts_, 1);
  refusals_.clear();
  EXPECT_EQ(read(*engine, 2), "23") << "another call tries again";
  EXPECT_EQ(attempts_, 2);
}

TEST_F(RecoveringStream, OpensNothingAgainOnlyToCloseIt) {
  const auto engine = stream(use::reads, std::ios_base::in);
  EXPECT_EQ(read(*engine, 2), "01");
  lose();
  engine->close();
  EXPECT_EQ(attempts_, 0);
}

TEST_F(RecoveringStream, TellsThatANewFileIsGone) {
  first_.unnamed = true;
  const auto engine = stream(use::makes_new, std::ios_base::out);
  lose();
  const std::string two = "ab";
  engine->write(std::as_bytes(std::span(two)));
  EXPECT_EQ(engine->sync(), stream_engine::outcome::failed);
  EXPECT_EQ(engine->error(), errc::connection_reset);
  EXPECT_NE(engine->error_text().find("written again"), std::string::npos);
  EXPECT_EQ(engine->close(), errc::connection_reset);
  EXPECT_FALSE(first_.committed);
}

TEST_F(RecoveringStream, WaitsOnceForAsLongAsItFollows) {
  stream_options options;
  options.follow_timeout = 24h;
  stream_engine engine(make(use::follows), std::ios_base::in, options,
                       stream_engine::seek_limit::none);
  next_ = first_;
  first_.loses_who_measures = true;
  EXPECT_EQ(read(engine, 10), "0123456789");
  EXPECT_EQ(read(engine, 1), "");
  EXPECT_EQ(outcome_, stream_engine::outcome::end_of_data);
  EXPECT_EQ(attempts_, 1);
  ASSERT_EQ(first_.waits.size(), 1U);
  ASSERT_EQ(next_.waits.size(), 1U);
  EXPECT_EQ(first_.waits[0], 24h);
  EXPECT_LT(next_.waits[0], 24h) << "some of it has passed";
  EXPECT_EQ(read(engine, 1), "");
  EXPECT_EQ(next_.waits.back(), 24h) << "another read waits anew";
}

TEST_F(RecoveringStream, AsksForTheEndAgainAtASecondVisit) {
  const auto engine = stream(use::reads, std::ios_base::in);
  EXPECT_EQ(read(*engine, 100), "0123456789");
  EXPECT_EQ(first_.measured, 0);
  EXPECT_EQ(read(*engine, 1), "");
  EXPECT_EQ(first_.measured, 1);
  first_.bytes += "ab";
  EXPECT_EQ(read(*engine, 100), "ab");
  EXPECT_EQ(first_.measured, 2);
  EXPECT_EQ(engine->sync(), stream_engine::outcome::done);
  first_.bytes += "cd";
  EXPECT_EQ(engine->refill(), stream_engine::outcome::done);
  EXPECT_EQ(read(*engine, 2), "cd");
  first_.bytes.resize(5);
  EXPECT_EQ(engine->refill(), stream_engine::outcome::end_of_data) << "nobody was asked";
  EXPECT_EQ(engine->refill(), stream_engine::outcome::failed);
  EXPECT_EQ(engine->error(), errc::content_changed);
  EXPECT_EQ(engine->refill(), stream_engine::outcome::end_of_data);
  EXPECT_EQ(engine->seek(3, std::ios_base::beg), stream_engine::outcome::done);
  EXPECT_EQ(read(*engine, 10), "34");
}

}  // namespace
}  // namespace ucx::detail
