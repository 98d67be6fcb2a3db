// A file that one client has opened, given to another one: its number there would be another
// file's.
#include <gtest/gtest.h>

#include <cstddef>
#include <span>
#include <string_view>
#include <system_error>

#include "support/files/temporary_directory.hpp"
#include "support/transports/ucx_server.hpp"
#include "ucx/client.hpp"
#include "ucx/content_digest.hpp"
#include "ucx/error.hpp"
#include "ucx/server.hpp"

namespace ucx::test {
namespace {

TEST(FileOfAnotherClient, IsNotTouched) {
  const temporary_directory directory;
  ucx_server served;
  const publication store = served.publish_store(directory / "", {.writable = true});
  client first(served.url());
  client second(served.url());
  remote_region file = first.create("new");
  file.write_at(0, std::as_bytes(std::span(std::string_view("content"))));
  // Under the same number the other client has a file of its own.
  remote_region other = second.create("other");

  std::error_code ec;
  second.commit(file, {}, {}, ec);
  EXPECT_EQ(ec, errc::no_such_region);
  second.refresh_size(file, 0, {}, {}, ec);
  EXPECT_EQ(ec, errc::no_such_region);
  second.resize(file, 3, {}, ec);
  EXPECT_EQ(ec, errc::no_such_region);
  second.digest(file, {}, {}, ec);
  EXPECT_EQ(ec, errc::no_such_region);

  EXPECT_EQ(first.commit(file).size, 7U);
  EXPECT_EQ(second.commit(other).size, 0U);
  EXPECT_EQ(first.list().size(), 2U);
}

}  // namespace
}  // namespace ucx::test
