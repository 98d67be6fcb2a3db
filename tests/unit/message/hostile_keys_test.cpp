// A peer that announces messages with keys as it likes, and answers as it likes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <system_error>
#include <vector>

#include "support/bytes/pattern.hpp"
#include "support/simulated/frame_peer.hpp"
#include "support/simulated/simulated_messages.hpp"
#include "ucx/error.hpp"
#include "ucx/message.hpp"
#include "wire/parcel.hpp"
#include "wire/rma_offer.hpp"

namespace ucx::test {
namespace {

using detail::parcel;
using detail::parcel_code;

constexpr std::size_t announced_size = std::size_t{4} << 20U;

simulated_pair_options keyed_hardware() {
  simulated_pair_options options;
  options.link.emulated_rma = false;
  options.link.resources = {"self/memory0", "rc_verbs/rxe0:1"};
  return options;
}

class LyingKeyOwner : public testing::Test {
 protected:
  LyingKeyOwner() {
    peer_.room = 16384;
    peer_.welcome_everybody();
    connection_ = std::make_unique<endpoint>(pair_.reader, peer_.its_address());
    connection_->wait_connected();
    memory_ = peer_.map(bytes_.data(), bytes_.size());
    void* packed = nullptr;
    std::size_t size = 0;
    EXPECT_EQ(peer_.api.rkey_pack(peer_.context, memory_, &packed, &size), UCS_OK);
    const auto* const key = static_cast<const std::byte*>(packed);
    key_.assign(key, key + size);
    peer_.api.rkey_buffer_release(packed);
  }
  ~LyingKeyOwner() override { peer_.api.mem_unmap(peer_.context, memory_); }
  void say(const parcel& said, std::span<const std::byte> behind = {},
           std::span<const std::byte> payload = {}) {
    std::vector<std::byte> header(parcel::size);
    said.encode(std::span(header).first<parcel::size>());
    header.insert(header.end(), behind.begin(), behind.end());
    peer_.say_bytes(peer_.guest, header, payload, UCP_AM_SEND_FLAG_EAGER, 0xfe);
  }
  parcel of(parcel_code code, std::uint64_t number, std::uint64_t length = announced_size) const {
    parcel said;
    said.code = code;
    said.session = peer_.guest_session;
    said.number = number;
    said.tag = 7;
    said.length = length;
    return said;
  }
  void announce(std::uint64_t number, std::uint64_t address, std::span<const std::byte> key,
                std::uint64_t length = announced_size) {
    parcel said = of(parcel_code::announce, number, length);
    said.keyed = true;
    const detail::rma_offer offer{address, key};
    std::vector<std::byte> wire(offer.size());
    offer.encode(wire);
    say(said, wire);
  }
  /// The answer is the next one of this kind.
  parcel answer(parcel_code code) {
    frame_peer::heard_parcel heard;
    EXPECT_TRUE(peer_.await(code, heard));
    return heard.said;
  }
  std::uint64_t gets() { return pair_.reader_process.count(call::get); }
  std::uint64_t where(std::span<const std::byte> bytes) const {
    return reinterpret_cast<std::uintptr_t>(bytes.data());
  }
  simulated_pair pair_{keyed_hardware()};
  frame_peer peer_{pair_.network, "liar"};
  std::unique_ptr<endpoint> connection_;
  std::vector<std::byte> bytes_ = pattern(announced_size);
  ucp_mem_h memory_ = nullptr;  // the peer's, of `bytes_`
  std::vector<std::byte> key_;
  std::vector<std::byte> into_ = blank(announced_size);
};

TEST_F(LyingKeyOwner, IsAskedForItsMessageWhereItsKeyIsNone) {
  std::mt19937 random(5);
  for (std::uint64_t number = 1; number <= 100; ++number) {
    SCOPED_TRACE(number);
    std::vector<std::byte> key(1 + random() % detail::rma_offer::most_key);
    for (std::byte& each : key) each = static_cast<std::byte>(random());
    if (number % 3 == 0)
      std::fill_n(key.begin(), std::min<std::size_t>(9, key.size()), std::byte{});
    request receive = connection_->start_receive(7, into_);
    announce(number, number % 2 == 0 ? where(bytes_) : ~std::uint64_t{0} - 5, key);
    const parcel grant = answer(parcel_code::grant);
    EXPECT_EQ(grant.number, number);
    EXPECT_NE(grant.tag, 0U) << "it was not taken";
    receive.cancel();
  }
  EXPECT_EQ(pair_.reader_process.count(call::ep_rkey_unpack), 0U) << "UCX never sees such";
  EXPECT_FALSE(connection_->status());
}

TEST_F(LyingKeyOwner, WhoseMessageIsTooLongIsRefused) {
  request receive = connection_->start_receive(7, std::span(into_).first(announced_size - 1));
  announce(1, where(bytes_), key_);
  EXPECT_EQ(answer(parcel_code::refusal).number, 1U);
  std::error_code ec;
  receive.wait(ec);
  EXPECT_EQ(ec, errc::message_truncated);
  EXPECT_EQ(gets(), 0U);
}

TEST_F(LyingKeyOwner, WhoseMessageWrapsAroundIsAskedForIt) {
  request receive = connection_->start_receive(7, into_);
  announce(1, ~std::uint64_t{0} - announced_size + 1, key_);
  EXPECT_NE(answer(parcel_code::grant).tag, 0U);
  EXPECT_EQ(gets(), 0U);
  receive.cancel();
}

TEST_F(LyingKeyOwner, WhoTellsTheTruthIsRead) {
  request receive = connection_->start_receive(7, into_);
  announce(1, where(bytes_), key_);
  EXPECT_EQ(answer(parcel_code::grant).tag, 0U);
  EXPECT_TRUE(receive.done());
  EXPECT_TRUE(holds_pattern(into_));
}

TEST_F(LyingKeyOwner, WhoseKeyDoesNotReachItsBytesLosesTheConnection) {
  request receive = connection_->start_receive(7, into_);
  announce(1, where(bytes_) + 1, key_);  // the last byte is beyond
  std::error_code ec;
  receive.wait(ec);
  EXPECT_EQ(ec, errc::connection_reset);
  EXPECT_EQ(pair_.network.live().rkeys, 0U);
}

TEST_F(LyingKeyOwner, SendsPiecesOfAMessageThatIsFetched) {
  request receive = connection_->start_receive(7, into_);
  pair_.reader_process.faults().delay(call::get, std::chrono::milliseconds(50), 1);
  announce(1, where(bytes_), key_);
  ASSERT_TRUE(pair_.network.run_until([&] { return gets() > 0; }));
  const std::uint64_t first_receive = std::uint64_t{1} << 32U;
  say(of(parcel_code::piece, first_receive, 0), {}, std::span(bytes_).first(100));
  std::error_code ec;
  receive.wait(ec);
  EXPECT_EQ(ec, errc::protocol_error);
}

TEST_F(LyingKeyOwner, WithdrawsTwice) {
  announce(1, where(bytes_), key_);
  say(of(parcel_code::withdrawal, 1, 0));
  say(of(parcel_code::withdrawal, 1, 0));
  EXPECT_EQ(answer(parcel_code::refusal).number, 1U);
  frame_peer::heard_parcel second;
  EXPECT_FALSE(peer_.await(parcel_code::refusal, second, std::chrono::milliseconds(50)));
  request receive = connection_->start_receive(7, into_);
  announce(2, where(bytes_), key_);
  EXPECT_EQ(answer(parcel_code::grant).tag, 0U);
  EXPECT_TRUE(receive.done());
  EXPECT_TRUE(holds_pattern(into_));
}

TEST_F(LyingKeyOwner, WithdrawsWhatIsFetchedTwice) {
  request receive = connection_->start_receive(7, into_);
  pair_.reader_process.faults().delay(call::get, std::chrono::milliseconds(50), 2);
  pair_.reader_process.faults().delay(call::get, std::chrono::milliseconds(50), 3);
  announce(1, where(bytes_), key_);
  ASSERT_TRUE(pair_.network.run_until([&] { return gets() >= 3; }));
  say(of(parcel_code::withdrawal, 1, 0));
  say(of(parcel_code::withdrawal, 1, 0));
  EXPECT_EQ(answer(parcel_code::refusal).number, 1U);
  std::error_code ec;
  receive.wait(ec);
  EXPECT_EQ(ec, errc::message_withdrawn);
  EXPECT_FALSE(connection_->status());
}

}  // namespace
}  // namespace ucx::test
