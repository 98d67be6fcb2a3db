// What an owner answers to batches, atomics and notifications that no writer of ours would send;
// and their decoders.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "region/exposed/atomic_execution.hpp"
#include "region/exposed/file_region.hpp"
#include "support/bytes/pattern.hpp"
#include "support/files/fake_file.hpp"
#include "support/files/temporary_file.hpp"
#include "support/simulated/asked_owner.hpp"
#include "support/simulated/frame_peer.hpp"
#include "support/simulated/simulated_pair.hpp"
#include "ucx/error.hpp"
#include "ucx/memory_region.hpp"
#include "ucx/remote_atomic.hpp"
#include "wire/frame.hpp"
#include "wire/range_list.hpp"
#include "worker/core_access.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;
using detail::byte_range;
using detail::frame;
using detail::opcode;
using detail::range_list;

constexpr std::uint64_t most_of_all = std::numeric_limits<std::uint64_t>::max();

std::vector<std::byte> list_of(std::span<const byte_range> ranges, std::size_t rest = 0) {
  std::vector<std::byte> wire;
  range_list::begin(ranges.size(), wire);
  for (const byte_range& each : ranges) range_list::append(each, wire);
  wire.resize(wire.size() + rest, std::byte{1});
  return wire;
}

TEST(RangeList, IsReadAsItWasWritten) {
  const std::vector<std::byte> wire =
      list_of(std::vector<byte_range>{{5, 10}, {most_of_all, 1}}, 3);
  const auto read = range_list::decode(wire);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->size(), 2U);
  EXPECT_EQ(read->at(0).offset, 5U);
  EXPECT_EQ(read->at(1).offset, most_of_all);
  EXPECT_EQ(read->total(), 11U);
  EXPECT_EQ(read->rest().size(), 3U);
}

TEST(RangeList, RefusesWhatIsCutOffOrTooMuch) {
  const std::vector<std::byte> wire = list_of(std::vector<byte_range>{{5, 10}, {6, 1}});
  for (std::size_t length = 0; length < wire.size(); ++length) {
    EXPECT_FALSE(range_list::decode(std::span(wire).first(length))) << length;
  }
  EXPECT_FALSE(range_list::decode(list_of({})));
  EXPECT_FALSE(range_list::decode(list_of(std::vector<byte_range>{{0, 0}})));
  EXPECT_FALSE(range_list::decode(list_of(std::vector<byte_range>{{0, most_of_all}, {0, 2}})));
  EXPECT_FALSE(
      range_list::decode(list_of(std::vector<byte_range>{{0, detail::most_batch_bytes}, {0, 1}})));
  EXPECT_FALSE(
      range_list::decode(list_of(std::vector<byte_range>(detail::most_ranges + 1, {0, 1}))));
  EXPECT_TRUE(range_list::decode(list_of(std::vector<byte_range>(detail::most_ranges, {0, 1}))));
}

TEST(AtomicPayload, IsReadAsItWasWrittenAndNothingElse) {
  const atomic_access wanted{atomic_operation::compare_exchange, 4, 1, most_of_all};
  const detail::atomic_payload wire = detail::encode(wanted, true);
  const auto read = detail::decode_atomic(wire, 4);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->wanted.operation, atomic_operation::compare_exchange);
  EXPECT_EQ(read->wanted.operand, 1U);
  EXPECT_EQ(read->wanted.expected, most_of_all);
  EXPECT_TRUE(read->fetches);
  for (const std::uint64_t width :
       {std::uint64_t{0}, std::uint64_t{3}, std::uint64_t{16}, most_of_all}) {
    EXPECT_FALSE(detail::decode_atomic(wire, width));
  }
  for (std::size_t length = 0; length < wire.size(); ++length) {
    EXPECT_FALSE(detail::decode_atomic(std::span(wire).first(length), 4));
  }
  for (std::size_t at = 0; at < 8; ++at) {
    detail::atomic_payload damaged = wire;
    damaged[at] = std::byte{0x40};
    EXPECT_FALSE(detail::decode_atomic(damaged, 4)) << at;
  }
}

class RegionExtras : public asked_owner {
 protected:
  std::error_code outcome_of(const frame& asked, std::span<const std::byte> payload,
                             opcode answer) {
    peer_.say(owner_, asked, payload);
    if (!peer_.await(answer, heard_)) return std::make_error_code(std::errc::no_message);
    EXPECT_EQ(heard_.said.request, asked.request);
    return detail::status_error(heard_.said.status);
  }
  std::error_code batch_read(std::span<const byte_range> ranges, std::uint64_t total) {
    return outcome_of(question(opcode::read_batch, 0, total), list_of(ranges), opcode::data);
  }
  std::error_code batch_write(std::span<const byte_range> ranges, std::uint64_t total,
                              std::size_t rest) {
    return outcome_of(question(opcode::write_batch, 0, total), list_of(ranges, rest),
                      opcode::written);
  }

  frame_peer::heard_frame heard_;
};

TEST_F(RegionExtras, AnswersABatchWithItsBytesInARow) {
  EXPECT_FALSE(batch_read(std::vector<byte_range>{{100, 50}, {9999, 1}, {0, 9}}, 60));
  ASSERT_EQ(heard_.payload.size(), 60U);
  EXPECT_TRUE(holds_pattern(std::span(heard_.payload).first(50), 0, 100));
  EXPECT_TRUE(holds_pattern(std::span(heard_.payload).subspan(50, 1), 0, 9999));
  EXPECT_TRUE(holds_pattern(std::span(heard_.payload).last(9)));
}

TEST_F(RegionExtras, RefusesBatchesThatReachOutsideOrLie) {
  for (const byte_range bad : {byte_range{10'000, 1}, byte_range{most_of_all, 1},
                               byte_range{most_of_all - 5, 10}, byte_range{9'990, 11}}) {
    const std::vector<byte_range> ranges{{0, 10}, bad};
    EXPECT_EQ(batch_read(ranges, 10 + bad.length), errc::out_of_range) << bad.offset;
    EXPECT_EQ(batch_write(ranges, 10 + bad.length, 10 + bad.length), errc::out_of_range);
  }
  const std::vector<byte_range> good{{0, 10}};
  EXPECT_EQ(batch_read(good, 11), errc::protocol_error);
  EXPECT_EQ(batch_write(good, 10, 9), errc::protocol_error);
  EXPECT_EQ(batch_write(good, 10, 11), errc::protocol_error);
  EXPECT_EQ(batch_write(good, 11, 10), errc::protocol_error);
  EXPECT_EQ(outcome_of(question(opcode::read_batch, 0, 10), {}, opcode::data),
            errc::protocol_error);
  EXPECT_EQ(outcome_of(question(opcode::read_batch, 0, 10), list_of(good, 1), opcode::data),
            errc::protocol_error);
  EXPECT_TRUE(holds_pattern(memory_)) << "nothing was written before all was checked";
}

TEST_F(RegionExtras, RefusesAtomicsThatMakeNoSense) {
  const auto attempt = [&](std::uint64_t offset, std::uint64_t width,
                           std::span<const std::byte> payload) {
    return outcome_of(question(opcode::atomic, offset, width), payload, opcode::performed);
  };
  const auto add = detail::encode({.operation = atomic_operation::add, .operand = 1}, true);
  // The memory of a vector is aligned for any number.
  EXPECT_EQ(attempt(4, 8, add), errc::invalid_argument);
  EXPECT_EQ(attempt(3, 4, add), errc::invalid_argument);
  EXPECT_EQ(attempt(10'000, 8, add), errc::out_of_range);
  EXPECT_EQ(attempt(most_of_all - 7, 8, add), errc::out_of_range);
  EXPECT_EQ(attempt(0, 16, add), errc::protocol_error);
  EXPECT_EQ(attempt(0, 8, std::span(add).first(23)), errc::protocol_error);
  EXPECT_EQ(attempt(0, 8, {}), errc::protocol_error);
  EXPECT_TRUE(holds_pattern(memory_));
  EXPECT_FALSE(attempt(8, 8, add));
  EXPECT_FALSE(holds_pattern(memory_));
}

TEST_F(RegionExtras, RefusesNotificationsOfNoRegion) {
  frame asked = question(opcode::notify, 5, 0);
  asked.generation = 9;
  EXPECT_EQ(outcome_of(asked, {}, opcode::notified), errc::stale_region);
  asked = question(opcode::notify, 5, 1);
  EXPECT_EQ(outcome_of(asked, {}, opcode::notified), errc::protocol_error);
  asked = question(opcode::notify, 5, 0);
  asked.region = 99;
  EXPECT_EQ(outcome_of(asked, {}, opcode::notified), errc::no_such_region);
  EXPECT_FALSE(exposed_.take_notification());
  EXPECT_FALSE(outcome_of(question(opcode::notify, most_of_all, 0), {}, opcode::notified));
  EXPECT_EQ(exposed_.take_notification()->value, most_of_all);
}

TEST_F(RegionExtras, SurvivesWhateverItIsTold) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 2000; ++round) {
    frame asked = question(static_cast<opcode>(32 + random() % 6), random() % 12'000,
                           random() % 3 == 0 ? random() : random() % 100);
    std::vector<std::byte> payload = round % 2 == 0
                                         ? list_of(std::vector<byte_range>{{random() % 10, 8}}, 8)
                                         : std::vector<std::byte>(random() % 64);
    for (std::byte& each : payload) {
      if (random() % 8 == 0) each = static_cast<std::byte>(random());
    }
    peer_.say(owner_, asked, payload);
    if (round % 100 == 99) pair_.network.advance(1ms);
  }
  pair_.network.advance(10ms);
  peer_.heard.clear();
  EXPECT_FALSE(outcome_of(question(opcode::notify, 1, 0), {}, opcode::notified));
}

/// An owner that answers wrongly.
TEST(LyingOwnerOfExtras, EndsTheConnection) {
  const auto blamed = [](opcode answered, std::uint64_t length, std::size_t bytes, auto start) {
    simulated_pair pair;
    frame_peer peer(pair.network, "liar");
    peer.welcome_everybody();
    endpoint connection(pair.reader, peer.its_address());
    connection.wait_connected();
    remote_descriptor descriptor;
    descriptor.region = 1;
    descriptor.address = 4096;
    descriptor.size = 1 << 20;
    descriptor.granted = access::read_write;
    remote_region region(connection, descriptor);
    peer.on_frame = [&](const frame_peer::heard_frame& heard) {
      if (static_cast<int>(heard.said.code) < 32) return;
      frame answer;
      answer.code = answered;
      answer.session = heard.said.session;
      answer.request = heard.said.request;
      answer.length = length;
      peer.say(peer.guest, answer, pattern(bytes));
    };
    start(region);
    return connection.status();
  };
  std::vector<std::byte> into(100, std::byte{1});
  const read_piece pieces[] = {{0, std::span(into).first(50)}, {60, std::span(into).last(50)}};
  const auto read = [&](remote_region& region) {
    std::error_code ec;
    region.read_batch(pieces, {}, ec);
  };
  const auto add = [](remote_region& region) {
    std::error_code ec;
    remote_atomic<std::uint64_t>(region, 0).fetch_add(1, {}, ec);
  };
  EXPECT_EQ(blamed(opcode::data, 101, 101, read), errc::protocol_error);
  EXPECT_EQ(blamed(opcode::data, 100, 99, read), errc::protocol_error);
  EXPECT_EQ(blamed(opcode::data, 0, 0, read), errc::protocol_error);
  EXPECT_EQ(blamed(opcode::written, 100, 0, read), errc::protocol_error);
  EXPECT_TRUE(all_bytes_are(into, std::byte{1}));
  EXPECT_EQ(blamed(opcode::data, 8, 8, add), errc::protocol_error);
  EXPECT_EQ(blamed(opcode::performed, 0, 0,
                   [](remote_region& region) {
                     std::error_code ec;
                     region.notify(1, {}, ec);
                   }),
            errc::protocol_error);
  EXPECT_FALSE(blamed(opcode::data, 100, 100, read));
  EXPECT_TRUE(holds_pattern(into));
}

TEST(FileRegionExtras, TakesBatchesOfReadsAlone) {
  simulated_pair pair;
  slow_disk::attach(pair.owner).at_once = true;  // a real one takes real time
  const temporary_file file(50'000);
  const auto exposed =
      detail::file_region::make(detail::core_access::core(pair.owner_context), file.path())
          .or_throw();
  const endpoint connection = pair.connect();
  remote_region region(connection, exposed->descriptor());
  std::vector<std::byte> into(300);
  std::vector<read_piece> pieces;
  for (std::size_t i = 0; i < 3; ++i) {
    pieces.push_back({i * 1000, std::span(into).subspan(i * 100, 100)});
  }
  region.read_batch(pieces);
  EXPECT_TRUE(holds_pattern(std::span(into).subspan(100, 100), 0, 1000));
  std::error_code ec;
  remote_atomic<std::uint64_t>(region, 0).load({}, ec);
  EXPECT_EQ(ec, errc::not_supported);
  remote_atomic<std::uint64_t>(region, 0).store(1, {}, ec);
  EXPECT_EQ(ec, errc::permission_denied);
  region.notify(1, {}, ec);
  EXPECT_EQ(ec, errc::permission_denied);
}

}  // namespace
}  // namespace ucx::test
