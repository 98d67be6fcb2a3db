// Calls over real transports: by each of them, in each mode of progress.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "support/bytes/pattern.hpp"
#include "support/transports/message_pair.hpp"
#include "ucx/client.hpp"
#include "ucx/rpc.hpp"
#include "ucx/server.hpp"
#include "ucx/url.hpp"

namespace ucx::test {
namespace {

using bytes = std::vector<std::byte>;

/// Writes what it reads.
call_task<std::uint64_t> copy_window(call_context& call, window<access::read> from,
                                     window<access::write> into) {
  bytes here(from.size());
  remote_region source = from.open(*call.peer);
  co_await source.start_read_at(0, here);
  remote_region target = into.open(*call.peer);
  co_await target.start_write_at(0, here);
  co_await target.start_flush();
  co_return here.size();
}

call_table served_functions() {
  call_table calls;
  calls.add("add", [](int a, int b) { return a + b; });
  calls.add("echo", [](const bytes& value) { return value; });
  calls.add("copy", copy_window);
  calls.add("give_back", [](buffer first, tensor second) {
    return std::pair<tensor, buffer>(std::move(second), std::move(first));
  });
  calls.add("fail", [](const std::string& text) -> int { throw error(errc::busy, text); });
  return calls;
}

class CallOverTransport : public testing::TestWithParam<message_pair_options> {
 protected:
  template <class Result>
  Result result_of(typed_call<Result> call) {
    EXPECT_TRUE(both_.until([&] { return call.done(); }));
    return call.result();
  }

  message_pair both_{GetParam()};
  call_table calls_ = served_functions();
  call_server serves_{both_.receiver(), calls_};
  call_channel peer_{*both_.sender};
};

TEST_P(CallOverTransport, CarriesArgumentsAndResultsOfEachSize) {
  for (const std::size_t size : {0U, 1000U, 5000U, 100'000U, 1'000'000U}) {
    const bytes sent = pattern(size, 1);
    EXPECT_TRUE(result_of(peer_.start_call<bytes>("echo", sent)) == sent) << size;
  }
}

TEST_P(CallOverTransport, CarriesMemoryOfEachSizeBesideCalls) {
  for (const std::size_t size : {0U, 1000U, 100'000U, 5'000'000U}) {
    const bytes first = pattern(size, 1);
    const bytes second = pattern(size, 2);
    const auto all = std::as_bytes(std::span(second));
    tensor_view sent;
    sent.type = element_type::u8;
    sent.shape = {size};
    sent.bytes = all;
    using found = std::pair<tensor, buffer>;
    auto asked = peer_.start_call<found>("give_back", std::span<const std::byte>(first), sent);
    const auto [turned, came] = result_of(std::move(asked));
    EXPECT_TRUE(holds_pattern(came.bytes(), 1) && came.size() == size) << size;
    EXPECT_EQ(turned.shape, std::vector<std::uint64_t>{size});
    EXPECT_TRUE(holds_pattern(turned.memory.bytes(), 2)) << size;
  }
}

TEST_P(CallOverTransport, AnswersManyAtATime) {
  std::vector<typed_call<int>> all;
  for (int i = 0; i < 100; ++i) all.push_back(peer_.start_call<int>("add", i, 1));
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(result_of(std::move(all[static_cast<std::size_t>(i)])), i + 1);
  }
}

TEST_P(CallOverTransport, TellsWhatAFunctionThrew) {
  auto failed = peer_.start_call<int>("fail", "words");
  ASSERT_TRUE(both_.until([&] { return failed.done(); }));
  EXPECT_EQ(failed.error(), errc::call_failed);
  EXPECT_EQ(failed.cause(), errc::busy);
}

TEST_P(CallOverTransport, ReachesTheCallersMemory) {
  for (const std::size_t size : {10U, 5000U, 1'000'000U}) {
    const bytes sent = pattern(size, 1);
    bytes back(size);
    EXPECT_EQ(result_of(peer_.start_call<std::uint64_t>("copy", window<access::read>(sent),
                                                        window<access::write>(back))),
              size);
    EXPECT_TRUE(back == sent) << size;
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, CallOverTransport, testing::ValuesIn(every_message_pair()),
                         name_of_messages);

class CallOverSockets : public testing::TestWithParam<const char*> {};

TEST_P(CallOverSockets, IsServedBesideTheNamesOfAServer) {
  server there({.bind = GetParam(), .context = {.transports = {"socket"}, .share_memory = false}});
  const call_table calls = served_functions();
  const call_server serves(there.worker(0), calls);
  client here(url(there.url()), {.context = {.share_memory = false}});
  const call_channel peer(here.connection());
  const call_stub<int(int, int)> add(peer, "add");
  EXPECT_EQ(add(25, 17), 42);
  for (const std::size_t size : {1000U, 100'000U, 1'000'000U}) {
    const bytes sent = pattern(size, 1);
    EXPECT_TRUE(peer.call<bytes>("echo", sent) == sent) << size;
  }
  const bytes sent = pattern(300'000, 1);
  bytes back(sent.size());
  peer.call<std::uint64_t>("copy", window<access::read>(sent), window<access::write>(back));
  EXPECT_TRUE(back == sent);
  EXPECT_THROW(peer.call<int>("fail", "words"), error);
}

INSTANTIATE_TEST_SUITE_P(Places, CallOverSockets, testing::Values("127.0.0.1:0", "unix:"),
                         [](const auto& chosen) { return chosen.index == 0 ? "Tcp" : "Unix"; });

}  // namespace
}  // namespace ucx::test
