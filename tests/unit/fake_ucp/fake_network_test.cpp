// Deaths, forbidden calls and threads on the simulated network.
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/fake_ucp/fake_network.hpp"
#include "support/simulated/raw_pair.hpp"
#include "support/simulated/raw_peer.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

TEST(FakeNetwork, StallsASenderWhoseReceiverIsStopped) {
  fake_network network;
  {
    raw_pair pair(network);
    pair.owner.process.stop();
    std::vector<outcome*> sent;
    for (int i = 0; i < 8; ++i) {
      sent.push_back(&pair.reader.send(pair.endpoint, "", std::string(1U << 20U, 'x'),
                                       UCP_AM_SEND_FLAG_EAGER));
    }
    pair.reader.wait([] { return false; }, 1s);
    EXPECT_EQ(std::count_if(sent.begin(), sent.end(), [](auto* each) { return each->done(); }), 4);
    pair.owner.process.resume();
    ASSERT_TRUE(pair.reader.wait([&] { return pair.owner.messages.size() == 8; }));
    EXPECT_TRUE(pair.reader.wait(*sent.back()));
  }
  network.expect_clean();
}

TEST(FakeNetwork, TellsThePeersOfAKilledProcess) {
  link_options link;
  link.death_status = UCS_ERR_ENDPOINT_TIMEOUT;
  fake_network network(link);
  {
    raw_pair pair(network);
    pair.owner.process.stop();  // so that nothing is answered before it dies
    auto& reading = pair.get();
    pair.owner.process.kill();
    const auto begin = network.now();
    ASSERT_TRUE(pair.reader.wait([&] { return !pair.reader.failures.empty(); }));
    EXPECT_LT(network.now() - begin, 10ms);
    EXPECT_EQ(pair.reader.failures[0], UCS_ERR_ENDPOINT_TIMEOUT);
    EXPECT_EQ(reading.status, UCS_ERR_ENDPOINT_TIMEOUT);
    EXPECT_EQ(pair.reader.send(pair.endpoint, "", "x").status, UCS_ERR_ENDPOINT_TIMEOUT);
    EXPECT_EQ(pair.get().status, UCS_ERR_ENDPOINT_TIMEOUT);
    EXPECT_EQ(pair.owner.process.calls_after_death(), 0U);
    ucp_mem_map_params_t parameters{};
    ucp_mem_h memory = nullptr;
    EXPECT_EQ(pair.owner.api.mem_map(pair.owner.context, &parameters, &memory),
              UCS_ERR_CONNECTION_RESET);
    EXPECT_EQ(pair.owner.process.calls_after_death(), 1U);
  }
  network.expect_clean();
}

TEST(FakeNetwork, TellsNobodyWithoutErrorHandling) {
  fake_network network;
  {
    raw_peer owner(network, "owner");
    raw_peer reader(network, "reader");
    const auto endpoint = reader.connect(owner.address(), UCP_ERR_HANDLING_MODE_NONE);
    owner.process.kill();
    auto& sent = reader.send(endpoint, "", "x", UCP_AM_SEND_FLAG_RNDV);
    EXPECT_FALSE(reader.wait([&] { return sent.done(); }, 60s));
    EXPECT_TRUE(reader.failures.empty());
    sent.request = nullptr;  // it goes with the worker
  }
  network.expect_clean();
}

TEST(FakeNetwork, NoticesAReaderThatDiesInTheMiddleOfAnEmulatedGet) {
  fake_network network;
  {
    raw_pair pair(network);
    pair.get();
    pair.reader.process.kill();
  }
  EXPECT_TRUE(is_mentioned(network, "in the middle of an emulated get"));
  network.forget_violations();
  network.expect_clean();
}

TEST(FakeNetwork, NoticesABufferChangedBeforeCompletion) {
  fake_network network;
  {
    raw_pair pair(network);
    std::string bytes(100'000, 'x');
    ucp_request_param_t parameters{};
    auto* request = pair.reader.api.am_send_nbx(pair.endpoint, 7, nullptr, 0, bytes.data(),
                                                bytes.size(), &parameters);
    ASSERT_TRUE(UCS_PTR_IS_PTR(request));
    bytes[50'000] = 'y';
    ASSERT_TRUE(pair.reader.wait([&] { return pair.owner.messages.size() == 1; }));
    pair.reader.api.request_free(request);
    EXPECT_TRUE(is_mentioned(network, "am_send: the buffer changed"));
    network.forget_violations();

    std::string header = "header";
    request = pair.reader.api.am_send_nbx(pair.endpoint, 7, header.data(), header.size(),
                                          bytes.data(), bytes.size(), &parameters);
    header[0] = 'H';
    ASSERT_TRUE(pair.reader.wait([&] { return pair.owner.messages.size() == 2; }));
    pair.reader.api.request_free(request);
    EXPECT_TRUE(is_mentioned(network, "the header of a message changed"));
    network.forget_violations();
  }
  network.expect_clean();
}

TEST(FakeNetwork, NoticesMemoryThatIsGoneOrWasNeverExposed) {
  fake_network network;
  {
    raw_pair pair(network);
    auto& beyond = pair.reader.get(pair.endpoint, pair.into.emplace_back(10, ' ').data(), 10,
                                   pair.region.data(), pair.key);
    ASSERT_TRUE(pair.reader.wait(beyond));
    EXPECT_EQ(beyond.status, UCS_ERR_IO_ERROR);
    EXPECT_TRUE(is_mentioned(network, "a peer's get reached memory that is not mapped"));
    network.forget_violations();
    std::string more = "more";
    const auto memory = pair.owner.map(more.data(), more.size());
    const auto key = pair.reader.unpack(pair.endpoint, pair.owner, memory);
    EXPECT_EQ(pair.owner.api.mem_unmap(pair.owner.context, memory), UCS_OK);
    pair.reader.put(pair.endpoint, "less", 4, more.data(), key);
    pair.reader.wait([&] { return !pair.reader.failures.empty(); }, 1s);
    EXPECT_TRUE(is_mentioned(network, "a peer's put reached memory that is not mapped"));
    EXPECT_EQ(more, "more");
    pair.reader.api.rkey_destroy(key);
    network.forget_violations();
  }
  network.expect_clean();
}

TEST(FakeNetwork, NoticesStaleHandlesAndHostileBytes) {
  fake_network network;
  {
    raw_peer owner(network, "owner");
    raw_peer reader(network, "reader");
    auto address = owner.address();
    const auto endpoint = reader.connect(address);
    reader.close(endpoint);
    EXPECT_EQ(reader.send(endpoint, "", "x").status, UCS_ERR_INVALID_PARAM);
    EXPECT_TRUE(is_mentioned(network, "am_send was called with a handle that does not exist"));
    auto& sent = reader.send(reader.connect(address), "", "x", UCP_AM_SEND_FLAG_RNDV);
    reader.api.request_free(sent.request);
    reader.api.request_free(sent.request);
    sent.request = nullptr;
    EXPECT_TRUE(is_mentioned(network, "request_free of a request that does not exist"));
    address[3] ^= std::byte{1};
    ucp_ep_params_t parameters{};
    parameters.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    parameters.address = reinterpret_cast<const ucp_address_t*>(address.data());
    ucp_ep_h none = nullptr;
    EXPECT_EQ(reader.api.ep_create(reader.worker, &parameters, &none), UCS_ERR_INVALID_ADDR);
    EXPECT_TRUE(is_mentioned(network, "not an intact worker address"));
  }
  EXPECT_TRUE(is_mentioned(network, "with operations pending in mode PEER"));
  EXPECT_EQ(network.live(), live_objects{});
}

TEST(FakeNetwork, CountsWhatWasNotGivenBack) {
  fake_network network;
  raw_peer owner(network, "owner");
  const auto endpoint = owner.connect(owner.address());
  void* packed = nullptr;
  std::size_t size = 0;
  char byte = 0;
  const auto memory = owner.map(&byte, 1);
  ASSERT_EQ(owner.api.rkey_pack(owner.context, memory, &packed, &size), UCS_OK);
  const auto key = owner.unpack(endpoint, owner, memory);
  const auto left = network.live();
  EXPECT_EQ(left.contexts, 1U);
  EXPECT_EQ(left.workers, 1U);
  EXPECT_EQ(left.endpoints, 1U);
  EXPECT_EQ(left.memories, 1U);
  EXPECT_EQ(left.rkeys, 1U);
  EXPECT_EQ(left.rkey_buffers, 1U);
  owner.api.rkey_destroy(key);
  owner.api.rkey_buffer_release(packed);
  owner.close(endpoint);
  EXPECT_EQ(owner.api.mem_unmap(owner.context, memory), UCS_OK);
}

TEST(FakeNetwork, FailsATestThatMisusedUcxOrLeaked) {
  fake_network network;
  ucp_address_t* address = nullptr;
  detail::ucp_api* api = nullptr;
  {
    raw_peer reader(network, "reader");
    api = &reader.api;
    std::size_t length = 0;
    EXPECT_EQ(api->worker_get_address(reader.worker, &address, &length), UCS_OK);
  }
  EXPECT_NONFATAL_FAILURE(network.expect_clean(), "left.addresses");
  api->worker_release_address(nullptr, address);
  network.expect_clean();
  int nothing = 0;
  api->request_free(&nothing);
  EXPECT_NONFATAL_FAILURE(network.expect_clean(), "request_free of a request that does not exist");
}

TEST(FakeNetwork, CallsTheErrorHandlerBeforeOrAfterTheOperations) {
  for (const bool handler_first : {true, false}) {
    link_options link;
    link.error_handler_first = handler_first;
    fake_network network(link);
    {
      raw_pair pair(network);
      pair.owner.process.stop();
      const auto& reading = pair.get();
      pair.owner.process.kill();
      std::size_t failures = 0;
      pair.reader.on_failed = [&] {
        ++failures;
        EXPECT_EQ(reading.done(), !handler_first);
      };
      ASSERT_TRUE(pair.reader.wait([&] { return reading.done() && failures == 1; }));
    }
    network.expect_clean();
  }
}

TEST(FakeNetwork, CallsBackInsideAForcedCloseOrLater) {
  for (const bool inside : {true, false}) {
    link_options link;
    link.close_calls_back = inside;
    fake_network network(link);
    {
      raw_peer owner(network, "owner");
      raw_peer reader(network, "reader");
      const auto endpoint = reader.connect(owner.address());
      const auto& sent = reader.send(endpoint, "", "x", UCP_AM_SEND_FLAG_RNDV);
      auto& closing = reader.start_close(endpoint, UCP_EP_CLOSE_FLAG_FORCE);
      EXPECT_EQ(sent.done(), inside);
      ASSERT_TRUE(reader.wait(closing));
      EXPECT_EQ(sent.status, UCS_ERR_CANCELED);
    }
    network.expect_clean();
  }
}

TEST(FakeNetwork, CallsBackInsideTheWorkersEndOrNever) {
  for (const bool calls_back : {true, false}) {
    link_options link;
    link.destroy_calls_back = calls_back;
    fake_network network(link);
    std::optional<ucs_status_t> told;
    raw_peer owner(network, "owner");
    {
      raw_peer reader(network, "reader");
      const auto endpoint = reader.connect(owner.address(), UCP_ERR_HANDLING_MODE_NONE);
      ucp_request_param_t parameters{};
      parameters.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
      parameters.cb.send = [](void*, ucs_status_t status, void* result) {
        *static_cast<std::optional<ucs_status_t>*>(result) = status;
      };
      parameters.user_data = &told;
      std::string bytes(100'000, 'x');
      EXPECT_TRUE(UCS_PTR_IS_PTR(reader.api.am_send_nbx(endpoint, 7, nullptr, 0, bytes.data(),
                                                        bytes.size(), &parameters)));
    }
    EXPECT_EQ(told.has_value(), calls_back);
    EXPECT_EQ(network.live().requests, 0U);
    EXPECT_TRUE(network.violations().empty());
  }
}

TEST(FakeNetwork, NoticesTwoThreadsInsideOneWorker) {
  link_options link;
  link.time = time_mode::real;
  fake_network network(link);
  {
    raw_peer reader(network, "reader");
    std::atomic<bool> inside = false;
    std::atomic<bool> leave = false;
    reader.process.on_pump({});
    raw_peer owner(network, "owner");
    owner.process.on_pump({});
    const auto endpoint = owner.connect(reader.address());
    ucp_am_handler_param_t parameters{};
    parameters.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                            UCP_AM_HANDLER_PARAM_FIELD_ARG;
    parameters.id = 7;
    std::pair<std::atomic<bool>*, std::atomic<bool>*> flags{&inside, &leave};
    parameters.arg = &flags;
    parameters.cb = [](void* argument, const void*, std::size_t, void*, std::size_t,
                       const ucp_am_recv_param_t*) {
      const auto& [entered, may_leave] = *static_cast<decltype(flags)*>(argument);
      *entered = true;
      while (!*may_leave) std::this_thread::yield();
      return UCS_OK;
    };
    EXPECT_EQ(reader.api.worker_set_am_recv_handler(reader.worker, &parameters), UCS_OK);
    owner.send(endpoint, "", "x");
    std::thread other([&] {
      while (!inside) reader.progress();
    });
    while (!inside) std::this_thread::yield();
    std::size_t length = 0;
    ucp_address_t* address = nullptr;
    EXPECT_EQ(reader.api.worker_get_address(reader.worker, &address, &length), UCS_OK);
    reader.api.worker_release_address(reader.worker, address);
    leave = true;
    other.join();
    EXPECT_TRUE(is_mentioned(network, "while another thread was inside"));
    network.forget_violations();
    owner.close(endpoint);
  }
  network.expect_clean();
}

TEST(FakeNetwork, RunsOnRealTimeWithThreads) {
  link_options link;
  link.time = time_mode::real;
  fake_network network(link);
  {
    raw_pair pair(network);
    pair.owner.process.on_pump({});
    pair.reader.process.on_pump({});
    std::atomic<bool> stop = false;
    std::thread serving([&] {
      int fd = -1;
      EXPECT_EQ(pair.owner.api.worker_get_efd(pair.owner.worker, &fd), UCS_OK);
      while (!stop) {
        if (pair.owner.progress() != 0) continue;
        if (pair.owner.api.worker_arm(pair.owner.worker) == UCS_OK) {
          pair.owner.api.wait_readable(fd, -1, 1s);
        }
      }
    });
    for (int i = 0; i < 200; ++i) ASSERT_TRUE(pair.reader.wait(pair.get()));
    for (const auto& each : pair.into) EXPECT_EQ(each, "remo");
    stop = true;
    EXPECT_EQ(pair.owner.api.worker_signal(pair.owner.worker), UCS_OK);
    serving.join();
  }
  network.expect_clean();
}

}  // namespace
}  // namespace ucx::test
