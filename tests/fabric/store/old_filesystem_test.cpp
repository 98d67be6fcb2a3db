// The functions for URLs that stay for one version.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <system_error>
#include <vector>

#include "compatibility/ucx/filesystem.hpp"
#include "support/files/store_directories.hpp"
#include "support/transports/ucx_server.hpp"
#include "ucx/error.hpp"
#include "ucx/server.hpp"
#include "ucx/url.hpp"

namespace ucx::test {
namespace {

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

class OldFilesystem : public Store {
 protected:
  ucx_server served_;
  publication store_ = served_.publish_store(root(), {.writable = true});
};

TEST_F(OldFilesystem, UsesUrlsAsPaths) {
  const url root_of_all(served_.url());
  const url one = root_of_all.with_name("one");
  const url moved = root_of_all.with_name("x/moved");
  EXPECT_TRUE(exists(one));
  EXPECT_FALSE(exists(moved));
  EXPECT_EQ(file_size(one), 5U);
  const auto age = std::chrono::system_clock::now() - last_write_time(one);
  EXPECT_LT(age, std::chrono::hours(1));
  rename(one, moved);
  EXPECT_TRUE(exists(moved));
  resize_file(moved, 9);
  EXPECT_EQ(file_size(moved), 9U);
  EXPECT_EQ(list_directory(root_of_all).size(), 3U);
  EXPECT_EQ(names_of(list_directory(root_of_all.with_name("x"))),
            std::vector<std::string>{"x/moved"});
  EXPECT_TRUE(remove(moved));
  EXPECT_FALSE(remove(moved));
  std::error_code ec;
  file_size(moved, ec);
  EXPECT_EQ(ec, errc::no_such_name);
  EXPECT_THROW(file_size(root_of_all.with_name("a")), error);
  last_write_time(moved, ec);
  EXPECT_EQ(ec, errc::no_such_name);
  rename(moved, url("ucx://127.0.0.1:1/other"), ec);
  EXPECT_EQ(ec, errc::not_supported);
  remove(root_of_all.with_name("a"), ec);
  EXPECT_EQ(ec, errc::already_exists);
  resize_file(moved, 1, ec);
  EXPECT_EQ(ec, errc::no_such_name);
  EXPECT_FALSE(exists(moved, ec));
  EXPECT_FALSE(ec);
  list_directory(moved, ec);
  EXPECT_EQ(ec, errc::no_such_name);
  EXPECT_THROW(rename(moved, url("ucx://127.0.0.1:1/other")), error);
  EXPECT_THROW(remove(root_of_all.with_name("a")), error);
}

#pragma GCC diagnostic pop

}  // namespace
}  // namespace ucx::test
