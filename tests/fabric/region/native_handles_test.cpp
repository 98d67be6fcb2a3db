// UCX's handles of regions and connections, used in UCX's own calls, and registrations of the
// program's.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <ucp/api/ucp.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "support/bytes/pattern.hpp"
#include "support/transports/connected_pair.hpp"
#include "support/transports/network.hpp"
#include "ucx/context.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/error.hpp"
#include "ucx/listener.hpp"
#include "ucx/memory_region.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/socket_address.hpp"
#include "ucx/worker.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t handled_size = 100'000;

pair_options one_host_pair() { return {route::shared_memory}; }

/// Where UCX says that the memory is.
ucp_mem_attr_t asked_of(ucp_mem* registered) {
  ucp_mem_attr_t told = {};
  told.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS | UCP_MEM_ATTR_FIELD_LENGTH;
  EXPECT_EQ(ucp_mem_query(registered, &told), UCS_OK);
  return told;
}

/// Ends what UCX has begun, by rounds of this thread's.
ucs_status_t wait_for(connected_pair& pair, ucs_status_ptr_t begun) {
  if (!UCS_PTR_IS_PTR(begun)) return UCS_PTR_RAW_STATUS(begun);
  const auto is_over = [&] { return ucp_request_check_status(begun) != UCS_INPROGRESS; };
  EXPECT_TRUE(pair.drive_until(is_over));
  const ucs_status_t ended = ucp_request_check_status(begun);
  ucp_request_free(begun);
  return ended;
}

TEST(NativeHandles, OfRegionsServeUcxsOwnCalls) {
  connected_pair pair(one_host_pair());
  memory_region owned = pair.allocate(handled_size);
  fill_pattern(owned.bytes());
  remote_region region(*pair.connection, owned.descriptor());
  ASSERT_NE(region.native_key(), nullptr);
  memory_region into = memory_region::allocate(pair.reader_context(), handled_size, access::read);
  ASSERT_NE(into.native_handle(), nullptr);
  ucp_request_param_t params = {};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_MEMH;
  params.memh = into.native_handle();
  EXPECT_EQ(wait_for(pair, ucp_get_nbx(pair.connection->native_handle(), into.bytes().data(),
                                       handled_size, owned.descriptor().address,
                                       region.native_key(), &params)),
            UCS_OK);
  EXPECT_TRUE(holds_pattern(into.bytes()));
}

/// Allocated memory, and the program's own: UCX takes the registration with its calls.
TEST(NativeHandles, OfMemoryServeGetsAndPuts) {
  connected_pair pair(one_host_pair());
  memory_region owned = pair.allocate(handled_size);
  const remote_region region(*pair.connection, owned.descriptor());
  std::vector<std::byte> mine(handled_size);
  const memory_region registered[] = {
      memory_region::allocate(pair.reader_context(), handled_size, access::read),
      memory_region(pair.reader_context(), std::span(mine), access::read)};
  ucp_ep* const connection = pair.connection->native_handle();
  const std::uint64_t there = owned.descriptor().address;
  for (const memory_region& here : registered) {
    ASSERT_NE(here.native_handle(), nullptr);
    ucp_request_param_t params = {};
    params.op_attr_mask = UCP_OP_ATTR_FIELD_MEMH;
    params.memh = here.native_handle();
    const std::uint64_t seed = &here == registered ? 3 : 4;
    fill_pattern(here.bytes(), seed);
    EXPECT_EQ(wait_for(pair, ucp_put_nbx(connection, here.bytes().data(), handled_size, there,
                                         region.native_key(), &params)),
              UCS_OK);
    const ucp_request_param_t none = {};
    EXPECT_EQ(wait_for(pair, ucp_ep_flush_nbx(connection, &none)), UCS_OK);
    EXPECT_TRUE(holds_pattern(owned.bytes(), seed));
    std::ranges::fill(here.bytes(), std::byte{0});
    EXPECT_EQ(wait_for(pair, ucp_get_nbx(connection, here.bytes().data(), handled_size, there,
                                         region.native_key(), &params)),
              UCS_OK);
    EXPECT_TRUE(holds_pattern(here.bytes(), seed));
  }
}

TEST(NativeHandles, OfMemoryOutliveWhatItWasMadeFrom) {
  std::optional<context> parent(context_options_for(route::shared_memory));
  std::vector<std::byte> bytes(handled_size);
  memory_region exposed(*parent, std::span(bytes), access::read);
  parent.reset();
  const ucp_mem_attr_t told = asked_of(exposed.native_handle());
  // UCX may register whole pages.
  EXPECT_LE(told.address, bytes.data());
  EXPECT_GE(told.length, handled_size);
  exposed.close();
  EXPECT_EQ(exposed.native_handle(), nullptr);
  EXPECT_EQ(memory_region(std::move(exposed)).native_handle(), nullptr);
}

TEST(NativeHandles, OfKeysOutliveOtherHandlesOfTheConnection) {
  connected_pair pair(one_host_pair());
  memory_region owned = pair.allocate(handled_size);
  fill_pattern(owned.bytes());
  std::optional<remote_region> first(std::in_place, *pair.connection, owned.descriptor());
  const remote_region second = first->share();
  ucp_ep* const connection = pair.connection->native_handle();
  first.reset();
  pair.connection.reset();
  std::vector<std::byte> into(handled_size);
  const ucp_request_param_t params = {};
  EXPECT_EQ(wait_for(pair, ucp_get_nbx(connection, into.data(), handled_size,
                                       owned.descriptor().address, second.native_key(), &params)),
            UCS_OK);
  EXPECT_TRUE(holds_pattern(into));
}

TEST(NativeHandles, OfParentsOutliveTheObjectsOfThese) {
  std::optional<context> parent(context_options_for(route::tcp_by_listener));
  const worker owner(*parent, {.progress = progress_mode::sleeping_thread});
  const listener door(owner, any_port_of_network());
  std::optional<worker> reader(std::in_place, *parent);
  const endpoint connection(*reader, door.address(), {.connect_timeout = 60s});
  ucp_context* const of_context = parent->native_handle();
  ucp_worker* const of_worker = reader->native_handle();
  parent.reset();
  reader.reset();
  ucp_context_attr_t context_told = {};
  context_told.field_mask = UCP_ATTR_FIELD_REQUEST_SIZE;
  EXPECT_EQ(ucp_context_query(of_context, &context_told), UCS_OK);
  EXPECT_GT(context_told.request_size, 0U);
  ucp_worker_attr_t worker_told = {};
  worker_told.field_mask = UCP_WORKER_ATTR_FIELD_MAX_AM_HEADER;
  EXPECT_EQ(ucp_worker_query(of_worker, &worker_told), UCS_OK);
  EXPECT_GE(worker_told.max_am_header, connection.max_header_size());
  ucp_ep_attr_t told = {};
  told.field_mask = UCP_EP_ATTR_FIELD_REMOTE_SOCKADDR;
  ASSERT_EQ(ucp_ep_query(connection.native_handle(), &told), UCS_OK);
  EXPECT_EQ(socket_address::from_native(reinterpret_cast<const ::sockaddr*>(&told.remote_sockaddr),
                                        sizeof told.remote_sockaddr),
            door.address());
}

TEST(NativeHandles, AreNullWhereUcxHasNothing) {
  context_options messages = context_options_for(route::tcp_by_address);
  messages.features = feature::am | feature::wakeup;
  const context parent(messages);
  std::vector<std::byte> bytes(handled_size);
  EXPECT_EQ(memory_region(parent, std::span(bytes), access::read).native_handle(), nullptr);
  connected_pair pair;
  const memory_region owned = pair.allocate(handled_size);
  const remote_region region(*pair.connection, owned.descriptor(),
                             {.transfer_method = transfer_method::message});
  EXPECT_EQ(region.native_key(), nullptr);
}

/// Memory that the program registers with UCX itself.
class registered_memory {
 public:
  explicit registered_memory(const context& with) : with_(with.native_handle()) {
    ucp_mem_map_params_t wanted = {};
    wanted.field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS;
    wanted.length = handled_size;
    wanted.flags = UCP_MEM_MAP_ALLOCATE;
    EXPECT_EQ(ucp_mem_map(with_, &wanted, &handle_), UCS_OK);
    fill_pattern(bytes());
  }
  ~registered_memory() { EXPECT_EQ(ucp_mem_unmap(with_, handle_), UCS_OK); }
  registered_memory(const registered_memory&) = delete;
  registered_memory& operator=(const registered_memory&) = delete;

  ucp_mem* handle() const noexcept { return handle_; }
  std::span<std::byte> bytes() const {
    const ucp_mem_attr_t told = asked_of(handle_);
    return {static_cast<std::byte*>(told.address), told.length};
  }

 private:
  ucp_context* with_;
  ucp_mem* handle_ = nullptr;
};

TEST(AdoptedMemory, IsARegionAndStaysTheProgramsOwn) {
  connected_pair pair(one_host_pair());
  registered_memory mine(*pair.owner_context);
  {
    const memory_region exposed =
        memory_region::adopt(*pair.owner_context, mine.handle(), access::read_write);
    EXPECT_EQ(exposed.native_handle(), mine.handle());
    EXPECT_EQ(exposed.bytes().data(), mine.bytes().data());
    EXPECT_EQ(exposed.size(), mine.bytes().size());
    remote_region region(*pair.connection, exposed.descriptor());
    std::vector<std::byte> into(handled_size);
    region.read_at(0, into);
    EXPECT_TRUE(holds_pattern(into));
    region.write_at(0, pattern(100, 9));
    region.flush();
  }
  EXPECT_TRUE(holds_pattern(mine.bytes().first(100), 9)) << "UCX has it still";
}

TEST(AdoptedMemory, ThatIsNoneIsRefused) {
  connected_pair pair;
  std::error_code ec;
  const memory_region none = memory_region::adopt(*pair.owner_context, nullptr, access::read, ec);
  EXPECT_EQ(ec, errc::invalid_argument);
  context_options messages = context_options_for(route::tcp_by_address);
  messages.features = feature::am | feature::wakeup;
  const context parent(messages);
  const registered_memory mine(*pair.owner_context);
  const memory_region refused = memory_region::adopt(parent, mine.handle(), access::read, ec);
  EXPECT_EQ(ec, errc::feature_disabled);
}

}  // namespace
}  // namespace ucx::test
