// Memory of an owner on the same host, read where it lies.
#include "region/paths/cma_region.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "support/bytes/pattern.hpp"
#include "support/process/process_reading.hpp"
#include "support/simulated/simulated_pair.hpp"
#include "ucx/access.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/error.hpp"
#include "ucx/memory_region.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/stream.hpp"

namespace ucx::test {
namespace {

using testing::HasSubstr;

constexpr std::size_t lent_size = 100'000;

simulated_pair_options readable() {
  simulated_pair_options options = one_host();
  options.shares_memory = true;
  return options;
}

class RegionLoan : public testing::Test {
 protected:
  explicit RegionLoan(const simulated_pair_options& options = readable())
      : pair_(options),
        exposed_(std::in_place, pair_.owner_context, std::span(memory_), access::read_write),
        connection_(pair_.connect()) {
    fill_pattern(memory_);
    connection_.wait_connected();
  }
  void SetUp() override {
    if (!system_reads_processes()) GTEST_SKIP() << "process_vm_readv is forbidden here";
  }

  remote_region open(const remote_descriptor& described,
                     transfer_method wanted = transfer_method::automatic) {
    return remote_region(connection_, described, {.transfer_method = wanted});
  }
  remote_region open() { return open(exposed_->descriptor()); }
  std::uint64_t messages() const { return pair_.reader_process.count(call::am_send); }
  std::uint64_t readings() const { return pair_.reader_process.count(call::read_process); }

  std::vector<std::byte> memory_ = std::vector<std::byte>(lent_size);
  simulated_pair pair_;
  std::optional<memory_region> exposed_;
  endpoint connection_;
  std::vector<std::byte> into_ = std::vector<std::byte>(lent_size);
};

TEST_F(RegionLoan, IsReadWhereItLies) {
  remote_region region = open();
  EXPECT_EQ(region.transfer_method(), transfer_method::cma);
  EXPECT_EQ(region.why_not(transfer_method::cma), "");
  EXPECT_NE(region.why_not(transfer_method::mapped), "");
  EXPECT_EQ(region.why_not(transfer_method::rma), "a better way is in use");
  EXPECT_EQ(region.why_not(transfer_method::message), "a better way is in use");
  EXPECT_EQ(region.why_not(transfer_method::cuda_ipc), "it is no memory of a CUDA device");
  EXPECT_EQ(region.why_not(transfer_method::automatic), "");
  const std::uint64_t before = messages();
  region.read_at(0, into_);
  EXPECT_TRUE(holds_pattern(into_));
  region.read_at(4711, std::span(into_).first(8));
  EXPECT_TRUE(std::equal(into_.begin(), into_.begin() + 8, memory_.begin() + 4711));
  region.read_at(lent_size, {});
  EXPECT_EQ(messages(), before);
  EXPECT_GE(readings(), 3U);
}

TEST_F(RegionLoan, IsReadInSeveralPartsWhereItIsLong) {
  std::vector<std::byte> memory = pattern((std::size_t{9} << 20U) + 1, 5);
  memory_region longer(pair_.owner_context, std::span(memory), access::read);
  remote_region region = open(longer.descriptor());
  const std::uint64_t before = readings();
  std::vector<std::byte> into(memory.size());
  region.read_at(0, into);
  EXPECT_TRUE(holds_pattern(into, 5));
  EXPECT_EQ(readings() - before, 3U);
}

TEST_F(RegionLoan, BatchesAndStreamsReadItTheSameWay) {
  remote_region region = open();
  const std::uint64_t before = messages();
  std::array<std::byte, 4> first{};
  std::array<std::byte, 4> second{};
  const std::array pieces{read_piece{10, first}, read_piece{90'000, second}};
  region.read_batch(pieces);
  EXPECT_TRUE(std::equal(first.begin(), first.end(), memory_.begin() + 10));
  EXPECT_TRUE(std::equal(second.begin(), second.end(), memory_.begin() + 90'000));
  istream in(region);
  in.read(reinterpret_cast<char*>(into_.data()), lent_size);
  EXPECT_EQ(in.gcount(), static_cast<std::streamsize>(lent_size));
  EXPECT_TRUE(holds_pattern(into_));
  EXPECT_EQ(messages(), before);
}

TEST_F(RegionLoan, WritesGoToItsOwnerByMessage) {
  remote_region region = open();
  const std::vector<std::byte> from = pattern(1000, 9);
  region.write_at(500, from);
  region.flush();
  EXPECT_TRUE(holds_pattern(std::span(memory_).subspan(500, 1000), 9));
  region.read_at(500, std::span(into_).first(1000));
  EXPECT_TRUE(holds_pattern(std::span(into_).first(1000), 9));
}

TEST_F(RegionLoan, OwnerIsAskedWhereItCanNotBeRead) {
  remote_region region = open();
  pair_.reader_process.faults().fail(call::read_process, UCS_ERR_UNSUPPORTED, 1);
  const std::uint64_t before = messages();
  region.read_at(0, into_);
  EXPECT_TRUE(holds_pattern(into_));
  EXPECT_GT(messages(), before);
}

TEST_F(RegionLoan, IsNotReadAnyMoreOnceItIsWithdrawn) {
  remote_region region = open();
  region.read_at(0, into_);
  exposed_.reset();
  std::fill(memory_.begin(), memory_.end(), std::byte{0xFF});
  std::error_code ec;
  region.read_at(0, into_, {}, ec);
  EXPECT_EQ(ec, errc::revoked);
}

TEST_F(RegionLoan, AnotherRegionOfTheSameMemoryIsAnother) {
  remote_region region = open();
  exposed_.emplace(pair_.owner_context, std::span(memory_), access::read);
  std::error_code ec;
  region.read_at(0, into_, {}, ec);
  EXPECT_EQ(ec, errc::revoked);
  remote_region next = open();
  next.read_at(0, into_);
  EXPECT_TRUE(holds_pattern(into_));
}

TEST_F(RegionLoan, ChecksWhatItIsAskedFor) {
  remote_region region = open();
  std::error_code ec;
  region.read_at(lent_size - 1, std::span(into_).first(2), {}, ec);
  EXPECT_EQ(ec, errc::out_of_range);
  region.read_at(~std::uint64_t{0}, std::span(into_).first(2), {}, ec);
  EXPECT_EQ(ec, errc::out_of_range);
}

TEST_F(RegionLoan, IsNotOfferedOfWhatMayOnlyBeWritten) {
  const memory_region secret(pair_.owner_context, std::span(memory_), access::write);
  EXPECT_EQ(secret.descriptor().cma, cma_handle());
  EXPECT_NE(exposed_->descriptor().cma, cma_handle());
  EXPECT_NE(exposed_->descriptor().cma.token, 0U);
}

TEST_F(RegionLoan, DescriptorsThatLieAreReadByMessage) {
  const remote_descriptor right = exposed_->descriptor();
  const auto expect_message = [&](const remote_descriptor& described, const char* why) {
    remote_region region = open(described);
    EXPECT_EQ(region.transfer_method(), transfer_method::message);
    EXPECT_THAT(region.why_not(transfer_method::cma), HasSubstr(why));
    region.read_at(0, into_);
    EXPECT_TRUE(holds_pattern(into_));
    std::fill(into_.begin(), into_.end(), std::byte{0});
  };
  remote_descriptor wrong = right;
  ++wrong.cma.token;
  expect_message(wrong, "does not let this process");
  wrong = right;
  wrong.cma.record = 16;
  expect_message(wrong, "does not let this process");
  wrong = right;
  wrong.cma.process = 0x7fffffff;
  expect_message(wrong, "does not let this process");
  wrong = right;
  wrong.host[0] ^= std::byte{1};
  expect_message(wrong, "another host");
  wrong = right;
  wrong.cma = {};
  expect_message(wrong, "its owner does not let");
  wrong.shareable = true;
  expect_message(wrong, "be mapped");
}

TEST_F(RegionLoan, AddressThatLiesIsReadByMessage) {
  remote_descriptor wrong = exposed_->descriptor();
  wrong.address = 4096;  // where nobody has anything
  remote_region region = open(wrong);
  region.read_at(0, into_);
  EXPECT_TRUE(holds_pattern(into_)) << "the owner knows where it is";
}

TEST_F(RegionLoan, GoesTheWayThatIsAskedFor) {
  const std::uint64_t before = readings();
  const remote_region asked = open(exposed_->descriptor(), transfer_method::message);
  EXPECT_EQ(asked.transfer_method(), transfer_method::message);
  for (const transfer_method other :
       {transfer_method::mapped, transfer_method::cma, transfer_method::rma}) {
    EXPECT_EQ(asked.why_not(other), "it was asked to go another way") << to_string(other);
  }
  EXPECT_EQ(asked.why_not(transfer_method::message), "");
  EXPECT_EQ(readings(), before) << "not even tried";
  remote_region read = open(exposed_->descriptor(), transfer_method::cma);
  EXPECT_EQ(read.transfer_method(), transfer_method::cma);
  EXPECT_EQ(read.why_not(transfer_method::cma), "");
  EXPECT_EQ(read.why_not(transfer_method::message), "it was asked to go another way");
  const remote_region taken = std::move(read);
  EXPECT_EQ(read.why_not(transfer_method::cma),
            "there is no region");  // NOLINT(bugprone-use-after-move)
}

class OwnerSharesNothing : public RegionLoan {
 protected:
  OwnerSharesNothing() : RegionLoan(owner_alone()) {}
  static simulated_pair_options owner_alone() {
    simulated_pair_options made = readable();
    made.owner_context.share_memory = false;
    return made;
  }
};

TEST_F(OwnerSharesNothing, SoTheReaderAsks) {
  EXPECT_EQ(exposed_->descriptor().cma, cma_handle());
  remote_region region = open();
  EXPECT_EQ(region.transfer_method(), transfer_method::message);
  region.read_at(0, into_);
  EXPECT_TRUE(holds_pattern(into_));
}

class ReaderSharesNothing : public RegionLoan {
 protected:
  ReaderSharesNothing() : RegionLoan(reader_alone()) {}
  static simulated_pair_options reader_alone() {
    simulated_pair_options made = readable();
    made.reader_context.share_memory = false;
    return made;
  }
};

TEST_F(ReaderSharesNothing, SoItAsks) {
  EXPECT_NE(exposed_->descriptor().cma, cma_handle());
  const remote_region region = open();
  EXPECT_EQ(region.transfer_method(), transfer_method::message);
  EXPECT_EQ(region.why_not(transfer_method::cma), "the context was made to share no memory");
  EXPECT_EQ(readings(), 0U);
}

class ReaderHasNoCma : public RegionLoan {
 protected:
  ReaderHasNoCma() : RegionLoan(reader_over_shared_memory()) {}
  static simulated_pair_options reader_over_shared_memory() {
    simulated_pair_options made = readable();
    made.reader_context.transports = {"posix", "self"};
    return made;
  }
};

TEST_F(ReaderHasNoCma, SoItAsks) {
  const remote_region region = open();
  EXPECT_EQ(region.transfer_method(), transfer_method::message);
  EXPECT_EQ(region.why_not(transfer_method::cma), "the context has no transport `cma`");
}

}  // namespace
}  // namespace ucx::test
