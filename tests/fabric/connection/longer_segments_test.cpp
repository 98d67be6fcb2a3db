// A peer that sends by UCX, and has longer segments than we do.
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <ucp/api/ucp.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "support/basics/soon.hpp"
#include "support/transports/connected_pair.hpp"
#include "support/transports/foreign_ucx.hpp"
#include "support/transports/network.hpp"
#include "ucx/listener.hpp"
#include "ucx/version.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

/// UCX is told this by the environment, in which nothing stands for the rest of the test.
class scoped_variable {
 public:
  scoped_variable(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~scoped_variable() { ::unsetenv(name_); }
  scoped_variable(const scoped_variable&) = delete;
  scoped_variable& operator=(const scoped_variable&) = delete;

 private:
  const char* name_;
};

/// UCX by hand: each message is one piece, as long as its segments allow.
class foreign_sender {
 public:
  foreign_sender() {
    const scoped_variable sent("UCX_TCP_TX_SEG_SIZE", "4m");
    const scoped_variable received("UCX_TCP_RX_SEG_SIZE", "4m");
    const scoped_variable eager("UCX_RNDV_THRESH", "inf");
    const scoped_variable copied("UCX_ZCOPY_THRESH", "inf");
    context_ = make_foreign_context(context_options_for(route::tcp_by_listener));
    worker_ = make_foreign_worker(context_, foreign_threads::one_by_one);
  }
  ~foreign_sender() {
    if (endpoint_ != nullptr) leave();
    give_back(worker_);
    give_back(context_);
  }
  foreign_sender(const foreign_sender&) = delete;
  foreign_sender& operator=(const foreign_sender&) = delete;

  void connect(const socket_address& to) {
    ::ucp_ep_params_t params = {};
    params.field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR;
    params.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER;
    params.sockaddr = {to.native(), to.native_size()};
    connect(params);
  }
  void connect(const worker_address& to) {
    ::ucp_ep_params_t params = {};
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    params.address = reinterpret_cast<const ::ucp_address_t*>(to.native().data());
    connect(params);
  }
  /// The bytes stay until it is gone.
  void send(std::span<const std::byte> bytes) {
    if (UCS_PTR_IS_PTR(sending_)) ::ucp_request_free(sending_);
    const ::ucp_request_param_t none = {};
    sending_ = ::ucp_am_send_nbx(endpoint_, 255, nullptr, 0, bytes.data(), bytes.size(), &none);
  }
  /// Returns whether it was sent, and nothing went wrong.
  bool has_sent() const { return sending_ == nullptr || status() == UCS_OK; }
  void progress() { ::ucp_worker_progress(worker_); }
  void leave() {
    ::ucp_request_param_t force = {};
    force.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    force.flags = UCP_EP_CLOSE_FLAG_FORCE;
    const ::ucs_status_ptr_t closing = ::ucp_ep_close_nbx(endpoint_, &force);
    endpoint_ = nullptr;
    while (UCS_PTR_IS_PTR(closing) && ::ucp_request_check_status(closing) == UCS_INPROGRESS) {
      progress();
    }
    if (UCS_PTR_IS_PTR(closing)) ::ucp_request_free(closing);
    if (UCS_PTR_IS_PTR(sending_)) ::ucp_request_free(sending_);
  }

 private:
  void connect(::ucp_ep_params_t& params) {
    params.field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
    params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    params.err_handler.cb = [](void*, ::ucp_ep_h, ::ucs_status_t) {};
    ASSERT_EQ(::ucp_ep_create(worker_, &params, &endpoint_), UCS_OK);
  }
  ::ucs_status_t status() const {
    return UCS_PTR_IS_PTR(sending_) ? ::ucp_request_check_status(sending_)
                                    : UCS_PTR_STATUS(sending_);
  }

  ::ucp_context_h context_ = nullptr;
  ::ucp_worker_h worker_ = nullptr;
  ::ucp_ep_h endpoint_ = nullptr;
  ::ucs_status_ptr_t sending_ = nullptr;
};

/// Reads, and leaves, what lies unread in one of this process's sockets, which has got much of it.
std::vector<char> unread_bytes() {
  constexpr int much = 32 << 10;
  for (int number = 0; number < 1000; ++number) {
    int kind = 0;
    ::socklen_t size = sizeof kind;
    if (::getsockopt(number, SOL_SOCKET, SO_TYPE, &kind, &size) != 0 || kind != SOCK_STREAM)
      continue;
    int waiting = 0;
    if (::ioctl(number, FIONREAD, &waiting) != 0 || waiting < much) continue;
    std::vector<char> bytes(much);
    const ::ssize_t got = ::recv(number, bytes.data(), bytes.size(), MSG_PEEK | MSG_DONTWAIT);
    if (got == much) return bytes;
  }
  return {};
}

/// Returns the length of the longest piece that begins in these bytes: UCX has its number, a byte,
/// and its length, four, in front of each.
std::size_t longest_piece(const std::vector<char>& bytes) {
  constexpr std::size_t header = 5;
  std::size_t longest = 0;
  for (std::size_t at = 0; at + header <= bytes.size();) {
    std::uint32_t length = 0;
    std::memcpy(&length, bytes.data() + at + 1, sizeof length);
    longest = std::max<std::size_t>(longest, length);
    at += header + length;
  }
  return longest;
}

/// UCX 1.13.1 cuts what is sent before the connection is there, and nothing later: longer pieces
/// end the process that gets them.
bool keeps_to_it_when_connected() { return ucx_version() >= version_number{1, 14, 0}; }

class LongerSegments : public testing::TestWithParam<route> {};

/// UCX itself would write what is too long behind its buffer, or end the process.
TEST_P(LongerSegments, OfAPeerAreCutToOurs) {
  if (goes_over_verbs()) GTEST_SKIP() << "these are TCP's segments";
  const context ours(context_options_for(GetParam()));
  worker owner(ours);
  const listener knocked(owner, socket_address("127.0.0.1:0"));
  const std::size_t segment = (std::size_t{1} << 20U) + 4096;  // ours, as it is by default
  const std::vector<std::byte> message(std::size_t{3} << 20U);
  for (int i = 0; i < 2; ++i) {
    foreign_sender sender;
    if (GetParam() == route::tcp_by_listener) {
      sender.connect(knocked.address());
    } else {
      sender.connect(owner.address());
    }
    const auto drive = [&](auto done) {
      const auto end = std::chrono::steady_clock::now() + 20s;
      while (!done() && std::chrono::steady_clock::now() < end) {
        sender.progress();
        owner.progress();
      }
      return done();
    };
    if (keeps_to_it_when_connected()) {
      sender.send(std::span(message).first(1));
      ASSERT_TRUE(drive([&] { return sender.has_sent(); })) << "not connected";
      // What comes from here on is left in the socket for a look at it.
      for (int round = 0; round < 1000; ++round) owner.progress();
    }
    sender.send(message);
    if (keeps_to_it_when_connected()) {
      std::vector<char> unread;
      ASSERT_TRUE(soon([&] {
        for (int round = 0; round < 1000; ++round) sender.progress();
        unread = unread_bytes();
        return !unread.empty();
      }));
      const std::size_t longest = longest_piece(unread);
      ASSERT_GT(longest, segment / 2) << "no piece of the message";
      ASSERT_LE(longest, segment) << "the owner has no room for it";
    }
    ASSERT_TRUE(drive([&] { return sender.has_sent(); }));
    sender.leave();  // in the middle, where the owner has not taken it all
    for (int round = 0; round < 1000; ++round) owner.progress();
  }
  // Who speaks our protocol is served as before.
  const context theirs(context_options_for(GetParam()));
  worker reader(theirs, {.progress = progress_mode::sleeping_thread});
  const endpoint connection(reader, knocked.address(), {.wait = connect_wait::none});
  const auto end = std::chrono::steady_clock::now() + 20s;
  while (connection.state() == connection_state::connecting &&
         std::chrono::steady_clock::now() < end) {
    owner.progress();
  }
  EXPECT_EQ(connection.state(), connection_state::active);
}

/// UCX 1.13.1 does not keep to what a worker address says.
std::vector<route> routes_that_are_told() {
  if (!keeps_to_it_when_connected()) return {route::tcp_by_listener};
  return {route::tcp_by_listener, route::tcp_by_address};
}

INSTANTIATE_TEST_SUITE_P(Routes, LongerSegments, testing::ValuesIn(routes_that_are_told()),
                         [](const auto& instance) { return to_string(instance.param); });

}  // namespace
}  // namespace ucx::test
