// Memory of cuMemMap and of pools, which another process of this host shares by descriptors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "device/device_owner.hpp"
#include "support/basics/soon.hpp"
#include "support/bytes/byte_sizes.hpp"
#include "support/bytes/hex.hpp"
#include "support/bytes/pattern.hpp"
#include "support/fake_cuda/cuda_program.hpp"
#include "support/process/process_reading.hpp"
#include "support/process/test_peer.hpp"
#include "ucx/context.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/error.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/worker.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;
using testing::HasSubstr;

constexpr std::size_t shared_size = 5 * mib + 3;  // of cuMemMap's it is in three parts
constexpr int every_time = 1 << 20;

std::size_t descriptors_of_reader() {
  const std::filesystem::directory_iterator listed("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(listed), end(listed)));
}

/// Nothing of another process's is held in this one.
bool nothing_is_held() {
  return fake_cuda_handles() == 0 && fake_cuda_places() == 0 && fake_cuda_reservations() == 0 &&
         fake_cuda_opened() == 0 && fake_cuda_imported_pools() == 0;
}

class SharedByDescriptors : public testing::Test {
 protected:
  void SetUp() override {
    if (!system_reads_children()) GTEST_SKIP() << "the system lets no process read another one";
  }
  void TearDown() override { EXPECT_TRUE(soon(nothing_is_held)); }
  static context_options over_tcp() {
    context_options options;
    options.transports = {"tcp"};
    options.devices = {"lo"};
    return options;
  }
  remote_descriptor share(const std::string& what, std::uint64_t seed = 1) {
    return remote_descriptor::decode(from_hex(owner_.ask(
        "share " + what + ' ' + std::to_string(shared_size) + ' ' + std::to_string(seed))));
  }
  remote_region open(const remote_descriptor& described) {
    return remote_region(connection_, described);
  }
  std::error_code read(remote_region& region, std::span<std::byte> into) {
    std::error_code ec;
    region.read_at(0, into, {}, ec);
    return ec;
  }
  std::uint64_t direct_bytes() const { return worker_.staging().direct_bytes; }
  std::uint64_t not_direct() const { return worker_.staging().direct_fallbacks; }

  const cuda_program program_;
  const last_of_driver last_ = {};
  test_peer owner_ = start_owner();
  context context_{over_tcp()};
  worker worker_{context_, {.progress = progress_mode::sleeping_thread}};
  endpoint connection_{worker_, owner_.listen()};
  std::vector<std::byte> into_ = std::vector<std::byte>(shared_size);
};

/// Of either kind.
class SharedByDescriptorsOf : public SharedByDescriptors,
                              public testing::WithParamInterface<const char*> {};

INSTANTIATE_TEST_SUITE_P(Each, SharedByDescriptorsOf, testing::Values("mapped", "pooled"),
                         [](const auto& chosen) { return std::string(chosen.param); });

TEST_P(SharedByDescriptorsOf, IsReadWhileItsOwnerIsStopped) {
  remote_region region = open(share(GetParam()));
  EXPECT_EQ(region.transfer_method(), transfer_method::cuda_ipc);
  EXPECT_EQ(region.why_not(transfer_method::cuda_ipc), "");
  owner_.process().stop();
  EXPECT_FALSE(read(region, into_));
  owner_.process().resume();
  EXPECT_TRUE(holds_pattern(into_, 1));
  EXPECT_EQ(direct_bytes(), shared_size);
  EXPECT_EQ(not_direct(), 0U);
  EXPECT_EQ(fake_cuda_calls("cuIpcOpenMemHandle"), 0U);
}

TEST_P(SharedByDescriptorsOf, IsReadIntoEachDeviceByOneCopy) {
  remote_region region = open(share(GetParam()));
  for (const int device : {0, 1}) {
    if (device == 1) cuda_program::use(device);
    const auto into = cuda_program::allocate(shared_size);
    EXPECT_FALSE(read(region, into));
    EXPECT_TRUE(holds_pattern(cuda_program::content(into), 1));
  }
  EXPECT_EQ(fake_cuda_copies(fake_cuda_within_devices), 2U);
  EXPECT_EQ(direct_bytes(), 2 * shared_size);
  EXPECT_EQ(not_direct(), 0U);
}

TEST_P(SharedByDescriptorsOf, IsReadAtItsEnds) {
  remote_region region = open(share(GetParam()));
  const auto device = cuda_program::allocate(1000);
  region.read_at(shared_size - 1000, device);
  EXPECT_TRUE(holds_pattern(cuda_program::content(device), 1, shared_size - 1000));
  region.read_at(2 * mib - 1500, device);  // over the end of a part
  EXPECT_TRUE(holds_pattern(cuda_program::content(device), 1, 2 * mib - 1500));
  EXPECT_EQ(direct_bytes(), 2000U);
}

TEST_P(SharedByDescriptorsOf, IsWrittenByItsOwner) {
  remote_region region = open(share(GetParam()));
  const auto from = cuda_program::allocate_pattern(shared_size, 2);
  region.write_at(0, from);
  region.flush();
  EXPECT_EQ(owner_.ask("holds 2"), "yes");
  EXPECT_EQ(direct_bytes(), 0U);
  EXPECT_TRUE(nothing_is_held());
  EXPECT_FALSE(read(region, into_));
  EXPECT_TRUE(holds_pattern(into_, 2));
  EXPECT_EQ(direct_bytes(), shared_size);
}

TEST_P(SharedByDescriptorsOf, IsOpenedOnceAndNoDescriptorStays) {
  const remote_descriptor described = share(GetParam());
  const std::string of_pool = "cuMemPoolImportFromShareableHandle";
  const bool is_mapped = GetParam() == std::string("mapped");
  const std::string import = is_mapped ? "cuMemImportFromShareableHandle" : of_pool;
  {
    remote_region region = open(described);
    EXPECT_FALSE(read(region, into_));
    const std::size_t before = descriptors_of_reader();
    const std::uint64_t imported = fake_cuda_calls(import.c_str());
    EXPECT_EQ(imported, is_mapped ? 3U : 1U);
    for (int i = 0; i < 3; ++i) EXPECT_FALSE(read(region, into_));
    EXPECT_EQ(fake_cuda_calls(import.c_str()), imported);
    EXPECT_EQ(fake_cuda_handles(), 0U);
    EXPECT_EQ(fake_cuda_places(), is_mapped ? 3U : 0U);
    EXPECT_EQ(descriptors_of_reader(), before);
  }
  EXPECT_TRUE(soon(nothing_is_held));
  const std::size_t before = descriptors_of_reader();
  for (int i = 0; i < 3; ++i) {
    remote_region region = open(described);
    EXPECT_FALSE(read(region, into_));
    region.close();
    EXPECT_TRUE(soon(nothing_is_held));
  }
  EXPECT_TRUE(soon([&] { return descriptors_of_reader() == before; }));
  EXPECT_EQ(not_direct(), 0U);
}

// Real drivers take imported memory of a pool from all when the first lets go of it.
TEST_P(SharedByDescriptorsOf, StaysWhileAnotherHandleHasIt) {
  const remote_descriptor described = share(GetParam());
  worker other(context_, {.progress = progress_mode::sleeping_thread});
  endpoint others(other, owner_.listen());
  remote_region mine = open(described);
  EXPECT_FALSE(read(mine, into_));
  for (int i = 0; i < 3; ++i) {
    remote_region theirs(others, described);
    EXPECT_FALSE(read(theirs, into_));
    remote_region again = open(described);
    EXPECT_FALSE(read(again, into_));
    theirs.close();
    again.close();
    into_.assign(shared_size, std::byte{});
    EXPECT_FALSE(read(mine, into_));
    EXPECT_TRUE(holds_pattern(into_, 1));
  }
  EXPECT_EQ(not_direct() + other.staging().direct_fallbacks, 0U);
}

TEST_P(SharedByDescriptorsOf, IsLetGoOfBehindItsContext) {
  remote_region region = open(share(GetParam()));
  CUctx_st* own = nullptr;
  ASSERT_EQ(cuCtxCreate_v2(&own, 0, 0), 0);
  EXPECT_FALSE(read(region, cuda_program::allocate(shared_size)));
  EXPECT_EQ(direct_bytes(), shared_size);
  ASSERT_EQ(cuCtxDestroy_v2(own), 0);
  region.close();
  EXPECT_TRUE(soon(nothing_is_held));
}

TEST_P(SharedByDescriptorsOf, IsLostWhenItsOwnerIsKilledInMidCopy) {
  remote_region region = open(share(GetParam()));
  EXPECT_FALSE(read(region, into_));
  fake_cuda_hold_copies(1);
  const auto into = cuda_program::allocate(shared_size);
  request reading = region.start_read_at(0, into);
  ASSERT_TRUE(soon([] { return fake_cuda_waiting_copies() > 0; }));
  owner_.process().kill();
  fake_cuda_hold_copies(0);
  std::error_code ec;
  reading.wait(ec);
  EXPECT_EQ(ec, errc::connection_reset);
  EXPECT_TRUE(soon(nothing_is_held));
}

TEST_P(SharedByDescriptorsOf, IsLostWhenItsOwnerIsKilledEarly) {
  remote_region region = open(share(GetParam()));
  owner_.process().kill();
  const std::error_code ec = read(region, into_);
  EXPECT_EQ(ec, errc::connection_reset);
  EXPECT_EQ(direct_bytes(), 0U);
}

TEST_P(SharedByDescriptorsOf, ThatIsTakenBackInMidCopyIsRevoked) {
  remote_region region = open(share(GetParam()));
  const auto into = cuda_program::allocate(shared_size);
  fake_cuda_hold_copies(1);
  request reading = region.start_read_at(0, into);
  ASSERT_TRUE(soon([] { return fake_cuda_waiting_copies() > 0; }));
  owner_.ask("take_back");
  fake_cuda_hold_copies(0);
  std::error_code ec;
  reading.wait(ec);
  EXPECT_EQ(ec, errc::revoked);
  EXPECT_EQ(direct_bytes(), 0U);
  EXPECT_THAT(region.why_not(transfer_method::cuda_ipc), HasSubstr("no more"));
  EXPECT_TRUE(soon(nothing_is_held));
}

TEST_P(SharedByDescriptorsOf, IsNeverReadAfterItWasTakenBack) {
  for (int round = 0; round < 5; ++round) {
    remote_region region = open(share(GetParam(), 3));
    std::jthread taker([this] { owner_.ask("take_back"); });
    std::error_code ec;
    for (const clock::time_point until = clock::now() + 20s; !ec && clock::now() < until;) {
      ec = read(region, into_);
      if (!ec) {
        ASSERT_TRUE(holds_pattern(into_, 3)) << "round " << round;
      }
    }
    EXPECT_EQ(ec, errc::revoked);
  }
}

// The descriptor, and the mapping here, keep it.
TEST_P(SharedByDescriptorsOf, StaysMappedWhenItsOwnerFreesIt) {
  remote_region region = open(share(GetParam()));
  EXPECT_FALSE(read(region, into_));
  owner_.ask("unshare");
  into_.assign(shared_size, std::byte{});
  EXPECT_FALSE(read(region, into_));
  EXPECT_TRUE(holds_pattern(into_, 1));
  owner_.ask("take_back");
  EXPECT_EQ(read(region, into_), errc::revoked);
}

/// What is called to map memory, and how many calls are allowed before one fails.
struct call_of_reader {
  const char* name;
  int after = 0;
  std::uint64_t mapped = 0;  // parts by then, which go again
};

class RefusedToTheReader : public SharedByDescriptors {
 protected:
  void expect_message(const char* what, const call_of_reader& failing) {
    const remote_descriptor described = share(what);
    fake_cuda_fail(failing.name, failing.after, every_time, 205);
    const std::size_t before = descriptors_of_reader();
    const std::uint64_t unmapped = fake_cuda_calls("cuMemUnmap");
    {
      remote_region region = open(described);
      into_.assign(shared_size, std::byte{});
      EXPECT_FALSE(read(region, into_)) << failing.name;
      EXPECT_TRUE(holds_pattern(into_, 1)) << failing.name;
      EXPECT_EQ(region.transfer_method(), transfer_method::message) << failing.name;
      EXPECT_THAT(region.why_not(transfer_method::cuda_ipc),
                  HasSubstr(std::string(failing.name) + ": CUDA_ERROR_MAP_FAILED"));
      EXPECT_TRUE(nothing_is_held()) << failing.name << ' ' << failing.after;
      EXPECT_TRUE(soon([&] { return descriptors_of_reader() == before; })) << failing.name;
      EXPECT_EQ(fake_cuda_calls("cuMemUnmap") - unmapped, failing.mapped) << failing.name;
    }
    fake_cuda_fail(failing.name, 0, 0, 0);
  }
};

TEST_F(RefusedToTheReader, MappedMemoryGoesByMessageAndHoldsNothing) {
  const std::vector<call_of_reader> calls{{"cuMemAddressReserve"},
                                          {"cuMemImportFromShareableHandle"},
                                          {"cuMemImportFromShareableHandle", 2, 2},
                                          {"cuMemMap"},
                                          {"cuMemMap", 1, 1},
                                          {"cuMemSetAccess", 0, 3}};
  for (const call_of_reader& each : calls) expect_message("mapped", each);
  EXPECT_EQ(direct_bytes(), 0U);
  EXPECT_EQ(not_direct(), calls.size());
}

TEST_F(RefusedToTheReader, MemoryOfAPoolGoesByMessageAndHoldsNothing) {
  const std::vector<call_of_reader> calls{{"cuMemPoolImportFromShareableHandle"},
                                          {"cuMemPoolImportPointer"},
                                          {"cuMemPoolSetAccess"},
                                          {"cuMemGetAddressRange"}};
  for (const call_of_reader& each : calls) expect_message("pooled", each);
  EXPECT_EQ(direct_bytes(), 0U);
  EXPECT_EQ(not_direct(), calls.size());
}

TEST_F(RefusedToTheReader, AccessForReadingAloneIsReplacedByBoth) {
  remote_region region = open(share("mapped"));
  fake_cuda_fail("cuMemSetAccess", 0, 1, 801);
  EXPECT_FALSE(read(region, into_));
  EXPECT_TRUE(holds_pattern(into_, 1));
  EXPECT_EQ(direct_bytes(), shared_size);
  EXPECT_EQ(fake_cuda_calls("cuMemSetAccess"), 2U);
}

// What the driver does not take back is its own: nothing breaks, and the next region is read.
TEST_F(RefusedToTheReader, WhatIsNotTakenBackHarmsNobody) {
  for (const char* const what : {"mapped", "pooled"}) {
    for (const char* const call :
         {"cuMemUnmap", "cuMemAddressFree", "cuMemFree", "cuMemPoolDestroy", "cuMemRelease"}) {
      const remote_descriptor described = share(what);
      for (int i = 0; i < 2; ++i) {
        remote_region region = open(described);
        fake_cuda_fail(call, 0, i == 0 ? every_time : 0, 719);
        EXPECT_FALSE(read(region, into_)) << call;
        EXPECT_TRUE(holds_pattern(into_, 1)) << call;
      }
    }
  }
  EXPECT_EQ(not_direct(), 0U);
  fake_cuda_reset(2, 1);  // which forgets what it kept
}

TEST_F(SharedByDescriptors, WantsTheHandleTypeAndSaysSo) {
  for (const char* const what : {"closed_mapped", "closed_pooled"}) {
    const remote_descriptor described = share(what);
    EXPECT_EQ(described.cuda_ipc.size, 0U);
    EXPECT_TRUE(described.cuda_ipc.by_descriptors);
    remote_region region = open(described);
    EXPECT_EQ(region.transfer_method(), transfer_method::message);
    EXPECT_THAT(region.why_not(transfer_method::cuda_ipc),
                HasSubstr("CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR"));
    EXPECT_FALSE(read(region, into_));
    EXPECT_TRUE(holds_pattern(into_, 1));
  }
  EXPECT_EQ(direct_bytes(), 0U);
}

TEST_F(SharedByDescriptors, OfAForgedTableIsNeverReached) {
  const remote_descriptor honest = share("mapped");
  const auto refused = [&](const auto& change, const char* why) {
    remote_descriptor forged = honest;
    change(forged.cuda_ipc);
    remote_region region = open(forged);
    EXPECT_EQ(region.transfer_method(), transfer_method::message) << why;
    EXPECT_THAT(region.why_not(transfer_method::cuda_ipc), HasSubstr(why));
    into_.assign(shared_size, std::byte{});
    EXPECT_FALSE(read(region, into_)) << why;
    EXPECT_TRUE(holds_pattern(into_, 1)) << why;
  };
  const char* const contradicts = "contradicts itself";
  refused([](cuda_ipc_handle& made) { made.bytes.fill(std::byte{0x5A}); }, contradicts);
  refused([](cuda_ipc_handle& made) { made.bytes.fill(std::byte{}); }, contradicts);
  refused([](cuda_ipc_handle& made) { made.bytes.back() = std::byte{1}; }, contradicts);
  refused([](cuda_ipc_handle& made) { made.bytes[0] ^= std::byte{8}; }, contradicts);
  refused([](cuda_ipc_handle& made) { made.bytes[8] ^= std::byte{32}; }, contradicts);
  refused([](cuda_ipc_handle& made) { made.bytes[11] = std::byte{1}; }, contradicts);
  refused([](cuda_ipc_handle& made) { made.bytes[7] = std::byte{0xFF}; }, "does not tell");
  refused([](cuda_ipc_handle& made) { made.size += 2 * mib; }, contradicts);
  refused([](cuda_ipc_handle& made) { made.offset = made.size - shared_size + 1; }, contradicts);
  EXPECT_EQ(direct_bytes(), 0U);
  EXPECT_EQ(not_direct(), 0U);
  EXPECT_EQ(fake_cuda_calls("cuMemAddressReserve"), 0U);
}

TEST_F(SharedByDescriptors, ThatClaimsToBeWritableIsNot) {
  for (const char* const what : {"mapped", "pooled"}) {
    remote_descriptor forged = share(what);
    forged.shareable = true;
    remote_region region = open(forged);
    EXPECT_FALSE(read(region, into_));
    const auto from = cuda_program::allocate_pattern(shared_size, 2);
    const std::vector<std::byte> host = pattern(shared_size, 3);
    region.write_at(0, from);
    region.flush();
    EXPECT_EQ(owner_.ask("holds 2"), "yes");
    region.write_at(0, host);
    region.flush();
    EXPECT_EQ(owner_.ask("holds 3"), "yes");
  }
  EXPECT_EQ(direct_bytes(), 2 * shared_size);
  EXPECT_EQ(not_direct(), 0U);
}

// An honest owner's table, and numbers that are within it.
TEST_F(SharedByDescriptors, OfAnotherOffsetIsWhatIsThere) {
  remote_descriptor other = share("mapped");
  other.cuda_ipc.offset -= 1000;
  remote_region region = open(other);
  EXPECT_FALSE(read(region, into_));
  EXPECT_TRUE(holds_pattern(std::span(into_).subspan(1000), 1));
}

}  // namespace
}  // namespace ucx::test
