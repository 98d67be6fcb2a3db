#include "client/lingering_clients.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "client/client_connector.hpp"
#include "client/client_core.hpp"
#include "support/transports/ucx_server.hpp"
#include "ucx/client.hpp"
#include "ucx/server.hpp"
#include "ucx/url.hpp"

namespace ucx::detail {
namespace {

/// Sets the variable for as long as this is there.
class said {
 public:
  explicit said(const char* text) { ::setenv("UCXIO_SHARED_IDLE_TIMEOUT", text, 1); }
  said(const said&) = delete;
  said& operator=(const said&) = delete;
  ~said() { ::unsetenv("UCXIO_SHARED_IDLE_TIMEOUT"); }
};

TEST(LingeringClients, TakesSecondsFromTheEnvironment) {
  for (const char* good : {"", "10", "0", "0.25", "1e3", "1e300"}) {
    const said environment(good);
    EXPECT_EQ(lingering_clients().complaint(), "") << good;
  }
}

TEST(LingeringClients, SaysWhatIsWrongWithTheEnvironment) {
  for (const char* bad : {"-1", "ten", "10s", " 10", "nan"}) {
    const said environment(bad);
    const std::string complaint = lingering_clients().complaint();
    EXPECT_NE(complaint.find("UCXIO_SHARED_IDLE_TIMEOUT is \"" + std::string(bad) + "\""),
              std::string::npos)
        << complaint;
  }
}

TEST(LingeringClients, AreNoneOfAServerThatNobodyAsked) {
  lingering_clients none;
  EXPECT_EQ(none.take(url("ucx://localhost:1")), nullptr);
  none.end();
  none.end();
}

TEST(LingeringClients, TakeOneAgainThatIsAboutToCome) {
  const test::ucx_server served;
  const url where(served.url());
  lingering_clients all;
  const std::shared_ptr<client_core> made = client_connector({}).connect(where).or_throw();
  std::shared_ptr<client_core> first = all.lend(where, made);
  ASSERT_EQ(all.take(where), made);
  std::shared_ptr<client_core> second = all.lend(where, made);
  first.reset();  // is not what lingers: somebody has the other one
  all.clear();
  EXPECT_FALSE(made->status());
  second.reset();
  EXPECT_EQ(all.take(where), made);
  EXPECT_EQ(all.take(where), nullptr);
}

}  // namespace
}  // namespace ucx::detail
