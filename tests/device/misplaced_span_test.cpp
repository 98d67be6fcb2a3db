// Memory of the caller's that is longer than its allocation, or lies in two of them, or begins in
// the host's memory and ends in a device's.
#include <gtest/gtest.h>

#include <sys/mman.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "support/bytes/pattern.hpp"
#include "support/fake_cuda/cuda_program.hpp"
#include "support/files/temporary_file.hpp"
#include "support/transports/connected_pair.hpp"
#include "support/transports/message_pair.hpp"
#include "ucx/error.hpp"
#include "ucx/fstream.hpp"
#include "ucx/memory_region.hpp"
#include "ucx/memory_resources.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/stream.hpp"

namespace ucx::test {
namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t half = 16 * page;
constexpr std::size_t longest = 64 * half;

char* characters(std::span<std::byte> bytes) { return reinterpret_cast<char*>(bytes.data()); }

/// A stretch of addresses with two holes, for what the driver maps next: memory of a device then
/// lies between places that are kept.
class kept_places {
 public:
  kept_places() {
    ::munmap(place(1), half);
    ::munmap(place(3), half);
  }
  kept_places(const kept_places&) = delete;
  kept_places& operator=(const kept_places&) = delete;
  ~kept_places() {
    for (const std::size_t each : {0U, 2U, 4U}) ::munmap(place(each), half);
  }
  bool surrounds(const std::byte* address) const {
    return address == place(1) || address == place(3);
  }
  /// Has memory of the host's in the place before or behind `address`.
  std::span<std::byte> host_beside(std::byte* address, bool behind) {
    std::byte* const begin = behind ? address + half : address - half;
    EXPECT_EQ(::mprotect(begin, half, PROT_READ | PROT_WRITE), 0);
    return {begin, half};
  }

 private:
  std::byte* place(std::size_t number) const { return begin_ + number * half; }

  std::byte* const begin_ = static_cast<std::byte*>(
      ::mmap(nullptr, 5 * half, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
};

/// Calls `use` with memory of a device, and of the host's before or behind it, as one.
template <class Use>
void with_both(bool device_first, const Use& use) {
  for (int attempt = 0; attempt < 100; ++attempt) {
    kept_places places;
    const auto tensor = cuda_program::allocate_pattern(half, 1);
    if (!places.surrounds(tensor.data())) continue;  // there was another hole, which is filled now
    const std::span<std::byte> host = places.host_beside(tensor.data(), device_first);
    std::ranges::copy(pattern(half, 2), host.begin());
    use(std::span(std::min(tensor.data(), host.data()), 2 * half), tensor, host);
    return;
  }
  FAIL() << "no memory of the host's is to be had beside that of a device";
}

/// Both orders, by each route.
class MisplacedSpan : public testing::TestWithParam<route> {
 protected:
  template <class Use>
  void each(const Use& use) {
    for (const bool device_first : {false, true}) {
      SCOPED_TRACE(device_first ? "a device's, then the host's" : "the host's, then a device's");
      with_both(device_first, [&](std::span<std::byte> both, auto tensor, auto host) {
        use(both);
        EXPECT_TRUE(holds_pattern(cuda_program::content(tensor), 1));
        EXPECT_TRUE(holds_pattern(host, 2));
      });
    }
    // The last page of an allocation goes on behind its end, and is nobody's.
    const auto shorter = cuda_program::allocate_pattern(half - 100, 1);
    use(std::span(shorter.data(), half - 50));
    EXPECT_TRUE(holds_pattern(cuda_program::content(shorter), 1));
    const std::vector<std::byte> from = pattern(2 * half, 4);
    std::vector<std::byte> into(2 * half);
    remote_region region = pair_.open(exposed_);
    region.write_at(0, from);
    region.flush();
    region.read_at(0, into);
    EXPECT_TRUE(holds_pattern(into, 4));
  }

  const cuda_program program_;
  connected_pair pair_{{GetParam()}};
  memory_region exposed_ = pair_.allocate(2 * half);
};

TEST_P(MisplacedSpan, IsNeitherReadIntoNorWrittenFrom) {
  remote_region region = pair_.open(exposed_);
  each([&](std::span<std::byte> both) {
    std::error_code ec;
    region.read_at(0, both, {}, ec);
    EXPECT_EQ(ec, errc::invalid_argument);
    region.write_at(0, both, {}, ec);
    EXPECT_EQ(ec, errc::invalid_argument);
    copy_memory(both.data(), pattern(both.size()).data(), both.size(), {}, ec);
    EXPECT_EQ(ec, errc::invalid_argument);
    std::vector<std::byte> copied(both.size());
    copy_memory(copied.data(), both.data(), both.size(), {}, ec);
    EXPECT_EQ(ec, errc::invalid_argument);
    const memory_region refused(*pair_.owner_context, both, access::read, {}, ec);
    EXPECT_TRUE(ec);
  });
}

TEST_P(MisplacedSpan, IsAnErrorOfItsBatch) {
  remote_region region = pair_.open(exposed_);
  each([&](std::span<std::byte> both) {
    // Short ones share a message.
    const auto middle = both.size() > half ? both.subspan(half - 50, 100) : both.last(100);
    std::vector<std::byte> host(100);
    std::error_code ec;
    request read = region.start_read_batch(std::vector<read_piece>{{0, host}, {100, middle}});
    read.wait(ec);
    EXPECT_EQ(ec, errc::invalid_argument);
    request write = region.start_write_batch(std::vector<write_piece>{{0, host}, {100, middle}});
    write.wait(ec);
    EXPECT_EQ(ec, errc::invalid_argument);
  });
}

TEST_P(MisplacedSpan, BreaksAStreamWhateverItsBufferHolds) {
  each([&](std::span<std::byte> both) {
    for (const std::size_t buffer_size : {page, 8 * half}) {
      ucx::istream in(pair_.open(exposed_), {.buffer_size = buffer_size});
      in.get();
      in.unget();
      in.read(characters(both), static_cast<std::streamsize>(both.size()));
      EXPECT_TRUE(in.bad());
      EXPECT_EQ(in.error(), errc::invalid_argument);
      ucx::ostream out(pair_.open(exposed_), {.buffer_size = buffer_size});
      out.write(characters(both), static_cast<std::streamsize>(both.size()));
      EXPECT_TRUE(out.bad());
      EXPECT_EQ(out.error(), errc::invalid_argument);
    }
  });
}

TEST_P(MisplacedSpan, BreaksALocalFileStream) {
  const temporary_file file;
  file.write(0, pattern(2 * half, 3));
  each([&](std::span<std::byte> both) {
    ucx::fstream through(file.path());
    through.read(characters(both), static_cast<std::streamsize>(both.size()));
    EXPECT_TRUE(through.bad());
    EXPECT_EQ(through.error(), errc::invalid_argument);
    through.clear();
    through.seekp(0);
    through.write(characters(both), static_cast<std::streamsize>(both.size()));
    EXPECT_TRUE(through.bad());
    EXPECT_EQ(through.error(), errc::invalid_argument);
  });
}

TEST_P(MisplacedSpan, OfTwoAllocationsIsRefusedByTheDriver) {
  const memory_region exposed = pair_.allocate(longest);
  std::ranges::copy(pattern(longest, 3), exposed.bytes().begin());
  remote_region region = pair_.open(exposed);
  std::span<std::byte> low;
  std::span<std::byte> high;
  for (int attempt = 0; attempt < 100; ++attempt) {
    low = cuda_program::allocate_pattern(half, 1);
    high = cuda_program::allocate_pattern(half, 1);
    if (low.data() > high.data()) std::swap(low, high);
    if (static_cast<std::size_t>(high.data() - low.data()) <= longest - half) break;
  }
  const std::span both(low.data(), high.data() + half);
  ASSERT_LE(both.size(), longest);
  std::error_code ec;
  region.read_at(0, both, {}, ec);
  EXPECT_EQ(ec, errc::io_error);
  region.write_at(0, both, {}, ec);
  if (!ec) region.flush({}, ec);
  EXPECT_EQ(ec, errc::io_error);
  remote_region another = pair_.open(exposed);
  another.read_at(0, low);
  EXPECT_TRUE(holds_pattern(cuda_program::content(low), 3));
}

INSTANTIATE_TEST_SUITE_P(Routes, MisplacedSpan,
                         testing::Values(route::tcp_by_address, route::mapped),
                         [](const auto& instance) { return to_string(instance.param); });

TEST(MisplacedMessage, IsNeitherSentNorReceivedInto) {
  const cuda_program program;
  message_pair_options options;
  options.over = route::tcp_by_listener;
  message_pair pair(options);
  for (const bool device_first : {false, true}) {
    with_both(device_first, [&](std::span<std::byte> both, auto tensor, auto host) {
      for (const std::size_t length : {std::size_t{100}, 2 * half}) {
        const auto part = both.subspan(half - length / 2, length);
        request send = pair.sender->start_send(1, part);
        EXPECT_TRUE(pair.until([&] { return send.done(); }));
        EXPECT_EQ(send.error(), errc::invalid_argument);
        request receive = pair.receiver().start_receive(1, part);
        EXPECT_TRUE(pair.until([&] { return receive.done(); }));
        EXPECT_EQ(receive.error(), errc::invalid_argument);
      }
      EXPECT_TRUE(holds_pattern(cuda_program::content(tensor), 1));
      EXPECT_TRUE(holds_pattern(host, 2));
    });
  }
}

}  // namespace
}  // namespace ucx::test
