#include "os/greeting_filter.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "base/owned_descriptor.hpp"
#include "os/tcp_socket.hpp"
#include "support/transports/loopback_connection.hpp"

namespace ucx::detail {
namespace {

/// UCX's header, as a host has it whose numbers are little-endian.
std::string ucx_header(std::uint64_t length, char status = 0) {
  std::string made(greeting_filter::header_size, '\0');
  for (std::size_t i = 0; i < 8; ++i) made[i] = static_cast<char>(length >> (8 * i));
  made[8] = status;
  return made;
}

/// In the first version, or in the second, with an address that begins with such a byte.
std::string ucx_greeting(std::size_t length, int version = 1, int kind = 2, char address = '\x81') {
  std::string body(length, '\x81');
  if (length > 8) body[8] = static_cast<char>((version - 1) << 5 | 1);
  if (length > 9 && version == 1) body[9] = static_cast<char>(kind);
  const std::size_t begin = version == 1 ? 11 : 9;
  if (length > begin) body[begin] = address;
  return ucx_header(length) + body;
}

/// A listening socket behind the filter, and one connection to it.
class GreetingFilter : public test::loopback_connection {
 protected:
  void SetUp() override {
    if (std::endian::native != std::endian::little) GTEST_SKIP() << "UCX's headers are otherwise";
    loopback_connection::SetUp();
    if (!peer_) return;
    const int yes = 1;  // each send is a segment of its own
    ASSERT_EQ(::setsockopt(peer_.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes), 0);
  }
  void listens() override {
    if (!greeting_filter::attach(listening_.get())) GTEST_SKIP() << "this system has no filters";
  }

  void say(const std::string& bytes) {
    ASSERT_EQ(::send(peer_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<::ssize_t>(bytes.size()));
  }
  /// Returns what has come. Over loopback it has when send() returns, or never will.
  std::string heard(int limit = 0) {
    ::pollfd waiting{accepted_.get(), POLLIN, 0};
    if (::poll(&waiting, 1, limit) <= 0) return {};
    std::string bytes(4096, '\0');
    const ::ssize_t got = ::recv(accepted_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return bytes;
  }
};

INSTANTIATE_TEST_SUITE_P(Families, GreetingFilter, GreetingFilter::families(),
                         GreetingFilter::name_of_family);

TEST_P(GreetingFilter, LetsGreetingsThrough) {
  for (const std::size_t length : {12U, 46U, 300U, 1200U}) {
    say(ucx_greeting(length));
    EXPECT_EQ(heard(10'000), ucx_greeting(length)) << length;
  }
}

TEST_P(GreetingFilter, LetsGreetingsOfBothVersionsThrough) {
  for (const int version : {1, 2}) {
    say(ucx_greeting(46, version));
    EXPECT_EQ(heard(10'000), ucx_greeting(46, version)) << version;
  }
}

TEST_P(GreetingFilter, LetsTheLongestGreetingThrough) {
  const std::string longest = ucx_greeting(2064);
  say(longest.substr(0, 1400));
  EXPECT_EQ(heard(10'000), longest.substr(0, 1400));
}

TEST_P(GreetingFilter, LetsThroughWhatPeersSayWhenTheyAreAnswered) {
  say(ucx_header(0));
  EXPECT_EQ(heard(10'000), ucx_header(0));
}

TEST_P(GreetingFilter, LetsTheFirstOfSeveralSegmentsThrough) {
  const std::string whole = ucx_greeting(1500);
  say(whole.substr(0, 1000));
  EXPECT_EQ(heard(10'000), whole.substr(0, 1000));
}

TEST_P(GreetingFilter, TellsItsUserOfTheEnd) {
  peer_ = owned_descriptor();
  ::pollfd waiting{accepted_.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&waiting, 1, 10'000), 1);
  EXPECT_EQ(heard(), "");
}

TEST_P(GreetingFilter, LetsAnswersThrough) {
  say(ucx_greeting(46));
  const std::string answer(100'000, 'x');
  ASSERT_EQ(::send(accepted_.get(), answer.data(), answer.size(), 0),
            static_cast<::ssize_t>(answer.size()));
  std::string got(answer.size(), '\0');
  EXPECT_EQ(::recv(peer_.get(), got.data(), got.size(), MSG_WAITALL),
            static_cast<::ssize_t>(answer.size()));
  EXPECT_EQ(got, answer);
}

TEST_P(GreetingFilter, DropsEverythingElse) {
  const std::pair<const char*, std::string> strange[] = {
      {"one byte", "x"},
      {"zeros", std::string(100, '\0')},
      {"many zeros", std::string(3000, '\0')},
      {"ones", std::string(100, '\xff')},
      {"many ones", std::string(3000, '\xff')},
      {"half a header", ucx_header(46).substr(0, 9)},
      {"a header alone that announces more", ucx_header(46)},
      {"more than announced", ucx_greeting(46) + 'x'},
      {"less than announced", ucx_greeting(46).substr(0, 61)},
      {"too little for a greeting", ucx_greeting(9)},
      {"a status", ucx_header(46, 1) + std::string(46, '\x81')},
      {"a length beyond 16 bits", ucx_header(std::uint64_t{1} << 16U) + std::string(984, 'x')},
      {"a length beyond 32 bits", ucx_header(std::uint64_t{1} << 32U) + std::string(984, 'x')},
      {"the largest length", ucx_header(~std::uint64_t{0}) + std::string(984, 'x')},
      {"more than UCX has room for", ucx_greeting(2065).substr(0, 1400)},
      {"much more than UCX has room for", ucx_greeting(3000).substr(0, 1400)},
      {"a version that is not known", ucx_greeting(46, 3)},
      {"a long greeting of such a version", ucx_greeting(1500, 8).substr(0, 1000)},
      {"an address of another kind", ucx_greeting(46, 1, 1)},
      {"a long one of another kind", ucx_greeting(1500, 1, 0).substr(0, 1000)},
      {"a greeting that ends before its address", ucx_greeting(11)},
      {"an address of a version that is not known", ucx_greeting(46, 1, 2, '\x02')},
      {"such an address in the second version", ucx_greeting(46, 2, 2, '\x0f')},
      {"a long greeting with such an address", ucx_greeting(1500, 1, 2, '\x3f').substr(0, 1000)},
      {"HTTP", "GET / HTTP/1.1\r\nHost: here\r\n\r\n"},
      {"SSH", "SSH-2.0-OpenSSH_9.2\r\n"},
      {"TLS", std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11) + "0123456789"},
  };
  for (const auto& [what, bytes] : strange) {
    say(bytes);
    EXPECT_EQ(tcp_socket::received(accepted_.get()), 0U) << what;
    // Another connection: what was dropped comes again, before anything else of this one.
    SetUp();
    if (HasFatalFailure()) return;
  }
}

TEST_P(GreetingFilter, LetsTheRestThroughWhenItIsTakenAway) {
  const std::string whole = ucx_greeting(1500);
  say(whole.substr(0, 1000));
  ASSERT_EQ(heard(10'000).size(), 1000U);
  say(whole.substr(1000));
  EXPECT_EQ(heard(), "");
  greeting_filter::detach(accepted_.get());
  EXPECT_EQ(heard(10'000), whole.substr(1000));  // TCP sends it again
}

}  // namespace
}  // namespace ucx::detail
