#include "ucx/socket_address.hpp"

#include <gtest/gtest.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/un.h>
#include <chrono>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <unordered_set>
#include <vector>

#include "ucx/error.hpp"

namespace ucx {
namespace {

TEST(SocketAddress, IsEmptyByDefault) {
  const socket_address none;
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(none.native_size(), 0U);
  EXPECT_EQ(none.port(), 0U);
  EXPECT_EQ(none.host(), "");
  EXPECT_FALSE(none.is_v4() || none.is_v6() || none.is_loopback() || none.is_wildcard());
  EXPECT_EQ(to_string(none), "(none)");
}

TEST(SocketAddress, PrintsWhatItRead) {
  for (const char* const text :
       {"127.0.0.1:7471", "0.0.0.0:0", "255.255.255.255:65535", "[::1]:7471", "[::]:1",
        "[2001:db8::42]:443", "[fe80::1%lo]:9", "[::ffff:10.0.0.7]:80"}) {
    const socket_address address(text);
    EXPECT_FALSE(address.empty());
    EXPECT_EQ(to_string(address), text);
    EXPECT_EQ(socket_address(to_string(address)), address);
  }
}

TEST(SocketAddress, PrintsTheShortForm) {
  EXPECT_EQ(to_string(socket_address("[2001:DB8:0:0:0:0:0:42]:1")), "[2001:db8::42]:1");
}

TEST(SocketAddress, TellsHostAndPort) {
  const socket_address v6("[2001:db8::42]:443");
  EXPECT_TRUE(v6.is_v6());
  EXPECT_EQ(v6.host(), "2001:db8::42");
  EXPECT_EQ(v6.port(), 443U);
  const socket_address v4("10.0.0.7:7471");
  EXPECT_TRUE(v4.is_v4());
  EXPECT_EQ(v4.host(), "10.0.0.7");
  EXPECT_EQ(v4.port(), 7471U);
}

TEST(SocketAddress, IsMadeOfHostAndPort) {
  EXPECT_EQ(socket_address("10.0.0.7", 7471), socket_address("10.0.0.7:7471"));
  EXPECT_EQ(socket_address("::1", 7471), socket_address("[::1]:7471"));
}

TEST(SocketAddress, ReadsNothingElse) {
  using namespace std::string_literals;
  for (const std::string& text : {""s,
                                  ":"s,
                                  "127.0.0.1"s,
                                  "127.0.0.1:"s,
                                  ":7471"s,
                                  "127.0.0.1:65536"s,
                                  "127.0.0.1:99999999999999999999"s,
                                  "127.0.0.1:-1"s,
                                  "127.0.0.1:+1"s,
                                  "127.0.0.1:01"s,
                                  "127.0.0.1: 1"s,
                                  "127.0.0.1:1 "s,
                                  "127.0.0.1:1x"s,
                                  "127.0.0.1:0x10"s,
                                  " 127.0.0.1:1"s,
                                  "127.0.0.1 :1"s,
                                  "127.0.1:1"s,
                                  "127.0.0.256:1"s,
                                  "127.0.0.1.1:1"s,
                                  "0127.0.0.1:1"s,
                                  "127.0.0.1\0:1"s,
                                  "127.0.0.1:1\0"s,
                                  "127.0.0.1\0x:1"s,
                                  "localhost:7471"s,
                                  "*:7471"s,
                                  "::1:7471"s,
                                  "[::1]"s,
                                  "[::1]:"s,
                                  "[::1:7471"s,
                                  "::1]:7471"s,
                                  "[::1]7471"s,
                                  "[[::1]]:7471"s,
                                  "[]:7471"s,
                                  "[127.0.0.1]:7471"s,
                                  "[::1::]:1"s,
                                  "[12345::1]:1"s,
                                  "[fe80::1%]:1"s,
                                  "[fe80::1%0]:1"s,
                                  "[fe80::1%4294967296]:1"s,
                                  "[fe80::1%nosuchinterface0]:1"s,
                                  "[fe80::1%lo%lo]:1"s,
                                  "[fe80::1%lo\0]:1"s,
                                  "127.0.0.1%lo:1"s,
                                  "ucx://127.0.0.1:1"s,
                                  std::string(100000, ':'),
                                  std::string(100000, '1').append(":1")}) {
    std::error_code ec;
    EXPECT_TRUE(socket_address(text, ec).empty()) << text.substr(0, 60);
    EXPECT_EQ(ec, errc::bad_address) << text.substr(0, 60);
  }
}

TEST(SocketAddress, OfAHostReadsNothingElse) {
  for (const char* const host : {"", "localhost", "[::1]", "127.0.0.1:1", "::1 ", "fe80::1%"}) {
    std::error_code ec;
    EXPECT_TRUE(socket_address(host, 1, ec).empty()) << host;
    EXPECT_EQ(ec, errc::bad_address) << host;
    EXPECT_THROW(socket_address(host, 1), error) << host;
  }
}

TEST(SocketAddress, QuotesTheTextThatItCanNotRead) {
  try {
    socket_address("node7:seven");
    FAIL() << "read";
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), errc::bad_address);
    EXPECT_NE(std::string(failure.what()).find("\"node7:seven\""), std::string::npos)
        << failure.what();
  }
}

TEST(SocketAddress, ClearsTheErrorOfAnEarlierCall) {
  std::error_code ec = errc::timed_out;
  const socket_address read("127.0.0.1:1", ec);
  EXPECT_FALSE(ec);
  EXPECT_FALSE(read.empty());
}

TEST(SocketAddress, ScopesByNameOrNumber) {
  const unsigned index = ::if_nametoindex("lo");
  ASSERT_NE(index, 0U);
  const socket_address by_name("[fe80::1%lo]:1");
  EXPECT_EQ(by_name, socket_address("[fe80::1%" + std::to_string(index) + "]:1"));
  EXPECT_NE(by_name, socket_address("[fe80::1]:1"));
  // An interface that is gone by now keeps its number.
  const socket_address gone("[fe80::1%4000000000]:1");
  EXPECT_EQ(to_string(gone), "[fe80::1%4000000000]:1");
  EXPECT_LT(by_name, gone);
}

TEST(SocketAddress, KnowsLoopbackAndWildcard) {
  for (const char* const text :
       {"127.0.0.1:1", "127.255.0.3:1", "[::1]:1", "[::ffff:127.0.0.1]:1"}) {
    EXPECT_TRUE(socket_address(text).is_loopback()) << text;
    EXPECT_FALSE(socket_address(text).is_wildcard()) << text;
  }
  for (const char* const text : {"0.0.0.0:1", "[::]:1", "[::ffff:0.0.0.0]:1"}) {
    EXPECT_TRUE(socket_address(text).is_wildcard()) << text;
    EXPECT_FALSE(socket_address(text).is_loopback()) << text;
  }
  for (const char* const text : {"128.0.0.1:1", "10.0.0.1:1", "[::2]:1", "[::ffff:10.0.0.1]:1"}) {
    EXPECT_FALSE(socket_address(text).is_loopback()) << text;
    EXPECT_FALSE(socket_address(text).is_wildcard()) << text;
  }
}

TEST(SocketAddress, ChangesItsPort) {
  EXPECT_EQ(socket_address("10.0.0.7:1").with_port(65535), socket_address("10.0.0.7:65535"));
  EXPECT_EQ(socket_address("[::1]:1").with_port(0), socket_address("[::1]:0"));
  EXPECT_TRUE(socket_address().with_port(7).empty());
  EXPECT_EQ(socket_address().with_port(7), socket_address());
}

TEST(SocketAddress, OrdersByFamilyHostPortAndScope) {
  const std::vector<socket_address> ordered{
      socket_address(),
      socket_address("9.0.0.1:9"),
      socket_address("10.0.0.1:1"),
      socket_address("10.0.0.1:256"),
      socket_address("10.0.0.2:1"),
      socket_address("[::1]:1"),
      socket_address("[fe80::1]:2"),
      socket_address("[fe80::1%7000]:2"),
      socket_address("[fe80::1]:3"),
  };
  for (std::size_t i = 0; i < ordered.size(); ++i) {
    for (std::size_t j = 0; j < ordered.size(); ++j) {
      EXPECT_EQ(ordered[i] < ordered[j], i < j) << i << ' ' << j;
      EXPECT_EQ(ordered[i] == ordered[j], i == j) << i << ' ' << j;
    }
  }
  const std::unordered_set<socket_address> set(ordered.begin(), ordered.end());
  EXPECT_EQ(set.size(), ordered.size());
}

TEST(SocketAddress, CopiesANativeAddressWithoutItsPadding) {
  ::sockaddr_in native;
  std::memset(&native, 0x5a, sizeof native);
  native.sin_family = AF_INET;
  native.sin_port = htons(7471);
  native.sin_addr.s_addr = htonl(0x7f000001);
  const auto address =
      socket_address::from_native(reinterpret_cast<const ::sockaddr*>(&native), sizeof native);
  const socket_address read("127.0.0.1:7471");
  EXPECT_EQ(address, read);
  EXPECT_EQ(std::hash<socket_address>()(address), std::hash<socket_address>()(read));
}

TEST(SocketAddress, CopiesANativeAddressWithoutItsFlow) {
  ::sockaddr_in6 native = {};
  native.sin6_family = AF_INET6;
  native.sin6_port = htons(7471);
  native.sin6_addr = in6addr_loopback;
  native.sin6_flowinfo = 99;
  const auto address =
      socket_address::from_native(reinterpret_cast<const ::sockaddr*>(&native), sizeof native);
  const socket_address read("[::1]:7471");
  EXPECT_EQ(address, read);
  EXPECT_EQ(std::hash<socket_address>()(address), std::hash<socket_address>()(read));
}

TEST(SocketAddress, GoesToAndComesFromTheOperatingSystem) {
  for (const char* const text : {"127.0.0.1:7471", "[fe80::1%lo]:7471"}) {
    const socket_address address(text);
    EXPECT_EQ(socket_address::from_native(address.native(), address.native_size()), address);
  }
}

TEST(SocketAddress, IsAUnixSocketsPath) {
  const socket_address there("unix:/run/x y.sock");
  EXPECT_TRUE(there.is_unix());
  EXPECT_FALSE(there.is_v4() || there.is_v6() || there.is_loopback() || there.is_wildcard());
  EXPECT_EQ(there.host(), "/run/x y.sock");
  EXPECT_EQ(there.port(), 0);
  EXPECT_EQ(there.with_port(7), there);
  EXPECT_EQ(to_string(there), "unix:/run/x y.sock");
  EXPECT_EQ(socket_address::from_native(there.native(), there.native_size()), there);
  EXPECT_NE(there, socket_address("unix:/run/x z.sock"));
  EXPECT_LT(there, socket_address("unix:/run/x z.sock"));
  EXPECT_NE(there, socket_address("127.0.0.1:0"));
  EXPECT_FALSE(socket_address("127.0.0.1:0").is_unix());
  const socket_address unnamed("unix:");
  EXPECT_TRUE(unnamed.is_unix());
  EXPECT_FALSE(unnamed.empty());
  EXPECT_EQ(unnamed.host(), "");
  EXPECT_EQ(unnamed.native_size(), sizeof(::sa_family_t));
  EXPECT_EQ(socket_address("unix:/" + std::string(106, 'x')).host().size(), 107U);
  for (const std::string& wrong : {std::string("unix:x"), std::string("unix:/a\0b", 9),
                                   "unix:/" + std::string(107, 'x'), std::string("Unix:/x")}) {
    std::error_code ec;
    EXPECT_TRUE(socket_address(wrong, ec).empty()) << wrong;
    EXPECT_EQ(ec, errc::bad_address);
  }
}

TEST(SocketAddress, RefusesNativeAddressesThatAreNeitherIpNorUnix) {
  ::sockaddr_un local = {};
  local.sun_family = AF_NETLINK;
  const auto* const native = reinterpret_cast<const ::sockaddr*>(&local);
  std::error_code ec;
  EXPECT_TRUE(socket_address::from_native(native, sizeof local, ec).empty());
  EXPECT_EQ(ec, errc::bad_address);
  EXPECT_THROW(socket_address::from_native(native, sizeof local), error);
  socket_address::from_native(nullptr, 0, ec);
  EXPECT_EQ(ec, errc::bad_address);
}

TEST(SocketAddress, RefusesNativeAddressesThatAreCutOff) {
  for (const char* const text : {"127.0.0.1:7471", "[::1]:7471"}) {
    const socket_address address(text);
    for (::socklen_t length = 0; length < address.native_size(); ++length) {
      std::error_code ec;
      EXPECT_TRUE(socket_address::from_native(address.native(), length, ec).empty());
      EXPECT_EQ(ec, errc::bad_address) << text << ' ' << length;
    }
  }
}

TEST(Resolve, GivesTheAddressesOfAName) {
  const auto found = resolve("localhost", 7471);
  ASSERT_FALSE(found.empty());
  for (const socket_address& each : found) {
    EXPECT_TRUE(each.is_loopback()) << to_string(each);
    EXPECT_EQ(each.port(), 7471U);
    EXPECT_EQ(std::count(found.begin(), found.end(), each), 1) << to_string(each);
  }
}

TEST(Resolve, TakesNumericAddressesAsTheyAre) {
  EXPECT_EQ(resolve("10.0.0.7", 7), std::vector{socket_address("10.0.0.7:7")});
  EXPECT_EQ(resolve("2001:db8::42", 7), std::vector{socket_address("[2001:db8::42]:7")});
}

TEST(Resolve, NamesTheHostThatHasNoAddress) {
  std::error_code ec;
  EXPECT_TRUE(resolve("no-such-host.invalid", 1, std::chrono::seconds(30), ec).empty());
  EXPECT_EQ(ec, errc::host_not_found);
  try {
    resolve("no-such-host.invalid", 1, std::chrono::seconds(30));
    FAIL() << "found";
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), errc::host_not_found);
    const std::string text = failure.what();
    EXPECT_NE(text.find("\"no-such-host.invalid\""), std::string::npos) << text;
    // The resolver's words stand in parentheses.
    EXPECT_NE(text.find(" ("), std::string::npos) << text;
    EXPECT_EQ(text.find(" ()"), std::string::npos) << text;
  }
}

TEST(Resolve, FindsNothingForWhatIsNoName) {
  using namespace std::string_literals;
  for (const std::string& host : {""s, "localhost\0.invalid"s, std::string(5000, 'a')}) {
    std::error_code ec;
    EXPECT_TRUE(resolve(host, 1, std::chrono::seconds(5), ec).empty());
    EXPECT_EQ(ec, errc::host_not_found);
  }
}

}  // namespace
}  // namespace ucx
