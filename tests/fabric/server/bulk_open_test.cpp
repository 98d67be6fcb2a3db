// Many names that are opened at once.
#include "ucx/many_files.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <iterator>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "support/files/temporary_directory.hpp"
#include "support/transports/ucx_server.hpp"
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
  ucx_server served;
  const publication store = served.publish_store(directory / "");
  client reader(served.url());
  EXPECT_TRUE(open_many(reader, {}).empty());
  const std::vector<open_result> opened = open_many(reader, names);
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
  ucx_server served;
  const publication store = served.publish_store(directory / "", {.max_open_files_per_client = 10});
  client reader(served.url());
  const std::vector<std::string> names(20, "x");
  std::size_t refused = 0;
  {
    for (const open_result& each : open_many(reader, names)) {
      if (!each.error) continue;
      EXPECT_EQ(each.error, errc::too_many_client_files);
      ++refused;
    }
  }
  EXPECT_EQ(refused, 10U);
  for (const open_result& each : open_many(reader, std::span(names).first(10))) {
    EXPECT_FALSE(each.error) << "what was let go of is free again: " << each.error.message();
  }
}

TEST(OpenEach, RefusesAccessThatIsNotGranted) {
  std::string memory = "content";
  ucx_server owner;
  const publication shown = owner.publish("m", std::as_bytes(std::span(memory)));
  client reader(owner.url());
  const std::vector<std::string> names{"m"};
  EXPECT_EQ(open_many(reader, names, access::write).at(0).error, errc::permission_denied);
}

TEST(OpenEach, TellsOfEveryNameThatTheConnectionIsGone) {
  ucx_server owner;
  client reader(owner.url());
  owner.close();
  const std::vector<std::string> names(5, "m");
  for (const open_result& each : open_many(reader, names)) EXPECT_TRUE(each.error);
  const client taken = std::move(reader);
  EXPECT_THROW(open_many(reader, names), error);  // NOLINT(bugprone-use-after-move)
}

std::string text_of(const read_result& each) {
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
  ucx_server served;
  const publication store = served.publish_store(directory / "");
  client reader(served.url());
  EXPECT_TRUE(read_many(reader, {}, 1000).empty());
  const std::vector<read_result> fetched = read_many(reader, names, 90'000);
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
  EXPECT_EQ(read_many(reader, few, 1000).at(0).bytes.size(), 1000U);
  EXPECT_EQ(read_many(reader, few, 1000).at(1).error, errc::message_truncated);
  EXPECT_EQ(read_many(reader, few, 0).at(0).error, errc::message_truncated);
}

TEST(FetchEach, ReadsWhatWasPublishedByItself) {
  const temporary_directory directory;
  directory.make("x", "a file");
  std::string memory = "memory";
  ucx_server owner;
  const publication shown = owner.publish("m", std::as_bytes(std::span(memory)));
  const publication file = owner.publish_file("f", directory / "x");
  client reader(owner.url());
  const std::vector<std::string> names{"m", "f"};
  const std::vector<read_result> fetched = read_many(reader, names, 100);
  EXPECT_EQ(text_of(fetched.at(0)), "memory");
  EXPECT_EQ(text_of(fetched.at(1)), "a file");
}

TEST(FetchEach, LeavesNothingOpen) {
  const temporary_directory directory;
  directory.make("x", "1");
  directory.make("long", std::string(70'000, 'x'));
  ucx_server served;
  const publication store = served.publish_store(directory / "", {.max_open_files_per_client = 10});
  client reader(served.url());
  for (int round = 0; round < 5; ++round) {
    for (const read_result& each : read_many(reader, std::vector<std::string>(50, "x"), 10)) {
      EXPECT_FALSE(each.error) << each.error.message();
    }
    for (const read_result& each :
         read_many(reader, std::vector<std::string>(10, "long"), 70'000)) {
      EXPECT_EQ(each.bytes.size(), 70'000U) << each.error.message();
    }
  }
}

TEST(FetchEach, TellsOfEveryNameThatTheConnectionIsGone) {
  ucx_server owner;
  client reader(owner.url());
  owner.close();
  const std::vector<std::string> names(5, "m");
  for (const read_result& each : read_many(reader, names, 10)) EXPECT_TRUE(each.error);
  const client taken = std::move(reader);
  EXPECT_THROW(read_many(reader, names, 10), error);  // NOLINT(bugprone-use-after-move)
}

/// A directory that is a writable store of a server, and a client of it.
class StoreEach : public testing::Test {
 protected:
  explicit StoreEach(store_options options = {}) {
    options.writable = true;
    store_ = served_.publish_store(directory_ / "", options);
  }
  void publish(store_options options) {
    options.writable = true;
    store_ = publication();
    store_ = served_.publish_store(directory_ / "", options);
  }
  std::string read(const std::string& name) const { return content_of(directory_ / name); }
  std::error_code store(const std::string& name, const std::string& text,
                        creation how = creation::replace) {
    const short_file file{name, std::as_bytes(std::span(text))};
    return write_many(writer_, std::span(&file, 1), how).at(0);
  }

  const temporary_directory directory_;
  ucx_server served_;
  publication store_;
  client writer_{served_.url()};
};

TEST_F(StoreEach, WritesEveryFileOrTellsWhyNot) {
  std::vector<std::string> texts;
  std::vector<short_file> files;
  for (int i = 0; i < 150; ++i) {
    // Some go with their questions, some are too long for one, and one is empty.
    texts.emplace_back(i == 7 ? 0 : static_cast<std::size_t>(i) * 1000,
                       static_cast<char>('a' + i % 26));
  }
  for (int i = 0; i < 150; ++i) {
    const auto at = static_cast<std::size_t>(i);
    files.push_back({"d" + std::to_string(i % 3) + "/f" + std::to_string(i),
                     std::as_bytes(std::span(texts[at]))});
  }
  files[50].name = "";
  files[60].name = "a/../b";
  EXPECT_TRUE(write_many(writer_, {}).empty());
  const std::vector<std::error_code> outcomes = write_many(writer_, files);
  ASSERT_EQ(outcomes.size(), files.size());
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (i == 50 || i == 60) {
      EXPECT_EQ(outcomes[i], errc::bad_name) << i;
    } else {
      ASSERT_FALSE(outcomes[i]) << i << outcomes[i].message();
      EXPECT_EQ(read(files[i].name), texts[i]) << i;
    }
  }
}

TEST_F(StoreEach, ReplacesOrMakesAsItIsTold) {
  EXPECT_FALSE(store("f", "first"));
  EXPECT_FALSE(store("f", "second"));
  EXPECT_EQ(read("f"), "second");
  EXPECT_EQ(store("f", "third", creation::exclusive), errc::already_exists);
  EXPECT_EQ(read("f"), "second");
  EXPECT_FALSE(store("g", "fourth", creation::exclusive));
  EXPECT_EQ(read("g"), "fourth");
  const std::vector<short_file> none;
  EXPECT_THROW(write_many(writer_, none, creation::append), error);
  EXPECT_THROW(write_many(writer_, none, creation::overwrite), error);
}

TEST_F(StoreEach, LeavesAloneWhatIsBeingWritten) {
  remote_region file = writer_.create("f");
  EXPECT_EQ(store("f", "mine"), errc::busy);
  const std::string yours = "yours";
  file.write_at(0, std::as_bytes(std::span(yours)));
  writer_.commit(file);
  EXPECT_EQ(read("f"), "yours");
}

TEST_F(StoreEach, WritesNothingWhereItMayNot) {
  publish({.quota = 100, .max_file_size = 60});
  EXPECT_EQ(store("long", std::string(61, 'x')), errc::no_space);
  EXPECT_FALSE(store("f", std::string(60, 'x')));
  EXPECT_EQ(store("g", std::string(60, 'y')), errc::no_space);
  EXPECT_FALSE(store("g", std::string(40, 'y')));
  // Until the new one is whole, both are there.
  EXPECT_EQ(store("f", "z"), errc::no_space);
  EXPECT_EQ(read("f"), std::string(60, 'x'));
}

TEST_F(StoreEach, GivesBackWhatTheQuotaCountedForReplacedFiles) {
  publish({.quota = 100});
  for (int i = 0; i < 5; ++i) ASSERT_FALSE(store("f", std::string(50, 'x'))) << i;
  std::filesystem::create_directory(directory_ / "d");
  EXPECT_EQ(store("d", std::string(50, 'x')), errc::not_supported);
  EXPECT_EQ(store("f", std::string(50, 'x'), creation::exclusive), errc::already_exists);
  EXPECT_EQ(store("g", std::string(51, 'x')), errc::no_space);
  EXPECT_FALSE(store("g", std::string(50, 'x'))) << "what failed is still counted";
}

TEST_F(StoreEach, IsRefusedByWhatIsNoWritableStore) {
  std::string memory = "memory";
  const publication shown = served_.publish("m", std::as_bytes(std::span(memory)));
  EXPECT_EQ(store("m", "mine"), errc::not_supported);
  EXPECT_EQ(store("m", "mine", creation::exclusive), errc::already_exists);
  store_ = publication();
  EXPECT_EQ(store("f", "mine"), errc::no_such_name);
  store_ = served_.publish_store(directory_ / "");
  EXPECT_EQ(store("f", "mine"), errc::permission_denied);
}

TEST_F(StoreEach, KeepsNothingOfWhatItReplaced) {
  const auto descriptors = [] {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return std::distance(begin(all), end(all));
  };
  ASSERT_FALSE(store("f", "0"));
  const auto before = descriptors();
  for (int i = 1; i <= 100; ++i) ASSERT_FALSE(store("f", std::to_string(i)));
  EXPECT_LT(descriptors(), before + 50);
}

TEST_F(StoreEach, GoesOnBehindANameThatIsNone) {
  const remote_region open = writer_.create("open");
  const std::string text = "text";
  const std::vector<short_file> files{{std::string(3000, 'n'), {}},
                                      {"f", std::as_bytes(std::span(text))}};
  const std::vector<std::error_code> outcomes = write_many(writer_, files);
  EXPECT_EQ(outcomes.at(0), errc::bad_name);
  EXPECT_FALSE(outcomes.at(1));
  EXPECT_FALSE(open.status());
}

TEST_F(StoreEach, WritesToSeveralStores) {
  const temporary_directory other;
  const publication beside =
      served_.publish_store(other / "", {.prefix = "other", .writable = true});
  const std::string text = "text";
  const auto bytes = std::as_bytes(std::span(text));
  const std::vector<short_file> files{{"a", bytes}, {"other/b", bytes}, {"c", bytes}};
  for (const std::error_code& each : write_many(writer_, files)) EXPECT_FALSE(each);
  EXPECT_EQ(read("a") + content_of(other / "b") + read("c"), "texttexttext");
}

TEST_F(StoreEach, TellsOfEveryFileThatTheConnectionIsGone) {
  served_.close();
  const std::vector<short_file> files(5, short_file{.name = "f"});
  for (const std::error_code& each : write_many(writer_, files)) EXPECT_TRUE(each);
  const client taken = std::move(writer_);
  EXPECT_THROW(write_many(writer_, files), error);  // NOLINT(bugprone-use-after-move)
}

}  // namespace
}  // namespace ucx::test
