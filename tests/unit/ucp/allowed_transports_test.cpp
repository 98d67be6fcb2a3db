// Which transports are left out of those that were asked for, and what is said of it.
#include "ucp/allowed_transports.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <string>
#include <vector>

namespace ucx::detail {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;
using asked_by = allowed_transports::asked_by;

constexpr version_number newest{1, 22, 0};

/// The process's files may be so long for as long as this is there.
class files_of {
 public:
  explicit files_of(::rlim_t longest) {
    EXPECT_EQ(::getrlimit(RLIMIT_FSIZE, &before_), 0);
    ::rlimit less = before_;
    less.rlim_cur = longest;
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &less), 0);
  }
  ~files_of() { ::setrlimit(RLIMIT_FSIZE, &before_); }
  files_of(const files_of&) = delete;
  files_of& operator=(const files_of&) = delete;

 private:
  ::rlimit before_ = {};
};

/// Returns the names that are left out.
std::vector<std::string> names_of(const allowed_transports& some) {
  std::vector<std::string> names;
  for (const withheld_transport& each : some.withheld()) names.push_back(each.name);
  return names;
}

allowed_transports of_list(const std::string& asked, version_number version = newest) {
  return {asked, asked_by::list, version};
}

allowed_transports of_options(const std::string& asked, version_number version) {
  return {asked, asked_by::context_options, version};
}

TEST(AllowedTransports, AreUsualOnesInSilence) {
  const allowed_transports usual(newest);
  EXPECT_EQ(usual.value(), "^sysv,xpmem");
  EXPECT_THAT(usual.withheld(), IsEmpty());
  EXPECT_TRUE(usual.allows("tcp"));
  EXPECT_FALSE(usual.allows("sysv"));
}

TEST(AllowedTransports, TellThatFilesAreTooShortForPosix) {
  const files_of few(::rlim_t{1} << 20U);
  const allowed_transports usual(newest);
  EXPECT_FALSE(usual.allows("posix"));
  ASSERT_EQ(names_of(usual), std::vector<std::string>{"posix"});
  EXPECT_THAT(usual.withheld()[0].why, AllOf(HasSubstr("1048576 bytes"), HasSubstr("ulimit -f")));
  EXPECT_TRUE(usual.withheld()[0].expected);
  const allowed_transports named = of_list("posix,self");
  EXPECT_TRUE(named.allows("posix"));
  EXPECT_THAT(named.withheld(), IsEmpty());
}

TEST(AllowedTransports, TellThatOpenOnesAreNotOfAGroup) {
  for (const std::string asked : {"all", "^tcp", "sm,tcp", "shm", "mm,self"}) {
    const allowed_transports some = of_list(asked);
    ASSERT_THAT(names_of(some), testing::Contains("sysv")) << asked;
    EXPECT_THAT(some.withheld()[0].why, HasSubstr("group may write")) << asked;
    EXPECT_TRUE(some.withheld()[0].expected) << asked;
    EXPECT_FALSE(some.allows("sysv")) << asked;
  }
  for (const std::string asked : {"tcp,self", "sysv,self", "sm,sysv", "^sysv", "^sm"}) {
    EXPECT_THAT(names_of(of_list(asked)), testing::Not(testing::Contains("sysv"))) << asked;
  }
}

TEST(AllowedTransports, TellThatSomeVersionsReadersDieByCma) {
  for (const unsigned minor : {14U, 18U, 21U}) {
    const version_number version{1, minor, 1};
    const allowed_transports some = of_options("posix,cma,self", version);
    EXPECT_EQ(some.value(), "posix,self");
    ASSERT_EQ(names_of(some), std::vector<std::string>{"cma"});
    EXPECT_THAT(some.withheld()[0].why, StartsWith("with UCX " + to_string(version) + " it ends"));
    EXPECT_FALSE(some.withheld()[0].expected);
    EXPECT_EQ(of_options("cma", version).value(), "cma") << "nothing else is named";
    EXPECT_EQ(of_options("cma,cma", version).value(), "cma,cma");
    EXPECT_EQ(of_list("posix,cma", version).value(), "posix,cma") << "as UCX is told";
  }
  for (const unsigned minor : {13U, 22U}) {
    const allowed_transports some = of_options("posix,cma,self", {1, minor, 0});
    EXPECT_EQ(some.value(), "posix,cma,self");
    EXPECT_THAT(some.withheld(), IsEmpty());
  }
}

}  // namespace
}  // namespace ucx::detail
