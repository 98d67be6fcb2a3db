// How many files of a store may be open: what decides it, and what is told when they are too many.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/resource.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <ios>
#include <string>
#include <system_error>
#include <vector>

#include "support/basics/effort.hpp"
#include "support/basics/soon.hpp"
#include "support/bytes/pattern.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/transports/ucx_server.hpp"
#include "ucx/client.hpp"
#include "ucx/error.hpp"
#include "ucx/fstream.hpp"
#include "ucx/server.hpp"

namespace ucx::test {
namespace {

using ::testing::HasSubstr;

class StoreLimits : public testing::Test {
 protected:
  StoreLimits() { directory_.make("one", "first"); }

  const temporary_directory directory_;
};

/// The process may have so many files open for as long as this is there, where it may at all.
class files_allowed {
 public:
  explicit files_allowed(::rlim_t count) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    ::rlimit wanted = before_;
    wanted.rlim_cur = std::min(count, before_.rlim_max);
    ::setrlimit(RLIMIT_NOFILE, &wanted);
  }
  files_allowed(const files_allowed&) = delete;
  files_allowed& operator=(const files_allowed&) = delete;
  ~files_allowed() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  ::rlimit before_ = {};
};

// Two thousand streams of one client: a quarter of what the server's process may have.
TEST_F(StoreLimits, LetOneProcessReadAndWriteWhatItsSystemLets) {
  const files_allowed many(8192);
  ucx_server served;
  const publication store = served.publish_store(directory_ / "", {.writable = true});
  std::vector<ifstream> readers;
  for (int i = 0; i < 1800; ++i) {
    readers.emplace_back(served.url("one"));
    ASSERT_EQ(readers.back().get(), 'f') << i << ": " << readers.back().error_message();
  }
  std::vector<ofstream> writers;
  for (int i = 0; i < 200; ++i) {
    writers.emplace_back(served.url("made" + std::to_string(i)));
    ASSERT_TRUE(writers.back() << i) << i << ": " << writers.back().error_message();
  }
  for (ofstream& each : writers) {
    each.close();
    EXPECT_TRUE(each) << each.error_message();
  }
  for (int i = 0; i < 200; ++i) {
    EXPECT_EQ(content_of(directory_ / ("made" + std::to_string(i))), std::to_string(i));
  }
}

// Those that come when many write have a smaller window, and no less room than a message.
TEST_F(StoreLimits, LetManyWritersWriteLongFiles) {
  const files_allowed many(4096);
  ucx_server served;
  const publication store = served.publish_store(directory_ / "", {.writable = true});
  std::vector<ofstream> writers;
  for (int i = 0; i < 70; ++i) writers.emplace_back(served.url("made" + std::to_string(i)));
  const std::string text = pattern_text(effort(std::size_t{5} << 20U, std::size_t{2} << 20U), 7);
  for (const std::size_t which : {0U, 66U, 69U}) {
    ASSERT_TRUE(writers[which].write(text.data(), static_cast<std::streamsize>(text.size())));
    writers[which].close();
    EXPECT_TRUE(writers[which]) << writers[which].error_message();
    EXPECT_TRUE(content_of(directory_ / ("made" + std::to_string(which))) == text) << which;
  }
}

TEST_F(StoreLimits, FollowWhatTheProcessMayHaveOpen) {
  const files_allowed few(400);
  ucx_server served;
  const publication store = served.publish_store(directory_ / "", {.writable = true});
  client reader(served.url());
  std::vector<remote_region> open;
  for (int i = 0; i < 100; ++i) open.push_back(reader.open("one"));
  std::error_code ec;
  reader.open("one", access::read, {}, ec);
  EXPECT_EQ(ec, errc::too_many_client_files);
  client another(served.url());
  for (int i = 0; i < 100; ++i) open.push_back(another.open("one"));
  client third(served.url());
  third.open("one", access::read, {}, ec);
  EXPECT_EQ(ec, errc::too_many_store_files);
}

// However many stores there are, the process keeps descriptors for what is none.
TEST_F(StoreLimits, AreSharedByTheStoresThatAreToldNone) {
  const files_allowed few(400);
  ucx_server served;
  const publication one = served.publish_store(directory_ / "", {.prefix = "one"});
  const publication other = served.publish_store(directory_ / "", {.prefix = "other"});
  const publication own =
      served.publish_store(directory_ / "", {.prefix = "own", .max_open_files = 1});
  client reader(served.url());
  client another(served.url());
  std::vector<remote_region> open;
  for (int i = 0; i < 100; ++i) open.push_back(reader.open("one/one"));
  for (int i = 0; i < 100; ++i) open.push_back(another.open("other/one"));
  client third(served.url());
  std::error_code ec;
  for (const std::string name : {"one/one", "other/one"}) {
    third.open(name, access::read, {}, ec);
    EXPECT_EQ(ec, errc::too_many_store_files) << name;
  }
  EXPECT_NO_THROW(third.open("own/one"));
  open.clear();
  EXPECT_TRUE(soon([&] {
    third.open("other/one", access::read, {}, ec);
    return !ec;
  }));
}

TEST_F(StoreLimits, SayWhoseTheyAreAndByWhichOption) {
  struct limited {
    store_options by;
    bool writes;
    std::string option;
  };
  for (const limited& each :
       {limited{{.max_open_files = 3, .max_open_files_per_client = 9},
                false,
                "store_options::max_open_files (ucxio serve --max-open-files)"},
        limited{{.max_open_files_per_client = 3},
                false,
                "store_options::max_open_files_per_client (ucxio serve "
                "--max-open-files-per-client)"},
        limited{
            {.max_writers = 3}, true, "store_options::max_writers (ucxio serve --max-writers)"}}) {
    ucx_server served;
    store_options options = each.by;
    options.writable = true;
    const publication store = served.publish_store(directory_ / "", options);
    std::vector<fstream> open;
    const auto next = [&] {
      const std::string name = each.writes ? "made" + std::to_string(open.size()) : "one";
      open.emplace_back(served.url(name), each.writes ? std::ios::out : std::ios::in);
      return open.back().is_open();
    };
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(next());
    EXPECT_FALSE(next());
    EXPECT_EQ(open.back().error(), std::errc::too_many_files_open);
    EXPECT_THAT(open.back().error_message(), HasSubstr(each.option));
    EXPECT_THAT(open.back().error_message(), ::testing::Not(HasSubstr("ulimit")));
    open.clear();
    EXPECT_TRUE(soon([&] {
      const bool opened = next();
      open.clear();
      return opened;
    }));
  }
}

}  // namespace
}  // namespace ucx::test
