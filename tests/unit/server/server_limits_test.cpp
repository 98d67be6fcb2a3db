// What the clients of a server may use, and that others are left alone. Over UCX those who come by
// the listener are one identity, and those by worker address another.
#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/bytes/pattern.hpp"
#include "support/files/store_directories.hpp"
#include "support/simulated/simulated_server.hpp"
#include "ucx/client.hpp"
#include "ucx/error.hpp"
#include "ucx/publication.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/server.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class ServerLimits : public Store {
 protected:
  void serve(const server_limits& limits) {
    simulated_server_options options;
    options.context.share_memory = false;
    options.context.log = {.level = log_level::warning,
                           .sink = [this](log_level, std::string_view line) { told_ += line; }};
    options.server.limits = limits;
    options.client.worker.connect_timeout = 2s;
    options.pause = std::chrono::microseconds(50);
    served_.emplace(options);
    server& serving = served_->server();
    shown_.push_back(serving.publish_store(directory_ / ""));
    for (const char* name : {"x", "y", "z"}) {
      shown_.push_back(serving.publish(name, std::span(memory_), access::read_write));
    }
  }
  client connect(bool by_listener = true) { return served_->connect(by_listener); }

  static std::error_code open(client& by, std::string_view name, std::vector<remote_region>& into) {
    std::error_code ec;
    remote_region made = by.open(name, access::read, {}, ec);
    if (!ec) into.push_back(std::move(made));
    return ec;
  }
  static std::error_code stat(client& by) {
    std::error_code ec;
    static_cast<void>(by.stat("x", {}, ec));
    return ec;
  }

  std::vector<std::byte> memory_ = pattern(std::size_t{4} << 20U);
  std::string told_;
  std::optional<simulated_server> served_;
  std::vector<publication> shown_;
};

TEST_F(ServerLimits, BoundTheConnectionsOfAnIdentity) {
  serve({.per_identity = {.connections = 2}});
  std::vector<std::unique_ptr<client>> two;
  for (int i = 0; i < 2; ++i) two.push_back(std::make_unique<client>(connect()));
  std::error_code ec;
  {
    const client third = served_->connect(ec);
    EXPECT_EQ(ec, errc::busy);
  }
  EXPECT_THAT(told_, HasSubstr("anybody at address 127.0.0.1: refused"));
  client other = connect(false);
  EXPECT_FALSE(stat(other));
  EXPECT_FALSE(stat(*two.front()));
  two.pop_back();
  served_->network.advance(2s);
  client late = connect();
  EXPECT_FALSE(stat(late)) << "one has ended";
}

TEST_F(ServerLimits, BoundTheConnectionsOfAnAddressAndOfAll) {
  serve({.per_identity = {}, .per_address = {.connections = 1}, .in_all = {.connections = 2}});
  const client first = connect();
  std::error_code ec;
  const client second = served_->connect(ec);
  EXPECT_EQ(ec, errc::busy);
  const client by_worker_address = connect(false);
  const client third = served_->connect(ec, false);
  EXPECT_EQ(ec, errc::busy);
  EXPECT_THAT(told_, HasSubstr("the server: refused"));
}

TEST_F(ServerLimits, BoundOpenNamesOfAllKinds) {
  serve({.per_identity = {.open_names = 3}});
  client one = connect();
  client two = connect();
  std::vector<remote_region> ones;
  std::vector<remote_region> twos;
  EXPECT_FALSE(open(one, "x", ones));
  EXPECT_FALSE(open(one, "one", ones));
  EXPECT_FALSE(open(two, "x", twos));
  EXPECT_EQ(open(one, "y", ones), errc::too_many_client_files);
  EXPECT_EQ(open(two, "a/two", twos), errc::too_many_client_files);
  EXPECT_FALSE(open(one, "x", ones)) << "it is open";
  EXPECT_THAT(told_, HasSubstr("as many open names as the limit allows (3)"));
  client other = connect(false);
  std::vector<remote_region> others;
  EXPECT_FALSE(open(other, "z", others));
  ones.clear();
  served_->network.advance(1s);
  EXPECT_FALSE(open(two, "a/two", twos)) << "they were let go of";
  EXPECT_FALSE(open(two, "y", twos));
  EXPECT_EQ(open(two, "z", twos), errc::too_many_client_files);
}

TEST_F(ServerLimits, GiveOpenNamesBackWithTheConnection) {
  serve({.per_identity = {.open_names = 1}});
  std::vector<remote_region> opened;
  std::optional<client> first(connect());
  EXPECT_FALSE(open(*first, "one", opened));
  client second = connect();
  EXPECT_EQ(open(second, "x", opened), errc::too_many_client_files);
  opened.clear();
  first.reset();
  served_->network.advance(2s);
  EXPECT_FALSE(open(second, "x", opened));
}

TEST_F(ServerLimits, BoundTheRequestsOfASecond) {
  serve({.per_identity = {.requests_per_second = 10}});
  client one = connect();
  client other = connect(false);
  int served = 0;
  while (served < 100 && !stat(one)) ++served;
  EXPECT_GE(served, 10);
  EXPECT_LT(served, 15) << "as far as simulated time has passed";
  EXPECT_EQ(stat(one), errc::busy);
  EXPECT_THAT(told_, HasSubstr("requests a second"));
  EXPECT_FALSE(stat(other));
  served_->network.advance(1s);
  EXPECT_FALSE(stat(one));
}

TEST_F(ServerLimits, CountAccessesByMessageAsRequests) {
  serve({.per_identity = {.requests_per_second = 10}});
  client one = connect();
  remote_region region = one.open("x", access::read_write);
  ASSERT_EQ(region.transfer_method(), transfer_method::message);
  std::array<std::byte, 8> bytes = {};
  std::error_code ec;
  int served = 0;
  while (served < 100 && !ec) {
    region.read_at(0, bytes, {}, ec);
    if (!ec) ++served;
  }
  EXPECT_EQ(ec, errc::busy);
  EXPECT_LT(served, 15);
  served_->network.advance(1s);
  region.write_at(0, bytes, {}, ec);
  if (!ec) region.flush({}, ec);
  EXPECT_FALSE(ec);
  for (int i = 0; i < 100 && !ec; ++i) {
    region.write_at(0, bytes, {}, ec);
    if (!ec) region.flush({}, ec);
  }
  EXPECT_EQ(ec, errc::busy);
}

TEST_F(ServerLimits, BoundBytesInFlight) {
  const std::size_t half = memory_.size() / 2;
  serve({.per_identity = {.bytes_in_flight = memory_.size()}});
  client one = connect();
  client other = connect(false);
  remote_region region = one.open("x");
  remote_region others = other.open("x");
  ASSERT_EQ(region.transfer_method(), transfer_method::message);
  std::vector<std::vector<std::byte>> into(4, std::vector<std::byte>(half));
  std::vector<request> reads;
  for (std::size_t i = 0; i < 3; ++i) reads.push_back(region.start_read_at(0, into[i]));
  request beside = others.start_read_at(0, into[3]);
  std::error_code ec;
  reads[0].wait(ec);
  EXPECT_FALSE(ec);
  reads[1].wait(ec);
  EXPECT_FALSE(ec);
  reads[2].wait(ec);
  EXPECT_EQ(ec, errc::busy);
  beside.wait(ec);
  EXPECT_FALSE(ec) << "another one";
  region.read_at(0, into[2], {}, ec);
  EXPECT_FALSE(ec) << "they were taken";
  std::vector<std::byte> all(memory_.size());
  region.read_at(0, all, {}, ec);
  EXPECT_FALSE(ec);
  EXPECT_THAT(told_, HasSubstr("bytes in flight"));
}

}  // namespace
}  // namespace ucx::test
