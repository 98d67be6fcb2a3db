#include "ucx/url.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <system_error>
#include <unordered_set>
#include <vector>

#include "ucx/error.hpp"

namespace ucx {
namespace {

TEST(Url, TellsItsParts) {
  const url plain("ucx://node7:7471/weights");
  EXPECT_EQ(plain.host(), "node7");
  EXPECT_EQ(plain.port(), 7471);
  EXPECT_EQ(plain.name(), "weights");
  EXPECT_EQ(to_string(plain), "ucx://node7:7471/weights");
  EXPECT_EQ(to_string(plain.server()), "ucx://node7:7471");
  EXPECT_EQ(url("ucx://127.0.0.1:1").name(), "");
  EXPECT_EQ(url("ucx://127.0.0.1:1/").name(), "");
  EXPECT_EQ(url("UCX://127.0.0.1:65535/A").port(), 65535);
  EXPECT_TRUE(url().empty());
  EXPECT_EQ(to_string(url()), "");
}

TEST(Url, OfNobodyTakesNoName) {
  std::error_code ec;
  EXPECT_TRUE(url().with_name("a", ec).empty());
  EXPECT_EQ(ec, errc::bad_url);
  EXPECT_THROW(url().with_name("a"), error);
}

TEST(Url, KeepsAnIpv6HostInBrackets) {
  const url v6("ucx://[fe80::1%eth0]:80/a/b");
  EXPECT_EQ(v6.host(), "fe80::1%eth0");
  EXPECT_EQ(v6.name(), "a/b");
  EXPECT_EQ(to_string(v6), "ucx://[fe80::1%eth0]:80/a/b");
}

TEST(Url, KnowsServersByTls) {
  const url there("UCXS://[::1]:7471/a%20b");
  EXPECT_TRUE(there.is_tls());
  EXPECT_TRUE(there.is_socket());
  EXPECT_EQ(to_string(there), "ucxs://[::1]:7471/a%20b");
  EXPECT_EQ(there, url::over_tls("::1", 7471, "a b"));
  EXPECT_NE(there, url::over_socket("::1", 7471, "a b"));
  EXPECT_TRUE(there.server().is_tls());
  EXPECT_TRUE(there.with_name("c").is_tls());
  EXPECT_TRUE(url::has_url_scheme("ucxs:"));
  EXPECT_FALSE(url::has_url_scheme("ucxs"));
  EXPECT_FALSE(url("ucx+tcp://h:1").is_tls());
}

TEST(Url, KnowsNoCaseOfHosts) {
  EXPECT_EQ(url("ucx://Node7.Example:1/Name"), url("UCX://nODE7.eXAMPLE:1/Name"));
  EXPECT_NE(url("ucx://h:1/Name"), url("ucx://h:1/name"));
  EXPECT_EQ(url("HOST", 1).host(), "host");
  EXPECT_EQ(std::hash<url>()(url("ucx://HOST:1")), std::hash<url>()(url("ucx://host:1")));
  // The zone is the name of an interface, which has a case.
  EXPECT_EQ(url("ucx://[FE80::A%Eth0]:1").host(), "fe80::a%Eth0");
}

TEST(Url, EncodesAndDecodesNames) {
  const std::vector<std::string> names{"a b",
                                       "ü/ä",
                                       "100%",
                                       "a?b#c",
                                       "\x01",
                                       "a//b",
                                       "/a",
                                       "..",
                                       "\xf0\x9f\x98\x80",
                                       "\"<>\\^`{|}",
                                       "-._~!$&'()*+,;=:@"};
  for (const std::string& name : names) {
    const url made("h", 1, name);
    EXPECT_EQ(made.name(), name);
    EXPECT_EQ(url(to_string(made)), made) << to_string(made);
    for (const char c : to_string(made)) EXPECT_TRUE(c > 0x20 && c < 0x7f) << to_string(made);
  }
  EXPECT_EQ(to_string(url("h", 1, "a b/ü")), "ucx://h:1/a%20b/%C3%BC");
  EXPECT_EQ(url("ucx://h:1/%61%2f%2F").name(), "a//");
}

TEST(Url, OfAUnixSocketEndsItsPathAtTheFirstSocket) {
  const url one("ucx+unix:///run/user/1000/ucxio/17.sock/a/b.sock/c");
  EXPECT_EQ(one.socket_file(), "/run/user/1000/ucxio/17.sock");
  EXPECT_EQ(one.name(), "a/b.sock/c");
  EXPECT_TRUE(one.is_socket());
  EXPECT_FALSE(one.empty());
  EXPECT_EQ(one.host(), "");
  EXPECT_EQ(one.port(), 0);
  EXPECT_EQ(to_string(one), "ucx+unix:///run/user/1000/ucxio/17.sock/a/b.sock/c");
  EXPECT_EQ(to_string(one.server()), "ucx+unix:///run/user/1000/ucxio/17.sock");
  EXPECT_EQ(url("ucx+unix:///x.sock/").name(), "");
  EXPECT_EQ(url("UCX+Unix:///a%20b/%2Fx.sock%2Fn").socket_file(), "/a b//x.sock");
  EXPECT_EQ(url::over_unix("/a b/ü.sock", "n"), url("ucx+unix:///a%20b/%C3%BC.sock/n"));
  EXPECT_NE(url::over_unix("/x.sock"), url::over_unix("/y.sock"));
  EXPECT_NE(url::over_unix("/x.sock"), url::from_address_file("/x.sock"));
  EXPECT_NE(std::hash<url>()(url::over_unix("/x.sock")),
            std::hash<url>()(url::over_unix("/y.sock")));
  EXPECT_TRUE(url::has_url_scheme("ucx+unix:"));
}

TEST(Url, OfAUnixSocketSaysWhatIsWrong) {
  const std::string longest = "/" + std::string(101, 'x') + ".sock";
  EXPECT_EQ(url::over_unix(longest).socket_file(), longest);
  const std::vector<std::pair<std::string, std::string>> wrong{
      {"ucx+unix://run/x.sock/n", "absolute"},
      {"ucx+unix:/run/x.sock", "one of the two slashes"},
      {"ucx+unix:///run/x/n", "\".sock\""},
      {"ucx+unix:///run/x.sock2/n", "\".sock\""},
      {"ucx+unix://", "absolute"},
      {"ucx+unix:///run/x.sock?n", "%3F"},
      {"ucx+unix:///run/x%00y.sock", "zero"},
      {"ucx+unix:///run/%zz.sock", "hexadecimal"},
      {"ucx+unix:///x.sock/%ff", "UTF-8"},
      {"ucx+unix:///x" + longest, "107"},
  };
  for (const auto& [text, words] : wrong) {
    try {
      const url made(text);
      ADD_FAILURE() << text;
    } catch (const error& why) {
      EXPECT_EQ(why.code(), errc::bad_url);
      EXPECT_NE(std::string(why.what()).find(words), std::string::npos) << why.what();
    }
  }
  std::error_code ec;
  EXPECT_TRUE(url::over_unix("/d.sock/x.sock", {}, ec).empty());
  EXPECT_EQ(ec, errc::bad_url);
  EXPECT_TRUE(url::over_unix("x.sock", {}, ec).empty());
  EXPECT_EQ(ec, errc::bad_url);
}

TEST(Url, IsMeantByItsSchemeAlone) {
  EXPECT_TRUE(url::has_url_scheme("ucx://h:1/a"));
  EXPECT_TRUE(url::has_url_scheme("Ucx:"));
  EXPECT_TRUE(url::has_url_scheme("ucx:/h:1/a"));
  EXPECT_FALSE(url::has_url_scheme("ucx"));
  EXPECT_FALSE(url::has_url_scheme("./ucx://h"));
  EXPECT_FALSE(url::has_url_scheme("http://h"));
  EXPECT_FALSE(url::has_url_scheme(""));
}

struct mistake {
  std::string text;
  std::string complaint;
};

class UrlMistake : public testing::TestWithParam<mistake> {};

TEST_P(UrlMistake, IsToldWithItsCause) {
  std::error_code ec;
  const url refused(GetParam().text, ec);
  EXPECT_EQ(ec, errc::bad_url);
  EXPECT_TRUE(refused.empty());
  try {
    const url thrown(GetParam().text);
    FAIL() << GetParam().text;
  } catch (const error& failed) {
    EXPECT_EQ(failed.code(), errc::bad_url);
    EXPECT_NE(std::string(failed.what()).find(GetParam().complaint), std::string::npos)
        << failed.what();
  }
}

INSTANTIATE_TEST_SUITE_P(
    Each, UrlMistake,
    testing::Values(
        mistake{"", "does not begin"}, mistake{"http://h:1", "does not begin"},
        mistake{"ucx:/h:1/a", "slashes"}, mistake{"ucx:h:1/a", "\"//\" is missing"},
        mistake{"ucx://", "port is missing"}, mistake{"ucx://h/a", "port is missing"},
        mistake{"ucx://h:/a", "port is missing"}, mistake{"ucx://:1/a", "host is missing"},
        mistake{"ucx://h:0/a", "1 to 65535"}, mistake{"ucx://h:65536/a", "1 to 65535"},
        mistake{"ucx://h:-1/a", "1 to 65535"}, mistake{"ucx://h:1x/a", "1 to 65535"},
        mistake{"ucx://::1:80/a", "brackets"}, mistake{"ucx://[::1/a", "\"]\" is missing"},
        mistake{"ucx://[h]:1/a", "no IPv6 address"}, mistake{"ucx://[]:1/a", "no IPv6 address"},
        mistake{"ucx://[::1]/a", "port is missing"}, mistake{"ucx://me@h:1/a", "user name"},
        mistake{"ucx://h h:1/a", "host is not"}, mistake{"ucx://h:1/a?b", "%3F"},
        mistake{"ucx://h:1/a#b", "%23"}, mistake{"ucx://h:1/%", "hexadecimal"},
        mistake{"ucx://h:1/%4", "hexadecimal"}, mistake{"ucx://h:1/%zz", "hexadecimal"},
        mistake{"ucx://h:1/%00", "zero byte"}, mistake{"ucx://h:1/%ff", "not UTF-8"},
        mistake{"ucx://h:1/%ed%a0%80", "not UTF-8"}, mistake{"ucx://h:1/%c0%80", "not UTF-8"},
        mistake{"ucx://h:1/" + std::string(1025, 'a'), "longer than 1024"},
        mistake{"ucx://" + std::string(300, 'h') + ":1/a", "host is not"}));

TEST(Url, TakesNamesUpToTheirLimit) {
  EXPECT_EQ(url("h", 1, std::string(1024, 'x')).name().size(), 1024U);
  std::error_code ec;
  const url too_long("h", 1, std::string(1025, 'x'), ec);
  EXPECT_EQ(ec, errc::bad_url);
  EXPECT_THROW(url("h", 0, "a"), error);
  EXPECT_THROW(url("h", 1).with_name(std::string("a\0b", 3)), error);
}

TEST(Url, ReadsBackWhateverItWrote) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 20000; ++round) {
    std::string text = "ucx://h:1/";
    const std::size_t length = random() % 30;
    for (std::size_t i = 0; i < length; ++i) {
      text += static_cast<char>(random() % 3 == 0 ? '%' : random() % 256);
    }
    std::error_code ec;
    const url read(text, ec);
    if (!ec) {
      EXPECT_EQ(url(to_string(read)), read);
    }
  }
}

TEST(Url, ComparesAndHashes) {
  EXPECT_EQ(url("ucx://h:1/a"), url("ucx://h:1/%61"));
  EXPECT_NE(url("ucx://h:1/a"), url("ucx://h:2/a"));
  EXPECT_LT(url("ucx://a:1/z"), url("ucx://b:1/a"));
  const std::unordered_set<url> set{url("ucx://h:1/a"), url("ucx://h:1/%61"), url("ucx://h:1/b")};
  EXPECT_EQ(set.size(), 2U);
}

}  // namespace
}  // namespace ucx
