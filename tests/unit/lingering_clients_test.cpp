#include "detail/lingering_clients.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace ucx::detail {
namespace {

/// Sets the variable for as long as this is there.
class said {
 public:
  explicit said(const char* text) { ::setenv("UCXIO_LINGER", text, 1); }
  said(const said&) = delete;
  said& operator=(const said&) = delete;
  ~said() { ::unsetenv("UCXIO_LINGER"); }
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
    EXPECT_NE(complaint.find("UCXIO_LINGER is \"" + std::string(bad) + "\""), std::string::npos)
        << complaint;
  }
}

TEST(LingeringClients, AreNoneOfAServerThatNobodyAsked) {
  lingering_clients none;
  EXPECT_EQ(none.take(url("ucx://localhost:1")), nullptr);
  none.end();
  none.end();
}

}  // namespace
}  // namespace ucx::detail
