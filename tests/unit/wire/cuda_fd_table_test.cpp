#include "wire/cuda_fd_table.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "support/bytes/hex.hpp"

namespace ucx::detail {
namespace {

constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();

cuda_fd_table of_allocations() { return {.parts = {{7, 1, 2, 4096}, {8, 1, 3, 8192}}}; }

cuda_fd_table of_pool() {
  cuda_fd_table made{.parts = {{7, 1, 2, 4096}}};
  made.pointer.emplace().fill(std::byte{0x5A});
  return made;
}

TEST(CudaFdTable, SurvivesTheWire) {
  EXPECT_EQ(decode_cuda_fd_table(of_allocations().encode()), of_allocations());
  EXPECT_EQ(decode_cuda_fd_table(of_pool().encode()), of_pool());
  EXPECT_EQ(of_allocations().size(), 12288U);
}

TEST(CudaFdTable, HasTheDocumentedBytes) {
  EXPECT_EQ(test::to_hex(of_allocations().encode()),
            "0100000000000000"
            "0200000000000000"
            "0700000000000000010000000000000002000000000000000010000000000000"
            "0800000000000000010000000000000003000000000000000020000000000000");
  EXPECT_EQ(of_pool().encode().size(), 16U + 32U + 64U);
}

TEST(CudaFdTable, CutOffOrLengthenedIsNone) {
  for (const cuda_fd_table& each : {of_allocations(), of_pool()}) {
    std::vector<std::byte> wire = each.encode();
    for (std::size_t length = 0; length < wire.size(); ++length) {
      ASSERT_FALSE(decode_cuda_fd_table(std::span(wire).first(length))) << length;
    }
    wire.push_back({});
    EXPECT_FALSE(decode_cuda_fd_table(wire));
  }
}

TEST(CudaFdTable, ThatMakesNoSenseIsNone) {
  const auto refused = [](const auto& change) {
    cuda_fd_table made = of_allocations();
    change(made);
    return !decode_cuda_fd_table(made.encode());
  };
  EXPECT_FALSE(refused([](cuda_fd_table&) {}));
  EXPECT_TRUE(refused([](cuda_fd_table& made) { made.parts.clear(); }));
  EXPECT_TRUE(refused([](cuda_fd_table& made) { made.parts[1].size = 0; }));
  EXPECT_TRUE(refused([](cuda_fd_table& made) { made.parts[1].size = most - 4095; }));
  EXPECT_FALSE(refused([](cuda_fd_table& made) { made.parts[1].size = most - 4096; }));
  EXPECT_TRUE(refused([](cuda_fd_table& made) { made.parts[0].descriptor = 0x80000000; }));
  EXPECT_TRUE(refused([](cuda_fd_table& made) { made.pointer.emplace(); }));  // of one pool
  EXPECT_FALSE(refused([](cuda_fd_table& made) {
    made.parts.resize(cuda_fd_table::most_parts, made.parts.front());
  }));
  EXPECT_TRUE(refused([](cuda_fd_table& made) {
    made.parts.resize(cuda_fd_table::most_parts + 1, made.parts.front());
  }));
  std::vector<std::byte> wire = of_allocations().encode();
  wire.front() = std::byte{3};
  EXPECT_FALSE(decode_cuda_fd_table(wire));
}

// Whatever comes out is what would be written.
TEST(CudaFdTable, WithRandomBytesNeverMisleads) {
  std::mt19937_64 random(11);
  const std::vector<std::byte> honest = of_pool().encode();
  int accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::byte> wire = honest;
    wire[random() % wire.size()] = static_cast<std::byte>(random());
    const std::optional<cuda_fd_table> read = decode_cuda_fd_table(wire);
    if (!read) continue;
    ASSERT_EQ(read->encode(), wire);
    ++accepted;
  }
  EXPECT_GT(accepted, 0);
  EXPECT_LT(accepted, 20000);
}

TEST(CudaFdLocation, SurvivesTheWireAndNothingElseIsOne) {
  const cuda_fd_location sample{0x1122334455667788, 80};
  EXPECT_EQ(decode_cuda_fd_location(sample.encode()), sample);
  for (const cuda_fd_location& each :
       {cuda_fd_location{0, 80}, cuda_fd_location{1, 0},
        cuda_fd_location{1, cuda_fd_table::longest + 1}, cuda_fd_location{1, most}}) {
    EXPECT_FALSE(decode_cuda_fd_location(each.encode()));
  }
  for (std::size_t at = 16; at < 64; ++at) {
    std::array<std::byte, 64> wire = sample.encode();
    wire[at] = std::byte{1};
    ASSERT_FALSE(decode_cuda_fd_location(wire)) << at;
  }
}

}  // namespace
}  // namespace ucx::detail
