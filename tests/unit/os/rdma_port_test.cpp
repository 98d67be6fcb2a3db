#include "os/rdma_port.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "support/files/temporary_directory.hpp"

namespace ucx::detail {
namespace {

void list_port(const std::filesystem::path& folder, const std::string& device,
               const std::string& port, const std::string& state) {
  const std::filesystem::path where = folder / device / "ports" / port;
  std::filesystem::create_directories(where);
  if (!state.empty()) std::ofstream(where / "state") << state << '\n';
}

TEST(RdmaPorts, AreThoseThatTheSystemListsWithTheirStates) {
  const test::temporary_directory folder;
  list_port(folder / "", "mlx5_1", "2", "1: DOWN");
  list_port(folder / "", "mlx5_1", "1", "4: ACTIVE");
  list_port(folder / "", "mlx5_0", "1", "");
  std::filesystem::create_directories(folder / "no_ports");
  const std::vector<rdma_port> found = rdma_ports((folder / "").string());
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].name, "mlx5_0:1");
  EXPECT_EQ(found[1].name, "mlx5_1:1");
  EXPECT_EQ(found[1].state, "ACTIVE");
  EXPECT_EQ(found[2].name, "mlx5_1:2");
  EXPECT_EQ(found[2].state, "DOWN");
  EXPECT_TRUE(found[0].is_usable()) << "nobody says that it is not";
  EXPECT_TRUE(found[1].is_usable());
  EXPECT_FALSE(found[2].is_usable());
}

TEST(RdmaPorts, AreNoneWhereTheSystemListsNone) {
  EXPECT_THAT(rdma_ports("/nonexistent"), testing::IsEmpty());
}

}  // namespace
}  // namespace ucx::detail
