// Memory of which the driver does not say where it is: what the processor can read goes on as the
// host's, and the rest is refused.
#include <gtest/gtest.h>

#include <sys/mman.h>
#include <sys/resource.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "support/basics/soon.hpp"
#include "support/bytes/pattern.hpp"
#include "support/fake_cuda/cuda_program.hpp"
#include "support/files/temporary_file.hpp"
#include "support/transports/connected_pair.hpp"
#include "support/transports/message_pair.hpp"
#include "ucx/error.hpp"
#include "ucx/fstream.hpp"
#include "ucx/memory_place.hpp"
#include "ucx/memory_region.hpp"
#include "ucx/memory_resources.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/stream.hpp"

namespace ucx::test {
namespace {

constexpr std::size_t known_size = 100'000;
constexpr memory_place unknown{memory_kind::other, -1};

char* characters(std::span<std::byte> bytes) { return reinterpret_cast<char*>(bytes.data()); }

/// The driver has failed, and says so whatever it is asked of memory.
class UnknownMemory : public testing::TestWithParam<route> {
 protected:
  static void fail() { fake_cuda_fail("cuPointerGetAttributes", 0, 1 << 20, 719); }

  const cuda_program program_;
  connected_pair pair_{{GetParam()}};
  memory_region exposed_ = pair_.allocate(known_size);
  const std::span<std::byte> tensor_ = cuda_program::allocate_pattern(known_size, 1);
};

TEST_P(UnknownMemory, OfADeviceIsRefusedAndTheHostsGoesOn) {
  remote_region region = pair_.open(exposed_);
  const std::vector<std::byte> from = pattern(known_size, 2);
  fail();
  std::error_code ec;
  region.write_at(0, tensor_, {}, ec);
  EXPECT_EQ(ec, errc::not_supported);
  region.write_at(0, from);
  region.flush();
  region.read_at(0, tensor_, {}, ec);
  EXPECT_EQ(ec, errc::not_supported);
  std::vector<std::byte> into(known_size);
  region.read_at(0, into);
  EXPECT_TRUE(holds_pattern(into, 2));
  EXPECT_EQ(place_of(tensor_.data()), unknown);
  EXPECT_EQ(place_of(from.data()), memory_place());
}

TEST_P(UnknownMemory, OfADeviceBreaksAStreamAndNotTheProcess) {
  for (const std::size_t length : {std::size_t{10}, known_size - 1}) {
    ucx::istream in(pair_.open(exposed_), {.buffer_size = 4096});
    ucx::ostream out(pair_.open(exposed_), {.buffer_size = 4096});
    in.get();
    fail();
    in.read(characters(tensor_), static_cast<std::streamsize>(length));
    EXPECT_TRUE(in.bad());
    EXPECT_FALSE(in.eof());
    EXPECT_EQ(in.error(), errc::not_supported);
    out.write(characters(tensor_), static_cast<std::streamsize>(length));
    EXPECT_TRUE(out.bad());
    EXPECT_EQ(out.error(), errc::not_supported);
    fake_cuda_fail("cuPointerGetAttributes", 0, 0, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Routes, UnknownMemory,
                         testing::Values(route::tcp_by_address, route::mapped),
                         [](const auto& instance) { return to_string(instance.param); });

TEST(UnknownMemoryHere, OfADeviceIsNeitherExposedNorCopiedNorSent) {
  const cuda_program program;
  message_pair_options options;
  options.over = route::tcp_by_listener;
  message_pair pair(options);
  const auto tensor = cuda_program::allocate_pattern(known_size, 1);
  std::vector<std::byte> host = pattern(known_size, 2);
  fake_cuda_fail("cuPointerGetAttributes", 0, 1 << 20, 719);
  std::error_code ec;
  const memory_region refused(*pair.receiver_context, tensor, access::read, {}, ec);
  EXPECT_EQ(ec, errc::not_supported);
  const memory_region exposed(*pair.receiver_context, host, access::read, {}, ec);
  EXPECT_FALSE(ec) << ec.message();
  copy_memory(host.data(), tensor.data(), known_size, {}, ec);
  EXPECT_EQ(ec, errc::not_supported);
  copy_memory(tensor.data(), host.data(), known_size, {}, ec);
  EXPECT_EQ(ec, errc::not_supported);
  memory_resources().copy(host.data(), memory_kind::host, tensor.data(), memory_kind::cuda,
                          known_size, ec);
  EXPECT_EQ(ec, errc::not_supported);
  for (const std::size_t length : {std::size_t{10}, known_size}) {
    request send = pair.sender->start_send(1, tensor.first(length));
    EXPECT_TRUE(pair.until([&] { return send.done(); }));
    EXPECT_EQ(send.error(), errc::not_supported);
  }
  std::vector<std::byte> into(known_size);
  request receive = pair.receiver().start_receive(2, into);
  request send = pair.sender->start_send(2, host);
  EXPECT_TRUE(pair.until([&] { return receive.done() && send.done(); }));
  EXPECT_TRUE(holds_pattern(into, 2));
}

TEST(UnknownMemoryHere, IsTheHostsWhereADriverRefuses) {
  const cuda_program program;
  connected_pair pair;
  fake_cuda_refuse_unknown(1);
  std::vector<std::byte> host = pattern(known_size, 3);
  const memory_region exposed(*pair.owner_context, std::span(host), access::read_write);
  const auto tensor = cuda_program::allocate(known_size);
  remote_region region = pair.open(exposed);
  region.read_at(0, tensor);
  EXPECT_TRUE(holds_pattern(cuda_program::content(tensor), 3));
  std::vector<std::byte> into(known_size);
  region.read_at(0, into);
  EXPECT_TRUE(holds_pattern(into, 3));
  cuda_program::free(tensor);
  std::error_code ec;
  region.read_at(0, tensor, {}, ec);
  EXPECT_EQ(ec, errc::not_supported);
}

TEST(UnknownMemoryHere, ThatEndsInADevicesIsNotExposed) {
  const cuda_program program;
  connected_pair pair;
  std::vector<std::byte> host(10);
  const auto tensor = cuda_program::allocate(10);
  const auto begin = std::min(host.data(), tensor.data());
  const auto end = std::max(host.data(), tensor.data()) + 10;
  std::error_code ec;
  const memory_region exposed(*pair.owner_context, {begin, end}, access::read, {}, ec);
  EXPECT_EQ(ec, errc::invalid_argument);
}

TEST_P(UnknownMemory, ThatWasFreedIsRefusedAndTheProcessGoesOn) {
  remote_region region = pair_.open(exposed_);
  cuda_program::free(tensor_);
  for (const std::size_t length : {std::size_t{10}, known_size}) {
    const auto freed = tensor_.first(length);
    std::error_code ec;
    region.read_at(0, freed, {}, ec);
    EXPECT_EQ(ec, errc::io_error);
    region.write_at(0, freed, {}, ec);
    EXPECT_EQ(ec, errc::io_error);
    ucx::istream in(pair_.open(exposed_), {.buffer_size = 4096});
    in.get();
    in.read(characters(freed), static_cast<std::streamsize>(length - 1));
    EXPECT_TRUE(in.bad());
    EXPECT_EQ(in.error(), errc::io_error);
    ucx::ostream out(pair_.open(exposed_), {.buffer_size = 4096});
    out.write(characters(freed), static_cast<std::streamsize>(length));
    EXPECT_TRUE(out.bad());
    EXPECT_EQ(out.error(), errc::io_error);
    std::vector<std::byte> host(length);
    copy_memory(host.data(), freed.data(), length, {}, ec);
    EXPECT_EQ(ec, errc::io_error);
    const memory_region refused(*pair_.owner_context, freed, access::read, {}, ec);
    EXPECT_EQ(ec, errc::not_supported);
  }
  const std::vector<std::byte> from = pattern(known_size, 2);
  region.write_at(0, from);
  region.flush();
  std::vector<std::byte> into(known_size);
  region.read_at(0, into);
  EXPECT_TRUE(holds_pattern(into, 2));
}

/// What a child does with what it has of its parent: returns the number of the step that went
/// wrong.
int use_inherited(std::span<std::byte> tensor, const std::string& path) {
  std::vector<std::byte> host = pattern(10, 4);
  std::error_code ec;
  if (place_of(tensor.data()) != unknown || place_of(host.data()) != memory_place()) return 1;
  copy_memory(host.data(), tensor.data(), 10, {}, ec);
  if (ec != errc::not_supported) return 2;
  ucx::ifstream in(path);
  if (in.read(characters(tensor), 10) || !in.bad() || in.error() != errc::not_supported) return 3;
  in.clear();
  if (!in.read(characters(host), 10) || !holds_pattern(host, 5)) return 4;
  const memory_pool pool({memory_kind::cuda, 0}, {}, ec);
  return ec == errc::not_supported ? 0 : 5;
}

TEST(UnknownMemoryHere, OfAForkedChildsParentIsRefused) {
  GTEST_FLAG_SET(death_test_style, "fast");
  const cuda_program program;
  const temporary_file file;
  file.write(0, pattern(10, 5));
  const auto tensor = cuda_program::allocate_pattern(10, 1);
  std::vector<std::byte> seen(10);
  copy_memory(seen.data(), tensor.data(), 10);  // so that a child inherits who copies, too
  // At once: what the threads of the parent's hold has nobody in the child.
  EXPECT_EXIT(std::_Exit(use_inherited(tensor, file.path())), testing::ExitedWithCode(0), "");
  copy_memory(seen.data(), tensor.data(), 10);
  EXPECT_TRUE(holds_pattern(seen, 1));
}

/// What is done with memory that the processor can not read where a library has the driver's name
/// and lacks its functions: returns the number of the step that went wrong.
int use_without_functions(std::span<std::byte> tensor, const std::string& path) {
  std::vector<std::byte> host = pattern(10, 4);
  std::error_code ec;
  if (place_of(tensor.data()) != unknown || place_of(host.data()) != memory_place()) return 1;
  copy_memory(host.data(), tensor.data(), 10, {}, ec);
  if (ec != errc::not_supported) return 2;
  connected_pair pair;
  const memory_region refused(*pair.owner_context, tensor, access::read, {}, ec);
  if (ec != errc::not_supported) return 3;
  const memory_region exposed(*pair.owner_context, std::span(host), access::read_write);
  remote_region region = pair.open(exposed);
  region.read_at(0, tensor.first(10), {}, ec);
  if (ec != errc::not_supported) return 4;
  region.write_at(0, tensor.first(10), {}, ec);
  if (ec != errc::not_supported) return 5;
  ucx::ifstream in(path);
  if (in.read(characters(tensor), 10) || !in.bad() || in.error() != errc::not_supported) return 6;
  std::vector<std::byte> into(10);
  region.read_at(0, into);
  return holds_pattern(into, 4) ? 0 : 7;
}

/// The driver's library lacks its functions, or can not be loaded.
class UnknownMemoryWithoutDriver : public testing::TestWithParam<const char*> {};

TEST_P(UnknownMemoryWithoutDriver, OfADeviceIsRefused) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // begins a new process, which looks for its own
  const temporary_file file;
  file.write(0, pattern(10, 5));
  EXPECT_EXIT(
      {
        ::setenv("UCXIO_CUDA_DRIVER", GetParam(), 1);
        void* const made = ::mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        const std::span tensor(static_cast<std::byte*>(made), 4096);
        std::_Exit(use_without_functions(tensor, file.path()));
      },
      testing::ExitedWithCode(0), "");
}

INSTANTIATE_TEST_SUITE_P(Libraries, UnknownMemoryWithoutDriver,
                         testing::Values("libc.so.6", "/nowhere/libcuda.so.1"));

TEST(UnknownMemoryHere, IsOutOfReachSomeMillisecondsAfterItHasGone) {
  const cuda_program program;
  void* const made =
      ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(made, MAP_FAILED);
  EXPECT_EQ(place_of(made), memory_place());
  EXPECT_EQ(place_of(reinterpret_cast<const void*>(std::uintptr_t{16})), unknown);
  ASSERT_EQ(::mprotect(made, 4096, PROT_NONE), 0);
  EXPECT_TRUE(soon([&] { return place_of(made) == unknown; }));
  ASSERT_EQ(::mprotect(made, 4096, PROT_READ), 0);
  EXPECT_EQ(place_of(made), memory_place());
  ::munmap(made, 4096);
}

/// Where the stack may become as long as it likes, most of the address space is left for it, and
/// holds other things.
TEST(UnknownMemoryHere, BelowAnUnlimitedStackIsNotTheStack) {
  ::rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_STACK, &before), 0);
  if (before.rlim_max != RLIM_INFINITY) GTEST_SKIP() << "the stack has a limit for good";
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // begins a new process, with the new limit
  const ::rlimit none{RLIM_INFINITY, RLIM_INFINITY};
  ASSERT_EQ(::setrlimit(RLIMIT_STACK, &none), 0);
  EXPECT_EXIT(
      {
        const cuda_program program;
        constexpr std::ptrdiff_t far = std::ptrdiff_t{1} << 40U;
        const char* const here = static_cast<const char*>(__builtin_frame_address(0));
        const std::uint64_t asked = fake_cuda_calls("cuPointerGetAttributes");
        is_copied_by_driver(here);
        const bool knows_its_own = fake_cuda_calls("cuPointerGetAttributes") == asked;
        is_copied_by_driver(here - far);
        const bool asks_of_others = fake_cuda_calls("cuPointerGetAttributes") == asked + 1;
        std::exit(knows_its_own && asks_of_others ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
  ASSERT_EQ(::setrlimit(RLIMIT_STACK, &before), 0);
}

}  // namespace
}  // namespace ucx::test
