// What is said where a connection over RDMA hardware is not made, or is lost.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "support/basics/mentions.hpp"
#include "support/simulated/simulated_address.hpp"
#include "support/simulated/simulated_pair.hpp"
#include "ucx/error.hpp"
#include "ucx/listener.hpp"
#include "ucx/memory_region.hpp"
#include "ucx/remote_descriptor.hpp"
#include "ucx/remote_region.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

simulated_pair_options with_hardware() {
  simulated_pair_options options;
  options.link.resources = {"self/memory0", "tcp/eth0", "rc_mlx5/mlx5_0:1", "ud_mlx5/mlx5_0:1"};
  options.link.rdma_ports = {{"mlx5_0:1", "ACTIVE"}};
  return options;
}

/// Returns what is said of a connection that UCX refuses to make with `status`.
std::string text_of(ucs_status_t status, const simulated_pair_options& options) {
  simulated_pair pair(options);
  const listener door(pair.owner, any_port);
  pair.reader_process.faults().fail(call::ep_create, status);
  try {
    const endpoint made(pair.reader, door.address());
    return {};
  } catch (const ucx::error& failed) {
    return failed.what();
  }
}

TEST(RdmaConnection, SaysWhatMayBeLackingWhereUcxMakesNone) {
  for (const ucs_status_t status : {UCS_ERR_IO_ERROR, UCS_ERR_NO_MEMORY, UCS_ERR_NO_RESOURCE}) {
    const std::string text = text_of(status, with_hardware());
    EXPECT_TRUE(mentions(text, "rc_mlx5/mlx5_0:1,ud_mlx5/mlx5_0:1 may have no queue pair left"))
        << text;
    EXPECT_TRUE(mentions(text, "`rdma resource`")) << text;
    EXPECT_FALSE(mentions(text, "lock")) << "there is enough of that: " << text;
  }
  const std::string reset = text_of(UCS_ERR_CONNECTION_RESET, with_hardware());
  EXPECT_FALSE(mentions(reset, "queue pair")) << reset;
  const std::string without = text_of(UCS_ERR_IO_ERROR, {});
  EXPECT_FALSE(without.empty());
  EXPECT_FALSE(mentions(without, "queue pair")) << without;
}

TEST(RdmaConnection, SaysWhyThePeersHardwareIsNotReached) {
  simulated_pair_options options = with_hardware();
  const std::string with_tcp = text_of(UCS_ERR_UNREACHABLE, options);
  EXPECT_TRUE(mentions(with_tcp, "another version of RoCE")) << with_tcp;
  EXPECT_FALSE(mentions(with_tcp, "allow tcp")) << with_tcp;
  options.link.resources = {"self/memory0", "rc_mlx5/mlx5_0:1"};
  const std::string at_once = text_of(UCS_ERR_UNREACHABLE, options);
  EXPECT_TRUE(mentions(at_once, "another version of RoCE (UCX_IB_GID_INDEX)")) << at_once;
  EXPECT_TRUE(mentions(at_once, "another partition (UCX_IB_PKEY)")) << at_once;
  EXPECT_TRUE(mentions(at_once, "allow tcp")) << at_once;
  // By socket UCX finds out later.
  options.link.refused_status = UCS_ERR_UNREACHABLE;
  simulated_pair pair(options);
  std::string later;
  try {
    const endpoint made(pair.reader, socket_address("127.0.0.1:9"));
  } catch (const ucx::error& failed) {
    later = failed.what();
  }
  EXPECT_TRUE(mentions(later, "another version of RoCE")) << later;
}

TEST(RdmaConnection, ThatIsNotMadeHasTheCauseThatTheSystemShows) {
  simulated_pair_options gone = with_hardware();
  gone.link.rdma_ports = {};
  for (const ucs_status_t status : {UCS_ERR_IO_ERROR, UCS_ERR_UNREACHABLE}) {
    const std::string text = text_of(status, gone);
    EXPECT_TRUE(mentions(text, "; mlx5_0:1 is there no more")) << text;
    EXPECT_FALSE(mentions(text, "queue pair")) << text;
    EXPECT_FALSE(mentions(text, "RoCE")) << text;
  }
  simulated_pair pair(with_hardware());
  const listener door(pair.owner, any_port);
  pair.network.link().lockable = 64U << 10U;  // others have locked the rest
  pair.reader_process.faults().fail(call::ep_create, UCS_ERR_NO_MEMORY);
  std::string text;
  try {
    const endpoint made(pair.reader, door.address());
  } catch (const ucx::error& failed) {
    text = failed.what();
  }
  EXPECT_TRUE(mentions(text, "too little memory to lock (")) << text;
  EXPECT_TRUE(mentions(text, "ulimit -l unlimited")) << text;
}

TEST(RdmaConnection, IsToldOfInTheServersLogWhereItIsNotMade) {
  simulated_pair_options options = with_hardware();
  std::vector<std::string> warnings;
  options.owner_context.log.level = log_level::warning;
  options.owner_context.log.sink = [&](log_level, std::string_view line) {
    if (mentions(std::string(line), "no connection with")) warnings.emplace_back(line);
  };
  simulated_pair pair(options);
  const listener door(pair.owner, any_port);
  pair.owner_process.faults().fail(call::ep_create, UCS_ERR_IO_ERROR);
  std::error_code ec;
  const endpoint made(pair.reader, door.address(), {}, ec);
  EXPECT_TRUE(ec);
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_TRUE(mentions(warnings[0], "may have no queue pair left")) << warnings[0];
}

/// Returns the lines of the reader's log about a connection over these lanes.
std::vector<std::string> lines_of(simulated_pair_options options,
                                  const std::vector<std::string>& lanes) {
  std::vector<std::string> lines;
  options.link.lanes = lanes;
  options.reader_context.log.level = log_level::info;
  options.reader_context.log.sink = [&](log_level level, std::string_view line) {
    if (line.find("established") == line.npos) return;
    lines.push_back(std::string(to_string(level)).append(" ").append(line));
  };
  simulated_pair pair(options);
  endpoint made = pair.connect();
  made.wait_connected();
  EXPECT_EQ(made.report().native_rma, lanes != std::vector<std::string>{"tcp/eth0"});
  return lines;
}

TEST(RdmaConnection, WarnsThatItFallsBackWhereBothHaveHardware) {
  simulated_pair_options options = with_hardware();
  const std::vector<std::string> tcp{"tcp/eth0"};
  const std::vector<std::string> both = lines_of(options, tcp);
  ASSERT_EQ(both.size(), 1U);
  EXPECT_TRUE(mentions(both[0], "warning ")) << both[0];
  EXPECT_TRUE(mentions(both[0],
                       "RDMA hardware of this side is not used (rc_mlx5/mlx5_0:1): the "
                       "peer has some, too, but none that UCX reaches"))
      << both[0];
  const std::vector<std::string> used = lines_of(options, {"tcp/eth0", "rc_mlx5/mlx5_0:1"});
  ASSERT_EQ(used.size(), 1U);
  EXPECT_TRUE(mentions(used[0], "info ")) << used[0];
  EXPECT_FALSE(mentions(used[0], "not used")) << used[0];
  options.owner_context.transports = {"tcp", "self"};
  const std::vector<std::string> one = lines_of(options, tcp);
  ASSERT_EQ(one.size(), 1U);
  EXPECT_TRUE(mentions(one[0], "info ")) << "nothing is wrong with it: " << one[0];
  EXPECT_TRUE(mentions(one[0], "the peer has none, or none that UCX reaches")) << one[0];
}

/// Returns what is said of a connection whose peer is lost, with these ports on this side.
std::string text_of_loss(const simulated_pair_options& options,
                         const std::vector<detail::rdma_port>& left) {
  simulated_pair pair(options);
  std::string text;
  const listener door(pair.owner, any_port);
  endpoint_options wanted;
  wanted.events.on_closed = [&](const connection_end& end) { text = end.error_message; };
  const endpoint made(pair.reader, door.address(), std::move(wanted));
  pair.network.link().rdma_ports = left;
  pair.owner_process.kill();
  pair.network.advance(1s);
  pair.reader.progress();
  pair.reader.progress();
  return text;
}

/// Its owner tells only peers that opened the region by their connection of the end.
TEST(RdmaConnection, ThatUsesTheKeyOfAClosedRegionFails) {
  simulated_pair_options options = with_hardware();
  options.link.emulated_rma = false;
  simulated_pair pair(options);
  std::vector<std::byte> memory(4096);
  memory_region owned(pair.owner_context, std::span(memory), access::read_write);
  const remote_descriptor told = owned.descriptor();
  endpoint made(pair.reader, pair.owner.address());
  made.wait_connected();
  remote_region region(
      made, remote_descriptor::of_key(told.address, told.size, told.remote_key, told.granted));
  std::vector<std::byte> into(8);
  region.read_at(0, into);
  owned.close();
  std::error_code ec;
  region.read_at(0, into, {}, ec);
  EXPECT_EQ(ec, errc::connection_reset);
}

/// A worker has queue pairs of its own.
TEST(RdmaConnection, SaysWhatMayBeLackingWhereUcxMakesNoWorker) {
  const auto text_of_worker = [](ucs_status_t status, const std::vector<detail::rdma_port>& ports) {
    simulated_pair pair(with_hardware());
    pair.network.link().rdma_ports = ports;
    pair.reader_process.faults().fail(call::worker_create, status);
    try {
      const worker none(pair.reader_context);
      return std::string();
    } catch (const ucx::error& failed) {
      return std::string(failed.what());
    }
  };
  const std::vector<detail::rdma_port> there = with_hardware().link.rdma_ports;
  for (const ucs_status_t status : {UCS_ERR_NO_RESOURCE, UCS_ERR_IO_ERROR, UCS_ERR_NO_DEVICE}) {
    const std::string lack = text_of_worker(status, there);
    EXPECT_TRUE(mentions(lack, "may have no queue pair left")) << lack;
    const std::string gone = text_of_worker(status, {});
    EXPECT_TRUE(mentions(gone, "mlx5_0:1 is there no more")) << gone;
  }
  const std::string other = text_of_worker(UCS_ERR_UNSUPPORTED, there);
  EXPECT_FALSE(mentions(other, "queue pair")) << other;
}

TEST(RdmaConnection, NamesTheHardwareThatIsGone) {
  const simulated_pair_options options = with_hardware();
  const std::string there = text_of_loss(options, options.link.rdma_ports);
  EXPECT_TRUE(mentions(there, "UCX: ")) << there;
  EXPECT_TRUE(mentions(there, "; over rc_mlx5/mlx5_0:1,ud_mlx5/mlx5_0:1")) << there;
  EXPECT_FALSE(mentions(there, "no more")) << there;
  EXPECT_TRUE(mentions(there, "the peer has ended, or has taken back memory")) << there;
  EXPECT_FALSE(mentions(there, "MTU")) << there;
  simulated_pair_options silent = options;
  silent.link.death_status = UCS_ERR_ENDPOINT_TIMEOUT;
  const std::string timeout = text_of_loss(silent, options.link.rdma_ports);
  EXPECT_TRUE(mentions(timeout, "the way to it may be down, or pass shorter packets")) << timeout;
  EXPECT_TRUE(mentions(timeout, "UCX_RC_PATH_MTU")) << timeout;
  const std::string both = text_of_loss(silent, {});
  EXPECT_FALSE(mentions(both, "MTU")) << "the device is gone: " << both;
  const std::string gone = text_of_loss(options, {{"mlx5_0:2", "ACTIVE"}});
  EXPECT_TRUE(mentions(gone, "mlx5_0:1 is there no more, and a new context does without it"))
      << gone;
  simulated_pair_options tcp = options;
  tcp.link.lanes = {"tcp/eth0"};
  const std::string other = text_of_loss(tcp, {});
  EXPECT_TRUE(mentions(other, "UCX: ")) << other;
  EXPECT_FALSE(mentions(other, "over")) << "its hardware had no part in it: " << other;
}

}  // namespace
}  // namespace ucx::test
