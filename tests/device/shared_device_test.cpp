// Memory of a device of another process of this host, which the driver copies without its owner.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
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
#include "support/transports/connected_pair.hpp"
#include "ucx/context.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/error.hpp"
#include "ucx/memory_region.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/stream.hpp"
#include "ucx/worker.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;
using testing::HasSubstr;

constexpr std::size_t size = 5 * mib + 3;

class SharedDevice : public testing::Test {
 protected:
  void SetUp() override {
    if (!system_reads_children()) GTEST_SKIP() << "the system lets no process read another one";
  }
  static context_options over_tcp() {
    context_options options;
    options.transports = {"tcp"};
    options.devices = {"lo"};
    return options;
  }
  remote_descriptor ask_for(const std::string& what) {
    return remote_descriptor::decode(from_hex(owner_.ask(what)));
  }
  /// Memory that the owner has got of the library.
  remote_descriptor allocated(std::size_t bytes = size, std::uint64_t seed = 1) {
    return ask_for("allocate " + std::to_string(bytes) + " read_write " + std::to_string(seed) +
                   " device");
  }
  /// Memory of the owner's program.
  remote_descriptor lent(std::size_t bytes = size, std::uint64_t seed = 1) {
    return ask_for("lend " + std::to_string(bytes) + ' ' + std::to_string(seed) + " device");
  }
  remote_region open(const remote_descriptor& described,
                     transfer_method wanted = transfer_method::automatic) {
    return remote_region(connection_, described, {.transfer_method = wanted});
  }
  std::error_code read(remote_region& region, std::span<std::byte> into,
                       const io_options& options = {}) {
    std::error_code ec;
    region.read_at(0, into, options, ec);
    return ec;
  }
  std::uint64_t direct_bytes() const { return worker_.staging().direct_bytes; }
  std::uint64_t not_direct() const { return worker_.staging().direct_fallbacks; }
  static std::uint64_t copied() {
    return fake_cuda_bytes(fake_cuda_from_device) + fake_cuda_bytes(fake_cuda_to_device) +
           fake_cuda_bytes(fake_cuda_within_devices);
  }

  const cuda_program program_;
  const last_of_driver last_ = {};
  test_peer owner_ = start_owner();
  context context_{over_tcp()};
  worker worker_{context_, {.progress = progress_mode::sleeping_thread}};
  endpoint connection_{worker_, owner_.listen()};
  std::vector<std::byte> into_ = std::vector<std::byte>(size);
};

TEST_F(SharedDevice, IsReadIntoMemoryOfTheHostWhileItsOwnerIsStopped) {
  remote_region region = open(lent());
  EXPECT_EQ(region.transfer_method(), transfer_method::cuda_ipc);
  EXPECT_EQ(region.why_not(transfer_method::cuda_ipc), "");
  EXPECT_EQ(region.why_not(transfer_method::cma), "it is memory of a CUDA device");
  owner_.process().stop();
  EXPECT_FALSE(read(region, into_));
  owner_.process().resume();
  EXPECT_TRUE(holds_pattern(into_, 1));
  EXPECT_EQ(copied(), size);
  EXPECT_EQ(direct_bytes(), size);
  EXPECT_EQ(not_direct(), 0U);
}

TEST_F(SharedDevice, IsReadIntoADeviceByOneCopy) {
  remote_region region = open(lent());
  const auto into = cuda_program::allocate(size);
  EXPECT_FALSE(read(region, into));
  EXPECT_EQ(fake_cuda_copies(fake_cuda_within_devices), 1U);
  EXPECT_EQ(copied(), size);
  EXPECT_EQ(worker_.staging().memory, 0U);
  EXPECT_TRUE(holds_pattern(cuda_program::content(into), 1));
}

TEST_F(SharedDevice, IsReadIntoPinnedMemoryByOneCopy) {
  remote_region region = open(lent());
  const auto into = cuda_program::allocate_pinned(size);
  EXPECT_FALSE(read(region, into));
  EXPECT_EQ(fake_cuda_copies(fake_cuda_from_device), 1U);
  EXPECT_EQ(copied(), size);
  EXPECT_EQ(worker_.staging().memory, 0U);
  EXPECT_TRUE(holds_pattern(into, 1));
}

TEST_F(SharedDevice, IsReadAtOffsetsAndInBatches) {
  remote_region region = open(lent());
  const auto device = cuda_program::allocate(1000);
  std::vector<std::byte> host(1000);
  const std::vector<read_piece> pieces{{7, host}, {mib + 1, device}};
  region.read_batch(pieces);
  EXPECT_TRUE(holds_pattern(host, 1, 7));
  EXPECT_TRUE(holds_pattern(cuda_program::content(device), 1, mib + 1));
  region.read_at(size - 1, std::span(host).first(1));
  EXPECT_TRUE(holds_pattern(std::span(host).first(1), 1, size - 1));
  EXPECT_EQ(direct_bytes(), 2001U);
}

TEST_F(SharedDevice, IsWrittenWhereTheLibraryHasAllocatedIt) {
  remote_region region = open(allocated());
  const std::vector<std::byte> host = pattern(size, 2);
  region.write_at(0, host);
  region.flush();
  EXPECT_EQ(owner_.ask("holds 2"), "yes");
  EXPECT_EQ(fake_cuda_bytes(fake_cuda_to_device), size);
  const auto device = cuda_program::allocate_pattern(size, 3);
  region.write_at(0, device);
  region.flush();
  EXPECT_EQ(owner_.ask("holds 3"), "yes");
  EXPECT_EQ(fake_cuda_copies(fake_cuda_within_devices), 1U);
  EXPECT_EQ(direct_bytes(), 2 * size);
  EXPECT_EQ(region.first_unconfirmed(), std::nullopt);
}

TEST_F(SharedDevice, IsWrittenByItsOwnerWhereThatHasLentIt) {
  remote_region region = open(lent());
  const auto device = cuda_program::allocate_pattern(size, 2);
  region.write_at(0, device);
  region.flush();
  EXPECT_EQ(owner_.ask("holds 2"), "yes");
  EXPECT_EQ(direct_bytes(), 0U);
  EXPECT_EQ(fake_cuda_calls("cuIpcOpenMemHandle"), 0U);
}

TEST_F(SharedDevice, IsWrittenBeforeItsOwnerIsTold) {
  remote_region region = open(allocated());
  owner_.ask("listen_for " + std::to_string(size));
  const std::vector<std::byte> host = pattern(size, 9);
  region.post_write_at(0, host);
  region.notify(9);
  ASSERT_TRUE(soon([&] { return owner_.ask("heard").starts_with("1 "); }));
  EXPECT_EQ(owner_.ask("heard"), "1 0");
  EXPECT_EQ(owner_.ask("holds 9"), "yes");
  EXPECT_EQ(direct_bytes(), size);
}

TEST_F(SharedDevice, IsAStream) {
  ucx::iostream stream(open(allocated()));
  const auto device = cuda_program::allocate(size);
  EXPECT_EQ(stream.get(), static_cast<int>(pattern(1, 1).front()));
  stream.read(reinterpret_cast<char*>(device.data()), static_cast<std::streamsize>(size - 1));
  ASSERT_TRUE(stream);
  EXPECT_TRUE(holds_pattern(cuda_program::content(device.first(size - 1)), 1, 1));
  stream.seekp(0);
  const std::vector<std::byte> host = pattern(size, 4);
  stream.write(reinterpret_cast<const char*>(host.data()), size);
  stream.flush();
  ASSERT_TRUE(stream);
  EXPECT_EQ(owner_.ask("holds 4"), "yes");
  EXPECT_GE(direct_bytes(), 2 * size);
  EXPECT_EQ(not_direct(), 0U);
}

TEST_F(SharedDevice, IsOpenedOncePerContextAndClosedWithTheRegion) {
  {
    remote_region region = open(lent());
    for (int i = 0; i < 3; ++i) EXPECT_FALSE(read(region, into_));
    EXPECT_EQ(fake_cuda_calls("cuIpcOpenMemHandle"), 1U);
    CUctx_st* own = nullptr;
    ASSERT_EQ(cuCtxCreate_v2(&own, 0, 0), 0);
    const auto there = cuda_program::allocate(size);
    for (int i = 0; i < 3; ++i) EXPECT_FALSE(read(region, there));
    EXPECT_EQ(fake_cuda_calls("cuIpcOpenMemHandle"), 2U);
    EXPECT_EQ(fake_cuda_opened(), 2U);
  }
  EXPECT_TRUE(soon([] { return fake_cuda_opened() == 0; }));
  EXPECT_EQ(not_direct(), 0U);
}

/// What the program has open of an owner's memory: drivers of before CUDA 11 then let nobody else
/// open it in the same context.
class program_mapping {
 public:
  explicit program_mapping(const remote_descriptor& described) {
    fake_cuda_handle shared;
    std::memcpy(&shared, described.cuda_ipc.bytes.data(), sizeof shared);
    EXPECT_EQ(cuIpcOpenMemHandle_v2(&opened_, shared, 1), 0);
  }
  ~program_mapping() { EXPECT_EQ(cuIpcCloseMemHandle(opened_), 0); }

 private:
  std::uint64_t opened_ = 0;
};

TEST_F(SharedDevice, ThatTheProgramKeepsOpenIsReadByMessages) {
  const remote_descriptor described = lent();
  const auto into = cuda_program::allocate(size);
  const program_mapping kept(described);
  remote_region region = open(described);
  EXPECT_FALSE(read(region, into));
  EXPECT_TRUE(holds_pattern(cuda_program::content(into), 1));
  EXPECT_EQ(direct_bytes(), 0U);
  EXPECT_EQ(not_direct(), 1U);
}

// The program closes it when the library has asked once. It gets some tries, because it may be
// slow.
TEST_F(SharedDevice, ThatIsClosedMeanwhileIsOpenedThen) {
  const remote_descriptor described = lent();
  const auto into = cuda_program::allocate(size);
  for (int tries = 0; tries < 20 && direct_bytes() == 0; ++tries) {
    std::optional<program_mapping> kept(described);
    remote_region region = open(described);
    const std::uint64_t asked = fake_cuda_calls("cuIpcOpenMemHandle");
    request reading = region.start_read_at(0, into);
    EXPECT_TRUE(soon([&] { return fake_cuda_calls("cuIpcOpenMemHandle") > asked; }));
    kept.reset();
    EXPECT_NO_THROW(reading.wait());
  }
  EXPECT_EQ(direct_bytes(), size);
  EXPECT_TRUE(holds_pattern(cuda_program::content(into), 1));
}

TEST_F(SharedDevice, ThatAnotherWorkerLetsGoOfMeanwhileIsOpenedThen) {
  const remote_descriptor described = lent();
  const auto into = cuda_program::allocate(size);
  const auto there = cuda_program::allocate(size);
  worker other(context_, {.progress = progress_mode::sleeping_thread});
  endpoint others(other, owner_.listen());
  for (int tries = 0; tries < 20 && direct_bytes() == 0; ++tries) {
    std::optional<remote_region> theirs(std::in_place, others, described);
    EXPECT_FALSE(read(*theirs, there));
    EXPECT_EQ(fake_cuda_opened(), 1U);
    {
      remote_region region = open(described);
      const std::uint64_t asked = fake_cuda_calls("cuIpcOpenMemHandle");
      // Sooner than without a word of the other one's.
      request reading = region.start_read_at(0, into, {.timeout = 150ms});
      EXPECT_TRUE(
          soon([&] { return fake_cuda_calls("cuIpcOpenMemHandle") > asked || reading.done(); }));
      theirs.reset();
      std::error_code ec;
      reading.wait(ec);
    }
    EXPECT_TRUE(soon([] { return fake_cuda_opened() == 0; }));
  }
  EXPECT_EQ(direct_bytes(), size);
  EXPECT_TRUE(holds_pattern(cuda_program::content(into), 1));
}

TEST_F(SharedDevice, OfAnOwnerThatIsKilledInMidCopyIsALostConnection) {
  remote_region region = open(lent());
  EXPECT_FALSE(read(region, into_));
  fake_cuda_hold_copies(1);
  const auto into = cuda_program::allocate(size);
  request reading = region.start_read_at(0, into);
  ASSERT_TRUE(soon([] { return fake_cuda_waiting_copies() > 0; }));
  owner_.process().kill();
  fake_cuda_hold_copies(0);
  std::error_code ec;
  const clock::time_point begin = clock::now();
  reading.wait(ec);
  EXPECT_EQ(ec, errc::connection_reset);
  EXPECT_LT(clock::now() - begin, 20s);
  EXPECT_EQ(read(region, into_), errc::connection_reset);
  EXPECT_TRUE(soon([] { return fake_cuda_opened() == 0; }));
}

TEST_F(SharedDevice, ThatIsTakenBackInMidCopyIsRevoked) {
  remote_region region = open(lent());
  const auto into = cuda_program::allocate(size);
  fake_cuda_hold_copies(1);
  request reading = region.start_read_at(0, into);
  ASSERT_TRUE(soon([] { return fake_cuda_waiting_copies() > 0; }));
  owner_.ask("take_back");
  fake_cuda_hold_copies(0);
  std::error_code ec;
  reading.wait(ec);
  EXPECT_EQ(ec, errc::revoked);
  EXPECT_EQ(direct_bytes(), 0U);
  EXPECT_EQ(not_direct(), 1U);
  EXPECT_EQ(region.transfer_method(), transfer_method::message);
  EXPECT_THAT(region.why_not(transfer_method::cuda_ipc), HasSubstr("no more"));
  EXPECT_EQ(read(region, into_), errc::revoked);
  EXPECT_TRUE(soon([] { return fake_cuda_opened() == 0; }));
}

TEST_F(SharedDevice, ThatIsTakenBackInMidWriteIsRevoked) {
  remote_region region = open(allocated());
  const auto from = cuda_program::allocate_pattern(size, 2);
  fake_cuda_hold_copies(1);
  request writing = region.start_write_at(0, from);
  ASSERT_TRUE(soon([] { return fake_cuda_waiting_copies() > 0; }));
  owner_.ask("take_back");
  fake_cuda_hold_copies(0);
  std::error_code ec;
  writing.wait(ec);
  region.flush({}, ec);
  EXPECT_EQ(ec, errc::revoked);
  EXPECT_EQ(direct_bytes(), 0U);
}

// A reader gets what was there before the owner took it back, or an error.
TEST_F(SharedDevice, IsNeverReadAfterItWasTakenBack) {
  for (int round = 0; round < 10; ++round) {
    remote_region region = open(lent(size, 3));
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

TEST_F(SharedDevice, ThatTheDriverRefusesGoesByMessageAndSaysWhy) {
  remote_region region = open(lent());
  fake_cuda_fail("cuIpcOpenMemHandle", 0, 1 << 20, 205);
  EXPECT_FALSE(read(region, into_));
  EXPECT_TRUE(holds_pattern(into_, 1));
  EXPECT_EQ(region.transfer_method(), transfer_method::message);
  EXPECT_THAT(region.why_not(transfer_method::cuda_ipc),
              HasSubstr("cuIpcOpenMemHandle: CUDA_ERROR_MAP_FAILED"));
  EXPECT_FALSE(read(region, into_));
  EXPECT_EQ(fake_cuda_calls("cuIpcOpenMemHandle"), 1U);
  EXPECT_EQ(direct_bytes(), 0U);
  EXPECT_EQ(not_direct(), 1U);
}

TEST_F(SharedDevice, WriteThatTheDriverRefusesGoesByMessage) {
  remote_region region = open(allocated());
  fake_cuda_fail("cuIpcOpenMemHandle", 0, 1 << 20, 205);
  const auto from = cuda_program::allocate_pattern(size, 2);
  region.write_at(0, from);
  region.flush();
  EXPECT_EQ(owner_.ask("holds 2"), "yes");
  EXPECT_EQ(not_direct(), 1U);
}

TEST_F(SharedDevice, WhoseCopyFailsIsAskedForByMessage) {
  remote_region region = open(allocated());
  for (const char* const call :
       {"cuMemcpyAsync", "cuEventRecord", "cuEventQuery", "cuEventSynchronize", "copy"}) {
    fake_cuda_fail(call, 0, 1, 719);
    EXPECT_FALSE(read(region, into_)) << call;
    EXPECT_TRUE(holds_pattern(into_, 1)) << call;
    std::fill(into_.begin(), into_.end(), std::byte{});
  }
  EXPECT_EQ(not_direct(), 5U);
  fake_cuda_fail("copy", 2, 1, 719);
  region.write_at(0, pattern(size, 6));
  region.flush();
  EXPECT_EQ(owner_.ask("holds 6"), "yes");
  EXPECT_EQ(not_direct(), 6U);
  EXPECT_FALSE(read(region, into_));
  EXPECT_EQ(direct_bytes(), size);
}

TEST_F(SharedDevice, ThatTheDriverDoesNotCloseHarmsNobody) {
  fake_cuda_fail("cuIpcCloseMemHandle", 0, 1, 719);
  for (int i = 0; i < 2; ++i) {
    remote_region region = open(allocated());
    EXPECT_FALSE(read(region, into_));
    EXPECT_TRUE(holds_pattern(into_, 1));
  }
  EXPECT_TRUE(soon([] { return fake_cuda_calls("cuIpcCloseMemHandle") == 2; }));
}

TEST_F(SharedDevice, MayBeAskedForByMessage) {
  remote_region region = open(lent(), transfer_method::message);
  EXPECT_EQ(region.transfer_method(), transfer_method::message);
  EXPECT_THAT(region.why_not(transfer_method::cuda_ipc), HasSubstr("asked"));
  EXPECT_FALSE(read(region, into_));
  EXPECT_TRUE(holds_pattern(into_, 1));
  ::setenv("UCXIO_TRANSFER_METHOD", "message", 1);
  remote_region other = open(lent());
  ::unsetenv("UCXIO_TRANSFER_METHOD");
  EXPECT_FALSE(read(other, into_));
  EXPECT_EQ(direct_bytes(), 0U);
  EXPECT_EQ(not_direct(), 0U);
}

TEST_F(SharedDevice, MayBeAskedForByNothingElse) {
  EXPECT_EQ(open(lent(), transfer_method::cuda_ipc).transfer_method(), transfer_method::cuda_ipc);
  remote_descriptor alone = lent();
  alone.cuda_ipc = {};
  std::error_code ec;
  const remote_region refused(connection_, alone, {.transfer_method = transfer_method::cuda_ipc},
                              ec);
  EXPECT_EQ(ec, errc::not_supported);
}

TEST_F(SharedDevice, TakesNoLongerThanItsDeadline) {
  remote_region region = open(lent());
  fake_cuda_hold_copies(1);
  io_options soon_over;
  soon_over.timeout = 200ms;
  EXPECT_EQ(read(region, into_, soon_over), errc::timed_out);
  region.close();
  fake_cuda_hold_copies(0);
  EXPECT_TRUE(soon([] { return fake_cuda_opened() == 0; }));
  remote_region again = open(lent());
  EXPECT_FALSE(read(again, into_));
  EXPECT_TRUE(holds_pattern(into_, 1));
}

TEST_F(SharedDevice, IsCopiedBehindTheStreamOfTheProgram) {
  remote_region region = open(allocated());
  CUstream_st* stream = nullptr;
  ASSERT_EQ(cuStreamCreate(&stream, 0), 0);
  fake_cuda_hold_stream(stream, 1);
  const auto from = cuda_program::allocate_pattern(size, 2);
  const std::vector<std::byte> later = pattern(size, 8);
  ASSERT_EQ(cuMemcpyAsync(cuda_program::address(from), cuda_program::address(later), size, stream),
            0);
  io_options behind;
  behind.cuda_stream = stream;
  request writing = region.start_write_at(0, from, behind);
  EXPECT_FALSE(writing.wait_for(100ms));
  fake_cuda_hold_stream(stream, 0);
  writing.wait();
  region.flush();
  EXPECT_EQ(owner_.ask("holds 8"), "yes");
  EXPECT_EQ(direct_bytes(), size);
}

TEST_F(SharedDevice, MakesNobodyInitialiseCuda) {
  const remote_descriptor described = lent();
  fake_cuda_reset(2, 1);
  remote_region region = open(described);
  EXPECT_EQ(region.transfer_method(), transfer_method::message);
  EXPECT_THAT(region.why_not(transfer_method::cuda_ipc), HasSubstr("does not use CUDA"));
  EXPECT_FALSE(read(region, into_));
  EXPECT_TRUE(holds_pattern(into_, 1));
  EXPECT_EQ(fake_cuda_calls("cuInit"), 0U);
  std::error_code ec;
  const remote_region refused(connection_, described,
                              {.transfer_method = transfer_method::cuda_ipc}, ec);
  EXPECT_EQ(ec, errc::not_supported);
  // From here on it may.
  cuda_program::use(1);
  EXPECT_FALSE(read(region, into_));
  EXPECT_EQ(direct_bytes(), size);
  EXPECT_EQ(region.transfer_method(), transfer_method::cuda_ipc);
}

TEST_F(SharedDevice, OfAForgedHandleIsNeverReached) {
  const remote_descriptor honest = lent();
  remote_descriptor forged = honest;
  forged.cuda_ipc.bytes.fill(std::byte{0x5A});
  remote_region nowhere = open(forged);
  EXPECT_FALSE(read(nowhere, into_));
  EXPECT_TRUE(holds_pattern(into_, 1));
  EXPECT_EQ(nowhere.transfer_method(), transfer_method::message);

  // Of an allocation that is shorter than the region.
  forged = honest;
  forged.cuda_ipc.bytes = allocated(1000).cuda_ipc.bytes;
  std::fill(into_.begin(), into_.end(), std::byte{});
  remote_region beyond = open(forged);
  EXPECT_FALSE(read(beyond, into_));
  EXPECT_TRUE(holds_pattern(into_, 1));
  EXPECT_THAT(beyond.why_not(transfer_method::cuda_ipc),
              HasSubstr("not the one of the descriptor"));

  forged = honest;
  forged.cuda_ipc.offset = ~std::uint64_t{0};
  EXPECT_EQ(open(forged).transfer_method(), transfer_method::message);
  EXPECT_THAT(open(forged).why_not(transfer_method::cuda_ipc), HasSubstr("contradicts"));

  forged = honest;
  ++forged.cma.token;
  remote_region stranger = open(forged);
  EXPECT_EQ(stranger.transfer_method(), transfer_method::message);
  EXPECT_FALSE(read(stranger, into_));
  EXPECT_EQ(direct_bytes(), 0U);
}

/// Owner and reader are one process.
class SharedWithItself : public testing::Test {
 protected:
  const cuda_program program_;
  connected_pair pair_{{route::mapped}};
};

TEST_F(SharedWithItself, GoesByMessageAndSaysWhy) {
  const memory_region exposed(*pair_.owner_context, cuda_program::allocate_pattern(1000, 1),
                              access::read_write);
  remote_region region = pair_.open(exposed);
  EXPECT_EQ(region.transfer_method(), transfer_method::message);
  if (system_reads_processes()) {
    EXPECT_EQ(region.why_not(transfer_method::cuda_ipc), "its owner is this process");
  }
  std::vector<std::byte> into(1000);
  region.read_at(0, into);
  EXPECT_TRUE(holds_pattern(into, 1));
  EXPECT_EQ(fake_cuda_calls("cuIpcOpenMemHandle"), 0U);
}

TEST_F(SharedWithItself, IsDescribedByTheAllocationAndTheOffsetInIt) {
  const auto bytes = cuda_program::allocate_pattern(1000, 1);
  const memory_region exposed(*pair_.owner_context, bytes.subspan(100, 200), access::read);
  const remote_descriptor told = exposed.descriptor();
  EXPECT_EQ(told.cuda_ipc.size, 1000U);
  EXPECT_EQ(told.cuda_ipc.offset, 100U);
  EXPECT_NE(told.cma, cma_handle());
  EXPECT_FALSE(told.shareable);
  EXPECT_EQ(remote_descriptor::decode(told.encode()), told);
  const memory_region own =
      memory_region::allocate(*pair_.owner_context, 100, access::read_write, {memory_kind::cuda});
  EXPECT_TRUE(own.descriptor().shareable);
  EXPECT_EQ(own.descriptor().cuda_ipc.offset, 0U);
}

TEST_F(SharedWithItself, IsNotSharedWithoutDriverOrReader) {
  const auto bytes = cuda_program::allocate_pattern(1000, 1);
  const memory_region hidden(*pair_.owner_context, bytes, access::write);
  EXPECT_EQ(hidden.descriptor().cuda_ipc, cuda_ipc_handle());
  const memory_region managed(*pair_.owner_context, cuda_program::allocate_managed(1000),
                              access::read);
  EXPECT_EQ(managed.descriptor().cuda_ipc, cuda_ipc_handle());
  for (const char* const call : {"cuIpcGetMemHandle", "cuCtxPushCurrent"}) {
    const memory_region before(*pair_.owner_context, bytes, access::read);
    fake_cuda_fail(call, call == std::string("cuIpcGetMemHandle") ? 0 : 1, 1, 1);
    const memory_region refused(*pair_.owner_context, bytes, access::read);
    EXPECT_EQ(refused.descriptor().cuda_ipc, cuda_ipc_handle()) << call;
    EXPECT_EQ(refused.descriptor().cma, cma_handle()) << call;
    fake_cuda_fail(call, 0, 0, 0);
  }
}

}  // namespace
}  // namespace ucx::test
