// UCX's own tagged messages beside ours, over the worker and the endpoint of one connection.
#include <gtest/gtest.h>
#include <ucp/api/ucp.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "support/bytes/pattern.hpp"
#include "support/transports/connected_pair.hpp"
#include "ucx/context.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/worker.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

constexpr ucp_tag_t shared_tag = 7;
constexpr ucp_tag_t whole_tag = ~ucp_tag_t{0};

context_options with_tags() {
  context_options options = context_options_for(route::tcp_by_address);
  options.features = options.features | feature::tag;
  return options;
}

/// Two workers of one thread, and a connection between them.
class RawTags : public testing::Test {
 protected:
  void TearDown() override {
    const request closing = connection_.start_close();
    EXPECT_TRUE(until([&] { return closing.done(); }));
    EXPECT_FALSE(closing.error()) << closing.error().message();
  }

  bool until(const std::function<bool()>& done) {
    const auto limit = std::chrono::steady_clock::now() + 40s;
    while (!done()) {
      if (std::chrono::steady_clock::now() > limit) return false;
      sender_.progress();
      receiver_.progress();
    }
    return true;
  }
  /// Returns how what UCX has begun has ended.
  ucs_status_t outcome(ucs_status_ptr_t begun) {
    if (!UCS_PTR_IS_PTR(begun)) return UCS_PTR_RAW_STATUS(begun);
    EXPECT_TRUE(until([&] { return ucp_request_check_status(begun) != UCS_INPROGRESS; }));
    const ucs_status_t ended = ucp_request_check_status(begun);
    ucp_request_free(begun);
    return ended;
  }
  ucs_status_ptr_t raw_send(std::span<const std::byte> bytes) {
    const ucp_request_param_t params = {};
    return ucp_tag_send_nbx(connection_.native_handle(), bytes.data(), bytes.size(), shared_tag,
                            &params);
  }
  ucs_status_ptr_t raw_receive(std::span<std::byte> into) {
    const ucp_request_param_t params = {};
    return ucp_tag_recv_nbx(receiver_.native_handle(), into.data(), into.size(), shared_tag,
                            whole_tag, &params);
  }

  const context there_{with_tags()};
  const context here_{with_tags()};
  worker receiver_{there_};
  worker sender_{here_};
  endpoint connection_{sender_, receiver_.address()};
};

TEST_F(RawTags, AndOursOfTheSameTagReachEachItsOwnReceive) {
  ASSERT_TRUE(until([&] { return connection_.state() == connection_state::active; }));
  for (const std::size_t size : {std::size_t{10}, std::size_t{10'000}, std::size_t{1} << 20U}) {
    SCOPED_TRACE(size);
    std::vector<std::byte> raw_into(size);
    std::vector<std::byte> our_into(size);
    const std::vector<std::byte> raw_from = pattern(size, 1);
    const std::vector<std::byte> our_from = pattern(size, 2);
    request our_receive = receiver_.start_receive(shared_tag, our_into);
    ucs_status_ptr_t const received = raw_receive(raw_into);
    request our_send = connection_.start_send(shared_tag, our_from);
    ucs_status_ptr_t const sent = raw_send(raw_from);
    EXPECT_EQ(outcome(received), UCS_OK);
    EXPECT_EQ(outcome(sent), UCS_OK);
    ASSERT_TRUE(until([&] { return our_receive.done() && our_send.done(); }));
    EXPECT_FALSE(our_receive.error()) << our_receive.error().message();
    EXPECT_TRUE(holds_pattern(raw_into, 1));
    EXPECT_TRUE(holds_pattern(our_into, 2));
  }
}

TEST_F(RawTags, AreNotSeenByOurProbe) {
  ASSERT_TRUE(until([&] { return connection_.state() == connection_state::active; }));
  const std::vector<std::byte> from = pattern(10, 1);
  EXPECT_EQ(outcome(raw_send(from)), UCS_OK);
  ucp_tag_recv_info_t found = {};
  ASSERT_TRUE(until([&] {
    return ucp_tag_probe_nb(receiver_.native_handle(), shared_tag, whole_tag, 0, &found) != nullptr;
  }));
  EXPECT_EQ(found.length, 10U);
  EXPECT_FALSE(receiver_.probe(tag_match::any()));
  std::vector<std::byte> into(10);
  EXPECT_EQ(outcome(raw_receive(into)), UCS_OK);
  EXPECT_TRUE(holds_pattern(into, 1));
}

}  // namespace
}  // namespace ucx::test
