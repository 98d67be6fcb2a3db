// Copies that a thread waits for while a device hangs: they end at their deadline, and nothing dies
// that the driver may still touch, which AddressSanitizer would notice.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <span>
#include <system_error>
#include <thread>
#include <vector>

#include "support/bytes/byte_sizes.hpp"
#include "support/bytes/pattern.hpp"
#include "support/fake_cuda/kind_memory.hpp"
#include "support/streams/pipe_place.hpp"
#include "support/transports/connected_pair.hpp"
#include "support/transports/message_pair.hpp"
#include "ucx/context.hpp"
#include "ucx/error.hpp"
#include "ucx/memory_region.hpp"
#include "ucx/memory_resources.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/stream.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

void hang() { fake_cuda_hold_copies(1); }

/// Returns when the device has done all that it was asked for.
void go_on() {
  fake_cuda_hold_copies(0);
  const auto end = std::chrono::steady_clock::now() + 20s;
  while (fake_cuda_waiting_copies() > 0 && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_EQ(fake_cuda_waiting_copies(), 0U);
}

class HungCopy : public testing::TestWithParam<route> {
 protected:
  HungCopy() { fill_pattern(exposed_.bytes(), 1); }
  static stream_options brief(std::chrono::nanoseconds timeout = 500ms) {
    stream_options made;
    made.buffer_size = 100'000;
    made.timeout = timeout;
    return made;
  }

  const cuda_program program_;
  connected_pair pair_{{GetParam()}};
  memory_region exposed_ = pair_.allocate(mib);
};

TEST_P(HungCopy, OfWhatAStreamHasReadAheadEndsAtTheStreamsTimeout) {
  kind_memory into(memory_kind::cuda, 1000, 9);
  {
    ucx::istream in(pair_.open(exposed_), brief());
    in.get();
    hang();
    in.read(into.characters(), 1000);
    EXPECT_TRUE(in.bad());
    EXPECT_FALSE(in.eof());
    EXPECT_EQ(in.error(), errc::timed_out);
  }
  go_on();
  ucx::istream again(pair_.open(exposed_), brief(30s));
  again.get();
  again.read(into.characters(), 1000);
  EXPECT_TRUE(again.good());
  EXPECT_TRUE(holds_pattern(into.content(), 1, 1));
}

TEST_P(HungCopy, OfWhatFitsAStreamsBufferEndsAtTheStreamsTimeout) {
  kind_memory from(memory_kind::cuda, 1000, 2);
  {
    ucx::ostream out(pair_.open(exposed_), brief());
    hang();
    out.write(from.characters(), 1000);
    EXPECT_TRUE(out.bad());
    EXPECT_EQ(out.error(), errc::timed_out);
  }
  go_on();
  ucx::ostream again(pair_.open(exposed_), brief(30s));
  again.write(from.characters(), 1000);
  again.flush();
  EXPECT_TRUE(again.good());
  EXPECT_TRUE(holds_pattern(exposed_.bytes().first(1000), 2));
}

TEST_P(HungCopy, BehindAStuckStreamEndsAtTheTimeout) {
  kind_memory into(memory_kind::cuda, 1000, 9);
  CUstream_st* stream = nullptr;
  ASSERT_EQ(cuStreamCreate(&stream, 0), 0);
  fake_cuda_hold_stream(stream, 1);
  ASSERT_EQ(cuMemcpyAsync(cuda_program::address(into.bytes()), cuda_program::address(into.bytes()),
                          1, stream),
            0);
  {
    stream_options options = brief();
    options.cuda_stream = stream;
    ucx::istream in(pair_.open(exposed_), options);
    in.get();
    in.read(into.characters(), 1000);
    EXPECT_TRUE(in.bad());
    EXPECT_EQ(in.error(), errc::timed_out);
  }
  fake_cuda_hold_stream(stream, 0);
  go_on();
}

INSTANTIATE_TEST_SUITE_P(Routes, HungCopy, testing::Values(route::tcp_by_address, route::mapped),
                         [](const auto& instance) { return to_string(instance.param); });

TEST(HungCopyHere, LeavesTheHostsMemoryToItsCaller) {
  const cuda_program program;
  kind_memory device(memory_kind::cuda, 3 * mib, 1);
  kind_memory other(memory_kind::cuda, 3 * mib, 2);
  const io_options brief{.timeout = 50ms};
  hang();
  std::error_code ec;
  std::vector<std::byte> into(3 * mib);
  copy_memory(into.data(), device.bytes().data(), into.size(), brief, ec);
  EXPECT_EQ(ec, errc::timed_out);
  {
    const std::vector<std::byte> from(3 * mib);
    copy_memory(other.bytes().data(), from.data(), from.size(), brief, ec);
    EXPECT_EQ(ec, errc::timed_out);
  }
  copy_memory(other.bytes().data(), device.bytes().data(), device.bytes().size(), brief, ec);
  EXPECT_EQ(ec, errc::timed_out);
  go_on();
  EXPECT_EQ(into, std::vector<std::byte>(3 * mib));  // nothing came late
  copy_memory(into.data(), device.bytes().data(), into.size());
  EXPECT_TRUE(holds_pattern(into, 1));
}

TEST(HungAllocation, IsTimedOut) {
  const cuda_program program;
  const context owner;
  const memory_place device{memory_kind::cuda, 0};
  hang();
  std::error_code ec;
  memory_region none = memory_region::allocate(owner, 1000, access::read, device, ec);
  EXPECT_EQ(ec, errc::timed_out);
  go_on();
  EXPECT_EQ(memory_region::allocate(owner, 1000, access::read, device).size(), 1000U);
}

class HungPipe : public pipe_place {
 protected:
  const cuda_program program_;
};

TEST_F(HungPipe, EndsItsWriteAndItsReadAtTheirTimeout) {
  connect({.timeout = 3s}, {.timeout = 3s});
  kind_memory memory(memory_kind::cuda, 2 * mib, 6);
  *out_ << text_of(1000, 5) << std::flush;
  hang();
  in_->read(memory.characters(), 1000);
  EXPECT_TRUE(in_->bad());
  EXPECT_EQ(in_->error(), errc::timed_out);
  for (const std::size_t length : {std::size_t{1000}, 2 * mib}) {
    out_->clear();
    out_->write(memory.characters(), static_cast<std::streamsize>(length));
    EXPECT_TRUE(out_->bad());
    EXPECT_EQ(out_->error(), errc::timed_out);
  }
  go_on();
  in_->clear();
  in_->read(memory.characters(), 1000);
  EXPECT_TRUE(in_->good());
  EXPECT_TRUE(memory.holds(5, 1000));
}

class HungMessage : public testing::TestWithParam<std::size_t> {
 protected:
  static message_pair_options over_tcp() {
    message_pair_options options;
    options.over = route::tcp_by_listener;
    return options;
  }
  std::error_code outcome(request& waited) {
    EXPECT_TRUE(pair_.until([&] { return waited.done(); }));
    return waited.error();
  }
  /// The connection is as good as before.
  void pass_one() {
    std::vector<std::byte> into(1000);
    request receive = pair_.receiver().start_receive(2, into);
    request send = pair_.sender->start_send(2, pattern(1000, 7), {.memory = send_memory::copied});
    EXPECT_FALSE(outcome(send));
    EXPECT_FALSE(outcome(receive));
    EXPECT_TRUE(holds_pattern(into, 7));
  }

  const cuda_program program_;
  message_pair pair_{over_tcp()};
};

TEST_P(HungMessage, OutOfADeviceFailsAndHoldsNobodyUp) {
  kind_memory from(memory_kind::cuda, GetParam(), 1);
  std::vector<std::byte> into(GetParam());
  request receive = pair_.receiver().start_receive(1, into);
  hang();
  request send = pair_.sender->start_send(1, from.bytes(), {.timeout = 100ms});
  EXPECT_EQ(outcome(send), errc::timed_out);
  pass_one();
  go_on();
  receive.cancel();
  outcome(receive);
}

TEST_P(HungMessage, IntoADeviceFailsAndHoldsNobodyUp) {
  kind_memory into(memory_kind::cuda, GetParam());
  request receive = pair_.receiver().start_receive(1, into.bytes(), {.timeout = 3s});
  hang();
  request send = pair_.sender->start_send(1, pattern(GetParam()), {.memory = send_memory::copied});
  EXPECT_EQ(outcome(receive), errc::timed_out);
  outcome(send);
  pass_one();
  go_on();
}

INSTANTIATE_TEST_SUITE_P(Lengths, HungMessage, testing::Values(1000, 60'000, mib));

}  // namespace
}  // namespace ucx::test
