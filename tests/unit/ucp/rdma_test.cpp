// Which of UCX's transports are RDMA hardware, and which of these read and write memory.
#include "ucp/rdma.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace ucx::detail {
namespace {

TEST(Rdma, IsToldByTheTransport) {
  for (const char* lane :
       {"rc_verbs/rxe0:1", "rc_mlx5/mlx5_0:1", "dc_mlx5/mlx5_0:2", "ud_verbs/rxe0:1",
        "ud_mlx5/mlx5_0:1", "gga_mlx5/mlx5_0:1", "srd/rdmap0s6:1"}) {
    EXPECT_TRUE(is_rdma(lane)) << lane;
  }
  for (const char* lane : {"tcp/eth0", "tcp/rc_0", "self/memory0", "posix/memory", "cma/memory",
                           "cuda_ipc/cuda", "srdx/a:1", ""}) {
    EXPECT_FALSE(is_rdma(lane)) << lane;
    EXPECT_FALSE(has_rma(lane)) << lane;
  }
}

TEST(Rdma, ReadsAndWritesMemoryByConnectedTransportsOnly) {
  for (const char* lane :
       {"rc_verbs/rxe0:1", "rc_mlx5/mlx5_0:1", "dc_mlx5/mlx5_0:2", "gga_mlx5/mlx5_0:1"}) {
    EXPECT_TRUE(has_rma(lane)) << lane;
  }
  for (const char* lane : {"ud_verbs/rxe0:1", "ud_mlx5/mlx5_0:1", "srd/rdmap0s6:1"}) {
    EXPECT_FALSE(has_rma(lane)) << lane;
  }
}

TEST(Rdma, OfOneLaneIsEnough) {
  using lanes = std::vector<std::string>;
  EXPECT_TRUE(any_has_rma(lanes{"tcp/eth0", "ud_mlx5/mlx5_0:1", "rc_mlx5/mlx5_0:1"}));
  EXPECT_FALSE(any_has_rma(lanes{"tcp/eth0", "ud_mlx5/mlx5_0:1"}));
  EXPECT_TRUE(any_is_rdma(lanes{"tcp/eth0", "ud_mlx5/mlx5_0:1"}));
  EXPECT_FALSE(any_has_rma(lanes{}));
}

TEST(Rdma, SaysWhyThereIsNoRma) {
  using lanes = std::vector<std::string>;
  EXPECT_EQ(why_no_rma(lanes{"tcp/eth0", "ud_verbs/rxe0:1"}, lanes{"rc_verbs/rxe0:1"},
                       rdma_of_peer::present),
            "the hardware of ud_verbs/rxe0:1 carries messages only");
  const lanes ours{"tcp/eth0", "rc_verbs/rxe0:1"};
  EXPECT_EQ(why_no_rma(lanes{"tcp/eth0"}, ours, rdma_of_peer::unknown),
            "RDMA hardware of this side is not used (rc_verbs/rxe0:1): the peer has none, or none "
            "that UCX reaches, as on another network or with another version of RoCE");
  EXPECT_EQ(why_no_rma(lanes{"tcp/eth0"}, ours, rdma_of_peer::present),
            "RDMA hardware of this side is not used (rc_verbs/rxe0:1): the peer has some, too, but "
            "none that UCX reaches, as on another network or with another version of RoCE "
            "(UCX_IB_GID_INDEX)");
  EXPECT_EQ(why_no_rma(lanes{"tcp/eth0"}, lanes{"tcp/eth0"}, rdma_of_peer::unknown),
            "this side has no RDMA hardware that it may use");
}

}  // namespace
}  // namespace ucx::detail
