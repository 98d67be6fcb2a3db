// Calls beside the names of a server, for clients by each kind of URL, under the server's rules.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <string>
#include <system_error>
#include <vector>

#include "support/basics/soon.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/transports/url_scheme.hpp"
#include "ucx/access_rules.hpp"
#include "ucx/client.hpp"
#include "ucx/rpc.hpp"
#include "ucx/server.hpp"
#include "ucx/url.hpp"

namespace ucx::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class ServedCalls : public testing::TestWithParam<const char*> {
 protected:
  ServedCalls() {
    calls_.add("add", [](int a, int b) { return a + b; }, {.documentation = "Returns the sum."});
    calls_.add("secret", [this] { return ++run_; });
    calls_.add("secret/2", [] { return 2; });
  }

  server served(std::size_t workers = 1) {
    server_options options = by_.server();
    options.workers = workers;
    options.rules = rules_;
    options.audit_file = folder_ / "audit";
    return server(options);
  }
  client client_of(const server& there) const {
    client_options options{.context = by_.context()};
    if (!by_.is_of_ucx()) options.context.transports.clear();  // the URL says it
    return client(url(there.url()), options);
  }
  static std::vector<std::string> names(const call_channel& peer) {
    std::vector<std::string> found;
    for (const call_description& each : peer.signatures()) found.push_back(each.called.name());
    return found;
  }
  template <class Result>
  static std::error_code outcome(typed_call<Result> call) {
    std::error_code ec;
    call.result(ec);
    return ec;
  }

  const temporary_directory folder_;
  const url_scheme by_{GetParam(), folder_ / ""};
  access_rules rules_ = access_rules::parse(
      "allow anybody call add\n"
      "deny anybody all **\n");
  std::atomic<int> run_{0};  // calls of `secret`
  call_table calls_;
};

TEST_P(ServedCalls, AreCalledAndToldOfAsTheRulesAllow) {
  server there = served();
  const call_server serves(there, calls_);
  const client here = client_of(there);
  const call_channel peer(here.connection());
  EXPECT_EQ(peer.call<int>("add", 25, 17), 42);
  EXPECT_THAT(names(peer), ElementsAre("add"));
  EXPECT_EQ(peer.signatures()[0].documentation, "Returns the sum.");
  EXPECT_EQ(outcome(peer.start_call<int>("secret")), errc::no_such_name);
  EXPECT_EQ(outcome(peer.start_call<int>("absent")), errc::no_such_name);
  const call_stub<int(int, int)> add(peer, "add");
  EXPECT_EQ(add(1, 2), 3);
  peer.post_call<int>("secret");
  EXPECT_EQ(peer.call<int>("add", 1, 2), 3) << "what was posted came before";
  EXPECT_EQ(run_, 0);
  there.set_rules(
      access_rules::parse("allow anybody call add\n"
                          "deny anybody call add\n"));
  EXPECT_EQ(add(1, 2), 3) << "the first line that names the right decides";
  there.set_rules(access_rules().deny("anybody", access_right::call, "a*"));
  EXPECT_EQ(outcome(add.start(1, 2)), errc::no_such_name) << "also where it is bound";
  there.set_rules(std::nullopt);
  EXPECT_EQ(peer.call<int>("secret/2"), 2);
  EXPECT_THAT(names(peer), ElementsAre("add", "secret", "secret/2"));
}

TEST_P(ServedCalls, AreInTheAudit) {
  {
    server there = served();
    const call_server serves(there, calls_);
    const client here = client_of(there);
    const call_channel peer(here.connection());
    EXPECT_EQ(peer.call<int>("add", 25, 17), 42);
    const call_stub<int(int, int)> add(peer, "add");
    EXPECT_EQ(add(1, 2), 3);
    EXPECT_EQ(outcome(peer.start_call<int>("secret")), errc::no_such_name);
    EXPECT_TRUE(soon([&] {
      return content_of(folder_ / "audit").find("\"name\":\"secret\"") != std::string::npos;
    }));
  }
  const std::string text = content_of(folder_ / "audit");
  EXPECT_THAT(text, HasSubstr("\"name\":\"secret\",\"outcome\":\"no_such_name\""));
  if (GetParam() == std::string("ucx") || GetParam() == std::string("socket")) return;
  // Of strangers not every line is told.
  EXPECT_THAT(text, HasSubstr("\"event\":\"call\""));
  EXPECT_THAT(text, HasSubstr("\"name\":\"add\",\"outcome\":\"ok\""));
  EXPECT_THAT(text, HasSubstr("\"event\":\"bind\""));
}

TEST_P(ServedCalls, AreServedByEachWorker) {
  server there = served(3);
  call_server serves(there, calls_);
  std::error_code ec;
  const call_server second(there, calls_, {}, ec);
  EXPECT_EQ(ec, errc::already_exists);
  std::vector<client> clients;
  for (int i = 0; i < 4; ++i) {
    clients.push_back(client_of(there));
    const call_channel peer(clients.back().connection());
    EXPECT_EQ(peer.call<int>("add", i, 1), i + 1);
    EXPECT_EQ(outcome(peer.start_call<int>("secret")), errc::no_such_name);
    EXPECT_THAT(names(peer), ElementsAre("add"));
  }
  EXPECT_EQ(run_, 0);
  EXPECT_EQ(serves.under_way(), 0U);
  serves = call_server();
  for (const client& each : clients) {
    EXPECT_EQ(outcome(call_channel(each.connection()).start_call<int>("add", 1, 2)),
              errc::no_such_handler);
  }
}

TEST(CallServer, NeedsAServer) {
  server there({.bind = "127.0.0.1:0", .context = {.transports = {"socket"}}});
  const server moved = std::move(there);
  std::error_code ec;
  const call_server none(there, call_table(), {}, ec);
  EXPECT_EQ(ec, errc::closed);
}

std::string name_of_scheme(const testing::TestParamInfo<const char*>& each) { return each.param; }

INSTANTIATE_TEST_SUITE_P(, ServedCalls, testing::Values("ucx", "socket", "unix"), name_of_scheme);
#if UCXIO_HAS_TLS
INSTANTIATE_TEST_SUITE_P(ByTls, ServedCalls, testing::Values("tls"), name_of_scheme);
#endif

}  // namespace
}  // namespace ucx::test
