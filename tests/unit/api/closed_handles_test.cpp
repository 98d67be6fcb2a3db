// What is called behind a close: each operation says `closed`, and a second close nothing. And what
// is called in a child of fork().
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "support/simulated/simulated_messages.hpp"
#include "ucx/buffer.hpp"
#include "ucx/error.hpp"
#include "ucx/listener.hpp"
#include "ucx/memory_region.hpp"
#include "ucx/receive_target.hpp"
#include "ucx/remote_region.hpp"

namespace ucx::test {
namespace {

struct memory {
  std::vector<std::byte> into = std::vector<std::byte>(10);
  std::vector<std::byte> from = pattern(10);
  std::array<std::span<const std::byte>, 2> gathered{from, from};
  std::array<std::span<std::byte>, 2> scattered{into, into};
  buffer made;
  message_parts parts;
  buffer_pool pool{{.size = 100, .count = 2}};
  buffer sent = pool.take(10);
};

struct call_of_closed {
  const char* name;
  std::error_code (*outcome)(endpoint& closed, memory& with);
};

template <class Call>
std::error_code told(Call call) {
  std::error_code ec;
  call(ec);
  return ec;
}

const call_of_closed calls_of_closed[] = {
    {"StartSend", [](auto& on, auto& with) { return on.start_send(1, with.from).error(); }},
    {"StartSendOfSpans",
     [](auto& on, auto& with) { return on.start_send(1, with.gathered).error(); }},
    {"StartSendOfABuffer",
     [](auto& on, auto& with) {
       const std::error_code ec = on.start_send(1, std::move(with.sent)).error();
       EXPECT_TRUE(with.sent) << "it is the caller's still";
       return ec;
     }},
    {"Send",
     [](auto& on, auto& with) { return told([&](auto& ec) { on.send(1, with.from, {}, ec); }); }},
    {"StartSendParts",
     [](auto& on, auto& with) { return on.start_send(1, payload::parts(with.gathered)).error(); }},
    {"SendParts",
     [](auto& on, auto& with) {
       return told([&](auto& ec) { on.send(1, payload::parts(with.gathered), {}, ec); });
     }},
    {"StartSendMessage",
     [](auto& on, auto& with) {
       return on.start_send(active_message{1, with.from}, with.from).error();
     }},
    {"StartSendMessageOfSpans",
     [](auto& on, auto& with) { return on.start_send(active_message{1}, with.gathered).error(); }},
    {"SendMessage",
     [](auto& on, auto& with) {
       return told([&](auto& ec) { on.send(active_message{1, with.from}, with.from, {}, ec); });
     }},
    {"StartStreamSend",
     [](auto& on, auto& with) { return on.start_stream_send(with.from).error(); }},
    {"StartStreamSendOfSpans",
     [](auto& on, auto& with) { return on.start_stream_send(with.gathered).error(); }},
    {"StreamSend",
     [](auto& on, auto& with) {
       return told([&](auto& ec) { on.stream_send(with.from, {}, ec); });
     }},
    {"StartStreamReceive",
     [](auto& on, auto& with) {
       return on.start_stream_receive(with.into, stream_amount::some).error();
     }},
    {"StreamReceive",
     [](auto& on, auto& with) {
       return told([&](auto& ec) {
         EXPECT_EQ(on.stream_receive(with.into, stream_amount::all, {}, ec), 0U);
       });
     }},
    {"PostSend",
     [](auto& on, auto& with) {
       EXPECT_THROW(on.post_send(1, with.from, 7), error);
       return told([&](auto& ec) { on.post_send(1, with.from, 7, {}, ec); });
     }},
    {"PostSendParts",
     [](auto& on, auto& with) {
       return told([&](auto& ec) { on.post_send(1, payload::parts(with.gathered), 7, {}, ec); });
     }},
    {"PostSendMessage",
     [](auto& on, auto& with) {
       return told([&](auto& ec) { on.post_send(active_message{1}, with.from, 7, {}, ec); });
     }},
    {"StartReceive", [](auto& on, auto& with) { return on.start_receive(1, with.into).error(); }},
    {"StartReceiveIntoSpans",
     [](auto& on, auto& with) { return on.start_receive(1, with.scattered).error(); }},
    {"StartReceiveThatAllocates",
     [](auto& on, auto& with) {
       return on.start_receive(1, {with.made, 100}).error();
     }},
    {"StartReceiveOfAPool",
     [](auto& on, auto& with) {
       return on.start_receive(1, {with.made, with.pool}).error();
     }},
    {"StartReceiveOfParts",
     [](auto& on, auto& with) {
       return on.start_receive(1, {with.parts, 100}).error();
     }},
    {"Receive",
     [](auto& on, auto& with) {
       return told([&](auto& ec) { on.receive(1, with.into, {}, ec); });
     }},
    {"StartFlush", [](auto& on, auto&) { return on.start_flush().error(); }},
    {"Flush", [](auto& on, auto&) { return told([&](auto& ec) { on.flush({}, ec); }); }},
    {"WaitConnected",
     [](auto& on, auto&) { return told([&](auto& ec) { on.wait_connected(ec); }); }},
    {"Status", [](auto& on, auto&) { return on.status(); }},
};

class ClosedEndpoint : public testing::TestWithParam<call_of_closed> {};

TEST_P(ClosedEndpoint, SaysSo) {
  for (const close_mode mode : {close_mode::flush, close_mode::abort}) {
    simulated_messages both;
    endpoint closed = both.pair.connect();
    closed.wait_connected();
    std::vector<std::uint64_t> keys;
    message_handlers handlers;
    handlers.on_sent = [&](std::uint64_t key, std::error_code) { keys.push_back(key); };
    closed.set_message_handlers(std::move(handlers));
    closed.close(mode);
    memory with;
    EXPECT_EQ(GetParam().outcome(closed, with), errc::closed);
    both.settle();
    EXPECT_TRUE(keys.empty()) << "nothing was started";
    EXPECT_FALSE(both.receiver().probe(tag_match::any()));
    EXPECT_FALSE(both.sender.status()) << "another connection lives";
  }
}

/// The same of one that is open, where the process was forked from the one that opened it.
TEST_P(ClosedEndpoint, OfAnotherProcessSaysSo) {
  simulated_messages both;
  memory with;
  EXPECT_FALSE(both.sender.status());
  const ::pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    const std::error_code ec = [&]() noexcept {  // an exception ends the child
      return GetParam().outcome(both.sender, with);
    }();
    if (ec != errc::forked_child) std::fprintf(stderr, "in the child: %s\n", ec.message().c_str());
    ::_exit(ec == errc::forked_child ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  both.sender.send(1, pattern(10));
}

INSTANTIATE_TEST_SUITE_P(Calls, ClosedEndpoint, testing::ValuesIn(calls_of_closed),
                         [](const auto& chosen) { return std::string(chosen.param.name); });

TEST(ClosedEndpointHandle, KeepsWhatCameBefore) {
  simulated_messages both;
  endpoint back = both.back();
  both.sender.send(1, pattern(10));
  both.settle();
  back.close(close_mode::abort);
  EXPECT_EQ(back.probe(1), (message_info{1, 10}));
  std::optional<message> taken = back.take(1);
  ASSERT_TRUE(taken);
  EXPECT_TRUE(holds_pattern(taken->data()));
  EXPECT_FALSE(back.probe(1));
  EXPECT_FALSE(back.take(1));
  EXPECT_EQ(back.cancel_all(), 0U);
  back.fence();
  std::error_code ec = make_error_code(errc::busy);
  back.close(close_mode::flush, ec);
  EXPECT_FALSE(ec) << "a second close reports nothing";
  request again = back.start_close();
  again.wait();
}

TEST(ClosedListener, IsClosedTwiceAndAcceptsNobody) {
  simulated_pair pair;
  listener_options options;
  options.manual_accept = true;
  listener door(pair.owner, socket_address("127.0.0.1:0"), std::move(options));
  const socket_address where = door.address();
  door.close();
  door.close();
  door.close(close_mode::flush);
  door.close(close_mode::abort);
  std::error_code ec;
  const connection_request none = door.accept().wait({}, ec);
  EXPECT_EQ(ec, errc::closed);
  EXPECT_THROW(static_cast<void>(door.accept().wait()), error);
  EXPECT_EQ(door.connections(), 0U);
  const endpoint late(pair.reader, where, {}, ec);
  EXPECT_EQ(ec, errc::connection_refused);
}

TEST(ClosedRegion, IsClosedTwiceAndTellsNothing) {
  simulated_pair pair;
  std::vector<std::byte> bytes(100);
  memory_region owned(pair.owner_context, std::span<std::byte>(bytes), access::read_write);
  endpoint connection = pair.connect();
  remote_region region(connection, owned.descriptor());
  owned.close();
  owned.close();
  std::error_code ec;
  owned.on_notify([](const notification&) {}, ec);
  EXPECT_EQ(ec, errc::closed);
  EXPECT_THROW(owned.on_notify([](const notification&) {}), error);
  notification into;
  EXPECT_EQ(owned.start_wait_notify(pair.owner, into).error(), errc::closed);
  owned.wait_notify(pair.owner, {}, ec);
  EXPECT_EQ(ec, errc::closed);
  EXPECT_FALSE(owned.take_notification());
  region.read_at(0, bytes, {}, ec);
  EXPECT_EQ(ec, errc::revoked);
}

}  // namespace
}  // namespace ucx::test
