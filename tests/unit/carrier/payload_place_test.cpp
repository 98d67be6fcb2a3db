// Long payloads over sockets: where they go, and what becomes of memory that is taken back.
#include <sys/socket.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/owned_descriptor.hpp"
#include "carrier/carrier_endpoint.hpp"
#include "carrier/carrier_listener.hpp"
#include "carrier/carrier_worker.hpp"
#include "carrier/segment.hpp"
#include "ucx/client.hpp"
#include "ucx/context.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/request.hpp"
#include "ucx/server.hpp"
#include "ucx/url.hpp"
#include "unit/carrier/bare_peer.hpp"

namespace ucx::detail {
namespace {

using std::chrono_literals::operator""s;
using testing::Each;
using testing::ElementsAre;

constexpr unsigned spoken_id = 255;
constexpr std::size_t long_size = std::size_t{100} << 10U;

/// An endpoint whose peer is a bare socket, and a handler that writes down what it is told.
class PayloadPlace : public testing::Test {
 protected:
  struct delivery {
    const void* at = nullptr;
    std::vector<std::byte> payload;
  };

  void SetUp() override {
    ASSERT_EQ(worker_.open(), UCS_OK);
    ucp_am_handler_param_t handler = {};
    handler.id = spoken_id;
    handler.cb = &PayloadPlace::heard;
    handler.arg = this;
    worker_.set_handler(handler);
    peer_ = test::accept_bare_peer(worker_, ucp_ep_params_t{}, AF_INET, endpoint_);
    ASSERT_NE(endpoint_, nullptr);
    say(segment_head{1, 0, spoken_id}.encode());
    say(std::vector<std::byte>{std::byte{1}});
    deliveries_.clear();
    taken_.reset();
    announced_ = 0;
  }
  void say(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ::ssize_t sent = ::send(peer_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      const bool is_full = sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
      ASSERT_TRUE(sent >= 0 || is_full) << std::strerror(errno);
      if (sent > 0) bytes = bytes.subspan(static_cast<std::size_t>(sent));
      for (int rounds = 0; rounds < 8; ++rounds) worker_.progress();
    }
  }
  /// A head, a header of one byte, and so much of the payload.
  void begin_long(std::size_t part) {
    say(segment_head{static_cast<std::uint32_t>(long_size), 1, spoken_id}.encode());
    say(std::vector<std::byte>{std::byte{9}});
    say(std::span(sent_).first(part));
  }
  void say_short() {
    say(segment_head{1, 0, spoken_id}.encode());
    say(std::vector<std::byte>{std::byte{2}});
  }

  carrier_worker worker_{"test", nullptr};
  carrier_endpoint* endpoint_ = nullptr;
  owned_descriptor peer_;
  std::vector<std::byte> place_ = std::vector<std::byte>(long_size);
  std::size_t offered_ = long_size;  // how much of it the handler gives
  std::vector<delivery> deliveries_;
  unsigned announced_ = 0;
  std::optional<bool> taken_;
  std::vector<std::byte> sent_ = [] {
    std::vector<std::byte> bytes(long_size);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 7 >> 2U);
    return bytes;
  }();

 private:
  static ucs_status_t heard(void* self, const void*, std::size_t, void* data, std::size_t size,
                            const ucp_am_recv_param_t* params) {
    auto& test = *static_cast<PayloadPlace*>(self);
    if ((params->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) {
      ++test.announced_;
      if (test.offered_ != 0) {
        auto& from = *static_cast<carrier_endpoint*>(data);
        test.taken_ = from.give_place(std::span(test.place_).first(test.offered_));
      }
      return UCS_OK;
    }
    const std::span<const std::byte> payload(static_cast<const std::byte*>(data), size);
    test.deliveries_.push_back({data, {payload.begin(), payload.end()}});
    return UCS_OK;
  }
};

TEST_F(PayloadPlace, TakesWhatComes) {
  begin_long(1000);
  EXPECT_EQ(announced_, 1U);
  EXPECT_TRUE(taken_.value_or(false));
  EXPECT_TRUE(deliveries_.empty());
  say(std::span(sent_).subspan(1000));
  say_short();
  ASSERT_EQ(deliveries_.size(), 2U);
  EXPECT_EQ(deliveries_[0].at, place_.data());
  EXPECT_EQ(place_, sent_);
  EXPECT_THAT(deliveries_[1].payload, ElementsAre(std::byte{2}));
}

TEST_F(PayloadPlace, IsTheCarriersWhereTheHandlerNamesNone) {
  offered_ = 0;
  begin_long(1000);
  say(std::span(sent_).subspan(1000));
  ASSERT_EQ(deliveries_.size(), 1U);
  EXPECT_EQ(deliveries_[0].payload, sent_);
  EXPECT_THAT(place_, Each(std::byte{0}));
}

TEST_F(PayloadPlace, HasToHaveThePayloadsSize) {
  offered_ = long_size - 1;
  begin_long(1000);
  EXPECT_FALSE(taken_.value_or(true));
  say(std::span(sent_).subspan(1000));
  ASSERT_EQ(deliveries_.size(), 1U);
  EXPECT_EQ(deliveries_[0].payload, sent_);
}

/// It is not written from then on; the connection goes on behind the message.
TEST_F(PayloadPlace, IsTakenBackInTheMiddle) {
  begin_long(1000);
  worker_.withdraw_place(endpoint_);
  std::fill(place_.begin(), place_.end(), std::byte{0x55});
  say(std::span(sent_).subspan(1000));
  EXPECT_THAT(place_, Each(std::byte{0x55}));
  EXPECT_TRUE(deliveries_.empty());
  say_short();
  ASSERT_EQ(deliveries_.size(), 1U);
  EXPECT_THAT(deliveries_[0].payload, ElementsAre(std::byte{2}));
  begin_long(long_size);
  EXPECT_EQ(place_, sent_);
}

TEST_F(PayloadPlace, EndsWithTheConnection) {
  begin_long(1000);
  const void* const gone = endpoint_;
  const ucp_request_param_t plain = {};
  endpoint_->close(plain);
  worker_.withdraw_place(gone);
  for (int rounds = 0; rounds < 8; ++rounds) worker_.progress();
  EXPECT_TRUE(deliveries_.empty());
}

/// AddressSanitizer sees what is written to memory that was freed.
TEST(SocketRead, LeavesMemoryThatWasGivenUp) {
  server serving(
      {.bind = "127.0.0.1:0", .context = {.transports = {"socket"}, .share_memory = false}});
  std::vector<std::byte> memory(std::size_t{4} << 20U, std::byte{7});
  const publication shown = serving.publish("memory", std::span(memory));
  client reader(url(serving.url()), {.context = {.share_memory = false}});
  remote_region opened = reader.open("memory");
  for (int i = 0; i < 50; ++i) {
    std::vector<std::byte> bytes(memory.size());
    {
      request given_up = opened.start_read_at(0, bytes);
      given_up.wait_for(std::chrono::microseconds(100 * i));
      given_up.cancel();
      std::error_code ec;
      given_up.wait(ec);
    }
    std::vector<std::byte>(memory.size()).swap(bytes);
  }
  std::vector<std::byte> bytes(memory.size());
  opened.read_at(0, bytes);
  EXPECT_EQ(bytes, memory);
}

}  // namespace
}  // namespace ucx::detail
