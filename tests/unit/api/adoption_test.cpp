// Contexts and workers of UCX that somebody else has made.
#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <system_error>
#include <utility>
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
    worker taken = worker::adopt(borrowed, native, ownership::take);
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
    const worker shared =
        worker::adopt(borrowed, native, ownership::take, {.thread_mode = thread_mode::multi}, ec);
    EXPECT_EQ(ec, errc::not_supported);
    const worker nobody = worker::adopt(borrowed, nullptr, ownership::take, {}, ec);
    EXPECT_EQ(ec, errc::invalid_argument);
    EXPECT_EQ(process.count(call::worker_destroy), 0U);
    process.api().worker_destroy(native);
  }
  process.api().cleanup(other.made);
}

/// A worker of another library's that is lent, with peers of ours.
class BorrowedWorker : public testing::Test {
 protected:
  BorrowedWorker() : BorrowedWorker(simulated_pair_options()) {}
  explicit BorrowedWorker(const simulated_pair_options& options) : pair_(options) {
    std::error_code ec;
    parent_.emplace(core_access::adopt_context(process_.api(), other_.made, {}, ec));
    EXPECT_FALSE(ec);
    borrow();
  }
  ~BorrowedWorker() override {
    process_.on_pump({});
    driven_.reset();
    EXPECT_EQ(process_.count(call::worker_destroy), 0U);
    process_.api().worker_destroy(native_);
    parent_.reset();
    process_.api().cleanup(other_.made);
  }
  void borrow() {
    driven_.emplace(worker::adopt(*parent_, native_, ownership::borrow));
    process_.on_pump([this] { driven_->progress(); });
  }
  /// Only the other library drives it from now on.
  void leave_to_its_maker() {
    process_.on_pump([this] { process_.api().worker_progress(native_); });
  }

  simulated_pair pair_;
  fake_process& process_ = pair_.network.add_process("other");
  foreign other_{process_};
  ucp_worker_h native_ = other_.make_worker(UCS_THREAD_MODE_SINGLE);
  std::optional<context> parent_;
  std::optional<worker> driven_;
};

TEST_F(BorrowedWorker, ServesPeersInItsMakersRounds) {
  std::vector<std::byte> memory = pattern(30000);
  const memory_region exposed(*parent_, std::span<std::byte>(memory), access::read);
  endpoint connection(pair_.reader, driven_->address());
  connection.wait_connected();
  remote_region region(connection, exposed.descriptor(),
                       {.transfer_method = transfer_method::message});
  leave_to_its_maker();
  std::vector<std::byte> into(30000);
  region.read_at(0, into);
  EXPECT_TRUE(holds_pattern(into));
}

// The last holder of a connection goes inside UCX's callback, where nothing can be closed.
TEST_F(BorrowedWorker, EndsOperationsInItsMakersRounds) {
  for (const bool sends : {true, false}) {
    std::optional<endpoint> connection(std::in_place, *driven_, pair_.owner.address());
    const memory_region exposed =
        memory_region::allocate(pair_.owner_context, 30000, access::write);
    std::optional<remote_region> region(std::in_place, *connection, exposed.descriptor());
    const std::vector<std::byte> bytes = pattern(30000);
    if (sends) {
      connection->post_send(1, bytes, 0);
    } else {
      region->post_write_at(0, bytes);
    }
    region.reset();
    connection.reset();
    leave_to_its_maker();
    pair_.network.advance(std::chrono::milliseconds(10));
    process_.on_pump([this] { driven_->progress(); });
    EXPECT_TRUE(pair_.network.run_until([&] { return driven_->connections() == 0; }));
  }
}

TEST_F(BorrowedWorker, StaysWhenItsPeersDoNot) {
  for (int round = 0; round < 3; ++round) {
    endpoint in(pair_.reader, driven_->address());
    in.wait_connected();
    {
      endpoint out(*driven_, pair_.owner.address());
      out.send(1, pattern(100));
      const endpoint half(*driven_, pair_.owner.address(), {.wait = connect_wait::none});
      process_.on_pump({});
      driven_.reset();
    }
    leave_to_its_maker();
    pair_.network.advance(std::chrono::milliseconds(10));
    EXPECT_TRUE(in.status()) << "it was told";
    EXPECT_EQ(process_.count(call::worker_destroy), 0U);
    borrow();
  }
}

TEST_F(BorrowedWorker, IsItsMakersAfterARefusal) {
  const worker_address address = driven_->address();
  process_.on_pump({});
  driven_.reset();
  process_.faults().fail(call::worker_set_am_recv_handler, UCS_ERR_NO_MEMORY, 2);
  std::error_code ec;
  const worker none = worker::adopt(*parent_, native_, ownership::borrow, {}, ec);
  EXPECT_EQ(ec, errc::no_memory);
  leave_to_its_maker();
  const endpoint unheard(pair_.reader, address, {.wait = connect_wait::none});
  pair_.network.advance(std::chrono::milliseconds(10));
  EXPECT_EQ(unheard.state(), connection_state::connecting);
  borrow();
  endpoint(pair_.reader, address).wait_connected();
}

TEST_F(BorrowedWorker, LosesNoHandlerThatARefusalDidNotSet) {
  process_.on_pump({});
  driven_.reset();
  const std::size_t before = process_.count(call::worker_set_am_recv_handler);
  process_.faults().fail(call::worker_set_am_recv_handler, UCS_ERR_NO_MEMORY, 1);
  std::error_code ec;
  const worker none = worker::adopt(*parent_, native_, ownership::borrow, {}, ec);
  EXPECT_EQ(ec, errc::no_memory);
  EXPECT_EQ(process_.count(call::worker_set_am_recv_handler), before + 1);
  borrow();
}

TEST_F(BorrowedWorker, GoesOnWhereItIsAdoptedAgain) {
  std::error_code ec;
  const context same = core_access::adopt_context(process_.api(), other_.made, {}, ec);
  ASSERT_FALSE(ec);
  for (const context* const through : {&std::as_const(*parent_), &same}) {
    for (const ownership owner : {ownership::borrow, ownership::take}) {
      const worker none = worker::adopt(*through, native_, owner, {}, ec);
      EXPECT_EQ(ec, errc::already_exists);
    }
  }
  endpoint connection(pair_.reader, driven_->address());
  connection.wait_connected();
  connection.send(1, pattern(100));
  std::vector<std::byte> into(100);
  driven_->receive(1, into);
  EXPECT_TRUE(holds_pattern(into));
  process_.on_pump({});
  driven_.reset();
  borrow();
}

/// Connections that UCX does not drop while they have requests.
class BorrowedWorkerOfOneHost : public BorrowedWorker {
 protected:
  BorrowedWorkerOfOneHost() : BorrowedWorker(one_host()) {}
};

TEST_F(BorrowedWorkerOfOneHost, KeepsWhatItStillSendsWhenItsUserEnds) {
  std::optional<endpoint> connection(std::in_place, *driven_, pair_.owner.address());
  connection->wait_connected();
  process_.faults().delay(call::am_send, std::chrono::seconds(60), 0);
  connection->post_send(1, pattern(100), 0);
  connection.reset();
  driven_.reset();
  leave_to_its_maker();
  process_.faults().clear();
  pair_.network.advance(std::chrono::seconds(100));
  borrow();
}

}  // namespace
}  // namespace ucx::test
