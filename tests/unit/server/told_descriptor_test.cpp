// What clients of other hosts are told of a region, and of its process.
#include "server/told_descriptor.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "support/bytes/pattern.hpp"
#include "support/simulated/frame_peer.hpp"
#include "support/simulated/simulated_server.hpp"
#include "ucx/error.hpp"
#include "ucx/remote_atomic.hpp"
#include "ucx/remote_region.hpp"
#include "wire/control_message.hpp"
#include "wire/frame.hpp"
#include "wire/host_identity.hpp"
#include "wire/wire.hpp"

namespace ucx::test {
namespace {

using namespace detail;

constexpr std::uint64_t secret_address = 0x7f3a21b0c454;
constexpr std::uint64_t secret_process = 0x12b9a5;

remote_descriptor whole() {
  remote_descriptor made;
  made.region = 0xfeedfacecafebeef;
  made.incarnation = 5;
  made.generation = 3;
  made.address = secret_address;
  made.size = 4096;
  made.granted = access::read_write;
  made.shareable = true;
  made.host = host_identity();
  made.memfd = {secret_process, 0x51a7, 0x0badde71, 0x1a0de};
  made.cma = {secret_process, 0x7f3a21b99990, 0x70cee4};
  return made;
}

bool has(std::span<const std::byte> wire, std::span<const std::byte> bytes) {
  return std::search(wire.begin(), wire.end(), bytes.begin(), bytes.end()) != wire.end();
}

bool has(std::span<const std::byte> wire, std::uint64_t number) {
  std::array<std::byte, 8> bytes = {};
  put_at(std::span<std::byte>(bytes), 0, number);
  const std::span<const std::byte> found(bytes);
  const auto used =
      std::find_if(found.rbegin(), found.rend(), [](auto b) { return b != std::byte{}; });
  return has(wire, found.first(static_cast<std::size_t>(found.rend() - used)));
}

TEST(ToldDescriptor, IsWholeOnOneHostButForTheRights) {
  remote_descriptor expected = whole();
  expected.granted = access::read;
  EXPECT_EQ(told_descriptor(whole(), access::read, {.shares_host = true}), expected);
}

TEST(ToldDescriptor, HasNoKeyForAPeerOfAnotherContext) {
  remote_descriptor full = whole();
  full.remote_key = std::vector<std::byte>(40, std::byte{7});
  remote_descriptor expected = full;
  expected.granted = access::read;
  expected.remote_key.clear();
  EXPECT_EQ(told_descriptor(full, access::read, {.shares_host = true, .takes_keys = false}),
            expected);
  const remote_descriptor far =
      told_descriptor(full, access::read, {.has_rma = true, .takes_keys = false});
  EXPECT_TRUE(far.remote_key.empty());
  EXPECT_LT(far.address, 16U);
}

TEST(ToldDescriptor, HasNothingOfTheProcessOnAnotherHost) {
  remote_descriptor full = whole();
  full.remote_key = {};
  const std::vector<std::byte> before = full.encode();
  const std::vector<std::byte> wire = told_descriptor(full, access::write, {}).encode();
  for (const std::uint64_t each :
       {secret_address, secret_process, full.memfd.descriptor, full.memfd.device, full.memfd.inode,
        full.cma.record, full.cma.token}) {
    EXPECT_TRUE(has(before, each)) << std::hex << each;
    EXPECT_FALSE(has(wire, each)) << std::hex << each;
  }
  EXPECT_TRUE(has(before, full.host));
  EXPECT_FALSE(has(wire, full.host));
  std::error_code ec;
  const auto read = remote_descriptor::decode(wire, ec);
  EXPECT_FALSE(ec);
  EXPECT_EQ(read.granted, access::write);
  EXPECT_EQ(read.region, full.region);
  EXPECT_EQ(read.address % 8, full.address % 8);
  EXPECT_NE(read.address, 0U);
  EXPECT_FALSE(read.shareable);
}

TEST(ToldDescriptor, KeepsWhatRmaNeeds) {
  remote_descriptor full = whole();
  full.remote_key = pattern(40);
  const remote_descriptor by_rma = told_descriptor(full, access::read, {.has_rma = true});
  EXPECT_EQ(by_rma.remote_key, full.remote_key);
  EXPECT_EQ(by_rma.address, full.address);
  EXPECT_EQ(by_rma.cma.process, 0U);
  const remote_descriptor without = told_descriptor(full, access::read, {});
  EXPECT_TRUE(without.remote_key.empty());
  EXPECT_LT(without.address, 16U);
  full.remote_key.clear();
  EXPECT_LT(told_descriptor(full, access::read, {.has_rma = true}).address, 16U);
}

TEST(ToldDescriptor, HasTheKeyForAdaptersWhereThereAreSome) {
  remote_descriptor full = whole();
  full.kind = memory_kind::cuda;
  full.address = 0;
  full.device_rma = {pattern(30), pattern(40), secret_address};
  EXPECT_EQ(told_descriptor(full, access::read, {.has_rma = true}).device_rma, full.device_rma);
  for (const bool has_rma : {false, true}) {
    const peer_reach here{.shares_host = true, .has_rma = has_rma};
    EXPECT_EQ(told_descriptor(full, access::read, here).device_rma, device_rma_handle());
  }
  EXPECT_EQ(told_descriptor(full, access::read, {}).device_rma, device_rma_handle());
  for (const bool here : {false, true}) {
    const peer_reach other{.shares_host = here, .has_rma = true, .takes_keys = false};
    EXPECT_EQ(told_descriptor(full, access::read, other).device_rma, device_rma_handle());
  }
}

TEST(ToldDescriptor, OfAFileHasNoAddress) {
  remote_descriptor file = whole();
  file.address = 0;
  EXPECT_EQ(told_descriptor(file, access::read, {}).address, 0U);
}

/// A server, and a process that says what it likes of its host.
class ToldToPeer : public testing::Test {
 protected:
  static constexpr std::uint64_t session = 0x5e5510;

  /// Returns what a peer is told that connects by worker address, or by the listener.
  remote_descriptor told_to(const std::vector<std::byte>& host, bool by_listener = false) {
    frame_peer peer(served_.network, "peer");
    const server_address where = served_.server().address();
    const ucp_ep_h to = by_listener ? peer.reach(where.socket.port()) : peer.reach(where.worker);
    frame hello;
    hello.code = opcode::hello;
    hello.session = session;
    std::vector<std::byte> greeting;
    if (!by_listener) greeting = peer.its_address().encode();
    greeting.insert(greeting.end(), host.begin(), host.end());
    peer.say(to, hello, greeting, UCP_AM_SEND_FLAG_REPLY);
    frame_peer::heard_frame heard;
    EXPECT_TRUE(peer.await(opcode::welcome, heard));
    EXPECT_FALSE(has(heard.payload, host_identity())) << "who is asked tells nothing of its host";
    control_header asked;
    asked.type = control_type::hello;
    say(peer, to, encode_control(asked, hello_body{}));
    asked.type = control_type::open;
    say(peer, to, encode_control(asked, open_body{"shown"}));
    EXPECT_TRUE(peer.await(opcode::control, heard));
    EXPECT_TRUE(peer.await(opcode::control, heard));
    const auto opened = decode_opened(heard.payload);
    EXPECT_TRUE(opened);
    std::error_code ec;
    return opened ? remote_descriptor::decode(opened->descriptor, ec) : remote_descriptor();
  }
  static void say(frame_peer& peer, ucp_ep_h to, const std::vector<std::byte>& message) {
    frame carried;
    carried.code = opcode::control;
    carried.session = session;
    carried.length = message.size();
    peer.say(to, carried, message);
  }

  explicit ToldToPeer(const link_options& link = {}) : served_({.link = link}) {
    served_.process.share_memory();
  }

  publication publish() {
    return served_.server().publish("shown", std::span<std::byte>(memory_), access::read_write);
  }

  /// Returns a host that is not this one.
  static std::vector<std::byte> other_host() {
    host_number other = host_identity();
    other[3] ^= std::byte{1};
    return encode_host(other);
  }

  simulated_server served_;
  std::vector<std::byte> memory_ = pattern(4096);
};

TEST_F(ToldToPeer, IsEverythingWhereItNamesTheHost) {
  const publication shown = publish();
  const remote_descriptor told = told_to(encode_host(host_identity()));
  EXPECT_EQ(told.host, host_identity());
  EXPECT_NE(told.cma.process, 0U);
  EXPECT_EQ(told.address, reinterpret_cast<std::uintptr_t>(memory_.data()));
}

TEST_F(ToldToPeer, IsNothingOfTheHostWhereItNamesNoneOrAnother) {
  const publication shown = publish();
  for (const std::vector<std::byte>& host : {std::vector<std::byte>(), other_host()}) {
    const remote_descriptor told = told_to(host);
    EXPECT_EQ(told.host, host_number());
    EXPECT_EQ(told.cma.process, 0U);
    EXPECT_TRUE(told.remote_key.empty());
    EXPECT_LT(told.address, 16U);
    EXPECT_EQ(told.size, memory_.size());
  }
}

TEST_F(ToldToPeer, IsEverythingWhereItComesFromThisMachineToo) {
  const publication shown = publish();
  const remote_descriptor told = told_to(encode_host(host_identity()), true);
  EXPECT_EQ(told.host, host_identity());
  EXPECT_NE(told.cma.process, 0U);
  EXPECT_EQ(told_to(other_host(), true).cma.process, 0U);
}

TEST_F(ToldToPeer, IsNothingOfTheHostWhereItComesFromAnotherMachine) {
  const publication shown = publish();
  for (const char* from : {"203.0.113.7", "2001:db8::7"}) {
    served_.network.link().client_host = from;
    const remote_descriptor told = told_to(encode_host(host_identity()), true);
    EXPECT_EQ(told.host, host_number()) << from << " lies";
    EXPECT_EQ(told.cma.process, 0U);
    EXPECT_FALSE(told.shareable);
    EXPECT_LT(told.address, 16U);
  }
}

/// The server has an adapter, and connections by it and by others.
class ToldWithAdapter : public ToldToPeer {
 protected:
  ToldWithAdapter() : ToldToPeer(adapter()) {}
  static link_options adapter() {
    link_options link;
    link.emulated_rma = false;
    link.resources = {"self/memory0", "tcp/eth0", "rc_mlx5/mlx5_0:1"};
    return link;
  }
};

TEST_F(ToldWithAdapter, IsTheKeyOverTheAdapterOnly) {
  const publication shown = publish();
  remote_descriptor told = told_to(other_host());
  EXPECT_FALSE(told.remote_key.empty());
  EXPECT_EQ(told.address, reinterpret_cast<std::uintptr_t>(memory_.data()));
  served_.network.link().lanes = {"tcp/eth0"};
  told = told_to(other_host());
  EXPECT_TRUE(told.remote_key.empty());
  EXPECT_LT(told.address, 16U);
}

}  // namespace
}  // namespace ucx::test
