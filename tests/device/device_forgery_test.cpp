// Peers that ask of memory of a device what no library of ours would ask of it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <system_error>
#include <vector>

#include "region/exposed/atomic_execution.hpp"
#include "support/bytes/byte_sizes.hpp"
#include "support/bytes/pattern.hpp"
#include "support/fake_cuda/cuda_program.hpp"
#include "support/simulated/frame_peer.hpp"
#include "support/simulated/simulated_pair.hpp"
#include "support/transports/connected_pair.hpp"
#include "ucx/error.hpp"
#include "ucx/memory_region.hpp"
#include "ucx/remote_atomic.hpp"
#include "ucx/remote_region.hpp"
#include "wire/frame.hpp"

namespace ucx::test {
namespace {

using detail::frame;
using detail::opcode;

/// The descriptor says that the memory is the host's, at the address where the device has it.
class ForgedDescriptor : public testing::Test {
 protected:
  remote_descriptor forged() const {
    remote_descriptor made = exposed_.descriptor();
    made.kind = memory_kind::host;
    made.device = -1;
    made.address = cuda_program::address(bytes_);
    return made;
  }

  const cuda_program program_;
  connected_pair pair_;
  const std::span<std::byte> bytes_ = cuda_program::allocate_pattern(1000, 1);
  memory_region exposed_{*pair_.owner_context, bytes_, access::read_write};
};

TEST_F(ForgedDescriptor, GetsNothingDoneThatNeedsTheProcessor) {
  remote_region region(*pair_.connection, forged());
  std::error_code ec;
  remote_atomic<std::uint64_t>(region, 0).fetch_add(1, {}, ec);
  EXPECT_EQ(ec, errc::not_supported);
  std::vector<std::byte> into(20);
  io_options checked;
  checked.verify = true;
  region.read_at(0, into, checked, ec);
  EXPECT_EQ(ec, errc::not_supported);
  const std::vector<read_piece> reads{{0, std::span(into).first(10)},
                                      {500, std::span(into).subspan(10)}};
  region.read_batch(reads, {}, ec);
  EXPECT_EQ(ec, errc::not_supported);
  const std::vector<write_piece> writes{{0, std::span(into).first(10)},
                                        {500, std::span(into).subspan(10)}};
  region.write_batch(writes, {}, ec);
  if (!ec) region.flush({}, ec);
  EXPECT_EQ(ec, errc::not_supported);
  EXPECT_TRUE(holds_pattern(cuda_program::content(bytes_), 1));
}

TEST_F(ForgedDescriptor, ThatLendsOrMapsTheMemoryIsReadByMessage) {
  remote_descriptor lent = forged();
  lent.cma = {static_cast<std::uint64_t>(::getpid()), lent.address, 1};
  remote_descriptor mapped = forged();
  mapped.shareable = true;
  mapped.memfd = {static_cast<std::uint64_t>(::getpid()), 0, 1, 1};
  for (const remote_descriptor& each : {lent, mapped}) {
    remote_region region(*pair_.connection, each);
    EXPECT_NE(region.transfer_method(), transfer_method::mapped);
    std::vector<std::byte> into(1000);
    region.read_at(0, into);
    EXPECT_TRUE(holds_pattern(into, 1));
  }
}

TEST_F(ForgedDescriptor, ThatIsLongerThanTheMemoryIsOutOfRange) {
  remote_descriptor longer = exposed_.descriptor();
  longer.size = 2000;
  remote_region region(*pair_.connection, longer);
  std::vector<std::byte> into(2000);
  std::error_code ec;
  region.read_at(0, into, {}, ec);
  EXPECT_EQ(ec, errc::out_of_range);
  region.write_at(999, std::span(into).first(2), {}, ec);
  region.flush({}, ec);
  EXPECT_EQ(ec, errc::out_of_range);
  EXPECT_TRUE(holds_pattern(cuda_program::content(bytes_), 1));
}

/// A peer that says what it likes, frame by frame.
class ForgedFrame : public testing::Test {
 protected:
  ForgedFrame() { EXPECT_TRUE(peer_.open_session(owner_, session)); }

  frame question(opcode code, std::uint64_t offset, std::uint64_t length) {
    const remote_descriptor known = exposed_.descriptor();
    frame asked;
    asked.code = code;
    asked.session = session;
    asked.request = ++last_request_;
    asked.region = known.region;
    asked.incarnation = known.incarnation;
    asked.generation = known.generation;
    asked.offset = offset;
    asked.length = length;
    return asked;
  }
  std::error_code outcome_of(const frame& asked, std::span<const std::byte> payload,
                             opcode answer) {
    peer_.say(owner_, asked, payload);
    frame_peer::heard_frame heard;
    if (!peer_.await(answer, heard)) return std::make_error_code(std::errc::no_message);
    return detail::status_error(heard.said.status);
  }

  static constexpr std::uint64_t session = 0x5e5510;
  const cuda_program program_;
  simulated_pair pair_;
  const std::span<std::byte> bytes_ = cuda_program::allocate_pattern(mib, 1);
  memory_region exposed_{pair_.owner_context, bytes_, access::read_write};
  frame_peer peer_{pair_.network, "peer"};
  ucp_ep_h owner_ = peer_.reach(pair_.owner.address());
  std::uint64_t last_request_ = 0;
};

TEST_F(ForgedFrame, ThatNeedsTheProcessorIsNotSupported) {
  frame checked = question(opcode::read, 0, 10);
  checked.status = frame::with_digests;
  EXPECT_EQ(outcome_of(checked, {}, opcode::data), errc::not_supported);
  const detail::atomic_payload atomic = detail::encode({atomic_operation::add, 8, 1, 0}, true);
  EXPECT_EQ(outcome_of(question(opcode::atomic, 0, 8), atomic, opcode::performed),
            errc::not_supported);
}

TEST_F(ForgedFrame, OutOfBoundsIsOutOfRange) {
  const std::vector<std::byte> payload(100);
  EXPECT_EQ(outcome_of(question(opcode::read, mib, 1), {}, opcode::data), errc::out_of_range);
  EXPECT_EQ(outcome_of(question(opcode::write, mib - 99, 100), payload, opcode::written),
            errc::out_of_range);
  EXPECT_EQ(outcome_of(question(opcode::write, 0, 99), payload, opcode::written),
            errc::protocol_error);
}

TEST_F(ForgedFrame, PastEveryWindowIsRefusedAndNotKept) {
  fake_cuda_hold_copies(1);
  const std::vector<std::byte> payload(mib);
  for (int i = 0; i < 128; ++i) peer_.say(owner_, question(opcode::write, 0, mib), payload);
  EXPECT_EQ(outcome_of(question(opcode::write, 0, mib), payload, opcode::written), errc::busy);
  EXPECT_LE(pair_.owner.staging().memory, 129 * mib);
  fake_cuda_hold_copies(0);
}

}  // namespace
}  // namespace ucx::test
