// What an owner answers to accesses that it does not allow: the peer's own checks are got round
// here by descriptors that promise more than the owner granted.
#include <atomic>
#include <cstdint>
#include <system_error>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/bytes/pattern.hpp"
#include "support/transports/connected_pair.hpp"
#include "support/transports/network.hpp"
#include "ucx/error.hpp"

namespace ucx::test {
namespace {

constexpr std::uint64_t last_offset = ~std::uint64_t{0};

class Refusal : public testing::TestWithParam<pair_options> {
 protected:
  std::error_code read(const remote_descriptor& descriptor, std::uint64_t offset = 0,
                       std::size_t size = 16) {
    remote_region region(*pair_.connection, descriptor, answered_by_the_owner());
    std::vector<std::byte> into(size, std::byte{0xEE});
    std::error_code ec;
    region.read_at(offset, into, {}, ec);
    EXPECT_TRUE(!ec || all_bytes_are(into, std::byte{0xEE}));
    return ec;
  }
  std::error_code write(const remote_descriptor& descriptor, std::uint64_t offset = 0,
                        std::size_t size = 16) {
    remote_region region(*pair_.connection, descriptor, answered_by_the_owner());
    std::error_code ec;
    region.write_at(offset, std::vector<std::byte>(size, std::byte{0xAA}), {}, ec);
    EXPECT_FALSE(ec) << "the owner's answer to a write shows in flush()";
    region.flush({}, ec);
    return ec;
  }
  /// The owner still serves those who ask for what there is.
  ~Refusal() override {
    memory_region fresh = pair_.allocate(4096);
    fill_pattern(fresh.bytes());
    remote_region region = pair_.open(fresh);
    std::vector<std::byte> into(4096);
    region.read_at(0, into);
    EXPECT_TRUE(holds_pattern(into));
  }

  connected_pair pair_{GetParam()};
};

TEST_P(Refusal, ComesFromTheOwnerForWritesWithoutTheRight) {
  memory_region owned = pair_.allocate(64, access::read);
  remote_descriptor forged = owned.descriptor();
  forged.granted = access::read_write;
  EXPECT_EQ(write(forged), errc::permission_denied);
  EXPECT_TRUE(all_bytes_are(owned.bytes(), std::byte{0}));
  EXPECT_FALSE(read(forged));
}

TEST_P(Refusal, ComesFromTheOwnerForReadsWithoutTheRight) {
  memory_region owned = pair_.allocate(64, access::write);
  remote_descriptor forged = owned.descriptor();
  forged.granted = access::read_write;
  EXPECT_EQ(read(forged), errc::permission_denied);
  EXPECT_FALSE(write(forged));
}

TEST_P(Refusal, ComesFromTheOwnerForAccessOutsideTheRegion) {
  memory_region owned = pair_.allocate(1000);
  remote_descriptor forged = owned.descriptor();
  forged.size = last_offset;
  for (const std::uint64_t offset :
       {std::uint64_t{985}, std::uint64_t{1000}, std::uint64_t{1001}, std::uint64_t{1} << 32U,
        std::uint64_t{1} << 63U, last_offset - 16}) {
    SCOPED_TRACE(offset);
    EXPECT_EQ(read(forged, offset), errc::out_of_range);
    EXPECT_EQ(write(forged, offset), errc::out_of_range);
  }
  EXPECT_EQ(read(forged, 0, 1001), errc::out_of_range);
  EXPECT_EQ(write(forged, 0, 1001), errc::out_of_range);
  EXPECT_TRUE(all_bytes_are(owned.bytes(), std::byte{0}));
  EXPECT_FALSE(read(forged, 984));
}

TEST_P(Refusal, NamesAnotherIncarnationOrGenerationStale) {
  memory_region owned = pair_.allocate(64);
  remote_descriptor restarted = owned.descriptor();
  ++restarted.incarnation;
  EXPECT_EQ(read(restarted), errc::stale_region);
  EXPECT_EQ(write(restarted), errc::stale_region);
  remote_descriptor replaced = owned.descriptor();
  ++replaced.generation;
  EXPECT_EQ(read(replaced), errc::stale_region);
  EXPECT_EQ(write(replaced), errc::stale_region);
}

TEST_P(Refusal, SaysThatThereIsNoSuchRegion) {
  memory_region owned = pair_.allocate(64);
  for (const std::uint64_t id : {std::uint64_t{0}, owned.descriptor().region + 1, last_offset}) {
    SCOPED_TRACE(id);
    remote_descriptor forged = owned.descriptor();
    forged.region = id;
    EXPECT_EQ(read(forged), errc::no_such_region);
    EXPECT_EQ(write(forged), errc::no_such_region);
  }
}

TEST_P(Refusal, SaysThatTheRegionWasWithdrawn) {
  memory_region owned = pair_.allocate(64);
  remote_region region = pair_.open(owned);
  std::vector<std::byte> into(8);
  region.read_at(0, into);
  owned.close();
  std::error_code ec;
  region.read_at(0, into, {}, ec);
  EXPECT_EQ(ec, errc::revoked);
  region.write_at(0, into);
  region.flush({}, ec);
  EXPECT_EQ(ec, errc::revoked);
  EXPECT_FALSE(region.status()) << "the connection lives, and another region can be opened";
}

TEST_P(Refusal, EndsEveryPieceOfALargeWriteAtOnce) {
  memory_region owned = pair_.allocate(64, access::read);
  remote_descriptor forged = owned.descriptor();
  forged.granted = access::write;
  forged.size = 16U << 20U;
  remote_region region(*pair_.connection, forged, answered_by_the_owner());
  const std::vector<std::byte> from(forged.size, std::byte{0xAA});
  std::error_code ec;
  for (int round = 0; round < 3; ++round) {
    region.write_at(0, from, {}, ec);
    // The refusal of the first piece may come before the last is out, and ends the write then.
    EXPECT_TRUE(!ec || ec == errc::permission_denied) << ec;
    region.flush({}, ec);
    EXPECT_EQ(ec, errc::permission_denied);
    EXPECT_EQ(region.first_unconfirmed(), 0U);
    region.flush();
  }
}

TEST_P(Refusal, SaysWhatWasRefusedWhereAndWhy) {
  memory_region owned = pair_.allocate(64, access::read);
  remote_descriptor forged = owned.descriptor();
  forged.size = 100;
  remote_region region(*pair_.connection, forged, answered_by_the_owner());
  std::vector<std::byte> into(90);
  try {
    region.read_at(10, into);
    ADD_FAILURE() << "read beyond the end";
  } catch (const error& refused) {
    EXPECT_EQ(refused.code(), errc::out_of_range);
    EXPECT_THAT(refused.what(), testing::HasSubstr("read of 90 bytes at offset 10"));
    EXPECT_THAT(refused.what(), testing::HasSubstr(region.description()));
    EXPECT_THAT(refused.what(), testing::HasSubstr(refused.code().message()));
  }
}

INSTANTIATE_TEST_SUITE_P(Messages, Refusal, testing::ValuesIn(message_pairs()), name_of_pair);
INSTANTIATE_TEST_SUITE_P(
    ToItself, Refusal,
    testing::Values(
        pair_options{route::tcp_to_itself, progress_mode::caller, progress_mode::caller, {}, {}},
        pair_options{
            route::tcp_by_listener, progress_mode::sleeping_thread, progress_mode::caller, {}, {}}),
    name_of_pair);

}  // namespace
}  // namespace ucx::test
