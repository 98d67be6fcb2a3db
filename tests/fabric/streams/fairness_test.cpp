// Streams of one process that read at the same time: none of them is left behind.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "support/basics/effort.hpp"
#include "support/transports/ucx_server.hpp"
#include "ucx/client.hpp"
#include "ucx/fstream.hpp"
#include "ucx/server.hpp"

namespace ucx::test {
namespace {

constexpr std::size_t streams = 4;
constexpr std::size_t call = std::size_t{256} << 10U;
constexpr std::size_t region_size = 256 * call;
/// Many windows of every stream: what each has in flight at the end hardly counts.
constexpr std::size_t all_bytes = streams * effort<std::size_t>(32, 8) * stream_options().window;

struct sharing {
  const char* name;
  bool one_client = true;
  std::size_t workers = 1;
  std::size_t lanes = 1;
};

class ConcurrentStreams : public testing::TestWithParam<sharing> {
 protected:
  /// Reads `all_bytes` by all streams, each by a thread, and returns how many each of them had.
  static std::array<std::size_t, streams> read_together(std::deque<ifstream>& opened) {
    std::atomic<std::size_t> sum{0};
    std::array<std::size_t, streams> read = {};
    {
      std::vector<std::jthread> threads;
      for (std::size_t i = 0; i < streams; ++i) {
        threads.emplace_back([&, i] {
          std::vector<char> into(call);
          opened[i].seekg(0);
          while (sum.fetch_add(call, std::memory_order_relaxed) < all_bytes) {
            opened[i].read(into.data(), call);
            if (!opened[i]) return;
            read[i] += call;
            if (read[i] % region_size == 0) opened[i].seekg(0);
          }
        });
      }
    }
    return read;
  }
  static std::size_t least_of(const std::array<std::size_t, streams>& read) {
    return *std::min_element(read.begin(), read.end());
  }
};

TEST_P(ConcurrentStreams, GetAtLeastHalfOfTheirShare) {
  server_options options;
  options.workers = GetParam().workers;
  options.context.share_memory = false;  // so that the bytes take the wire
  std::vector<std::byte> memory(region_size);
  ucx_server serving(options);
  const publication p = serving.publish("m", std::span(memory), access::read);
  std::deque<client> clients;
  std::deque<ifstream> opened;
  for (std::size_t i = 0; i < streams; ++i) {
    if (clients.empty() || !GetParam().one_client) clients.emplace_back(serving.url());
    opened.emplace_back(clients.back(), "m", std::ios::binary,
                        stream_options{.connections = GetParam().lanes});
    ASSERT_TRUE(opened.back().is_open()) << opened.back().error_message();
  }
  // A busy machine may keep one thread from running for long, but not in each of some rounds.
  std::array<std::size_t, streams> read = {};
  for (int rounds = 0; rounds < 4 && least_of(read) < all_bytes / streams / 2; ++rounds) {
    read = read_together(opened);
    for (const ifstream& each : opened) ASSERT_TRUE(each) << each.error_message();
  }
  EXPECT_GE(least_of(read), all_bytes / streams / 2) << testing::PrintToString(read);
}

INSTANTIATE_TEST_SUITE_P(Sharing, ConcurrentStreams,
                         testing::Values(sharing{"OneClient"}, sharing{"ClientsOfTheirOwn", false},
                                         sharing{"SeveralWorkers", false, 3},
                                         sharing{"Lanes", true, 2, 2}),
                         [](const auto& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace ucx::test
