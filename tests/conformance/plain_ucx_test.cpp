// A side that has UCX alone, as another library of the program would use it: its memory is a
// region here, and a region of this library is memory there. In one process; tests/process has two.
#include <gtest/gtest.h>
#include <ucp/api/ucp.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "support/bytes/pattern.hpp"
#include "support/transports/connected_pair.hpp"
#include "support/transports/foreign_ucx.hpp"
#include "support/transports/network.hpp"
#include "ucx/context.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/error.hpp"
#include "ucx/memory_region.hpp"
#include "ucx/remote_descriptor.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/stream.hpp"
#include "ucx/worker.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t exposed_size = 100'000;
/// UCX ends a process whose segments are shorter than what this library sends to it over TCP.
constexpr std::size_t fits_any_segment = 4000;

context_options plain_options(route over) {
  context_options made = context_options_for(over);
  made.features = feature::rma | feature::wakeup;
  return made;
}

void require(ucs_status_t status) {
  if (status != UCS_OK) throw std::runtime_error(ucs_status_string(status));
}

/// UCX's own objects, and a thread that drives them while `serve()`'s result lives.
class ucx_alone {
 public:
  explicit ucx_alone(route over)
      : context_(make_foreign_context(plain_options(over))),
        worker_(make_foreign_worker(context_, foreign_threads::any)) {}
  ~ucx_alone() {
    if (memory_ != nullptr) ucp_mem_unmap(context_, memory_);
    give_back(worker_);
    give_back(context_);
  }
  ucx_alone(const ucx_alone&) = delete;
  ucx_alone& operator=(const ucx_alone&) = delete;

  /// Exposes memory that UCX allocates, and returns what a reader has to be told.
  remote_descriptor expose() {
    ucp_mem_map_params_t wanted = {};
    wanted.field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS;
    wanted.length = exposed_size;
    wanted.flags = UCP_MEM_MAP_ALLOCATE;
    require(ucp_mem_map(context_, &wanted, &memory_));
    void* key = nullptr;
    std::size_t length = 0;
    require(ucp_rkey_pack(context_, memory_, &key, &length));
    const std::vector<std::byte> bytes(static_cast<std::byte*>(key),
                                       static_cast<std::byte*>(key) + length);
    ucp_rkey_buffer_release(key);
    return remote_descriptor::of_key(reinterpret_cast<std::uintptr_t>(memory().data()),
                                     exposed_size, bytes, access::read_write);
  }
  std::span<std::byte> memory() const {
    ucp_mem_attr_t told = {};
    told.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS;
    require(ucp_mem_query(memory_, &told));
    return {static_cast<std::byte*>(told.address), exposed_size};
  }
  worker_address address() const {
    ucp_address_t* bytes = nullptr;
    std::size_t length = 0;
    require(ucp_worker_get_address(worker_, &bytes, &length));
    const auto made =
        worker_address::from_native({reinterpret_cast<const std::byte*>(bytes), length});
    ucp_worker_release_address(worker_, bytes);
    return made;
  }
  std::jthread serve() {
    return std::jthread([this](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        if (ucp_worker_progress(worker_) == 0) std::this_thread::yield();
      }
    });
  }

  /// Makes an endpoint, which goes with the worker.
  ucp_ep_h connect(const worker_address& to) const {
    ucp_ep_params_t params = {};
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    params.address = reinterpret_cast<const ucp_address_t*>(to.native().data());
    ucp_ep_h made = nullptr;
    require(ucp_ep_create(worker_, &params, &made));
    return made;
  }
  /// Ends what UCX has begun, by rounds of this thread's.
  ucs_status_t end_of(ucs_status_ptr_t begun) const {
    if (!UCS_PTR_IS_PTR(begun)) return UCS_PTR_RAW_STATUS(begun);
    const auto until = std::chrono::steady_clock::now() + 40s;
    ucs_status_t now = ucp_request_check_status(begun);
    while (now == UCS_INPROGRESS && std::chrono::steady_clock::now() < until) {
      ucp_worker_progress(worker_);
      now = ucp_request_check_status(begun);
    }
    ucp_request_free(begun);
    return now;
  }

 private:
  ucp_context* context_;
  ucp_worker* worker_;
  ucp_mem_h memory_ = nullptr;
};

class ConformanceG : public testing::TestWithParam<route> {
 protected:
  bool over_tcp() const { return GetParam() == route::tcp_by_address; }
};

TEST_P(ConformanceG, G1_MemoryOfUcxAloneIsARegion) {
  ucx_alone owner(GetParam());
  const remote_descriptor memory = owner.expose();
  fill_pattern(owner.memory());
  context_options with_messages = plain_options(GetParam());
  with_messages.features = with_messages.features | feature::am;
  const context parent(with_messages);
  const worker driven(parent);
  std::jthread serving = owner.serve();
  {
    endpoint connection(driven, owner.address(), {.plain_peer = true});
    connection.wait_connected();
    std::error_code ec;
    const remote_region untrusted(connection, memory, {}, ec);
    const bool emulated = over_tcp() && !goes_over_verbs();
    EXPECT_EQ(ec, emulated ? make_error_code(errc::not_supported) : std::error_code());
    remote_region region(connection, memory, {.trusted_peer = true});
    EXPECT_EQ(region.transfer_method(), transfer_method::rma);
    EXPECT_NE(region.native_key(), nullptr);
    std::vector<std::byte> into(exposed_size);
    region.read_at(0, into);
    EXPECT_TRUE(holds_pattern(into));
    region.write_at(10, pattern(50'000, 2));
    region.flush();
    region.read_at(0, into);
    EXPECT_TRUE(holds_pattern(std::span(into).first(10)));
    EXPECT_TRUE(holds_pattern(std::span(into).subspan(10, 50'000), 2));
    region.notify(1, {}, ec);
    EXPECT_EQ(ec, errc::not_supported);
    ucx::istream in(region);
    in.seekg(10);
    EXPECT_EQ(in.get(), std::to_integer<int>(pattern_byte(0, 2)));
  }
  serving = {};  // ends and joins it
  EXPECT_TRUE(holds_pattern(owner.memory().subspan(10, 50'000), 2));
}

TEST_P(ConformanceG, G2_ARegionIsMemoryForUcxAlone) {
  const context parent(plain_options(GetParam()));
  worker owner(parent, {.progress = progress_mode::sleeping_thread});
  memory_region owned = memory_region::allocate(parent, exposed_size, access::read_write);
  fill_pattern(owned.bytes());
  const remote_descriptor told = owned.descriptor();
  const std::size_t size = over_tcp() ? fits_any_segment : exposed_size;
  {
    const ucx_alone user(GetParam());
    ucp_ep_h const connection = user.connect(owner.address());
    ucp_rkey_h key = nullptr;
    ASSERT_EQ(ucp_ep_rkey_unpack(connection, told.remote_key.data(), &key), UCS_OK);
    std::vector<std::byte> bytes(size);
    const ucp_request_param_t plain = {};
    EXPECT_EQ(user.end_of(ucp_get_nbx(connection, bytes.data(), size, told.address, key, &plain)),
              UCS_OK);
    EXPECT_TRUE(holds_pattern(bytes));
    fill_pattern(bytes, 3);
    EXPECT_EQ(user.end_of(ucp_put_nbx(connection, bytes.data(), size, told.address, key, &plain)),
              UCS_OK);
    EXPECT_EQ(user.end_of(ucp_ep_flush_nbx(connection, &plain)), UCS_OK);
    ucp_rkey_destroy(key);
  }
  owner.attributes();  // behind the owner's round, for ThreadSanitizer
  EXPECT_TRUE(holds_pattern(owned.bytes().first(size), 3));
}

INSTANTIATE_TEST_SUITE_P(Over, ConformanceG,
                         testing::Values(route::tcp_by_address, route::shared_memory),
                         [](const auto& instance) { return to_string(instance.param); });

}  // namespace
}  // namespace ucx::test
