// Stores in memory: a directory in a tmpfs that is gone with its publication.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <set>
#include <string>
#include <system_error>
#include <utility>

#include "support/files/temporary_directory.hpp"
#include "support/transports/ucx_server.hpp"
#include "ucx/client.hpp"
#include "ucx/error.hpp"
#include "ucx/fstream.hpp"
#include "ucx/server.hpp"

namespace ucx::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

/// A directory of the test's own in memory, so that others that run meanwhile are not looked at.
class MemoryStore : public testing::Test {
 protected:
  MemoryStore() {
    std::string name = "/dev/shm/ucxio-test-XXXXXX";
    if (::mkdtemp(name.data()) != nullptr) within_ = name;
  }
  ~MemoryStore() override {
    std::error_code ignored;
    if (!within_.empty()) fs::remove_all(within_, ignored);
  }
  void SetUp() override { ASSERT_FALSE(within_.empty()) << "no /dev/shm"; }

  std::set<std::string> directories() const {
    std::set<std::string> found;
    for (const auto& each : fs::directory_iterator(within_)) {
      found.insert(each.path().filename().string());
    }
    return found;
  }
  publication make(std::uint64_t quota = 1'000'000) {
    return served_.allocate_store({.prefix = "scratch", .quota = quota}, within_);
  }
  std::string at(const std::string& name) const { return served_.url() + "/scratch/" + name; }

  fs::path within_;
  ucx_server served_;
};

TEST_F(MemoryStore, KeepsFilesUntilItIsClosed) {
  publication store = make();
  EXPECT_EQ(store.granted(), access::read_write);
  ASSERT_EQ(directories().size(), 1U);
  struct ::stat about = {};
  ASSERT_EQ(::stat((within_ / *directories().begin()).c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 07777U, 0700U);
  { ofstream(at("a/b/file")) << "text"; }
  ifstream in(at("a/b/file"));
  std::string word;
  EXPECT_TRUE(in >> word);
  EXPECT_EQ(word, "text");
  client asking = client::shared(url(served_.url()));
  EXPECT_EQ(asking.list_directory("scratch/a").entries.size(), 1U);
  asking.remove("scratch/a/b/file");
  { ofstream(at("other")) << "text"; }
  ifstream open(at("other"));
  store.close();
  EXPECT_TRUE(directories().empty());
  EXPECT_FALSE(ifstream(at("other")));
  { const publication again = make(); }
  EXPECT_TRUE(directories().empty());
}

TEST_F(MemoryStore, IsGoneWithItsServer) {
  const publication store = make();
  { ofstream(at("file")) << "text"; }
  served_.close();
  EXPECT_TRUE(directories().empty());
}

TEST_F(MemoryStore, TakesNoMoreThanItsQuota) {
  const publication store = make(100'000);
  ofstream out(at("file"));
  out << std::string(100'000, 'x');
  out.close();
  EXPECT_TRUE(out) << out.error_message();
  ofstream more(at("more"));
  more << 'x';
  more.close();
  EXPECT_EQ(more.error(), errc::no_space);
  const url file(at("file"));
  client::shared(file).remove(file.name());
  ofstream again(at("more"));
  again << std::string(100'000, 'x');
  again.close();
  EXPECT_TRUE(again) << again.error_message();
}

TEST_F(MemoryStore, TellsWhatCanNotBe) {
  std::error_code ec;
  const auto refused = [&](const store_options& options, const fs::path& within) {
    const publication none = served_.allocate_store(options, within, ec);
    EXPECT_FALSE(none.is_open());
    return ec;
  };
  EXPECT_EQ(refused({}, within_), errc::invalid_argument);
  EXPECT_EQ(refused({.quota = 1}, within_ / "missing"), errc::no_such_name);
  EXPECT_EQ(refused({.quota = 1}, "/proc"), errc::not_supported);
  EXPECT_EQ(refused({.quota = std::uint64_t{1} << 60U}, within_), errc::no_space);
  EXPECT_EQ(refused({.prefix = "../up", .quota = 1}, within_), errc::bad_name);
  EXPECT_EQ(refused({.quota = 1, .write_window = 1}, within_), errc::invalid_argument);
  const publication store = make();
  EXPECT_EQ(refused({.prefix = "scratch", .quota = 1}, within_), errc::already_exists);
  EXPECT_EQ(directories().size(), 1U);
  try {
    const publication none = served_.allocate_store({.quota = std::uint64_t{1} << 60U}, within_);
    FAIL();
  } catch (const error& failed) {
    EXPECT_THAT(failed.what(), HasSubstr("bytes are free there"));
  }
  served_.close();
  EXPECT_EQ(refused({.quota = 1}, within_), errc::closed);
}

// Whose owner has not released the lock is left alone, and so is what is none of ours.
TEST_F(MemoryStore, SweepsOnlyWhatNobodyUses) {
  const std::string left = "ucxio-store-" + std::to_string(::geteuid()) + "-left01";
  fs::create_directories(within_ / left / "deep/er");
  temporary_directory elsewhere;
  elsewhere.make("kept", "kept");
  fs::create_directory_symlink(elsewhere / "", within_ / left / "link");
  fs::create_directory_symlink(
      elsewhere / "", within_ / ("ucxio-store-" + std::to_string(::geteuid()) + "-link00"));
  fs::create_directories(within_ / "somebody else's");
  const publication first = make();
  const publication second = served_.allocate_store({.prefix = "second", .quota = 10}, within_);
  EXPECT_FALSE(directories().contains(left));
  EXPECT_EQ(directories().size(), 4U);
  EXPECT_EQ(content_of(elsewhere / "kept"), "kept");
  { ofstream(at("file")) << "text"; }
  const url file(at("file"));
  EXPECT_TRUE(client::shared(file).exists(file.name()));
}

}  // namespace
}  // namespace ucx::test
