// What the owner of memory does to share it by descriptors, and what another process maps by them,
// where calls of the driver's, descriptors or memory run short, and where what it is told is wrong.
#include "cuda/cuda_share.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cuda/cuda_context.hpp"
#include "cuda/cuda_fd_mapping.hpp"
#include "cuda/device_copier.hpp"
#include "gpu/driver_memory.hpp"
#include "support/basics/soon.hpp"
#include "support/bytes/byte_sizes.hpp"
#include "support/bytes/pattern.hpp"
#include "support/fake_cuda/cuda_program.hpp"
#include "support/replaced/replaced_new.hpp"
#include "support/replaced/short_memory.hpp"
#include "ucx/context.hpp"
#include "ucx/memory_region.hpp"
#include "wire/cuda_fd_table.hpp"

bool ucx::test::may_allocate() noexcept {
  return fake_cuda_is_called() != 0 || !memory_is_short_here();
}

namespace ucx::detail {
namespace {

using test::allocations_until_failure;
using test::cuda_program;
using test::driver_memory;
using testing::HasSubstr;

constexpr std::size_t part = driver_memory::granularity;

std::vector<int> descriptors_of_owner() {
  std::vector<int> found;
  for (int i = 0; i < 1024; ++i) {
    if (::fcntl(i, F_GETFD) >= 0) found.push_back(i);
  }
  return found;
}

/// Other threads have descriptors for a moment.
bool only_these_are_left(const std::vector<int>& before) {
  return test::soon([&] {
    const std::vector<int> now = descriptors_of_owner();
    return std::includes(before.begin(), before.end(), now.begin(), now.end());
  });
}

/// Memory of either kind, in this process.
std::unique_ptr<driver_memory> make(const std::string& what) {
  const auto types = driver_memory::handles::descriptors;
  return what == "pooled" ? driver_memory::pooled(3 * part, types)
                          : driver_memory::mapped({part, 2 * part}, types);
}

/// Returns the table that a share tells the place of.
cuda_fd_table table_of(const cuda_share& share) {
  const auto where = decode_cuda_fd_location(share.handle().bytes);
  const auto* const bytes =
      reinterpret_cast<const std::byte*>(static_cast<std::uintptr_t>(where.value().address));
  return decode_cuda_fd_table({bytes, static_cast<std::size_t>(where->length)}).value();
}

class CudaShare : public testing::Test {
 protected:
  cuda_share share(std::span<const std::byte> bytes) const {
    return cuda_share::of(*context_, bytes);
  }

  const cuda_program program_;
  const std::shared_ptr<const cuda_context> context_ = cuda_context::of_device(0).or_throw();
};

TEST_F(CudaShare, NamesEachPartOfWhatIsMapped) {
  const std::unique_ptr<driver_memory> memory = make("mapped");
  const std::vector<int> before = descriptors_of_owner();
  {
    const cuda_share all = share(memory->bytes().subspan(5, 2 * part));
    EXPECT_EQ(all.why_not(), "");
    EXPECT_TRUE(all.handle().by_descriptors);
    EXPECT_EQ(all.handle().size, 3 * part);
    EXPECT_EQ(all.handle().offset, 5U);
    const cuda_fd_table told = table_of(all);
    ASSERT_EQ(told.parts.size(), 2U);
    EXPECT_EQ(told.parts[0].size, part);
    EXPECT_EQ(told.parts[1].size, 2 * part);
    EXPECT_FALSE(told.pointer);
    for (const cuda_fd_table::part& each : told.parts) {
      const int file = static_cast<int>(each.descriptor);
      struct ::stat found = {};
      ASSERT_EQ(::fstat(file, &found), 0);
      EXPECT_EQ(found.st_ino, each.inode);
      EXPECT_EQ(::fcntl(file, F_GETFD), FD_CLOEXEC);
    }
    const cuda_share last = share(memory->bytes().subspan(part + 7, 10));
    EXPECT_EQ(last.handle().size, 2 * part);
    EXPECT_EQ(last.handle().offset, 7U);
    EXPECT_EQ(table_of(last).parts.size(), 1U);
  }
  EXPECT_TRUE(only_these_are_left(before));
  EXPECT_EQ(fake_cuda_handles(), 0U);
}

TEST_F(CudaShare, NamesThePoolAndTheAllocation) {
  const std::unique_ptr<driver_memory> memory = make("pooled");
  const std::vector<int> before = descriptors_of_owner();
  {
    const cuda_share all = share(memory->bytes().subspan(9, 100));
    EXPECT_EQ(all.why_not(), "");
    EXPECT_TRUE(all.handle().by_descriptors);
    EXPECT_EQ(all.handle().size, 3 * part);
    EXPECT_EQ(all.handle().offset, 9U);
    const cuda_fd_table told = table_of(all);
    EXPECT_EQ(told.parts.size(), 1U);
    EXPECT_TRUE(told.pointer);
  }
  EXPECT_TRUE(only_these_are_left(before));
}

TEST_F(CudaShare, TakesTheHandleOfWhatIsAllocatedInTheOldWay) {
  const auto memory = cuda_program::allocate(1000);
  const cuda_share made = share(memory.subspan(100, 200));
  EXPECT_EQ(made.handle().size, 1000U);
  EXPECT_EQ(made.handle().offset, 100U);
  EXPECT_FALSE(made.handle().by_descriptors);
}

TEST_F(CudaShare, TakesTheHandleWhereTheDriverKnowsOfNoOther) {
  const auto memory = cuda_program::allocate(1000);
  fake_cuda_fail("cuPointerGetAttributes", 0, 1, 1);
  EXPECT_EQ(share(memory).handle().size, 1000U);
}

// What is between was never mapped, or was given back.
TEST_F(CudaShare, IsNoneOfMemoryWithAHole) {
  std::uint64_t begin = 0;
  ASSERT_EQ(cuMemAddressReserve(&begin, 3 * part, 0, 0, 0), 0);
  const fake_cuda_properties wanted{1, 1, 1, 0, nullptr, {}};
  for (const std::size_t at : {std::size_t{0}, 2 * part}) {
    std::uint64_t handle = 0;
    ASSERT_EQ(cuMemCreate(&handle, part, &wanted, 0), 0);
    ASSERT_EQ(cuMemMap(begin + at, part, 0, handle, 0), 0);
    ASSERT_EQ(cuMemRelease(handle), 0);
  }
  const std::vector<int> before = descriptors_of_owner();
  const auto* const bytes = reinterpret_cast<const std::byte*>(static_cast<std::uintptr_t>(begin));
  const cuda_share made = share({bytes, 3 * part});
  EXPECT_EQ(made.handle(), cuda_ipc_handle());
  EXPECT_THAT(made.why_not(), HasSubstr("cuMemGetAddressRange: CUDA_ERROR_NOT_FOUND"));
  EXPECT_TRUE(only_these_are_left(before));
}

TEST_F(CudaShare, IsNoneWhereACallFailsAndSaysWhich) {
  const std::vector<std::pair<const char*, const char*>> calls{
      {"mapped", "cuCtxPushCurrent"},
      {"mapped", "cuMemGetAddressRange"},
      {"mapped", "cuMemRetainAllocationHandle"},
      {"mapped", "cuMemExportToShareableHandle"},
      {"pooled", "cuMemGetAddressRange"},
      {"pooled", "cuMemPoolExportToShareableHandle"},
      {"pooled", "cuMemPoolExportPointer"}};
  for (const auto& [what, call] : calls) {
    const std::unique_ptr<driver_memory> memory = make(what);
    const std::vector<int> before = descriptors_of_owner();
    for (int after = 0; after < 2; ++after) {
      fake_cuda_fail(call, after, 1 << 20, 205);
      const cuda_share made = share(memory->bytes());
      fake_cuda_fail(call, 0, 0, 0);
      if (after == 1 && made.handle().size != 0) continue;  // it is called once
      EXPECT_EQ(made.handle(), cuda_ipc_handle()) << call;
      EXPECT_THAT(made.why_not(), HasSubstr(std::string(call) + ": CUDA_ERROR_MAP_FAILED"));
      EXPECT_TRUE(only_these_are_left(before)) << call << ' ' << after;
    }
    EXPECT_TRUE(only_these_are_left(before)) << call;
    EXPECT_EQ(fake_cuda_handles(), 0U) << call;
  }
}

TEST_F(CudaShare, LeavesNothingWhereMemoryRunsShort) {
  for (const char* const what : {"mapped", "pooled"}) {
    const std::unique_ptr<driver_memory> memory = make(what);
    const std::vector<int> before = descriptors_of_owner();
    int failed = 0;
    for (bool done = false; !done;) {
      allocations_until_failure = failed;
      try {
        const cuda_share made = share(memory->bytes());
        done = allocations_until_failure >= 0;
        allocations_until_failure = -1;
        EXPECT_EQ(made.handle().size, 3 * part) << what << ' ' << failed;
      } catch (const std::bad_alloc&) {
        EXPECT_EQ(fake_cuda_handles(), 0U) << what << ' ' << failed;
        EXPECT_TRUE(only_these_are_left(before)) << what << ' ' << failed;
        ++failed;
      }
      ASSERT_LT(failed, 100);
    }
    EXPECT_GT(failed, 2) << what;
    EXPECT_TRUE(only_these_are_left(before));
  }
}

/// Leaves the process so many descriptors, while it lives.
class descriptors_left {
 public:
  explicit descriptors_left(std::size_t count) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    ::rlimit tight = before_;
    tight.rlim_cur = static_cast<::rlim_t>(descriptors_of_owner().size() + count);
    ::setrlimit(RLIMIT_NOFILE, &tight);
  }
  ~descriptors_left() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  descriptors_left(const descriptors_left&) = delete;
  descriptors_left& operator=(const descriptors_left&) = delete;

 private:
  ::rlimit before_ = {};
};

TEST_F(CudaShare, TakesOnlyAFewOfTheDescriptorsThatAreLeft) {
  const auto memory =
      driver_memory::mapped(std::vector<std::size_t>(5, part), driver_memory::handles::descriptors);
  const std::vector<int> before = descriptors_of_owner();
  {
    const descriptors_left few(16);
    const cuda_share made = share(memory->bytes());
    EXPECT_EQ(made.handle(), cuda_ipc_handle());
    EXPECT_THAT(made.why_not(), HasSubstr("ulimit -n"));
    EXPECT_TRUE(only_these_are_left(before));
  }
  EXPECT_EQ(share(memory->bytes()).handle().size, 5 * part);
}

TEST_F(CudaShare, IsToldInTheLogWhereThereIsNone) {
  std::vector<std::string> lines;
  context_options options;
  options.log.level = log_level::warning;
  options.log.sink = [&](log_level, std::string_view line) { lines.emplace_back(line); };
  const context owner(options);
  const auto memory = driver_memory::pooled(1000, driver_memory::handles::none);
  const memory_region exposed(owner, memory->bytes(), access::read);
  EXPECT_TRUE(exposed.descriptor().cuda_ipc.by_descriptors);
  EXPECT_EQ(exposed.descriptor().cma, cma_handle());
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_THAT(lines.front(), HasSubstr("CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR"));
}

TEST_F(CudaShare, GoesWithItsRegion) {
  const context owner;
  for (const char* const what : {"mapped", "pooled"}) {
    const std::unique_ptr<driver_memory> memory = make(what);
    memory_region exposed(owner, memory->bytes(), access::read);
    const remote_descriptor told = exposed.descriptor();
    EXPECT_EQ(remote_descriptor::decode(told.encode()), told);
    const auto where = decode_cuda_fd_location(told.cuda_ipc.bytes);
    const auto* const bytes =
        reinterpret_cast<const std::byte*>(static_cast<std::uintptr_t>(where.value().address));
    const auto table = decode_cuda_fd_table({bytes, static_cast<std::size_t>(where->length)});
    exposed.close();
    for (const cuda_fd_table::part& each : table.value().parts) {
      EXPECT_LT(::fcntl(static_cast<int>(each.descriptor), F_GETFD), 0);
    }
  }
}

/// This process is the owner, too: the driver lets it.
class CudaFdMapping : public CudaShare {
 protected:
  /// Shares it, and makes what a peer would map it by.
  void shared(const std::string& what) {
    memory_ = make(what);
    cuda_program::put(memory_->bytes(), test::pattern(memory_->bytes().size(), 1));
    share_ = share(memory_->bytes());
    table_ = table_of(share_);
    described_.kind = memory_kind::cuda;
    described_.size = memory_->bytes().size();
    described_.cma.process = static_cast<std::uint64_t>(::getpid());
    described_.cuda_ipc = share_.handle();
  }
  std::shared_ptr<device_mapping> mapping() {
    return cuda_fd_mapping::make(copier_, described_, table_);
  }
  void expect_refused(const char* why) {
    const std::vector<int> before = descriptors_of_owner();
    const std::size_t places = fake_cuda_places();
    {
      const std::shared_ptr<device_mapping> made = mapping();
      EXPECT_EQ(made->open(), nullptr) << why;
      EXPECT_TRUE(made->is_refused()) << why;
      EXPECT_THAT(made->refusal(), HasSubstr(why));
      EXPECT_TRUE(only_these_are_left(before)) << why;
      EXPECT_EQ(fake_cuda_handles() + fake_cuda_opened() + fake_cuda_imported_pools(), 0U) << why;
      EXPECT_EQ(fake_cuda_places(), places) << why;
    }
    table_ = table_of(share_);
  }

  std::unique_ptr<driver_memory> memory_;
  cuda_share share_;
  cuda_fd_table table_;
  remote_descriptor described_;
  const std::shared_ptr<device_copier> copier_ = device_copier::make(context_).or_throw();
};

TEST_F(CudaFdMapping, CanBeReadAndNotWritten) {
  shared("mapped");
  const std::shared_ptr<device_mapping> made = mapping();
  std::byte* const begin = made->open();
  ASSERT_NE(begin, nullptr);
  const std::span<std::byte> there(begin, 3 * part);
  EXPECT_TRUE(test::holds_pattern(cuda_program::content(there), 1));
  const std::vector<std::byte> host(10);
  EXPECT_EQ(cuMemcpy(cuda_program::address(there), cuda_program::address(host), 10), 1);
}

TEST_F(CudaFdMapping, OfOtherDescriptorsIsRefused) {
  shared("mapped");
  table_.parts[1].descriptor = 1000;
  expect_refused("pidfd_getfd: Bad file descriptor");
  std::swap(table_.parts[0].descriptor, table_.parts[1].descriptor);
  expect_refused("another file by now");
  ++table_.parts[0].inode;
  expect_refused("another file by now");
  ++table_.parts[0].device;
  expect_refused("another file by now");
  table_.parts[1].size += part;
  expect_refused("cuMemMap: CUDA_ERROR_INVALID_VALUE");
  table_.parts[1].size = 100;
  expect_refused("cuMemAddressReserve: CUDA_ERROR_INVALID_VALUE");
  table_.parts[1].size = std::size_t{1} << 60U;
  expect_refused("cuMemAddressReserve: CUDA_ERROR_OUT_OF_MEMORY");
  described_.cma.process = 0x7FFFFFFF;
  expect_refused("pidfd_getfd: No such process");
}

// A descriptor of the owner's that is no driver's.
TEST_F(CudaFdMapping, OfAnotherFileOfTheOwnersIsRefused) {
  for (const char* const what : {"mapped", "pooled"}) {
    shared(what);
    const int other = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    struct ::stat found = {};
    ASSERT_EQ(::fstat(other, &found), 0);
    table_.parts[0].descriptor = static_cast<std::uint64_t>(other);
    table_.parts[0].device = found.st_dev;
    table_.parts[0].inode = found.st_ino;
    expect_refused("FromShareableHandle: CUDA_ERROR_INVALID_VALUE");
    ::close(other);
  }
}

TEST_F(CudaFdMapping, OfAnotherAllocationOfThePoolIsRefused) {
  shared("pooled");
  (*table_.pointer)[0] ^= std::byte{1};
  expect_refused("cuMemPoolImportPointer: CUDA_ERROR_INVALID_VALUE");
  ++table_.parts[0].size;
  expect_refused("cuMemGetAddressRange: CUDA_ERROR_INVALID_VALUE");
}

TEST_F(CudaFdMapping, IsRefusedWithoutADescriptorLeft) {
  for (const char* const what : {"mapped", "pooled"}) {
    shared(what);
    for (const std::size_t left : {std::size_t{0}, std::size_t{1}}) {
      const std::shared_ptr<device_mapping> made = mapping();
      {
        // Holes below the last one are taken as well.
        std::vector<int> taken;
        const descriptors_left few(left);
        for (int file = ::open("/dev/null", O_RDONLY); file >= 0;) {
          taken.push_back(file);
          file = ::open("/dev/null", O_RDONLY);
        }
        for (std::size_t i = 0; i < left; ++i) {
          ::close(taken.back());
          taken.pop_back();
        }
        EXPECT_EQ(made->open(), nullptr);
        for (const int each : taken) ::close(each);
      }
      EXPECT_THAT(made->refusal(), HasSubstr("pidfd_getfd: Too many open files"));
      EXPECT_EQ(fake_cuda_handles() + fake_cuda_opened() + fake_cuda_imported_pools(), 0U);
    }
  }
}

TEST_F(CudaFdMapping, HoldsNothingWhereMemoryRunsShort) {
  for (const char* const what : {"mapped", "pooled"}) {
    shared(what);
    const std::vector<int> before = descriptors_of_owner();
    const std::size_t places = fake_cuda_places();
    int failed = 0;
    for (bool done = false; !done; ++failed) {
      ASSERT_LT(failed, 100);
      const std::shared_ptr<device_mapping> made = mapping();
      allocations_until_failure = failed;
      const bool opened = made->open() != nullptr;
      done = allocations_until_failure >= 0;
      allocations_until_failure = -1;
      EXPECT_EQ(opened, done) << what << ' ' << failed;
      if (opened) continue;
      EXPECT_THAT(made->refusal(), testing::AnyOf("there is no memory for it",
                                                  "the system does not say when the owner began"));
      EXPECT_TRUE(only_these_are_left(before)) << what << ' ' << failed;
      EXPECT_EQ(fake_cuda_places(), places);
      EXPECT_EQ(fake_cuda_handles() + fake_cuda_opened() + fake_cuda_imported_pools(), 0U);
    }
    EXPECT_EQ(failed > 1, what == std::string("pooled"));
    EXPECT_TRUE(test::soon([&] { return fake_cuda_places() == places; }));
    EXPECT_TRUE(test::soon([] { return fake_cuda_opened() + fake_cuda_imported_pools() == 0; }));
  }
}

}  // namespace
}  // namespace ucx::detail
