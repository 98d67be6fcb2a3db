// Files that peers read: sizes, buffers, slow and broken disks, and every way to end in the middle.
#include "region/exposed/file_region.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "support/bytes/pattern.hpp"
#include "support/files/fake_file.hpp"
#include "support/replaced/shortage.hpp"
#include "support/simulated/frame_peer.hpp"
#include "support/simulated/served_region.hpp"
#include "support/simulated/simulated_pair.hpp"
#include "ucx/error.hpp"
#include "ucx/remote_region.hpp"
#include "wire/introduction.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;
using detail::core_access;
using detail::file_service;
using detail::frame;
using detail::opcode;

constexpr std::size_t piece = 8192;

class FileRegion : public testing::Test {
 protected:
  explicit FileRegion(simulated_pair_options options = {})
      : pair_(with_pieces_of(piece, std::move(options))), disk_(&slow_disk::attach(pair_.owner)) {}

  ~FileRegion() override {
    disk_->finish_all();
    pair_.network.advance(1ms);
    EXPECT_EQ(buffers(), 0U) << "buffers are lost";
  }

  std::shared_ptr<detail::file_region> expose(std::uint64_t size) {
    return detail::file_region::make(core_access::core(pair_.owner_context), file_, size)
        .or_throw();
  }

  std::size_t buffers() {
    return core_access::core(pair_.owner)->service().files().buffers_in_use();
  }

  std::error_code read(remote_region& region, std::uint64_t offset, std::size_t size) {
    std::vector<std::byte> into(size);
    std::error_code ec;
    region.read_at(offset, into, {}, ec);
    EXPECT_TRUE(ec || holds_pattern(into, 0, offset));
    return ec;
  }

  simulated_pair pair_;
  slow_disk* disk_;
  std::shared_ptr<fake_file> file_ = std::make_shared<fake_file>();
};

TEST_F(FileRegion, CanBeReachedByMessageOnly) {
  const auto exposed = expose(1000);
  const remote_descriptor known = exposed->descriptor();
  EXPECT_EQ(known.size, 1000U);
  EXPECT_EQ(known.granted, access::read);
  EXPECT_EQ(known.kind, memory_kind::host);
  EXPECT_TRUE(known.remote_key.empty());
  EXPECT_FALSE(known.shareable);
  const endpoint connection = pair_.connect();
  EXPECT_EQ(remote_region(connection, remote_descriptor::decode(known.encode())).transfer_method(),
            transfer_method::message);
  std::error_code ec;
  const remote_region forced(connection, known, {.transfer_method = transfer_method::rma}, ec);
  EXPECT_EQ(ec, errc::not_supported);
}

TEST_F(FileRegion, NeedsMessages) {
  context_options rma_only;
  rma_only.features = feature::rma;
  std::error_code ec;
  const context deaf = core_access::make_context(pair_.owner_process.api(), rma_only, ec);
  ASSERT_FALSE(ec);
  const auto made = detail::file_region::make(core_access::core(deaf), file_, 10);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.why().code, errc::feature_disabled);
  EXPECT_NE(made.why().text.find("feature::am"), std::string::npos);
}

TEST_F(FileRegion, IsReadInPiecesOfAnySize) {
  for (const std::size_t size :
       {std::size_t{1}, piece - 1, piece, piece + 1, 2 * piece, 3 * piece + 5, 20 * piece + 1}) {
    for (const std::uint64_t cached : {fake_file::endless, std::uint64_t{0},
                                       std::uint64_t{piece / 2}, std::uint64_t{size / 2}}) {
      file_->cached = cached;
      disk_->at_once = true;
      const auto exposed = expose(size);
      const endpoint connection = pair_.connect();
      remote_region region(connection, exposed->descriptor());
      EXPECT_FALSE(read(region, 0, size)) << size << ", of which are cached " << cached;
      EXPECT_FALSE(read(region, size / 2, size - size / 2)) << size;
      EXPECT_FALSE(read(region, size - 1, 1)) << size;
      EXPECT_EQ(read(region, 0, size + 1), errc::out_of_range);
    }
  }
}

/// Over hardware that registers what it sends.
class UnregisteredFileBuffers : public FileRegion {
 protected:
  UnregisteredFileBuffers() : FileRegion(over_hardware()) {}
  static simulated_pair_options over_hardware() {
    simulated_pair_options options;
    options.link.emulated_rma = false;
    options.link.resources = {"self/memory0", "rc_verbs/rxe0:1"};
    return options;
  }
  void refuse(unsigned nth) {
    pair_.owner_process.faults().fail(call::am_send, UCS_ERR_IO_ERROR, nth);
  }
};

TEST_F(UnregisteredFileBuffers, AreSentInPiecesThatUcxCopies) {
  const auto exposed = expose(4 * piece);
  const endpoint connection = pair_.connect();
  remote_region region(connection, exposed->descriptor());
  EXPECT_FALSE(read(region, 0, 100));
  for (const unsigned nth : {1U, 2U}) {
    const std::uint64_t before = pair_.owner_process.count(call::am_send);
    refuse(nth);
    EXPECT_FALSE(read(region, 5, 3 * piece));
    EXPECT_GE(pair_.owner_process.count(call::am_send) - before, 2 * piece / 1024);
  }
  EXPECT_FALSE(connection.status());
}

TEST_F(UnregisteredFileBuffers, LoseTheConnectionByASecondError) {
  const auto exposed = expose(4 * piece);
  const endpoint connection = pair_.connect();
  remote_region region(connection, exposed->descriptor());
  EXPECT_FALSE(read(region, 0, 100));
  refuse(1);
  refuse(4);
  EXPECT_EQ(read(region, 0, 3 * piece), errc::connection_reset);
}

TEST_F(FileRegion, MayBeEmpty) {
  const auto exposed = expose(0);
  const endpoint connection = pair_.connect();
  remote_region region(connection, exposed->descriptor());
  EXPECT_EQ(region.size(), 0U);
  EXPECT_FALSE(read(region, 0, 0));
  EXPECT_EQ(read(region, 0, 1), errc::out_of_range);
}

TEST_F(FileRegion, SmallReadOfWhatIsCachedTakesOneMessageAndNoDisk) {
  const auto exposed = expose(1 << 20);
  const endpoint connection = pair_.connect();
  remote_region region(connection, exposed->descriptor());
  EXPECT_FALSE(read(region, 0, 100));
  const std::uint64_t before = pair_.owner_process.count(call::am_send);
  EXPECT_FALSE(read(region, 70'000, 4096));
  EXPECT_EQ(pair_.owner_process.count(call::am_send), before + 1);
  EXPECT_EQ(file_->disk_reads, 0U);
  EXPECT_EQ(disk_->waiting(), 0U);
}

TEST_F(FileRegion, DiskIsAskedOnlyForWhatIsMissing) {
  file_->cached = 100;
  disk_->at_once = true;
  const auto exposed = expose(1000);
  const endpoint connection = pair_.connect();
  remote_region region(connection, exposed->descriptor());
  EXPECT_FALSE(read(region, 0, 1000));
  EXPECT_EQ(file_->disk_reads, 1U);
  EXPECT_EQ(file_->disk_bytes, 900U);
}

TEST_F(FileRegion, PiecesMayComeFromTheDiskInAnyOrder) {
  file_->cached = 0;
  const auto exposed = expose(20 * piece);
  const endpoint connection = pair_.connect();
  remote_region region(connection, exposed->descriptor());
  std::vector<std::byte> into(20 * piece);
  request reading = region.start_read_at(0, into);
  std::mt19937 random(1);
  while (!reading.done()) {
    ASSERT_TRUE(pair_.network.run_until([&] { return reading.done() || disk_->waiting() > 0; }));
    // A few at a time, so that reading and sending overlap.
    EXPECT_LE(disk_->waiting(), 3U);
    if (disk_->waiting() > 0) disk_->finish(random() % disk_->waiting());
    pair_.reader.progress();
  }
  EXPECT_FALSE(reading.error());
  EXPECT_TRUE(holds_pattern(into));
}

TEST_F(FileRegion, SlowDiskKeepsNobodyElseWaiting) {
  const auto slow = expose(10 * piece);
  file_->cached = 0;
  const endpoint connection = pair_.connect();
  const endpoint other = pair_.connect();
  remote_region slow_region(connection, slow->descriptor());
  std::vector<std::byte> into(10 * piece);
  request reading = slow_region.start_read_at(0, into);
  ASSERT_TRUE(pair_.network.run_until([&] { return disk_->waiting() == 3; }));

  file_ = std::make_shared<fake_file>();
  const auto fast = expose(10 * piece);
  for (const endpoint* way : {&connection, &other}) {
    remote_region fast_region(*way, fast->descriptor());
    const auto begin = pair_.network.now();
    EXPECT_FALSE(read(fast_region, 0, 10 * piece));
    EXPECT_LT(pair_.network.now() - begin, 10ms);
  }
  EXPECT_FALSE(reading.done());
  disk_->at_once = true;
  disk_->finish_all();
  reading.wait();
  EXPECT_TRUE(holds_pattern(into));
}

TEST_F(FileRegion, ManyReadersShareFewBuffers) {
  file_->cached = 0;
  const auto exposed = expose(10 * piece);
  std::deque<endpoint> connections;
  std::deque<std::vector<std::byte>> memory;
  std::deque<remote_region> regions;
  std::deque<request> reads;
  for (int i = 0; i < 5; ++i) {
    connections.push_back(pair_.connect());
    regions.emplace_back(connections.back(), exposed->descriptor());
    for (int k = 0; k < 20; ++k) {
      memory.emplace_back(10 * piece);
      reads.push_back(regions.back().start_read_at(0, memory.back()));
    }
  }
  std::mt19937 random(2);
  std::size_t most = 0;
  const auto all_done = [&] {
    return std::all_of(reads.begin(), reads.end(), [](const request& r) { return r.done(); });
  };
  while (!all_done()) {
    ASSERT_TRUE(pair_.network.run_until([&] { return all_done() || disk_->waiting() > 0; }));
    most = std::max(most, buffers());
    if (disk_->waiting() > 0) disk_->finish(random() % disk_->waiting());
  }
  EXPECT_EQ(most, file_service::most_buffers);
  for (std::size_t i = 0; i < reads.size(); ++i) {
    EXPECT_FALSE(reads[i].error()) << i;
    EXPECT_TRUE(holds_pattern(memory[i])) << i;
  }
}

TEST_F(FileRegion, GreedyConnectionLeavesTheOthersTheirShare) {
  file_->cached = 0;
  const auto exposed = expose(piece);
  const endpoint greedy = pair_.connect();
  remote_region greedy_region(greedy, exposed->descriptor());
  std::deque<std::vector<std::byte>> memory;
  std::deque<request> reads;
  for (int i = 0; i < 200; ++i) {
    memory.emplace_back(piece);
    reads.push_back(greedy_region.start_read_at(0, memory.back()));
  }
  ASSERT_TRUE(
      pair_.network.run_until([&] { return disk_->waiting() == file_service::most_buffers; }));
  const endpoint modest = pair_.connect();
  remote_region region(modest, exposed->descriptor());
  memory.emplace_back(piece);
  request reading = region.start_read_at(0, memory.back());
  // It gets a buffer beyond the shared ones, and its turn at the disk behind those that were first.
  ASSERT_TRUE(
      pair_.network.run_until([&] { return disk_->waiting() == file_service::most_buffers + 1; }));
  disk_->finish(file_service::most_buffers);
  reading.wait();
  EXPECT_TRUE(holds_pattern(memory.back()));
  disk_->at_once = true;
  disk_->finish_all();
  for (request& each : reads) each.wait();
}

// Failures.

TEST_F(FileRegion, FileThatWasCutOffFailsOnlyTheReadsThatMissBytes) {
  const auto exposed = expose(20 * piece);
  file_->end = 10 * piece + 100;
  disk_->at_once = true;
  const endpoint connection = pair_.connect();
  remote_region region(connection, exposed->descriptor());
  // Pieces were sent before the end was found.
  EXPECT_EQ(read(region, 0, 20 * piece), errc::content_changed);
  EXPECT_EQ(read(region, 10 * piece, 101), errc::content_changed);
  EXPECT_EQ(read(region, 15 * piece, 1), errc::content_changed);
  EXPECT_FALSE(read(region, 0, 10 * piece + 100));
  EXPECT_FALSE(connection.status());
}

TEST_F(FileRegion, FileThatGrewIsServedInItsOldSize) {
  file_->end = 5 * piece;
  const auto exposed = expose(piece);
  const endpoint connection = pair_.connect();
  remote_region region(connection, exposed->descriptor());
  EXPECT_EQ(region.size(), piece);
  EXPECT_EQ(read(region, 1, piece), errc::out_of_range);
  EXPECT_FALSE(read(region, 0, piece));
}

TEST_F(FileRegion, BrokenDiskFailsTheRead) {
  const auto exposed = expose(20 * piece);
  file_->broken = 10 * piece;
  disk_->at_once = true;
  const endpoint connection = pair_.connect();
  remote_region region(connection, exposed->descriptor());
  EXPECT_EQ(read(region, 0, 20 * piece), errc::io_error);
  EXPECT_FALSE(read(region, 0, 10 * piece));
  EXPECT_FALSE(connection.status());
}

/// Inside UCX's callback, where a question comes in, any allocation may fail.
TEST_F(FileRegion, ShortMemoryFailsOneReaderAndKeepsNoOtherWaiting) {
  const auto exposed = expose(20 * piece);
  file_->cached = 0;
  disk_->at_once = true;
  bool any = true;
  for (std::uint64_t point = 0; any; ++point) {
    ASSERT_LT(point, 100U);
    SCOPED_TRACE(point);
    const endpoint connection = pair_.connect();
    remote_region region(connection, exposed->descriptor());
    ASSERT_FALSE(read(region, 0, piece)) << "connected";
    std::vector<std::byte> into(20 * piece);
    request reading = region.start_read_at(0, into);
    current_shortage = {.left = point, .lasts = true};
    pair_.network.advance(1ms);
    any = was_short();
    std::error_code ec;
    reading.wait(ec);
    EXPECT_TRUE(ec == errc::no_memory || ec == errc::connection_reset ||
                (!ec && holds_pattern(into)))
        << ec.message();
    const endpoint another = pair_.connect();
    remote_region same(another, exposed->descriptor());
    EXPECT_FALSE(read(same, 0, 20 * piece));
  }
}

/// The disk's answers come in a round.
TEST_F(FileRegion, ShortMemoryForARefusalEndsTheConnection) {
  const auto exposed = expose(20 * piece);
  file_->cached = 0;
  file_->broken = 0;
  bool any = true;
  for (std::uint64_t point = 0; any; ++point) {
    ASSERT_LT(point, 100U);
    SCOPED_TRACE(point);
    const endpoint connection = pair_.connect();
    remote_region region(connection, exposed->descriptor());
    std::vector<std::byte> into(20 * piece);
    request reading = region.start_read_at(0, into);
    ASSERT_TRUE(pair_.network.run_until([&] { return disk_->waiting() == 3; }));
    disk_->finish_all();
    {
      const lasting_shortage begun(point);
      round(pair_.owner);
      any = current_shortage.failed > 0;
    }
    std::error_code ec;
    reading.wait(ec);
    EXPECT_TRUE(ec == errc::no_memory || ec == errc::connection_reset || ec == errc::io_error)
        << ec.message();
    EXPECT_EQ(buffers(), 0U);
  }
}

TEST_F(FileRegion, FailureLeavesReadsAtTheDiskAlone) {
  const auto exposed = expose(20 * piece);
  file_->cached = 0;
  file_->broken = piece;
  const endpoint connection = pair_.connect();
  remote_region region(connection, exposed->descriptor());
  std::vector<std::byte> into(20 * piece);
  request reading = region.start_read_at(0, into);
  ASSERT_TRUE(pair_.network.run_until([&] { return disk_->waiting() == 3; }));
  disk_->finish(1);
  std::error_code ec;
  reading.wait(ec);
  EXPECT_EQ(ec, errc::io_error);
  EXPECT_EQ(disk_->waiting(), 2U);
  EXPECT_EQ(buffers(), 2U);
  const unsigned before = file_->disk_reads;
  disk_->finish_all();
  pair_.network.advance(1ms);
  EXPECT_EQ(file_->disk_reads, before) << "nobody wanted them any more";
}

TEST_F(FileRegion, ReaderIgnoresPiecesBehindARefusal) {
  frame_peer owner(pair_.network, "owner by hand");
  owner.welcome_everybody();
  endpoint connection(pair_.reader, owner.its_address());
  connection.wait_connected();
  remote_descriptor known;
  known.region = 1;
  known.size = 1000;
  known.granted = access::read;
  remote_region region(connection, known);
  std::vector<std::byte> into(300);
  request reading = region.start_read_at(0, into);
  frame_peer::heard_frame question;
  ASSERT_TRUE(owner.await(opcode::read, question));
  frame answer;
  answer.code = opcode::data;
  answer.session = question.said.session;
  answer.request = question.said.request;
  answer.length = 100;
  answer.offset = 100;
  const std::vector<std::byte> bytes = pattern(100);
  owner.say(owner.guest, answer, bytes);
  answer.status = detail::error_status(errc::content_changed);
  answer.offset = answer.length = 0;
  owner.say(owner.guest, answer);
  answer.status = 0;
  answer.offset = 200;
  answer.length = 100;
  owner.say(owner.guest, answer, bytes);
  std::error_code ec;
  reading.wait(ec);
  EXPECT_EQ(ec, errc::content_changed);
  pair_.network.advance(1ms);
  EXPECT_FALSE(connection.status());
  EXPECT_TRUE(all_bytes_are(std::span(into).last(100), std::byte{})) << "written after the end";
}

// Withdrawal.

TEST_F(FileRegion, WithdrawingRefusesReadsThatWaitForTheDisk) {
  auto exposed = expose(20 * piece);
  file_->cached = 5 * piece;
  const endpoint connection = pair_.connect();
  remote_region region(connection, exposed->descriptor());
  std::vector<std::byte> into(20 * piece);
  request reading = region.start_read_at(0, into);
  ASSERT_TRUE(pair_.network.run_until([&] { return disk_->waiting() == 3; }));
  const auto begin = pair_.network.now();
  exposed->close();
  EXPECT_LT(pair_.network.now() - begin, 1ms);
  EXPECT_TRUE(exposed->idle());
  exposed.reset();
  std::error_code ec;
  reading.wait(ec);
  EXPECT_EQ(ec, errc::revoked);
  EXPECT_EQ(read(region, 0, 10), errc::revoked);
  EXPECT_FALSE(connection.status());
  EXPECT_EQ(file_.use_count(), 1 + static_cast<long>(disk_->waiting()));
}

TEST_F(FileRegion, WithdrawingRefusesReadsThatWaitForBuffers) {
  auto exposed = expose(piece);
  file_->cached = 0;
  const endpoint connection = pair_.connect();
  remote_region region(connection, exposed->descriptor());
  std::deque<std::vector<std::byte>> memory;
  std::deque<request> reads;
  for (int i = 0; i < 100; ++i) {
    memory.emplace_back(piece);
    reads.push_back(region.start_read_at(0, memory.back()));
  }
  ASSERT_TRUE(
      pair_.network.run_until([&] { return disk_->waiting() == file_service::most_buffers; }));
  exposed->close();
  for (request& each : reads) {
    std::error_code ec;
    each.wait(ec);
    EXPECT_EQ(ec, errc::revoked);
  }
  EXPECT_EQ(disk_->waiting(), file_service::most_buffers);
}

class StalledFileRegion : public FileRegion {
 protected:
  /// The socket takes a few pieces only.
  static simulated_pair_options narrow() {
    simulated_pair_options options;
    options.link.socket_buffer = 4 * piece;
    options.link.inline_limit = 512;
    return options;
  }
  StalledFileRegion() : FileRegion(narrow()) {}

  /// A peer that asks for a whole file and then stops.
  struct client {
    client(simulated_pair& pair, const std::string& name, std::uint64_t number)
        : peer(pair.network, name), owner(peer.reach(pair.owner.address())), session(number) {
      // It has segments for whole pieces, and says so.
      frame hello;
      hello.code = opcode::hello;
      hello.session = session;
      std::vector<std::byte> payload = peer.its_address().encode();
      const auto words = detail::introduction{.segment = 2 * piece}.encode();
      payload.insert(payload.end(), words.begin(), words.end());
      peer.say(owner, hello, payload, UCP_AM_SEND_FLAG_REPLY);
      frame_peer::heard_frame answer;
      EXPECT_TRUE(peer.await(opcode::welcome, answer));
      EXPECT_EQ(answer.said.status, 0U);
    }
    frame ask(const remote_descriptor& known, std::uint64_t length) {
      frame asked;
      asked.code = opcode::read;
      asked.session = session;
      asked.request = ++last_request;
      asked.region = known.region;
      asked.incarnation = known.incarnation;
      asked.generation = known.generation;
      asked.length = length;
      peer.say(owner, asked);
      return asked;
    }
    frame_peer peer;
    ucp_ep_h owner;
    std::uint64_t session;
    std::uint64_t last_request = 0;
  };
};

TEST_F(StalledFileRegion, PeersThatDoNotTakeTheirAnswersStarveNobody) {
  constexpr std::uint64_t size = 40 * piece;
  const auto exposed = expose(size);
  std::deque<client> stalled;
  for (std::uint64_t i = 0; i < 30; ++i) {
    client& added = stalled.emplace_back(pair_, "stalled" + std::to_string(i), 100 + i);
    added.ask(exposed->descriptor(), size);
    added.ask(exposed->descriptor(), size);
    added.peer.process.stop();
    pair_.network.advance(1ms);
  }
  EXPECT_GE(buffers(), stalled.size());
  EXPECT_LE(buffers(), file_service::most_buffers + stalled.size());
  const endpoint connection = pair_.connect();
  remote_region region(connection, exposed->descriptor());
  const auto begin = pair_.network.now();
  EXPECT_FALSE(read(region, 0, size));
  EXPECT_LT(pair_.network.now() - begin, 100ms);
  // Those that go on get everything.
  for (client& each : stalled) each.peer.process.resume();
  for (client& each : stalled) {
    EXPECT_TRUE(each.peer.wait([&] { return each.peer.count(opcode::data) == 80; }));
    for (const auto& heard : each.peer.heard) {
      EXPECT_EQ(heard.said.status, 0U);
      EXPECT_TRUE(holds_pattern(heard.payload, 0, heard.said.offset));
    }
  }
}

TEST_F(StalledFileRegion, WithdrawingWaitsForNoPeer) {
  const auto exposed = expose(40 * piece);
  client slow(pair_, "slow", 7);
  slow.ask(exposed->descriptor(), 40 * piece);
  slow.peer.process.stop();
  pair_.network.advance(10ms);
  EXPECT_GT(buffers(), 0U);
  const auto begin = pair_.network.now();
  exposed->close();
  EXPECT_LT(pair_.network.now() - begin, 1ms);
  slow.peer.process.resume();
  // It is told behind the pieces that were on their way, and keeps its connection.
  EXPECT_TRUE(slow.peer.wait([&] {
    return std::any_of(slow.peer.heard.begin(), slow.peer.heard.end(), [](const auto& heard) {
      return detail::status_error(heard.said.status) == errc::revoked;
    });
  }));
  EXPECT_GT(slow.peer.count(opcode::data), 1U);
  EXPECT_TRUE(slow.peer.failures.empty());
}

// Peers and workers that end.

TEST_F(StalledFileRegion, PeerThatDiesFreesItsBuffers) {
  const auto exposed = expose(40 * piece);
  client doomed(pair_, "doomed", 7);
  for (int i = 0; i < 50; ++i) doomed.ask(exposed->descriptor(), 40 * piece);
  ASSERT_TRUE(pair_.network.run_until([&] { return buffers() > 3; }));
  doomed.peer.process.stop();
  pair_.network.advance(10ms);
  EXPECT_EQ(buffers(), file_service::most_buffers);
  EXPECT_FALSE(exposed->idle());
  doomed.peer.process.kill();
  pair_.network.advance(100ms);
  EXPECT_EQ(buffers(), 0U);
  EXPECT_TRUE(exposed->idle());
}

TEST_F(StalledFileRegion, PeerThatDiesWhileTheDiskReadsIsForgotten) {
  file_->cached = 4 * piece;
  const auto exposed = expose(40 * piece);
  for (const std::uint64_t pieces : {3U, 4U, 6U, 40U}) {
    client doomed(pair_, "doomed" + std::to_string(pieces), pieces);
    for (int i = 0; i < 30; ++i) doomed.ask(exposed->descriptor(), pieces * piece);
    ASSERT_TRUE(pair_.network.run_until([&] { return disk_->waiting() > 0 || pieces <= 4; }));
    pair_.network.advance(1ms);
    doomed.peer.process.kill();
    pair_.network.advance(100ms);
    EXPECT_TRUE(exposed->idle()) << pieces;
    EXPECT_EQ(buffers(), disk_->waiting()) << pieces;
    disk_->finish_all();
    pair_.network.advance(1ms);
    EXPECT_EQ(buffers(), 0U) << pieces;
  }
}

TEST_F(FileRegion, PeerThatLeavesTakesItsReadsAlong) {
  file_->cached = 0;
  const auto exposed = expose(40 * piece);
  endpoint connection = pair_.connect();
  remote_region region(connection, exposed->descriptor());
  std::vector<std::byte> into(40 * piece);
  request reading = region.start_read_at(0, into);
  ASSERT_TRUE(pair_.network.run_until([&] { return disk_->waiting() == 3; }));
  connection.close(close_mode::abort);
  EXPECT_EQ(reading.error(), errc::canceled);
  pair_.network.advance(2s);
  EXPECT_TRUE(exposed->idle());
}

TEST_F(FileRegion, OwnerMayCloseTheConnectionWhileTheDiskReads) {
  // Both sides of a connection answer questions; here the side that connected does.
  file_->cached = 0;
  const auto exposed = expose(40 * piece);
  frame_peer asker(pair_.network, "asker");
  asker.welcome_everybody();
  endpoint connection(pair_.owner, asker.its_address());
  connection.wait_connected();
  frame asked;
  asked.code = opcode::read;
  asked.session = asker.guest_session;
  asked.request = 1;
  asked.region = exposed->descriptor().region;
  asked.incarnation = exposed->descriptor().incarnation;
  asked.generation = exposed->descriptor().generation;
  asked.length = 40 * piece;
  for (int i = 0; i < 10; ++i) asker.say(asker.guest, asked);
  ASSERT_TRUE(
      pair_.network.run_until([&] { return disk_->waiting() == file_service::most_buffers; }));
  connection.close(close_mode::abort);
  connection = endpoint(pair_.owner, asker.its_address());
  EXPECT_TRUE(exposed->idle());
  disk_->finish_all();
  pair_.network.advance(10ms);
  EXPECT_EQ(buffers(), 0U);
}

TEST_F(StalledFileRegion, WorkerMayEndInAnyState) {
  for (const std::uint64_t cached :
       {std::uint64_t{0}, std::uint64_t{4 * piece}, fake_file::endless}) {
    file_ = std::make_shared<fake_file>();
    file_->cached = cached;
    const auto exposed = expose(40 * piece);
    std::optional<worker> second(std::in_place, pair_.owner_context);
    slow_disk::attach(*second);
    pair_.owner_process.on_pump([&] {
      pair_.owner.progress();
      if (second) second->progress();
    });
    frame_peer asker(pair_.network, "asker" + std::to_string(cached));
    const ucp_ep_h owner = asker.reach(second->address());
    ASSERT_TRUE(asker.open_session(owner, 5));
    frame asked;
    asked.code = opcode::read;
    asked.session = 5;
    asked.region = exposed->descriptor().region;
    asked.incarnation = exposed->descriptor().incarnation;
    asked.generation = exposed->descriptor().generation;
    asked.length = 40 * piece;
    for (int i = 0; i < 30; ++i) asker.say(owner, asked);
    asker.process.stop();
    pair_.network.advance(10ms);
    EXPECT_FALSE(exposed->idle());
    second.reset();
    EXPECT_TRUE(exposed->idle());
    asker.process.resume();
    pair_.owner_process.on_pump([this] { pair_.owner.progress(); });
  }
}

}  // namespace
}  // namespace ucx::test
