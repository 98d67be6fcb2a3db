#include "ucp/transport_list.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <map>
#include <string>

namespace ucx::detail {
namespace {

constexpr version_number newest{1, 22, 0};

std::string kept(const std::string& value, version_number version = newest) {
  return transport_list(value).kept_to_the_user(version);
}

TEST(TransportList, LeavesOutWhatOthersCanWriteUnlessItIsNamed) {
  for (const auto& [value, expected] :
       std::map<std::string, std::string>{{"all", "^sysv,xpmem"},
                                          {"^ib", "^ib,sysv,xpmem"},
                                          {"^sysv", "^sysv,xpmem"},
                                          {"^\\xpmem,tcp", "^\\xpmem,tcp,sysv"},
                                          {"^sm", "^sm"},
                                          {"tcp,self", "tcp,self"},
                                          {"sysv,self", "sysv,self"},
                                          {"xpmem", "xpmem"},
                                          {"mm", "posix"},
                                          {"tcp,mm", "tcp,posix"},
                                          {"posix,mm,\\sysv", "posix,\\sysv"}}) {
    EXPECT_EQ(kept(value), expected) << value;
    EXPECT_EQ(kept(kept(value)), expected) << value;
  }
}

TEST(TransportList, KeepsTheRestOfAGroup) {
  for (const std::string group : {"sm", "shm"}) {
    const transport_list list(kept("tcp," + group));
    for (const char* each : {"tcp", "posix", "cma"}) EXPECT_TRUE(list.allows(each)) << each;
    for (const char* each : {"sysv", "xpmem", "sm"}) EXPECT_FALSE(list.allows(each)) << each;
  }
  EXPECT_TRUE(transport_list(kept("sm,sysv")).allows("sysv"));
}

TEST(TransportList, NamesNothingThatAnOldUcxWouldMiss) {
  const bool there = ::access("/dev/xpmem", F_OK) == 0;
  EXPECT_EQ(kept("all", {1, 17, 0}), there ? "^sysv,xpmem" : "^sysv");
}

TEST(TransportList, AllowsByNameByGroupAndByExclusion) {
  for (const char* value : {"all", "posix", "\\posix", "tcp,sm", "shm", "mm", "^tcp"}) {
    EXPECT_TRUE(transport_list(value).allows("posix")) << value;
  }
  for (const char* value : {"tcp", "^posix", "^\\posix", "^sm,tcp", "cma"}) {
    EXPECT_FALSE(transport_list(value).allows("posix")) << value;
  }
}

}  // namespace
}  // namespace ucx::detail
