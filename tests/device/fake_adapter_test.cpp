// Adapters that reach memory of devices: what tests of GPUDirect RMA rely on.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "cuda/cuda_driver.hpp"
#include "support/bytes/pattern.hpp"
#include "support/fake_cuda/adapter_memory.hpp"
#include "support/fake_cuda/cuda_program.hpp"
#include "support/fake_ucp/fake_network.hpp"
#include "support/simulated/raw_peer.hpp"

namespace ucx::test {
namespace {

constexpr std::uint64_t all_features = UCP_FEATURE_AM | UCP_FEATURE_RMA | UCP_FEATURE_WAKEUP;
constexpr int order_of_none = 0;
constexpr int to_owner = 100;
constexpr int illegal_address = 700;

int device_attribute_of(int which) {
  int value = -1;
  int device = 0;
  EXPECT_EQ(cuDeviceGet(&device, 0), 0);
  EXPECT_EQ(cuDeviceGetAttribute(&value, which, device), 0);
  return value;
}

TEST(FakeAdapter, WritesAreSeenAtOnceWhereTheOwnerHasAnOrder) {
  const cuda_program program;
  const auto memory = cuda_program::allocate(100);
  const auto bytes = pattern(100);
  EXPECT_EQ(device_attribute_of(118), 100);
  ASSERT_EQ(fake_cuda_adapter_write(cuda_program::address(memory), bytes.data(), 100), 0);
  EXPECT_TRUE(holds_pattern(cuda_program::content(memory)));
}

TEST(FakeAdapter, WritesWithoutAnOrderAreSeenBehindAFlush) {
  const cuda_program program(2);
  const auto memory = cuda_program::allocate(100);
  const auto bytes = pattern(100);
  fake_cuda_order_adapter_writes(order_of_none);
  EXPECT_EQ(device_attribute_of(118), order_of_none);
  ASSERT_EQ(fake_cuda_adapter_write(cuda_program::address(memory), bytes.data(), 100), 0);
  EXPECT_FALSE(holds_pattern(cuda_program::content(memory)));
  std::vector<std::byte> read(100);
  ASSERT_EQ(fake_cuda_adapter_read(read.data(), cuda_program::address(memory), 100), 0);
  EXPECT_TRUE(holds_pattern(read));
  EXPECT_EQ(cuFlushGPUDirectRDMAWrites(0, 1), 1);
  cuda_program::use(1);
  EXPECT_EQ(cuFlushGPUDirectRDMAWrites(0, to_owner), 0);
  CUctx_st* popped = nullptr;
  ASSERT_EQ(cuCtxPopCurrent_v2(&popped), 0);
  EXPECT_FALSE(holds_pattern(cuda_program::content(memory)));
  EXPECT_EQ(cuFlushGPUDirectRDMAWrites(0, to_owner), 0);
  EXPECT_TRUE(holds_pattern(cuda_program::content(memory)));
}

TEST(FakeAdapter, ReachesMemoryOfCudaMallocWithinItsBounds) {
  const cuda_program program;
  const auto memory = cuda_program::allocate(100);
  const auto managed = cuda_program::allocate_managed(100);
  std::array<std::byte, 101> bytes{};
  EXPECT_EQ(fake_cuda_adapter_reaches(cuda_program::address(memory) + 99, 1), 1);
  EXPECT_EQ(fake_cuda_adapter_read(bytes.data(), cuda_program::address(memory), 101),
            illegal_address);
  EXPECT_EQ(fake_cuda_adapter_write(cuda_program::address(managed), bytes.data(), 1),
            illegal_address);
  fake_cuda_let_adapters_reach(0);
  EXPECT_EQ(device_attribute_of(116), 0);
  EXPECT_EQ(fake_cuda_adapter_reaches(cuda_program::address(memory), 1), 0);
  EXPECT_EQ(fake_cuda_adapter_read(bytes.data(), cuda_program::address(memory), 1),
            illegal_address);
  EXPECT_EQ(cuFlushGPUDirectRDMAWrites(0, to_owner), 801);
}

TEST(FakeAdapter, LeavesFreedMemoryAloneWhenItsWritesAreFlushed) {
  const cuda_program program;
  const auto memory = cuda_program::allocate(100);
  fake_cuda_order_adapter_writes(order_of_none);
  const auto bytes = pattern(100);
  ASSERT_EQ(fake_cuda_adapter_write(cuda_program::address(memory), bytes.data(), 100), 0);
  cuda_program::free(memory);
  EXPECT_EQ(cuFlushGPUDirectRDMAWrites(0, to_owner), 0);
}

/// Hardware, and UCX that knows devices.
link_options adapters() {
  link_options made;
  made.version_minor = 21;
  made.emulated_rma = false;
  made.resources = {"rc_mlx5/mlx5_0:1", "cuda_copy/cuda"};
  return made;
}

struct device_network : fake_network {
  explicit device_network(const link_options& link = adapters()) : fake_network(link) {
    install(machine, devices);
  }
  const std::shared_ptr<adapter_memory> devices = std::make_shared<adapter_memory>();
  fake_process& machine = add_process("machine");
};

ucs_status_t map_as(ucs_memory_type_t kind, raw_peer& owner, std::span<std::byte> memory,
                    ucp_mem_h& made) {
  ucp_mem_map_params_t params{};
  params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH |
                      UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE;
  params.address = memory.data();
  params.length = memory.size();
  params.memory_type = kind;
  return owner.api.mem_map(owner.context, &params, &made);
}

ucp_mem_h map_device(raw_peer& owner, std::span<std::byte> memory) {
  ucp_mem_h made = nullptr;
  EXPECT_EQ(map_as(UCS_MEMORY_TYPE_CUDA, owner, memory, made), UCS_OK);
  ucp_mem_attr_t told{};
  told.field_mask = UCP_MEM_ATTR_FIELD_MEM_TYPE;
  EXPECT_EQ(owner.api.mem_query(made, &told), UCS_OK);
  EXPECT_EQ(told.mem_type, UCS_MEMORY_TYPE_CUDA);
  return made;
}

/// A context that has UCX refuse what it would emulate.
struct strict_peer : raw_peer {
  strict_peer(fake_network& network, const char* name, const char* emulation = "n")
      : raw_peer(network, name, all_features, UCS_THREAD_MODE_SERIALIZED,
                 {{"PROTO_ENABLE", "y"}, {"PROTO_EMULATION_ENABLE", emulation}}) {}
};

/// What becomes of a GET, or of a PUT, between memory of a device at the owner and `local`.
ucs_status_t move_device(device_network& network, bool puts, std::span<std::byte> there,
                         std::span<std::byte> local, const char* emulation = "n") {
  ucs_status_t status = UCS_OK;
  {
    strict_peer owner(network, "owner", emulation);
    strict_peer reader(network, "reader", emulation);
    const auto endpoint = reader.connect(owner.address());
    const auto memory = map_device(owner, there);
    const auto key = reader.unpack(endpoint, owner, memory);
    outcome& moved = puts ? reader.put(endpoint, local.data(), local.size(), there.data(), key)
                          : reader.get(endpoint, local.data(), local.size(), there.data(), key);
    EXPECT_TRUE(reader.wait(moved));
    EXPECT_TRUE(reader.wait(reader.flush(endpoint)));
    status = *moved.status;
    reader.api.rkey_destroy(key);
    reader.close(endpoint);
    EXPECT_EQ(owner.api.mem_unmap(owner.context, memory), UCS_OK);
  }
  network.expect_clean();
  return status;
}

TEST(FakeAdapter, MovesBytesBetweenDevicesAndTheHostByHardware) {
  const cuda_program program;
  for (const bool with_device : {false, true}) {
    const auto there = cuda_program::allocate_pattern(10'000);
    std::vector<std::byte> host(10'000);
    const auto local = with_device ? cuda_program::allocate(10'000) : std::span(host);
    device_network network;
    EXPECT_EQ(move_device(network, false, there, local), UCS_OK);
    EXPECT_TRUE(holds_pattern(with_device ? cuda_program::content(local) : host));
    const auto target = cuda_program::allocate(10'000);
    EXPECT_EQ(move_device(network, true, target, local), UCS_OK);
    EXPECT_TRUE(holds_pattern(cuda_program::content(target)));
  }
}

TEST(FakeAdapter, RefusesWhatUcxWouldEmulate) {
  const cuda_program program;
  const auto there = cuda_program::allocate_pattern(100);
  std::vector<std::byte> host(100);
  device_network network;
  network.link().emulated_rma = true;
  EXPECT_EQ(move_device(network, false, there, host), UCS_ERR_CANCELED);
  EXPECT_EQ(move_device(network, true, there, host), UCS_ERR_CANCELED);
  network.link().emulated_rma = false;
  network.devices->gets_are_emulated = true;
  EXPECT_EQ(move_device(network, false, there, host), UCS_ERR_CANCELED);
  EXPECT_EQ(move_device(network, true, there, host), UCS_OK);
  network.devices->gets_are_emulated = false;
  fake_cuda_let_adapters_reach(0);
  EXPECT_EQ(move_device(network, false, there, host), UCS_ERR_CANCELED);
}

TEST(FakeAdapter, EmulatesWhereThatIsNotForbidden) {
  const cuda_program program;
  const auto there = cuda_program::allocate_pattern(10'000);
  std::vector<std::byte> host(10'000);
  fake_cuda_let_adapters_reach(0);
  device_network network;
  EXPECT_EQ(move_device(network, false, there, host, "y"), UCS_OK);
  EXPECT_TRUE(holds_pattern(host));
}

TEST(FakeAdapter, HasNoKeyThatForbidsEmulationBefore121) {
  const cuda_program program;
  device_network network;
  network.link().version_minor = 20;
  detail::ucp_api& api = network.machine.api();
  ucp_config_t* config = nullptr;
  ASSERT_EQ(api.config_read(nullptr, nullptr, &config), UCS_OK);
  EXPECT_EQ(api.config_modify(config, "PROTO_EMULATION_ENABLE", "n"), UCS_ERR_NO_ELEM);
  api.config_release(config);
  network.expect_clean();
}

TEST(FakeAdapter, TakesMemoryThatIsNamedWrongForAViolation) {
  const cuda_program program;
  device_network network;
  {
    raw_peer owner(network, "owner");
    const auto memory = cuda_program::allocate(100);
    ucp_mem_h made = nullptr;
    EXPECT_EQ(map_as(UCS_MEMORY_TYPE_HOST, owner, memory, made), UCS_OK);
    EXPECT_EQ(network.violations().size(), 1U);
    network.forget_violations();
    EXPECT_EQ(owner.api.mem_unmap(owner.context, made), UCS_OK);
  }
  network.expect_clean();
}

TEST(FakeAdapter, IsUnknownToContextsWithoutCudaCopy) {
  const cuda_program program;
  device_network network;
  network.link().resources = {"rc_mlx5/mlx5_0:1"};
  {
    raw_peer owner(network, "owner");
    const auto memory = cuda_program::allocate(100);
    ucp_mem_h made = nullptr;
    EXPECT_EQ(map_as(UCS_MEMORY_TYPE_CUDA, owner, memory, made), UCS_ERR_INVALID_PARAM);
  }
  network.expect_clean();
}

}  // namespace
}  // namespace ucx::test
