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

std::string text_of(const fetched_name& each) {
  return {reinterpret_cast<const char*>(each.bytes.data()), each.bytes.size()};
}

TEST(FetchEach, BringsEveryFileOrItsError) {
  const temporary_directory directory;
  std::vector<std::string> names;
  for (int i = 0; i < 100; ++i) {
    names.push_back("f" + std::to_string(i));
    // Some come with their answers, some are longer than an answer, and one is empty.
    const std::size_t length = i == 7 ? 0 : static_cast<std::size_t>(i) * 1000;
    if (i % 10 != 3)
      directory.make(names.back(), std::string(length, static_cast<char>('a' + i % 26)));
  }
  names[50] = "";
  names[60] = "a/../b";
  server served;
  const publication store = served.publish_store(directory / "");
  client reader(served.url());
  EXPECT_TRUE(fetch_each(reader, {}, 1000).empty());
  const std::vector<fetched_name> fetched = fetch_each(reader, names, 90'000);
  ASSERT_EQ(fetched.size(), names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i == 50) {
      EXPECT_EQ(fetched[i].error, errc::bad_name);
    } else if (i == 60 || i % 10 == 3) {
      EXPECT_EQ(fetched[i].error, errc::no_such_name) << i;
    } else if (i > 90) {
      EXPECT_EQ(fetched[i].error, errc::message_truncated) << i;
    } else {
      ASSERT_FALSE(fetched[i].error) << i << fetched[i].error.message();
      EXPECT_EQ(text_of(fetched[i]),
                std::string(i == 7 ? 0 : i * 1000, static_cast<char>('a' + i % 26)));
      continue;
    }
    EXPECT_TRUE(fetched[i].bytes.empty());
  }
  const std::vector<std::string> few{"f1", "f2"};
  EXPECT_EQ(fetch_each(reader, few, 1000).at(0).bytes.size(), 1000U);
  EXPECT_EQ(fetch_each(reader, few, 1000).at(1).error, errc::message_truncated);
  EXPECT_EQ(fetch_each(reader, few, 0).at(0).error, errc::message_truncated);
}

TEST(FetchEach, ReadsWhatWasPublishedByItself) {
  const temporary_directory directory;
  directory.make("x", "a file");
  std::string memory = "memory";
  server owner;
  const publication shown = owner.publish("m", std::as_bytes(std::span(memory)));
  const publication file = owner.publish_file("f", directory / "x");
  client reader(owner.url());
  const std::vector<std::string> names{"m", "f"};
  const std::vector<fetched_name> fetched = fetch_each(reader, names, 100);
  EXPECT_EQ(text_of(fetched.at(0)), "memory");
  EXPECT_EQ(text_of(fetched.at(1)), "a file");
}

TEST(FetchEach, LeavesNothingOpen) {
  const temporary_directory directory;
  directory.make("x", "1");
  directory.make("long", std::string(70'000, 'x'));
  server served;
  const publication store =
      served.publish_store(directory / "", {.most_open_files_of_one_client = 10});
  client reader(served.url());
  for (int round = 0; round < 5; ++round) {
    for (const fetched_name& each : fetch_each(reader, std::vector<std::string>(50, "x"), 10)) {
      EXPECT_FALSE(each.error) << each.error.message();
    }
    for (const fetched_name& each :
         fetch_each(reader, std::vector<std::string>(10, "long"), 70'000)) {
      EXPECT_EQ(each.bytes.size(), 70'000U) << each.error.message();
    }
  }
}

TEST(FetchEach, TellsOfEveryNameThatTheConnectionIsGone) {
  server owner;
  client reader(owner.url());
  owner.close();
  const std::vector<std::string> names(5, "m");
  for (const fetched_name& each : fetch_each(reader, names, 10)) EXPECT_TRUE(each.error);
  const client taken = std::move(reader);
  EXPECT_THROW(fetch_each(reader, names, 10), error);  // NOLINT(bugprone-use-after-move)
}

}  // namespace
}  // namespace ucx::test
