// Pipes between hosts with RMA hardware: long writes are fetched from the writer's memory, in
// virtual time.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ios>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "pipes/pipe_frame.hpp"
#include "pipes/pipe_input.hpp"
#include "support/bytes/pattern.hpp"
#include "support/simulated/simulated_messages.hpp"
#include "ucp/resource_error.hpp"
#include "ucx/error.hpp"
#include "ucx/pipe_stream.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;
using detail::pipe_said;

constexpr std::size_t part = detail::pipe_input::fetched_piece;

simulated_pair_options hardware() {
  simulated_pair_options options;
  options.link.emulated_rma = false;
  options.link.resources = {"self/memory0", "rc_verbs/rxe0:1"};
  return options;
}

/// The writer is the sender's side, and this thread drives both.
class FetchedPipe : public testing::Test {
 protected:
  explicit FetchedPipe(const simulated_pair_options& options = hardware()) : both_(options) {}

  void connect(const pipe_options& reading = {.timeout = 60s},
               const pipe_options& writing = {.timeout = 60s}) {
    in_.emplace(both_.receiver(), both_.back(), std::ios_base::in, reading);
    out_.emplace(both_.pair.reader, std::move(both_.sender), std::ios_base::out, writing);
  }
  void write(std::size_t size) {
    const std::string text = pattern_text(size, ++written_);
    ASSERT_EQ(out_->sputn(text.data(), static_cast<std::streamsize>(size)),
              static_cast<std::streamsize>(size))
        << out_->error_message();
    ASSERT_EQ(out_->pubsync(), 0) << out_->error_message();
  }
  void read(std::size_t size) {
    std::string text(size, '\0');
    ASSERT_EQ(in_->sgetn(text.data(), static_cast<std::streamsize>(size)),
              static_cast<std::streamsize>(size));
    ASSERT_TRUE(text == pattern_text(size, ++read_)) << "of write " << read_;
  }
  void expect_clean_end() {
    std::error_code ec;
    out_->close(ec);
    EXPECT_FALSE(ec) << out_->error_message();
    EXPECT_EQ(in_->sgetc(), pipe_streambuf::traits_type::eof());
    EXPECT_FALSE(in_->error());
    expect_nothing_lent();
  }
  void expect_nothing_lent() {
    EXPECT_EQ(both_.network().live().memories, 0U);
    EXPECT_EQ(both_.network().live().rkeys, 0U);
    EXPECT_EQ(both_.network().live().rkey_buffers, 0U);
  }
  fake_process& reading() { return both_.pair.owner_process; }
  fake_process& writing() { return both_.pair.reader_process; }
  std::uint64_t gets() { return reading().count(call::get); }
  std::uint64_t sent() { return both_.network().bytes(call::am_send); }

  simulated_messages both_;
  std::optional<pipe_streambuf> in_;
  std::optional<pipe_streambuf> out_;
  std::uint64_t written_ = 0;
  std::uint64_t read_ = 0;
};

TEST_F(FetchedPipe, HasLongWritesReadFromTheCallersMemory) {
  connect();
  for (int round = 0; round < 3; ++round) {
    const std::uint64_t gets_before = gets();
    const std::uint64_t before = sent();
    write(4 * part);
    EXPECT_EQ(gets() - gets_before, 4U);
    read(4 * part);
    EXPECT_LT(sent() - before, part / 16) << "no payload goes by message";
    expect_nothing_lent();
  }
  expect_clean_end();
}

TEST_F(FetchedPipe, SendsWhatIsLeftBehindLongPartsAsMessages) {
  connect();
  const std::uint64_t before = sent();
  write(2 * part + 300'000);
  EXPECT_EQ(gets(), 2U);
  read(2 * part + 300'000);
  EXPECT_GE(sent() - before, 300'000U);
  EXPECT_LT(sent() - before, 400'000U);
  expect_clean_end();
}

TEST_F(FetchedPipe, SendsShortWritesAsMessages) {
  connect();
  for (const std::size_t size : {std::size_t{1}, std::size_t{200'000}, part - 1}) {
    write(size);
    read(size);
  }
  EXPECT_EQ(gets(), 0U);
  expect_clean_end();
}

TEST_F(FetchedPipe, KeepsTheOrderOfLongAndShortWrites) {
  connect();
  for (const std::size_t size : {std::size_t{5}, part, std::size_t{70'000}, 3 * part + 1, part - 1,
                                 2 * part, std::size_t{262'144}, part + 7}) {
    write(size);
    read(size);
  }
  EXPECT_EQ(gets(), 7U);
  expect_clean_end();
}

/// The reader's program takes what came long after it was written.
TEST_F(FetchedPipe, FetchesBeforeTheProgramReads) {
  connect();
  for (int i = 0; i < 6; ++i) write(part);
  EXPECT_EQ(gets(), 6U);
  expect_nothing_lent();
  for (int i = 0; i < 6; ++i) read(part);
  expect_clean_end();
}

TEST_F(FetchedPipe, GoesByMessageIntoANarrowWindow) {
  connect({.window = 2 * part, .timeout = 60s});
  write(part);
  read(part);
  EXPECT_EQ(gets(), 0U);
  EXPECT_GE(sent(), part);
  expect_clean_end();
}

TEST_F(FetchedPipe, GoesByMessageWhereLittleMayBeLocked) {
  connect();
  both_.network().link().lockable = part + detail::memory_locked_by_worker - 1;
  write(2 * part);
  read(2 * part);
  EXPECT_EQ(gets(), 0U);
  expect_clean_end();
}

TEST_F(FetchedPipe, GoesByMessageWhereTheHardwareReadsNothing) {
  connect();
  reading().faults().fail(call::get, UCS_ERR_IO_ERROR, 1);
  write(2 * part);
  read(2 * part);
  expect_clean_end();
}

/// One of an earlier version says that its messages are short.
TEST_F(FetchedPipe, GoesByMessageToAReaderOfShortMessages) {
  endpoint peer = both_.back();
  std::error_code unused;
  const detail::pipe_hello hello{
      .receives = 8, .piece = detail::pipe_input::piece, .window = pipe_options().window};
  peer.post_send(detail::pipe_tag(pipe_said::hello), encode(hello), 0,
                 {.memory = send_memory::copied}, unused);
  out_.emplace(both_.pair.reader, std::move(both_.sender), std::ios_base::out);
  std::vector<std::vector<std::byte>> slots(8, blank(detail::pipe_input::piece));
  std::vector<request> receives;
  for (std::vector<std::byte>& each : slots) {
    receives.push_back(both_.receiver().start_receive(detail::pipe_of_data(), each));
  }
  write(part);
  EXPECT_EQ(gets(), 0U);
  ASSERT_TRUE(both_.network().run_until([&] { return receives[3].done(); }));
  EXPECT_EQ(receives[0].received().length, detail::pipe_input::piece);
  out_->abort();
}

/// A writer from which one long message comes, as the test wants.
class FetchingReader : public FetchedPipe {
 protected:
  FetchingReader() {
    in_.emplace(both_.receiver(), both_.back(), std::ios_base::in, pipe_options{.timeout = 60s});
    send_ = both_.sender.start_send(detail::pipe_tag(pipe_said::data, 0), bytes_);
    EXPECT_TRUE(both_.network().run_until([&] { return gets() == 1; }));
    EXPECT_FALSE(send_.done());
  }

  const std::vector<std::byte> bytes_ = pattern(part, 0);
  request send_;
};

TEST_F(FetchingReader, LeavesWhileItsHardwareReads) {
  in_.reset();
  EXPECT_EQ(both_.network().live().rkeys, 0U) << "nothing goes into its memory any more";
  both_.outcome(send_);
  expect_nothing_lent();
}

TEST_F(FetchingReader, LosesAWriterThatIsKilled) {
  writing().kill();
  EXPECT_THROW(in_->sgetc(), error);
  EXPECT_EQ(in_->error(), errc::connection_reset);
  EXPECT_EQ(in_->received(), 0U);
}

TEST_F(FetchingReader, HasAllOfAWriterThatGivesUpLater) {
  send_.cancel();
  EXPECT_FALSE(send_.done()) << "it may still be read";
  both_.outcome(send_);
  expect_nothing_lent();
  std::string text(part, '\0');
  ASSERT_EQ(in_->sgetn(text.data(), static_cast<std::streamsize>(part)),
            static_cast<std::streamsize>(part));
  EXPECT_TRUE(text == pattern_text(part, 0));
}

/// The writer's program gets its memory back when nothing reads there, and not before.
TEST_F(FetchedPipe, GivesMemoryBackWhereTheReaderStops) {
  connect({.timeout = 60s}, {.timeout = 100ms});
  bool has_stopped = false;
  both_.pair.owner_process.on_pump([&] {
    has_stopped = has_stopped || gets() > 0;
    if (!has_stopped) both_.receiver().progress();
  });
  const std::string text = pattern_text(2 * part);
  EXPECT_LT(out_->sputn(text.data(), static_cast<std::streamsize>(text.size())),
            static_cast<std::streamsize>(text.size()));
  EXPECT_TRUE(has_stopped);
  EXPECT_EQ(both_.network().live().memories, 0U);
  EXPECT_TRUE(out_->error());
  both_.pair.owner_process.on_pump([&] { both_.receiver().progress(); });
  out_.reset();
  EXPECT_THROW(while (in_->sbumpc() != pipe_streambuf::traits_type::eof()){}, error);
  EXPECT_TRUE(in_->error());
}

}  // namespace
}  // namespace ucx::test
