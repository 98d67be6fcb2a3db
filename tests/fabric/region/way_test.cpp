// Which way the bytes of a region move, and that a stream is the same whatever the way.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <system_error>
#include <tuple>
#include <vector>

#include "support/bytes/byte_sizes.hpp"
#include "support/bytes/pattern.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/process/process_reading.hpp"
#include "support/streams/stream_script.hpp"
#include "support/transports/connected_pair.hpp"
#include "support/transports/network.hpp"
#include "ucx/access.hpp"
#include "ucx/error.hpp"
#include "ucx/stream.hpp"

namespace ucx::test {
namespace {

using std::ios;

constexpr std::array every_way{transfer_method::message, transfer_method::rma,
                               transfer_method::mapped, transfer_method::cma,
                               transfer_method::cuda_ipc};

/// Returns the ways that are real over a route, of memory that suits it, for a reader in `from`.
std::set<transfer_method> real_ways(route over, const context& from) {
  std::set<transfer_method> real;
  if (over != route::shared_memory) real.insert(transfer_method::message);  // that has no messages
  if (over == route::shared_memory) real.insert(transfer_method::rma);
  if (over == route::borrowed && has_cma(from) && system_reads_processes())
    real.insert(transfer_method::cma);
  if (over == route::mapped) real.insert(transfer_method::mapped);
  if (goes_over_verbs() && (over == route::tcp_by_address || over == route::tcp_by_listener))
    real.insert(transfer_method::rma);
  return real;
}

/// Returns the way that the environment forces.
std::optional<transfer_method> forced_way() {
  const char* const forced = std::getenv("UCXIO_TRANSFER_METHOD");
  for (const transfer_method each : every_way) {
    if (forced != nullptr && to_string(each) == forced) return each;
  }
  return std::nullopt;
}

class WayOver : public testing::TestWithParam<route> {
 protected:
  connected_pair pair_{{.over = GetParam()}};
};

TEST_P(WayOver, CanBeAskedForWhereItIsReal) {
  const memory_region owned = pair_.allocate(300 * kib);
  fill_pattern(owned.bytes());
  const std::set<transfer_method> real = real_ways(GetParam(), pair_.reader_context());
  std::vector<std::byte> into(owned.size());
  for (const transfer_method wanted : every_way) {
    SCOPED_TRACE(to_string(wanted));
    std::error_code ec;
    remote_region region(*pair_.connection, owned.descriptor(), {.transfer_method = wanted}, ec);
    if (!real.contains(wanted)) {
      EXPECT_TRUE(ec == errc::not_supported || ec == errc::feature_disabled) << ec.message();
      continue;
    }
    ASSERT_FALSE(ec) << ec.message();
    EXPECT_EQ(region.transfer_method(), wanted);
    for (const transfer_method each : every_way)
      EXPECT_EQ(region.why_not(each).empty(), each == wanted);
    std::fill(into.begin(), into.end(), std::byte{0});
    region.read_at(0, into);
    EXPECT_TRUE(holds_pattern(into));
    const std::vector<std::byte> from = pattern(kib, 1 + static_cast<std::uint64_t>(wanted));
    region.write_at(100 * kib, from);
    region.flush();
    EXPECT_TRUE(std::equal(from.begin(), from.end(), owned.bytes().begin() + 100 * kib));
    fill_pattern(owned.bytes());
  }
}

// So that a run with a forced way can not pass by leaving everything out.
TEST_P(WayOver, IsTheOneThatTheEnvironmentForces) {
  const std::optional<transfer_method> forced = forced_way();
  if (!forced) GTEST_SKIP() << "UCXIO_TRANSFER_METHOD forces no way";
  const bool real = real_ways(GetParam(), pair_.reader_context()).contains(*forced);
  EXPECT_EQ(pair_.why_not_forced().empty(), real) << pair_.why_not_forced();
  if (!real) return;
  const memory_region owned = pair_.allocate(kib);
  EXPECT_EQ(pair_.open(owned).transfer_method(), *forced);
}

INSTANTIATE_TEST_SUITE_P(Routes, WayOver,
                         testing::Values(route::tcp_by_address, route::tcp_by_listener,
                                         route::shared_memory, route::mapped, route::borrowed),
                         [](const auto& chosen) { return to_string(chosen.param); });

/// Route, and size of the stream's buffer.
class StreamOver : public testing::TestWithParam<std::tuple<route, std::size_t>> {
 protected:
  void SetUp() override {
    if (const std::string why = pair_.why_not_forced(); !why.empty()) GTEST_SKIP() << why;
  }

  const std::size_t buffer_ = std::get<1>(GetParam());
  connected_pair pair_{{.over = std::get<0>(GetParam())}};
};

TEST_P(StreamOver, AgreesWithAFile) {
  const temporary_directory directory;
  const stream_options options{.buffer_size = buffer_};
  for (const std::size_t size : {std::size_t{1}, buffer_ + 1, 3 * buffer_ + 100}) {
    SCOPED_TRACE("size " + std::to_string(size));
    const std::string text = sample_text(size, size + 1);
    const memory_region owned = pair_.allocate(size);
    std::memcpy(owned.bytes().data(), text.data(), size);
    std::fstream oracle(directory.make("file", text), ios::in | ios::out | ios::binary);
    stream_script script(size, text,
                         std::max<std::size_t>(200, std::min<std::size_t>(2 * buffer_, 200'000)));
    {
      iostream ours(pair_.open(owned), options);
      ASSERT_TRUE(script.play(ours, oracle, 200));
      iostream moved(std::move(ours));
      ASSERT_TRUE(script.play(moved, oracle, 200));
    }
    EXPECT_EQ(std::memcmp(owned.bytes().data(), script.content().data(), size), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Routes, StreamOver,
    testing::Combine(testing::Values(route::tcp_by_address, route::shared_memory, route::mapped,
                                     route::borrowed),
                     testing::Values<std::size_t>(5, 4096, stream_options().buffer_size)),
    [](const auto& chosen) {
      return to_string(std::get<0>(chosen.param)) + "_" + std::to_string(std::get<1>(chosen.param));
    });

}  // namespace
}  // namespace ucx::test
