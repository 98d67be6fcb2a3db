// Many names that are opened at once.
#include "ucx/bulk_open.hpp"

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "support/temporary_directory.hpp"
#include "ucx/client.hpp"
#include "ucx/error.hpp"
#include "ucx/server.hpp"

namespace ucx::test {
namespace {

std::string content_through(const remote_region& region) {
  std::string text(region.size(), '\0');
  remote_region handle = region.share();
  handle.read_at(0, std::as_writable_bytes(std::span(text)));
  return text;
}

TEST(OpenEach, GivesEveryNameItsRegionOrItsError) {
  const temporary_directory directory;
  std::vector<std::string> names;
  for (int i = 0; i < 100; ++i) {
    names.push_back("f" + std::to_string(i));
    if (i % 10 != 3) directory.make(names.back(), "content " + std::to_string(i));
  }
  names[50] = "";
  names[60] = "a/../b";
  server served;
  const publication store = served.publish_store(directory / "");
  client reader(served.url());
  EXPECT_TRUE(open_each(reader, {}).empty());
  const std::vector<opened_name> opened = open_each(reader, names);
  ASSERT_EQ(opened.size(), names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i == 50) {
      EXPECT_EQ(opened[i].error, errc::bad_name);
    } else if (i == 60 || i % 10 == 3) {
      EXPECT_EQ(opened[i].error, errc::no_such_name) << i;
    } else {
      ASSERT_FALSE(opened[i].error) << i << opened[i].error.message();
      EXPECT_EQ(content_through(*opened[i].region), "content " + std::to_string(i));
      continue;
    }
    EXPECT_FALSE(opened[i].region);
  }
}

TEST(OpenEach, OpensNoMoreThanAStoreAllows) {
  const temporary_directory directory;
  directory.make("x", "1");
  server served;
  const publication store =
      served.publish_store(directory / "", {.most_open_files_of_one_client = 10});
  client reader(served.url());
  const std::vector<std::string> names(20, "x");
  std::size_t refused = 0;
  {
    for (const opened_name& each : open_each(reader, names)) {
      if (!each.error) continue;
      EXPECT_EQ(each.error, errc::too_many_files);
      ++refused;
    }
  }
  EXPECT_EQ(refused, 10U);
  for (const opened_name& each : open_each(reader, std::span(names).first(10))) {
    EXPECT_FALSE(each.error) << "what was let go of is free again: " << each.error.message();
  }
}

TEST(OpenEach, RefusesAccessThatIsNotGranted) {
  std::string memory = "content";
  server owner;
  const publication shown = owner.publish("m", std::as_bytes(std::span(memory)));
  client reader(owner.url());
  const std::vector<std::string> names{"m"};
  EXPECT_EQ(open_each(reader, names, access::write).at(0).error, errc::permission_denied);
}

TEST(OpenEach, TellsOfEveryNameThatTheConnectionIsGone) {
  server owner;
  client reader(owner.url());
  owner.close();
  const std::vector<std::string> names(5, "m");
  for (const opened_name& each : open_each(reader, names)) EXPECT_TRUE(each.error);
  const client taken = std::move(reader);
  EXPECT_THROW(open_each(reader, names), error);  // NOLINT(bugprone-use-after-move)
}

}  // namespace
}  // namespace ucx::test
