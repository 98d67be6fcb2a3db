// Memory that a process exposes by UCX's own calls (process/plain_peer.cpp), as regions and
// streams.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <ucp/api/ucp.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <sstream>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "plain_owner.hpp"
#include "support/bytes/hex.hpp"
#include "support/bytes/pattern.hpp"
#include "support/process/child_process.hpp"
#include "support/process/test_peer.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/error.hpp"
#include "ucx/remote_atomic.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/stream.hpp"
#include "ucx/worker.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr std::uint64_t letters_sum =
    (plain_size / 26) * (26 * 97 + 325) +
    (97 + 98 + 99 + 100 + 101 + 102 + 103 + 104 + 105 + 106 + 107 + 108 + 109 + 110);
static_assert(plain_size % 26 == 14);

bool letters(std::span<const std::byte> bytes, std::size_t from = 0) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] != static_cast<std::byte>('a' + (from + i) % 26)) return false;
  }
  return true;
}

bool is_newer_than(unsigned major, unsigned minor) {
  unsigned found[3] = {};
  ucp_get_version(&found[0], &found[1], &found[2]);
  return std::pair(found[0], found[1]) >= std::pair(major, minor);
}

/// Expects that a region is not opened because it can not be reached so; returns the words.
std::string why_not_opened(const endpoint& over, const remote_descriptor& memory,
                           const remote_region_options& options = {}) {
  try {
    const remote_region refused(over, memory, options);
  } catch (const error& why) {
    EXPECT_EQ(why.code(), errc::not_supported);
    return why.what();
  }
  ADD_FAILURE() << "it was opened";
  return {};
}

/// Waits without end for nobody: each use of a dead or stopped peer ends within this.
constexpr std::chrono::seconds plain_bound{20};

TEST(PlainPeer, OverTcpIsRefusedUnlessItIsTrusted) {
  plain_owner owner("tcp", "address", "own");
  plain_reader reader({"tcp"});
  const endpoint connection = reader.connect(owner.address());
  const std::string why = why_not_opened(connection, owner.descriptor());
  EXPECT_THAT(why, HasSubstr("only emulates RMA"));
  EXPECT_THAT(why, HasSubstr("trusted_peer"));
}

TEST(PlainPeer, ByAnotherMethodIsToldOfTheOnesThatThereAre) {
  plain_owner owner("tcp", "address", "own");
  plain_reader reader({"tcp"});
  const endpoint connection = reader.connect(owner.address());
  for (const transfer_method each :
       {transfer_method::message, transfer_method::mapped, transfer_method::cma}) {
    const std::string why =
        why_not_opened(connection, owner.descriptor(), {.transfer_method = each});
    EXPECT_THAT(why, HasSubstr("ask for transfer_method::rma"));
  }
}

class TrustedPlainPeer : public testing::TestWithParam<const char*> {
 protected:
  endpoint connect() {
    if (by_listener_) return endpoint(reader_.driven, owner_.listens(), {.plain_peer = true});
    return reader_.connect(owner_.address());
  }
  remote_region open(const endpoint& over) {
    return remote_region(over, owner_.descriptor(), {.trusted_peer = true});
  }

  const bool by_listener_ = std::string(GetParam()) == "listener";
  plain_owner owner_{"tcp", by_listener_ ? "127.0.0.1" : "address", "own"};
  plain_reader reader_{{"tcp"}};
};

TEST_P(TrustedPlainPeer, IsReadAndWritten) {
  const endpoint connection = connect();
  EXPECT_EQ(connection.state(), connection_state::active);
  remote_region region = open(connection);
  EXPECT_EQ(region.transfer_method(), transfer_method::rma);
  EXPECT_EQ(region.size(), plain_size);
  std::vector<std::byte> into(plain_size);
  region.read_at(0, into);
  EXPECT_TRUE(letters(into));
  region.read_at(77, std::span(into).first(8));
  EXPECT_TRUE(letters(std::span(into).first(8), 77));
  EXPECT_EQ(owner_.ask("sum"), std::to_string(letters_sum));
  const std::vector<std::byte> ones(plain_size, std::byte{1});
  region.write_at(0, ones);
  region.flush();
  EXPECT_EQ(owner_.ask("sum"), std::to_string(plain_size));
}

TEST_P(TrustedPlainPeer, OfWhateverKindIsLeftToUcx) {
  const endpoint connection = connect();
  remote_descriptor memory = owner_.descriptor(access::read);
  memory.kind = memory_kind::cuda;
  remote_region region(connection, memory, {.trusted_peer = true});
  EXPECT_EQ(region.transfer_method(), transfer_method::rma);
  std::vector<std::byte> into(1000);
  region.read_at(5, into);
  EXPECT_TRUE(letters(into, 5));
}

TEST_P(TrustedPlainPeer, IsAStream) {
  const endpoint connection = connect();
  owner_.ask("fill 10");
  {
    ucx::ostream out(open(connection));
    out << "a line\nanother\n";
    ASSERT_TRUE(out.flush());
  }
  ucx::istream in(open(connection));
  std::string line;
  ASSERT_TRUE(std::getline(in, line));
  EXPECT_EQ(line, "a line");
  ASSERT_TRUE(std::getline(in, line));
  EXPECT_EQ(line, "another");
}

TEST_P(TrustedPlainPeer, AnswersNoMessages) {
  endpoint connection = connect();
  std::error_code ec;
  connection.send(1, as_bytes(std::span("text")), {}, ec);
  EXPECT_EQ(ec, errc::not_supported);
  std::vector<std::byte> into(8);
  connection.receive(1, into, {}, ec);
  EXPECT_EQ(ec, errc::not_supported);
  remote_region region = open(connection);
  region.notify(1, {}, ec);
  EXPECT_EQ(ec, errc::not_supported);
  remote_atomic<std::uint64_t>(region, 0).load({}, ec);
  EXPECT_EQ(ec, errc::not_supported);
  region.read_at(0, into, {.verify = true}, ec);
  EXPECT_EQ(ec, errc::not_supported);
  EXPECT_EQ(region.content(), content_id());
  for (const transfer_method each :
       {transfer_method::message, transfer_method::mapped, transfer_method::cma}) {
    EXPECT_NE(region.why_not(each), "");
    const remote_region refused(connection, owner_.descriptor(),
                                {.transfer_method = each, .trusted_peer = true}, ec);
    EXPECT_EQ(ec, errc::not_supported);
  }
  region.read_at(0, into);
  EXPECT_TRUE(letters(into));
}

TEST_P(TrustedPlainPeer, ThatIsKilledEndsReads) {
  endpoint connection = connect();
  remote_region region = open(connection);
  std::vector<std::byte> into(plain_size);
  region.read_at(0, into);
  owner_.process().kill();
  const auto began = std::chrono::steady_clock::now();
  std::error_code ec;
  while (!ec && std::chrono::steady_clock::now() < began + plain_bound) {
    region.read_at(0, into, {.timeout = 1s}, ec);
  }
  EXPECT_TRUE(ec == errc::connection_reset || ec == errc::timed_out) << ec.message();
  // UCX tells of a death behind the transfer that it ended.
  while (connection.state() == connection_state::active &&
         std::chrono::steady_clock::now() < began + plain_bound) {
    reader_.driven.progress();
  }
  EXPECT_EQ(connection.state(), connection_state::failed);
}

TEST_P(TrustedPlainPeer, ThatStopsEndsReadsByTheirDeadline) {
  endpoint connection = connect();
  remote_region region = open(connection);
  std::vector<std::byte> into(plain_size);
  region.read_at(0, into);
  owner_.process().stop();
  std::error_code ec;
  region.read_at(0, into, {.timeout = 200ms}, ec);
  EXPECT_EQ(ec, errc::timed_out);
  EXPECT_EQ(connection.state(), connection_state::active);
  // This side is of use to another one meanwhile.
  plain_owner other("tcp", "address", "own");
  const endpoint again = reader_.connect(other.address());
  remote_region reopened(again, other.descriptor(), {.trusted_peer = true});
  reopened.read_at(0, into);
  EXPECT_TRUE(letters(into));
  owner_.process().resume();
  region.read_at(7, std::span(into).first(1000));
  EXPECT_TRUE(letters(std::span(into).first(1000), 7));
}

TEST_P(TrustedPlainPeer, ThatStopsEndsReadsOfAStreamByTheirDeadline) {
  endpoint connection = connect();
  const remote_region region = open(connection);
  std::string all(plain_size, '\0');
  const auto length = static_cast<std::streamsize>(plain_size);
  owner_.process().stop();
  ucx::istream in(region, {.timeout = 200ms});
  EXPECT_FALSE(in.read(all.data(), length));
  EXPECT_EQ(in.error(), errc::timed_out);
  {
    // So short that its first read lands in the buffer.
    ucx::istream destroyed(region, {.buffer_size = 1024, .timeout = 200ms});
    EXPECT_EQ(destroyed.get(), std::char_traits<char>::eof());
    EXPECT_EQ(destroyed.error(), errc::timed_out);
  }
  EXPECT_EQ(connection.state(), connection_state::active);
  owner_.process().resume();
  // What was given up arrives now, too.
  for (int i = 0; i < 3; ++i) {
    ucx::istream again(region);
    ASSERT_TRUE(again.read(all.data(), length));
    EXPECT_TRUE(letters(std::as_bytes(std::span(all))));
  }
  in.clear();
  in.seekg(0);
  ASSERT_TRUE(in.read(all.data(), length)) << in.error().message();
  EXPECT_TRUE(letters(std::as_bytes(std::span(all))));
}

TEST_P(TrustedPlainPeer, ThatStopsOutlivesTheEndOfItsConnection) {
  for (const std::size_t written : {std::size_t{0}, std::size_t{8}, plain_size}) {
    {
      endpoint connection = connect();
      remote_region region = open(connection);
      std::vector<std::byte> into(plain_size);
      region.read_at(0, into);
      owner_.process().stop();
      std::error_code ec;
      if (written > 0) {
        region.write_at(0, std::span(into).first(written), {.timeout = 200ms}, ec);
        EXPECT_TRUE(!ec || ec == errc::timed_out) << ec.message();  // sockets may take all
      } else {
        region.read_at(0, into, {.timeout = 200ms}, ec);
        EXPECT_EQ(ec, errc::timed_out);
      }
      connection.close(close_mode::abort);
      EXPECT_EQ(connection.state(), connection_state::closed);
    }
    owner_.process().resume();
    const endpoint again = connect();
    remote_region reopened = open(again);
    std::vector<std::byte> into(plain_size);
    for (int i = 0; i < 3; ++i) reopened.read_at(0, into);
    EXPECT_TRUE(letters(into));
    EXPECT_TRUE(owner_.process().running());
  }
}

TEST_P(TrustedPlainPeer, ThatIsSilentStaysConnected) {
  plain_reader impatient({"tcp"}, {.heartbeat_interval = 20ms, .heartbeat_timeout = 100ms});
  endpoint connection = by_listener_
                            ? endpoint(impatient.driven, owner_.listens(), {.plain_peer = true})
                            : impatient.connect(owner_.address());
  remote_region region = open(connection);
  const auto until = std::chrono::steady_clock::now() + 500ms;
  while (std::chrono::steady_clock::now() < until) impatient.driven.progress();
  std::vector<std::byte> into(plain_size);
  region.read_at(0, into);
  EXPECT_TRUE(letters(into));
}

INSTANTIATE_TEST_SUITE_P(By, TrustedPlainPeer, testing::Values("address", "listener"),
                         [](const auto& instance) { return std::string(instance.param); });

TEST(PlainPeer, ThatIsGoneIsNotConnectedTo) {
  plain_owner owner("tcp", "address", "own");
  plain_owner listening("tcp", "127.0.0.1", "own");
  owner.process().kill();
  listening.process().kill();
  plain_reader reader({"tcp"}, {.connect_timeout = 2s});
  endpoint connection(reader.driven, owner.address(), {.plain_peer = true});
  const auto began = std::chrono::steady_clock::now();
  while (connection.state() != connection_state::failed &&
         std::chrono::steady_clock::now() < began + plain_bound) {
    reader.driven.progress();
  }
  EXPECT_EQ(connection.state(), connection_state::failed);
  std::error_code ec;
  const endpoint refused(reader.driven, listening.listens(),
                         {.connect_timeout = plain_bound, .plain_peer = true}, ec);
  EXPECT_EQ(ec, errc::connection_refused);
}

// One host's memory: UCX maps what it allocated.

TEST(PlainPeerOfThisHost, IsMapped) {
  plain_owner owner("posix,cma,self", "address", "allocated");
  plain_reader reader({"posix", "cma", "self"});
  const endpoint connection = reader.connect(owner.address());
  remote_region region(connection, owner.descriptor());
  EXPECT_EQ(region.transfer_method(), transfer_method::rma);
  std::vector<std::byte> into(plain_size);
  region.read_at(0, into);
  EXPECT_TRUE(letters(into));
  const std::vector<std::byte> ones(plain_size, std::byte{1});
  region.write_at(0, ones);
  region.flush();
  EXPECT_EQ(owner.ask("sum"), std::to_string(plain_size));
  ucx::istream in(std::move(region));
  EXPECT_EQ(in.get(), 1);
}

TEST(PlainPeerOfThisHost, IsMappedWithoutCma) {
  plain_owner owner("posix,self", "address", "allocated");
  plain_reader reader({"posix", "self"});
  const endpoint connection = reader.connect(owner.address());
  remote_region region(connection, owner.descriptor());
  owner.process().stop();
  std::vector<std::byte> into(plain_size);
  region.read_at(0, into);
  EXPECT_TRUE(letters(into));
  const std::vector<std::byte> ones(plain_size, std::byte{1});
  region.write_at(0, ones);
  region.flush();
  owner.process().resume();
  EXPECT_EQ(owner.ask("sum"), std::to_string(plain_size));
}

TEST(PlainPeerOfThisHost, OfItsOwnMemoryIsReadByCma) {
  plain_owner owner("posix,cma,self", "address", "own");
  plain_reader reader({"posix", "cma", "self"});
  const endpoint connection = reader.connect(owner.address());
  if (!is_newer_than(1, 22)) {
    const std::string why = why_not_opened(connection, owner.descriptor(access::read));
    EXPECT_THAT(why, HasSubstr("UCX before 1.22 does not read it by CMA"));
    EXPECT_THAT(why, HasSubstr("UCP_MEM_MAP_ALLOCATE"));
    EXPECT_THAT(why, HasSubstr("trusted_peer"));
    GTEST_SKIP() << "this UCX does not read memory by CMA";
  }
  remote_region region(connection, owner.descriptor(access::read));
  std::vector<std::byte> into(plain_size);
  region.read_at(0, into);
  EXPECT_TRUE(letters(into));
  owner.process().stop();
  region.read_at(100, into = std::vector<std::byte>(1000));
  EXPECT_TRUE(letters(into, 100)) << "the system moves the bytes";
  owner.process().resume();
}

TEST(PlainPeerOfThisHost, OfItsOwnMemoryWithoutCmaIsRefused) {
  plain_owner owner("posix,self", "address", "own");
  plain_reader reader({"posix", "self"});
  const endpoint connection = reader.connect(owner.address());
  const std::string why = why_not_opened(connection, owner.descriptor(access::read));
  EXPECT_THAT(why, HasSubstr(is_newer_than(1, 22) ? "no transport \"cma\"" : "UCX before 1.22"));
  EXPECT_THAT(why, HasSubstr("UCP_MEM_MAP_ALLOCATE"));
  EXPECT_THAT(why, HasSubstr("trusted_peer"));
}

TEST(PlainPeerOfThisHost, OfItsOwnMemoryIsWrittenWhereItIsTrusted) {
  if (!is_newer_than(1, 22)) GTEST_SKIP() << "this UCX does not read memory by CMA";
  plain_owner owner("posix,cma,self", "address", "own");
  plain_reader reader({"posix", "cma", "self"});
  const endpoint connection = reader.connect(owner.address());
  EXPECT_THAT(why_not_opened(connection, owner.descriptor()), HasSubstr("trusted_peer"));
  remote_region region(connection, owner.descriptor(), {.trusted_peer = true});
  const std::vector<std::byte> ones(plain_size, std::byte{1});
  region.write_at(0, ones);
  region.flush();
  EXPECT_EQ(owner.ask("sum"), std::to_string(plain_size));
}

TEST(PlainPeerOfThisHost, ThatIsKilledEndsReadsOrLeavesTheBytes) {
  plain_owner owner("posix,cma,self", "address", "allocated");
  plain_reader reader({"posix", "cma", "self"});
  const endpoint connection = reader.connect(owner.address());
  remote_region region(connection, owner.descriptor());
  std::vector<std::byte> into(plain_size);
  region.read_at(0, into);
  owner.process().kill();
  std::error_code ec;
  region.read_at(0, into, {.timeout = 1s}, ec);
  EXPECT_TRUE(!ec || ec == errc::connection_reset || ec == errc::io_error || ec == errc::timed_out)
      << ec.message();
  EXPECT_TRUE(ec || letters(into)) << "the mapping keeps the last bytes";
}

/// A process that has UCX alone uses a region of this library's in another process.
class PlainUserOfOurRegion : public testing::TestWithParam<const char*> {
 protected:
  bool over_tcp() const { return std::string(GetParam()) == "tcp"; }
};

TEST_P(PlainUserOfOurRegion, ReadsAndWritesIt) {
  const std::string transports = over_tcp() ? "tcp" : "posix,cma,self";
  test_peer owner(over_tcp() ? "tcp" : "shared");
  const remote_descriptor memory = owner.allocate(plain_size, 7);
  std::ostringstream base;
  base << std::hex << memory.address;
  const auto use = [&](const char* way) {
    child_process user(
        sibling_program("ucxio-plain-peer"),
        {transports, way, to_hex(parse_worker_address(owner.ask("address")).native()),
         to_hex(memory.remote_key), base.str(), std::to_string(plain_size)});
    const std::string began = user.read_line(60s).value_or("nothing");
    EXPECT_TRUE(began.starts_with("moving ")) << began;
    user.write_line("enough");
    EXPECT_EQ(user.read_line(60s), "ended 0");
    return began.substr(began.rfind(' ') + 1);
  };
  std::uint64_t sum = 0;
  for (const std::byte each : pattern(plain_size, 7)) sum += std::to_integer<std::uint64_t>(each);
  EXPECT_EQ(use("read"), std::to_string(sum));
  EXPECT_EQ(owner.ask("holds 7"), "yes") << "a read changed it";
  use("write");
  EXPECT_EQ(owner.ask("holds 7"), "no");
}

INSTANTIATE_TEST_SUITE_P(Over, PlainUserOfOurRegion, testing::Values("tcp", "host"),
                         [](const auto& instance) { return std::string(instance.param); });

}  // namespace
}  // namespace ucx::test
