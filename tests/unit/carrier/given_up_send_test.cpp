// Sends over sockets that are given up: their memory is free at once, and the peer hears whole
// messages.
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <ucp/api/ucp.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <span>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/logger.hpp"
#include "base/owned_descriptor.hpp"
#include "carrier/carrier_api.hpp"
#include "carrier/carrier_endpoint.hpp"
#include "carrier/carrier_listener.hpp"
#include "carrier/carrier_worker.hpp"
#include "carrier/segment.hpp"
#include "carrier/tls.hpp"
#include "support/basics/soon.hpp"
#include "support/bytes/pattern.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/transports/url_scheme.hpp"
#include "ucp/withdrawn_send.hpp"
#include "ucx/client.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/error.hpp"
#include "ucx/message.hpp"
#include "ucx/publication.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/request.hpp"
#include "ucx/server.hpp"
#include "ucx/token_file.hpp"
#include "ucx/url.hpp"
#include "ucx/worker.hpp"
#include "unit/carrier/bare_peer.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;
using detail::owned_descriptor;
using detail::preamble;
using detail::segment_head;
using detail::tls_session;
using detail::withdrawn_send;

constexpr unsigned given_up_id = 255;
constexpr std::size_t given_up_size = std::size_t{256} << 10U;

/// Two ends of a connection over loopback.
std::pair<owned_descriptor, owned_descriptor> pair_over_tcp() {
  const owned_descriptor door(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ::sockaddr_in here = {};
  here.sin_family = AF_INET;
  here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ::socklen_t size = sizeof here;
  auto* const address = reinterpret_cast<::sockaddr*>(&here);
  EXPECT_EQ(::bind(door.get(), address, size), 0);
  EXPECT_EQ(::listen(door.get(), 1), 0);
  ::getsockname(door.get(), address, &size);
  owned_descriptor one(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(::connect(one.get(), address, size), 0);
  owned_descriptor other(::accept4(door.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  EXPECT_EQ(::fcntl(one.get(), F_SETFL, O_NONBLOCK), 0);
  return {std::move(one), std::move(other)};
}

/// How a message ended, as its sender is told.
struct told_end {
  std::optional<ucs_status_t> status;
};

/// An endpoint whose peer, a bare socket, takes bytes when a test has it do so.
class GivenUpSend : public testing::TestWithParam<std::string> {
 protected:
  struct heard_message {
    std::vector<std::byte> header;
    std::vector<std::byte> payload;
  };

  void SetUp() override {
    auto [peer, socket] = GetParam() == "unix" ? pair_of_sockets() : pair_over_tcp();
    constexpr int little = 16 << 10;
    ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDBUF, &little, sizeof little);
    ::setsockopt(peer.get(), SOL_SOCKET, SO_RCVBUF, &little, sizeof little);
    detail::carrier_caller caller;
    if (GetParam() == "tls") shake_hands(peer.get(), socket.get(), caller);
    if (HasFatalFailure()) return;
    worker_ = std::make_unique<detail::carrier_worker>("test", tls_);
    ASSERT_EQ(worker_->open(), UCS_OK);
    caller.socket = std::move(socket);
    caller.address.ss_family = GetParam() == "unix" ? AF_UNIX : AF_INET;
    peer_ = std::move(peer);
    const ucp_ep_params_t none = {};
    ASSERT_EQ(detail::carrier_endpoint::accept(*worker_, caller, none, endpoint_), UCS_OK);
    ASSERT_TRUE(hear(preamble::size));
    heard_.clear();
    say_short("first");  // nothing overtakes the first message
    ASSERT_EQ(hear_message().payload, bytes_of("first"));
  }

  /// Sends a message of these bytes. Returns its request, if it has not gone.
  void* say(std::span<const std::byte> header, std::span<const std::byte> payload,
            told_end& ended) {
    ucp_request_param_t params = {};
    params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    params.cb.send = [](void* request, ucs_status_t status, void* told) {
      static_cast<told_end*>(told)->status = status;
      detail::socket_api().request_free(request);
    };
    params.user_data = &ended;
    const ucs_status_ptr_t sent = endpoint_->send(given_up_id, header, payload, params);
    return UCS_PTR_IS_PTR(sent) ? sent : nullptr;
  }
  /// Lets as much go as the socket takes.
  void go_on() {
    for (int rounds = 0; rounds < 16; ++rounds) worker_->progress();
  }
  static std::vector<std::byte> bytes_of(const std::string& text) {
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
  }
  void say_short(const std::string& text) {
    ucp_request_param_t params = {};
    params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK;
    params.cb.send = [](void* request, ucs_status_t, void*) {
      detail::socket_api().request_free(request);
    };
    const std::vector<std::byte> payload = bytes_of(text);
    const ucs_status_ptr_t sent = endpoint_->send(given_up_id, {}, payload, params);
    // It is a copy, as the library's short messages are.
    if (UCS_PTR_IS_PTR(sent)) {
      ASSERT_EQ(detail::socket_api().withdraw_send(sent, false), withdrawn_send::copied);
    }
  }
  static withdrawn_send withdraw(void* request, bool may_drop) {
    return detail::socket_api().withdraw_send(request, may_drop);
  }

  /// The peer takes what there is until it has so many bytes. Returns whether it has them.
  bool hear(std::size_t size) {
    return soon([&] {
      std::array<std::byte, 4096> part;
      for (::ssize_t read = 1; read > 0 && heard_.size() < size;) {
        worker_->progress();
        read = take(std::span(part).first(std::min(part.size(), size - heard_.size())));
        if (read > 0) heard_.insert(heard_.end(), part.begin(), part.begin() + read);
      }
      return heard_.size() >= size;
    });
  }
  heard_message hear_message() {
    heard_message message;
    EXPECT_TRUE(hear(segment_head::size));
    if (heard_.size() < segment_head::size) return message;
    const auto head = detail::decode_segment_head(std::span(heard_).first<segment_head::size>());
    EXPECT_TRUE(head) << "the stream is broken";
    if (!head) return message;
    EXPECT_EQ(head->id, given_up_id);
    const std::size_t size = segment_head::size + head->header + head->payload;
    EXPECT_TRUE(hear(size));
    if (heard_.size() < size) return message;
    const auto header = heard_.begin() + segment_head::size;
    const auto payload = header + head->header;
    message.header.assign(header, payload);
    message.payload.assign(payload, payload + head->payload);
    heard_.erase(heard_.begin(), payload + head->payload);
    return message;
  }

  std::unique_ptr<detail::carrier_worker> worker_;
  detail::carrier_endpoint* endpoint_ = nullptr;
  owned_descriptor peer_;
  std::vector<std::byte> heard_;

 private:
  ::ssize_t take(std::span<std::byte> into) {
    const ::iovec part{into.data(), into.size()};
    if (session_) return session_->read(peer_.get(), {&part, 1}, scratch_);
    return ::recv(peer_.get(), into.data(), into.size(), MSG_DONTWAIT);
  }
  void shake_hands(int asking, int asked, detail::carrier_caller& caller) {
    const std::string token = token_file(folder_ / "servers").create("alice");
    token_file(folder_ / "clients").add("node7", token);
    auto clients = detail::make_tls({.tokens = folder_ / "clients", .log = log_.get()});
    auto servers = detail::make_tls({.tokens = folder_ / "servers", .log = log_.get()});
    ASSERT_TRUE(clients);
    ASSERT_TRUE(servers);
    tls_ = *servers;
    session_ = (*clients)->connect("node7:1");
    caller.tls = tls_->accept();
    tls_session::handshake one = tls_session::handshake::going_on;
    tls_session::handshake other = one;
    EXPECT_TRUE(soon([&] {
      if (one == tls_session::handshake::going_on) one = session_->shake(asking);
      if (other == tls_session::handshake::going_on) other = caller.tls->shake(asked);
      return one == tls_session::handshake::done && other == tls_session::handshake::done;
    }));
  }

  const temporary_directory folder_;
  std::unique_ptr<detail::logger> log_ = *detail::logger::make({}, "test");
  std::shared_ptr<detail::tls_context> tls_;
  std::unique_ptr<tls_session> session_;
  std::vector<std::byte> scratch_ = std::vector<std::byte>(detail::tls_context::scratch_size);
};

TEST_P(GivenUpSend, GoesOnAsACopyWhereItHasBegun) {
  for (const std::size_t heard :
       {std::size_t{0}, std::size_t{5}, std::size_t{40}, std::size_t{70}, std::size_t{100'000}}) {
    SCOPED_TRACE(heard);
    std::optional<std::vector<std::byte>> header(pattern(64, 3));
    std::optional<std::vector<std::byte>> payload(pattern(given_up_size, 4));
    told_end ended;
    void* const request = say(*header, *payload, ended);
    ASSERT_NE(request, nullptr);
    go_on();
    ASSERT_TRUE(hear(heard));
    ASSERT_FALSE(ended.status) << "the socket has taken all";
    EXPECT_EQ(withdraw(request, true), withdrawn_send::copied) << "it has begun";
    std::fill(header->begin(), header->end(), std::byte{0xEE});
    std::fill(payload->begin(), payload->end(), std::byte{0xEE});
    header.reset();
    payload.reset();
    say_short("behind");
    const heard_message whole = hear_message();
    EXPECT_TRUE(holds_pattern(whole.header, 3));
    ASSERT_EQ(whole.payload.size(), given_up_size);
    EXPECT_TRUE(holds_pattern(whole.payload, 4));
    EXPECT_EQ(hear_message().payload, bytes_of("behind"));
    EXPECT_TRUE(soon([&] {
      worker_->progress();
      return ended.status.has_value();
    }));
    EXPECT_EQ(ended.status, UCS_OK);
  }
}

TEST_P(GivenUpSend, IsDroppedWhereItHasNotBegunAndMayBe) {
  for (const bool may_drop : {true, false}) {
    const std::vector<std::byte> first = pattern(given_up_size, 1);
    std::optional<std::vector<std::byte>> second(pattern(given_up_size, 2));
    const std::vector<std::byte> third = pattern(given_up_size, 3);
    std::array<told_end, 3> ended;
    ASSERT_NE(say({}, first, ended[0]), nullptr);
    void* const waiting = say({}, *second, ended[1]);
    ASSERT_NE(waiting, nullptr);
    ASSERT_NE(say({}, third, ended[2]), nullptr);
    go_on();
    EXPECT_EQ(withdraw(waiting, may_drop),
              may_drop ? withdrawn_send::dropped : withdrawn_send::copied);
    std::fill(second->begin(), second->end(), std::byte{0xEE});
    second.reset();
    EXPECT_TRUE(holds_pattern(hear_message().payload, 1));
    if (!may_drop) {
      const heard_message copied = hear_message();
      EXPECT_EQ(copied.payload.size(), given_up_size);
      EXPECT_TRUE(holds_pattern(copied.payload, 2));
    }
    EXPECT_TRUE(holds_pattern(hear_message().payload, 3));
    EXPECT_TRUE(soon([&] {
      worker_->progress();
      return ended[2].status.has_value();
    }));
    EXPECT_EQ(ended[0].status, UCS_OK);
    EXPECT_EQ(ended[1].status, may_drop ? UCS_ERR_CANCELED : UCS_OK);
    EXPECT_EQ(ended[2].status, UCS_OK);
  }
}

TEST_P(GivenUpSend, HoldsUpNoFlush) {
  std::optional<std::vector<std::byte>> first(pattern(given_up_size, 1));
  std::optional<std::vector<std::byte>> second(pattern(given_up_size, 2));
  std::array<told_end, 3> ended;
  void* const begun = say({}, *first, ended[0]);
  void* const waiting = say({}, *second, ended[1]);
  ucp_request_param_t params = {};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  params.cb.send = [](void* request, ucs_status_t status, void* told) {
    static_cast<told_end*>(told)->status = status;
    detail::socket_api().request_free(request);
  };
  params.user_data = &ended[2];
  ASSERT_TRUE(UCS_PTR_IS_PTR(endpoint_->flush(params)));
  EXPECT_EQ(withdraw(waiting, true), withdrawn_send::dropped);
  EXPECT_EQ(withdraw(begun, true), withdrawn_send::copied);
  first.reset();
  second.reset();
  go_on();
  EXPECT_FALSE(ended[2].status);
  EXPECT_TRUE(holds_pattern(hear_message().payload, 1));
  EXPECT_TRUE(soon([&] {
    worker_->progress();
    return ended[2].status.has_value();
  }));
  EXPECT_EQ(ended[2].status, UCS_OK);
  EXPECT_TRUE(heard_.empty());
}

TEST_P(GivenUpSend, EndsWithItsConnection) {
  std::optional<std::vector<std::byte>> payload(pattern(given_up_size, 1));
  told_end ended;
  void* const request = say({}, *payload, ended);
  ASSERT_NE(request, nullptr);
  go_on();
  EXPECT_EQ(withdraw(request, true), withdrawn_send::copied);
  payload.reset();
  const ucp_request_param_t plain = {};
  const ucs_status_ptr_t closing = endpoint_->close(plain);
  go_on();
  EXPECT_EQ(ended.status, UCS_ERR_CANCELED);
  if (UCS_PTR_IS_PTR(closing)) detail::socket_api().request_free(closing);
}

/// Drives a worker on a thread, when a test wants it to.
class driven_at_times {
 public:
  explicit driven_at_times(worker& driven) : driven_(driven) { go(); }
  void go() {
    thread_ = std::jthread([this](const std::stop_token& stop) {
      while (!stop.stop_requested()) driven_.progress();
    });
  }
  /// From here on it takes nothing from its peers.
  void rest() {
    thread_.request_stop();
    thread_.join();
  }

 private:
  worker& driven_;
  std::jthread thread_;
};

/// A client of a server that rests in the middle.
class GivenUpByClient : public testing::TestWithParam<std::string> {
 protected:
  static server_options served(const url_scheme& by) {
    server_options made = by.server();
    made.worker.progress = progress_mode::caller;
    made.worker.thread_mode = thread_mode::multi;
    return made;
  }
  client connected() const {
    client_options options{.context = by_.context()};
    options.context.transports.clear();  // the URL says it
    options.worker.heartbeat_interval = 5s;
    options.worker.heartbeat_timeout = 60s;
    return client(url(serving_.url()), options);
  }

  const temporary_directory secrets_;
  const url_scheme by_{GetParam(), secrets_ / ""};
  std::vector<std::byte> memory_ = std::vector<std::byte>(std::size_t{16} << 20U);
  server serving_{served(by_)};
  const publication shown_ =
      serving_.publish("memory", std::span<std::byte>(memory_), access::read_write);
  driven_at_times driving_{serving_.worker()};
};

TEST_P(GivenUpByClient, IsAWriteThatLeavesMemoryAndConnection) {
  client writer = connected();
  remote_region opened = writer.open("memory", access::read_write);
  driving_.rest();
  for (int i = 0; i < 40; ++i) {  // far more copies than a connection may have
    std::vector<std::byte> bytes(memory_.size(), std::byte{1});
    request given_up = opened.start_write_at(0, bytes);
    given_up.wait_for(i == 0 ? 100ms : 0ms);
    given_up.cancel();
    std::error_code ec;
    given_up.wait(ec);
    ASSERT_EQ(ec, errc::canceled);
    std::fill(bytes.begin(), bytes.end(), std::byte{2});
  }
  EXPECT_FALSE(writer.status());
  driving_.go();
  const std::vector<std::byte> last(1000, std::byte{3});
  opened.write_at(memory_.size() - last.size(), last);
  std::error_code ec;
  opened.flush({}, ec);  // tells of those that were given up
  std::vector<std::byte> now(memory_.size());
  opened.read_at(0, now);
  EXPECT_TRUE(std::equal(last.begin(), last.end(), now.end() - 1000));
  EXPECT_EQ(std::count(now.begin(), now.end(), std::byte{2}), 0) << "memory that was given up";
  EXPECT_FALSE(writer.status());
}

TEST_P(GivenUpByClient, IsAMessageThatComesWhole) {
  constexpr std::size_t short_size = 4000;
  std::vector<std::vector<std::byte>> came;
  serving_.worker().on_message(
      7, [&](const message& said) { came.emplace_back(said.data().begin(), said.data().end()); });
  client writer = connected();
  remote_region opened = writer.open("memory", access::read_write);
  endpoint by = writer.connection();
  driving_.rest();
  std::vector<std::byte> bytes(memory_.size(), std::byte{1});
  request filling = opened.start_write_at(0, bytes);
  filling.wait_for(100ms);  // no more goes into the socket
  {
    std::vector<std::byte> text(short_size, std::byte{5});
    request given_up = by.start_send(active_message{7}, text);
    EXPECT_FALSE(given_up.wait_for(0ms));
    given_up.cancel();
    std::error_code ec;
    given_up.wait(ec);
    EXPECT_EQ(ec, errc::canceled);
    std::fill(text.begin(), text.end(), std::byte{6});
  }
  driving_.go();
  filling.wait();
  const std::vector<std::byte> text(short_size, std::byte{7});
  by.send(active_message{7}, text);
  opened.read_at(0, std::span(bytes).first(8));
  driving_.rest();
  ASSERT_FALSE(came.empty());
  EXPECT_EQ(came.back(), text);
  for (const std::vector<std::byte>& each : came) {
    EXPECT_EQ(each.size(), short_size);
    EXPECT_EQ(std::count(each.begin(), each.end(), std::byte{6}), 0);
  }
  driving_.go();
}

INSTANTIATE_TEST_SUITE_P(, GivenUpSend, testing::Values("socket", "tls", "unix"),
                         [](const auto& each) { return each.param; });
INSTANTIATE_TEST_SUITE_P(, GivenUpByClient, testing::Values("socket", "tls", "unix"),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace ucx::test
