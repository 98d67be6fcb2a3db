// Contexts and workers of UCX that somebody else has made.
#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <system_error>
#include <vector>

#include "support/bytes/pattern.hpp"
#include "support/simulated/simulated_pair.hpp"
#include "ucx/error.hpp"
#include "ucx/memory_region.hpp"
#include "ucx/remote_region.hpp"

namespace ucx::test {
namespace {

using detail::core_access;

/// Another library's context and worker.
struct foreign {
  explicit foreign(fake_process& process) : api(process.api()) {
    ucp_params_t params = {};
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = UCP_FEATURE_AM | UCP_FEATURE_RMA | UCP_FEATURE_WAKEUP;
    EXPECT_EQ(api.init(&params, nullptr, &made), UCS_OK);
  }
  ucp_worker_h make_worker(ucs_thread_mode_t mode) {
    ucp_worker_params_t params = {};
    params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    params.thread_mode = mode;
    ucp_worker_h worker = nullptr;
    EXPECT_EQ(api.worker_create(made, &params, &worker), UCS_OK);
    return worker;
  }

  detail::ucp_api& api;
  ucp_context_h made = nullptr;
};

TEST(Adoption, UsesAContextAndAWorkerThatWereMadeElsewhere) {
  simulated_pair pair;
  fake_process& process = pair.network.add_process("other");
  foreign other(process);
  const ucp_worker_h native = other.make_worker(UCS_THREAD_MODE_SINGLE);
  std::error_code ec;
  {
    const context borrowed = core_access::adopt_context(process.api(), other.made, {}, ec);
    ASSERT_FALSE(ec);
    EXPECT_EQ(borrowed.native_handle(), other.made);
    EXPECT_FALSE(borrowed.transports().empty());
    EXPECT_EQ(borrowed.attributes().request_size, 240U);
    EXPECT_FALSE(borrowed.attributes().supports_cuda());
    worker taken = worker::adopt(borrowed, native);
    EXPECT_EQ(taken.native_handle(), native);
    process.on_pump([&] { taken.progress(); });
    std::vector<std::byte> memory = pattern(30000);
    const memory_region exposed(borrowed, std::span<std::byte>(memory), access::read);
    {
      endpoint connection(pair.reader, taken.address());
      remote_region region(connection, exposed.descriptor());
      std::vector<std::byte> into(30000);
      region.read_at(0, into);
      EXPECT_TRUE(holds_pattern(into));
    }
    process.on_pump({});
  }
  EXPECT_EQ(process.count(call::worker_destroy), 1U) << "it was taken over";
  EXPECT_EQ(process.count(call::cleanup), 0U) << "it was borrowed";
  process.api().cleanup(other.made);
}

TEST(Adoption, MayTakeTheContextToo) {
  simulated_pair pair;
  fake_process& process = pair.network.add_process("other");
  const foreign other(process);
  std::error_code ec;
  {
    const context taken =
        core_access::adopt_context(process.api(), other.made, {.owner = ownership::take}, ec);
    EXPECT_FALSE(ec);
  }
  EXPECT_EQ(process.count(call::cleanup), 1U);
}

TEST(Adoption, LeavesToItsMakerWhatItRefuses) {
  simulated_pair pair;
  fake_process& process = pair.network.add_process("other");
  foreign other(process);
  std::error_code ec;
  const context none = core_access::adopt_context(process.api(), nullptr, {}, ec);
  EXPECT_EQ(ec, errc::invalid_argument);
  process.faults().fail(call::context_query, UCS_ERR_UNSUPPORTED);
  const context failed =
      core_access::adopt_context(process.api(), other.made, {.owner = ownership::take}, ec);
  EXPECT_EQ(ec, errc::not_supported);
  EXPECT_EQ(process.count(call::cleanup), 0U);
  {
    const context borrowed = core_access::adopt_context(process.api(), other.made, {}, ec);
    const ucp_worker_h native = other.make_worker(UCS_THREAD_MODE_SINGLE);
    const worker shared = worker::adopt(borrowed, native, {.thread_mode = thread_mode::multi}, ec);
    EXPECT_EQ(ec, errc::not_supported);
    const worker nobody = worker::adopt(borrowed, nullptr, {}, ec);
    EXPECT_EQ(ec, errc::invalid_argument);
    EXPECT_EQ(process.count(call::worker_destroy), 0U);
    process.api().worker_destroy(native);
  }
  process.api().cleanup(other.made);
}

}  // namespace
}  // namespace ucx::test
