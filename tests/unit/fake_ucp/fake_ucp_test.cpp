// The simulated UCX answers raw calls as UCX does.
#include <gtest/gtest.h>
#include <poll.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "support/fake_ucp/fake_network.hpp"
#include "support/simulated/raw_peer.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

TEST(FakeUcp, DeliversASmallMessageThatCompletedInsideItsCall) {
  fake_network network;
  {
    raw_peer owner(network, "owner");
    raw_peer reader(network, "reader");
    const auto endpoint = reader.connect(owner.address());
    const auto& sent = reader.send(endpoint, "head", "body");
    EXPECT_TRUE(sent.at_once);
    EXPECT_EQ(sent.status, UCS_OK);
    ASSERT_TRUE(reader.wait([&] { return !owner.messages.empty(); }));
    EXPECT_EQ(owner.messages[0].header, "head");
    EXPECT_EQ(owner.messages[0].bytes, "body");
    EXPECT_EQ(owner.messages[0].reply_to, nullptr);
    EXPECT_EQ(network.count(call::am_send), 1U);
    EXPECT_EQ(network.bytes(call::am_send), 4U);
    reader.close(endpoint);
  }
  network.expect_clean();
}

TEST(FakeUcp, TakesLatencyAndBandwidth) {
  link_options link;
  link.latency = 1ms;
  link.bytes_per_second = 1e9;
  fake_network network(link);
  {
    raw_peer owner(network, "owner");
    raw_peer reader(network, "reader");
    const auto endpoint = reader.connect(owner.address());
    const std::string bytes(1'000'000, 'x');
    const auto begin = network.now();
    auto& sent = reader.send(endpoint, "", bytes, UCP_AM_SEND_FLAG_EAGER);
    EXPECT_FALSE(sent.done());
    ASSERT_TRUE(reader.wait(sent));
    EXPECT_GE(network.now() - begin, 1ms);  // the wire took it
    EXPECT_LT(network.now() - begin, 1100us);
    EXPECT_TRUE(owner.messages.empty());
    ASSERT_TRUE(reader.wait([&] { return !owner.messages.empty(); }));
    EXPECT_GE(network.now() - begin, 2ms);
    EXPECT_LT(network.now() - begin, 2100us);
    reader.close(endpoint);
  }
  network.expect_clean();
}

TEST(FakeUcp, AnswersThroughTheReplyEndpointAndMatchesALaterOne) {
  fake_network network;
  {
    raw_peer owner(network, "owner");
    raw_peer reader(network, "reader");
    const auto there = reader.connect(owner.address());
    reader.send(there, "", "ping", UCP_AM_SEND_FLAG_REPLY);
    ASSERT_TRUE(reader.wait([&] { return !owner.messages.empty(); }));
    const auto reply_to = owner.messages[0].reply_to;
    ASSERT_NE(reply_to, nullptr);
    owner.send(reply_to, "", "pong");
    ASSERT_TRUE(reader.wait([&] { return !reader.messages.empty(); }));
    EXPECT_EQ(reader.messages[0].bytes, "pong");
    EXPECT_EQ(network.live().endpoints, 1U);
    const auto back = owner.connect(reader.address());
    EXPECT_EQ(back, reply_to);
    EXPECT_NE(owner.connect(reader.address()), back);
    EXPECT_EQ(network.live().endpoints, 3U);
    reader.close(there);
    ASSERT_TRUE(owner.wait([&] { return !owner.failures.empty(); }));
    EXPECT_EQ(owner.failures[0], UCS_ERR_CONNECTION_RESET);
  }
  EXPECT_TRUE(is_mentioned(network, "an endpoint in mode PEER is not closed"));
}

TEST(FakeUcp, LetsTheReceiverFetchALargeMessage) {
  fake_network network;
  {
    raw_peer owner(network, "owner");
    raw_peer reader(network, "reader");
    owner.handler_returns = UCS_INPROGRESS;
    const auto endpoint = reader.connect(owner.address());
    std::string bytes(3'000'000, '\0');
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 7);
    auto& sent = reader.send(endpoint, "head", bytes);
    ASSERT_TRUE(reader.wait([&] { return !owner.messages.empty(); }));
    EXPECT_TRUE(owner.messages[0].rndv);
    EXPECT_EQ(owner.messages[0].header, "head");
    EXPECT_FALSE(reader.wait([&] { return sent.done(); }, 1s));
    EXPECT_EQ(network.live().messages, 1U);
    std::string received(bytes.size(), '\0');
    auto& receiving = owner.receive(owner.messages[0].data, received.data(), received.size());
    ASSERT_TRUE(reader.wait(sent));
    ASSERT_TRUE(owner.wait(receiving));
    EXPECT_EQ(receiving.length, bytes.size());
    EXPECT_EQ(received, bytes);
    reader.close(endpoint);
  }
  network.expect_clean();
}

TEST(FakeUcp, EndsARefusedLargeMessageWithTheHandlersStatus) {
  fake_network network;
  {
    raw_peer owner(network, "owner");
    raw_peer reader(network, "reader");
    owner.handler_returns = UCS_ERR_NO_MEMORY;
    const auto endpoint = reader.connect(owner.address());
    auto& sent = reader.send(endpoint, "", "small", UCP_AM_SEND_FLAG_RNDV);
    ASSERT_TRUE(reader.wait(sent));
    EXPECT_EQ(sent.status, UCS_ERR_NO_MEMORY);
    reader.close(endpoint);
  }
  network.expect_clean();
}

TEST(FakeUcp, KeepsDataOnlyWhereTheHandlerAskedForIt) {
  fake_network network;
  {
    raw_peer owner(network, "owner");
    raw_peer reader(network, "reader");
    const auto endpoint = reader.connect(owner.address());
    owner.handler_returns = UCS_INPROGRESS;
    reader.send(endpoint, "", "lost");
    ASSERT_TRUE(reader.wait([&] { return owner.messages.size() == 1; }));
    EXPECT_TRUE(is_mentioned(network, "kept data that does not last"));
    network.forget_violations();
    owner.handler_flags = UCP_AM_FLAG_WHOLE_MSG | UCP_AM_FLAG_PERSISTENT_DATA;
    owner.set_handler();
    reader.send(endpoint, "", "kept");
    ASSERT_TRUE(reader.wait([&] { return owner.messages.size() == 2; }));
    EXPECT_EQ(std::memcmp(owner.messages[1].data, "kept", 4), 0);
    owner.api.am_data_release(owner.worker, owner.messages[1].data);
    reader.close(endpoint);
  }
  network.expect_clean();
}

TEST(FakeUcp, ReadsAndWritesMemoryOfTheOwner) {
  for (const bool emulated : {true, false}) {
    link_options link;
    link.emulated_rma = emulated;
    fake_network network(link);
    {
      raw_peer owner(network, "owner");
      raw_peer reader(network, "reader");
      std::vector<char> region(2'500'000);
      for (std::size_t i = 0; i < region.size(); ++i) region[i] = static_cast<char>(i * 3);
      const auto memory = owner.map(region.data(), region.size());
      const auto endpoint = reader.connect(owner.address());
      const auto key = reader.unpack(endpoint, owner, memory);
      std::vector<char> into(region.size());
      auto& reading = reader.get(endpoint, into.data(), into.size(), region.data(), key);
      EXPECT_FALSE(reading.done());
      ASSERT_TRUE(reader.wait(reading));
      EXPECT_EQ(reading.status, UCS_OK);
      EXPECT_EQ(into, region);
      const std::vector<char> other(1'500'000, 'w');
      auto& writing = reader.put(endpoint, other.data(), other.size(), region.data() + 5, key);
      auto& flushing = reader.flush(endpoint);
      EXPECT_FALSE(flushing.done());
      ASSERT_TRUE(reader.wait(flushing));
      EXPECT_TRUE(writing.done());
      EXPECT_EQ(std::memcmp(region.data() + 5, other.data(), other.size()), 0);
      EXPECT_TRUE(reader.flush(endpoint).at_once);
      reader.api.rkey_destroy(key);
      reader.close(endpoint);
      EXPECT_EQ(owner.api.mem_unmap(owner.context, memory), UCS_OK);
    }
    network.expect_clean();
  }
}

TEST(FakeUcp, NeedsTheOwnersProgressOnlyWhereRmaIsEmulated) {
  for (const bool emulated : {true, false}) {
    link_options link;
    link.emulated_rma = emulated;
    fake_network network(link);
    {
      raw_peer owner(network, "owner");
      raw_peer reader(network, "reader");
      std::string region = "remote";
      const auto memory = owner.map(region.data(), region.size());
      const auto endpoint = reader.connect(owner.address());
      const auto key = reader.unpack(endpoint, owner, memory);
      std::string into(region.size(), ' ');
      owner.process.stop();
      auto& reading = reader.get(endpoint, into.data(), into.size(), region.data(), key);
      EXPECT_EQ(reader.wait([&] { return reading.done(); }, 5s), !emulated);
      reader.api.request_cancel(reader.worker, reading.request);
      owner.process.resume();
      ASSERT_TRUE(reader.wait(reading));
      EXPECT_EQ(into, "remote");  // cancelling stopped nothing
      reader.api.rkey_destroy(key);
      reader.close(endpoint);
      EXPECT_EQ(owner.api.mem_unmap(owner.context, memory), UCS_OK);
    }
    network.expect_clean();
  }
}

TEST(FakeUcp, LandsNothingAfterAForcedClose) {
  fake_network network;
  {
    raw_peer owner(network, "owner");
    raw_peer reader(network, "reader");
    std::string region = "remote";
    const auto memory = owner.map(region.data(), region.size());
    const auto endpoint = reader.connect(owner.address());
    const auto key = reader.unpack(endpoint, owner, memory);
    std::string into = "local.";
    owner.process.stop();
    auto& reading = reader.get(endpoint, into.data(), into.size(), region.data(), key);
    reader.wait([] { return false; }, 10ms);
    reader.api.rkey_destroy(key);
    reader.close(endpoint);
    EXPECT_EQ(reading.status, UCS_ERR_CANCELED);
    owner.process.resume();
    reader.wait([] { return false; }, 100ms);
    EXPECT_EQ(into, "local.");
    EXPECT_EQ(owner.api.mem_unmap(owner.context, memory), UCS_OK);
  }
  network.expect_clean();
}

TEST(FakeUcp, MapsAllocatedMemoryOnlyWhereItIsShared) {
  for (const bool shared : {true, false}) {
    link_options link;
    link.shared_memory = shared;
    fake_network network(link);
    {
      raw_peer owner(network, "owner");
      raw_peer reader(network, "reader");
      ucp_mem_map_params_t parameters{};
      parameters.field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS;
      parameters.length = 100;
      parameters.flags = UCP_MEM_MAP_ALLOCATE;
      ucp_mem_h memory = nullptr;
      ASSERT_EQ(owner.api.mem_map(owner.context, &parameters, &memory), UCS_OK);
      ucp_mem_attr_t attributes{};
      attributes.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS | UCP_MEM_ATTR_FIELD_LENGTH;
      ASSERT_EQ(owner.api.mem_query(memory, &attributes), UCS_OK);
      EXPECT_EQ(attributes.length, 4096U);
      EXPECT_EQ(*static_cast<const char*>(attributes.address), '\0');
      const auto endpoint = reader.connect(owner.address());
      const auto key = reader.unpack(endpoint, owner, memory);
      void* local = nullptr;
      const auto address = reinterpret_cast<std::uintptr_t>(attributes.address);
      const auto status = reader.api.rkey_ptr(key, address, &local);
      EXPECT_EQ(status, shared ? UCS_OK : UCS_ERR_UNREACHABLE);
      EXPECT_EQ(local, shared ? attributes.address : nullptr);
      reader.api.rkey_destroy(key);
      reader.close(endpoint);
      EXPECT_EQ(owner.api.mem_unmap(owner.context, memory), UCS_OK);
    }
    network.expect_clean();
  }
}

TEST(FakeUcp, WakesAnArmedWorkerWhenSomethingArrives) {
  fake_network network;
  {
    raw_peer owner(network, "owner");
    raw_peer reader(network, "reader");
    owner.process.on_pump({});
    int fd = -1;
    ASSERT_EQ(owner.api.worker_get_efd(owner.worker, &fd), UCS_OK);
    const auto is_readable = [&] {
      pollfd waiting{fd, POLLIN, 0};
      return ::poll(&waiting, 1, 0) == 1;
    };
    EXPECT_EQ(owner.api.worker_arm(owner.worker), UCS_OK);
    EXPECT_FALSE(is_readable());
    const auto begin = network.now();
    owner.api.wait_readable(fd, -1, 20ms);
    EXPECT_GE(network.now() - begin, 20ms);
    EXPECT_LT(network.now() - begin, 21ms);
    const auto endpoint = reader.connect(owner.address());
    reader.send(endpoint, "", "wake up");
    owner.api.wait_readable(fd, -1, 1s);
    EXPECT_LT(network.now() - begin, 22ms);
    EXPECT_TRUE(is_readable());
    EXPECT_EQ(owner.api.worker_arm(owner.worker), UCS_ERR_BUSY);
    EXPECT_EQ(owner.progress(), 1U);
    EXPECT_EQ(owner.api.worker_arm(owner.worker), UCS_OK);
    EXPECT_EQ(owner.api.worker_signal(owner.worker), UCS_OK);
    EXPECT_TRUE(is_readable());
    EXPECT_EQ(owner.api.worker_arm(owner.worker), UCS_ERR_BUSY);
    EXPECT_EQ(owner.api.worker_arm(owner.worker), UCS_OK);
    reader.close(endpoint);
  }
  network.expect_clean();
}

TEST(FakeUcp, ListensAcceptsAndRejects) {
  fake_network network;
  {
    raw_peer owner(network, "owner");
    raw_peer reader(network, "reader");
    const auto port = owner.listen();
    const auto first = reader.connect(port);
    reader.send(first, "", "early");  // goes out once the peer has accepted
    ASSERT_TRUE(reader.wait([&] { return owner.requests.size() == 1; }));
    ucp_conn_request_attr_t attributes{};
    attributes.field_mask = UCP_CONN_REQUEST_ATTR_FIELD_CLIENT_ADDR;
    ASSERT_EQ(owner.api.conn_request_query(owner.requests[0], &attributes), UCS_OK);
    EXPECT_EQ(attributes.client_address.ss_family, AF_INET);
    const auto accepted = owner.accept(owner.requests[0]);
    ASSERT_TRUE(reader.wait([&] { return owner.messages.size() == 1; }));
    owner.send(accepted, "", "answer");
    ASSERT_TRUE(reader.wait([&] { return reader.messages.size() == 1; }));
    const auto second = reader.connect(port);
    ASSERT_TRUE(reader.wait([&] { return owner.requests.size() == 2; }));
    EXPECT_EQ(owner.api.listener_reject(owner.listener, owner.requests[1]), UCS_OK);
    ASSERT_TRUE(reader.wait([&] { return reader.failures.size() == 1; }));
    EXPECT_EQ(reader.failures[0], UCS_ERR_REJECTED);
    EXPECT_TRUE(reader.send(second, "", "x").at_once);
    reader.close(second);
    reader.close(first);
    ASSERT_TRUE(owner.wait([&] { return owner.failures.size() == 1; }));
    owner.close(accepted);
  }
  network.expect_clean();
}

TEST(FakeUcp, FailsToConnectWhereNobodyListens) {
  fake_network network;
  {
    raw_peer reader(network, "reader");
    const auto refused = reader.connect(std::uint16_t{1});
    auto& sent = reader.send(refused, "", "never");
    ASSERT_TRUE(reader.wait([&] { return reader.failures.size() == 1; }));
    EXPECT_EQ(reader.failures[0], UCS_ERR_NOT_CONNECTED);
    EXPECT_EQ(sent.status, UCS_ERR_NOT_CONNECTED);
    const auto elsewhere = reader.connect(std::uint16_t{1}, "192.0.2.1");
    ASSERT_TRUE(reader.wait([&] { return reader.failures.size() == 2; }));
    EXPECT_EQ(reader.failures[1], UCS_ERR_UNREACHABLE);
    reader.close(refused);
    reader.close(elsewhere);
  }
  network.expect_clean();
}

TEST(FakeUcp, RefusesForceWithoutErrorHandlingAndFlushesInstead) {
  fake_network network;
  {
    raw_peer owner(network, "owner");
    raw_peer reader(network, "reader");
    const auto endpoint = reader.connect(owner.address(), UCP_ERR_HANDLING_MODE_NONE);
    EXPECT_EQ(reader.start_close(endpoint, UCP_EP_CLOSE_FLAG_FORCE).status, UCS_ERR_INVALID_PARAM);
    reader.send(endpoint, "", "last words");
    auto& closing = reader.start_close(endpoint);
    EXPECT_FALSE(closing.done());
    ASSERT_TRUE(reader.wait(closing));
    EXPECT_EQ(closing.status, UCS_OK);
    EXPECT_TRUE(reader.wait([&] { return owner.messages.size() == 1; }));
  }
  network.expect_clean();
}

TEST(FakeUcp, NeverEndsAFlushingCloseToAStoppedPeer) {
  fake_network network;
  {
    raw_peer owner(network, "owner");
    raw_peer reader(network, "reader");
    const auto endpoint = reader.connect(owner.address());
    owner.process.stop();
    auto& closing = reader.start_close(endpoint);
    EXPECT_FALSE(reader.wait([&] { return closing.done(); }, 30s));
    owner.process.resume();
    EXPECT_TRUE(reader.wait(closing));
  }
  network.expect_clean();
}

TEST(FakeUcp, PrintsConfigurationResourcesAndLanes) {
  fake_network network;
  {
    raw_peer reader(network, "reader");
    ucp_config_t* configuration = nullptr;
    ASSERT_EQ(reader.api.config_read(nullptr, nullptr, &configuration), UCS_OK);
    EXPECT_EQ(reader.api.config_modify(configuration, "TLS", "tcp"), UCS_OK);
    EXPECT_EQ(reader.api.config_modify(configuration, "NET_DEVICES", "lo"), UCS_OK);
    char* text = nullptr;
    std::size_t size = 0;
    std::FILE* const to = ::open_memstream(&text, &size);
    reader.api.config_print(configuration, to, "title", UCS_CONFIG_PRINT_CONFIG);
    ucp_params_t parameters{};
    ucp_context_h context = nullptr;
    ASSERT_EQ(reader.api.init(&parameters, configuration, &context), UCS_OK);
    reader.api.context_print_info(context, to);
    const auto endpoint = reader.connect(reader.address());
    reader.api.ep_print_info(endpoint, to);
    std::fclose(to);
    const std::string printed(text, size);
    std::free(text);
    EXPECT_NE(printed.find("UCX_TLS=tcp\n"), std::string::npos);
    EXPECT_NE(printed.find("flags -- tcp/lo\n"), std::string::npos);
    EXPECT_EQ(printed.find("flags -- tcp/eth0\n"), std::string::npos);
    EXPECT_NE(printed.find("lane[0]:  1:tcp/lo.0"), std::string::npos);
    EXPECT_EQ(reader.api.config_modify(configuration, "TLS", "rc"), UCS_OK);
    ucp_context_h none = nullptr;
    EXPECT_EQ(reader.api.init(&parameters, configuration, &none), UCS_ERR_NO_DEVICE);
    reader.api.config_release(configuration);
    reader.api.cleanup(context);
    reader.close(endpoint);
  }
  network.expect_clean();
}

}  // namespace
}  // namespace ucx::test
