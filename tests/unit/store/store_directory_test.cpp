#include "store/store_directory.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/store_path.hpp"
#include "support/files/temporary_directory.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

using test::content_of;
using test::temporary_directory;
using lookup = store_directory::lookup;

TEST(StorePath, IsWhatCanNotLeaveAStore) {
  for (const char* good : {"a", "a/b", ".hidden", "a..b/...", "a b/ü", ".ucxio-unfinished.x"}) {
    EXPECT_EQ(complaint_about_path(good), "") << good;
  }
  for (const std::string& bad :
       {std::string(), std::string("/"), std::string("/a"), std::string("a/"), std::string("a//b"),
        std::string("."), std::string("a/./b"), std::string(".."), std::string("a/../b"),
        std::string("\xff"), std::string("a\0b", 3), std::string(256, 'a'), std::string(1025, 'a'),
        std::string(".ucxio-unfinished"), std::string(".ucxio-unfinished/1"),
        std::string("x/.ucxio-unfinished/1")}) {
    EXPECT_NE(complaint_about_path(bad), "") << bad;
  }
  EXPECT_EQ(split("a/b/c").directory, "a/b");
  EXPECT_EQ(split("a/b/c").name, "c");
  EXPECT_EQ(split("c").directory, "");
}

/// Returns why a call failed, if it did.
template <class T>
std::error_code outcome_of(const result<T>& returned) {
  return returned ? std::error_code() : returned.why().code;
}

class StoreDirectory : public testing::TestWithParam<lookup> {
 protected:
  std::shared_ptr<store_directory> open(bool writable = false) {
    return store_directory::open(directory_ / "", writable, GetParam()).or_throw();
  }
  /// Opens a file, and returns why not.
  static std::error_code opening(const store_directory& in, const std::string& path,
                                 bool writable = false) {
    return outcome_of(in.open_file(path, writable));
  }

  const temporary_directory directory_;
};

TEST_P(StoreDirectory, FollowsNoSymbolicLink) {
  const temporary_directory outside;
  outside.make("secret", "x");
  std::filesystem::create_directories(directory_ / "in");
  directory_.make("in/file", "12345");
  std::filesystem::create_symlink(outside / "secret", directory_ / "in/link");
  std::filesystem::create_symlink("file", directory_ / "in/inner");
  std::filesystem::create_directory_symlink(outside / "", directory_ / "out");
  std::filesystem::create_directory_symlink("/proc/self/root", directory_ / "magic");
  const auto opened = open();
  EXPECT_FALSE(opening(*opened, "in/file"));
  for (const char* path : {"in/link", "in/inner", "out/secret", "magic/etc/passwd", "missing",
                           "in/file/x", "in/missing"}) {
    EXPECT_EQ(opening(*opened, path), errc::no_such_name) << path;
    EXPECT_EQ(opening(*opened, path, true), errc::no_such_name) << path;
    EXPECT_EQ(outcome_of(opened->stat(path)), errc::no_such_name) << path;
  }
  const store_listing& listing = opened->listing();
  EXPECT_EQ(listing.list_files("", 100).or_throw().items.size(), 1U);
  for (const char* path : {"out", "magic", "in/link", "missing"}) {
    EXPECT_EQ(outcome_of(listing.list_directory(path, "", 100)), errc::no_such_name) << path;
  }
  EXPECT_EQ(outcome_of(listing.list_directory("in/file", "", 100)), errc::not_supported);
}

TEST_P(StoreDirectory, CountsWhatItDoesNotServe) {
  std::filesystem::create_directories(directory_ / "in/inner");
  directory_.make("in/file", "1");
  directory_.make("in/bad\xff", "1");
  std::filesystem::create_symlink("file", directory_ / "in/link");
  ASSERT_EQ(::mkfifo((directory_ / "in/fifo").c_str(), 0600), 0);
  const auto opened = open();
  const store_listing& listing = opened->listing();
  const store_listing::page first = listing.list_directory("in", "", 1).or_throw();
  EXPECT_EQ(first.items.size(), 1U);
  EXPECT_TRUE(first.more);
  EXPECT_EQ(first.unserved, 3U);
  EXPECT_EQ(listing.list_directory("in", "file", 10).or_throw().unserved, 0U) << "it was told";
  EXPECT_EQ(listing.list_directory("in", "", 10, 7).or_throw().unserved, 4U)
      << "in/inner is too long";
  EXPECT_EQ(listing.list_directory("", "", 10).or_throw().unserved, 0U);
}

TEST_P(StoreDirectory, OpensNothingButRegularFiles) {
  std::filesystem::create_directories(directory_ / "directory");
  ASSERT_EQ(::mkfifo((directory_ / "pipe").c_str(), 0600), 0);
  const auto opened = open();
  for (const char* path : {"directory", "pipe"}) {
    EXPECT_EQ(opening(*opened, path), errc::not_supported) << path;
    EXPECT_EQ(opening(*opened, path, true), errc::not_supported) << path;
  }
  EXPECT_TRUE(opened->stat("directory").or_throw().is_directory);
  EXPECT_TRUE(opened->stat("").or_throw().is_directory);
}

TEST_P(StoreDirectory, IsNotLeftWhileSomebodySwapsADirectoryForALink) {
  const temporary_directory outside;
  outside.make("file", "secret!");
  std::filesystem::create_directories(directory_ / "real");
  directory_.make("real/file", "ours");
  std::filesystem::create_directory_symlink(outside / "", directory_ / "link");
  const auto opened = open();
  std::atomic<bool> over{false};
  std::jthread swapping([&] {
    while (!over) {
      ::renameat2(AT_FDCWD, (directory_ / "real").c_str(), AT_FDCWD, (directory_ / "link").c_str(),
                  RENAME_EXCHANGE);
    }
  });
  for (int i = 0; i < 5000; ++i) {
    const result<opened_file> file = opened->open_file("real/file", false);
    if (file) {
      EXPECT_EQ(file->facts.size, 4U);
    } else {
      EXPECT_EQ(file.why().code, errc::no_such_name);
    }
  }
  over = true;
}

TEST_P(StoreDirectory, TellsAReplacedContentFromItsPredecessor) {
  directory_.make("file", "one");
  const auto opened = open();
  const std::uint64_t first = opened->stat("file").or_throw().generation;
  EXPECT_EQ(opened->stat("file").or_throw().generation, first);
  directory_.make("other", "two");
  std::filesystem::rename(directory_ / "other", directory_ / "file");
  EXPECT_NE(opened->stat("file").or_throw().generation, first);
}

TEST_P(StoreDirectory, TellsWhatIsKnownWithoutWaiting) {
  const temporary_directory outside;
  outside.make("secret", "x");
  directory_.make("file", "12345");
  std::filesystem::create_symlink(outside / "secret", directory_ / "link");
  std::filesystem::create_directories(directory_ / "directory");
  ASSERT_EQ(::mkfifo((directory_ / "pipe").c_str(), 0600), 0);
  const auto opened = open();
  // It may say nothing of anything: then the slow way is gone.
  if (const auto file = opened->open_now("file")) {
    EXPECT_TRUE(file->descriptor);
    EXPECT_EQ(file->facts.size, 5U);
    EXPECT_EQ(file->facts.generation, opened->stat("file").or_throw().generation);
    EXPECT_EQ(opened->stat_now("file")->size, 5U);
    EXPECT_TRUE(opened->stat_now("directory")->is_directory);
  } else {
    EXPECT_FALSE(opened->stat_now("file"));
  }
  for (const char* path : {"link", "pipe", "missing", "file/x", "directory"}) {
    EXPECT_FALSE(opened->open_now(path)) << path;
  }
  EXPECT_FALSE(opened->stat_now("link"));
}

TEST_P(StoreDirectory, ListsInOrderFromAnywhere) {
  std::set<std::string> expected;
  for (const char* path : {"a", "a.b", "a-", "b/c", "b/d/e", "b/d.x", "b0", "b.", "z/z/z"}) {
    const auto file = directory_ / path;
    std::filesystem::create_directories(file.parent_path());
    directory_.make(path, path);
    expected.insert(path);
  }
  std::filesystem::create_directories(directory_ / "empty/very");
  std::filesystem::create_directory_symlink(directory_ / "", directory_ / "b/loop");
  const auto opened = open(true);
  const store_listing& listing = opened->listing();
  for (std::size_t most : {1U, 2U, 3U, 100U}) {
    std::vector<std::string> found;
    for (bool more = true; more;) {
      const auto page = listing.list_files(found.empty() ? "" : found.back(), most).or_throw();
      for (const auto& each : page.items) found.push_back(each.path);
      more = page.more;
      ASSERT_LE(found.size(), expected.size());
    }
    EXPECT_EQ(found, std::vector<std::string>(expected.begin(), expected.end())) << most;
  }
  // What is left out takes no room in a page.
  const auto shorter = listing.list_files("", 2, 3).or_throw();
  EXPECT_EQ(shorter.items.size(), 2U);
  EXPECT_EQ(listing.list_files(shorter.items.back().path, 100, 3).or_throw().items.size(), 4U);
  const auto behind = listing.list_files("b/cc", 100).or_throw();
  EXPECT_EQ(behind.items.front().path, "b/d.x");
}

TEST_P(StoreDirectory, IsReadOnceForThePagesOfOneList) {
  for (int i = 0; i < 2000; ++i) directory_.make("f" + std::to_string(10000 + i), "");
  const auto opened = open();
  const store_listing& listing = opened->listing();
  for (const bool whole_tree : {true, false}) {
    const auto page_behind = [&](const std::string& after) {
      auto page =
          whole_tree ? listing.list_files(after, 100) : listing.list_directory("", after, 100);
      return std::move(page).or_throw();
    };
    std::size_t count = 0;
    std::string last;
    for (bool more = true; more;) {
      const auto page = page_behind(last);
      // Each page is told of what was there at the beginning, and not of what comes meanwhile.
      if (last.empty()) directory_.make("f11999x", "");
      for (const auto& each : page.items) {
        EXPECT_LT(last, each.path);
        last = each.path;
      }
      count += page.items.size();
      more = page.more;
    }
    EXPECT_EQ(count, 2000U);
    EXPECT_EQ(page_behind("").items.size(), 100U);
    EXPECT_EQ(page_behind("f11998").items.back().path, "f11999x") << "a new list knows of it";
    std::filesystem::remove(directory_ / "f11999x");
  }
}

TEST_P(StoreDirectory, IsNotWrittenIntoWhenItWasRemoved) {
  const temporary_directory above;
  const auto at = above / "store";
  std::filesystem::create_directory(at);
  const auto opened = store_directory::open(at, true, GetParam()).or_throw();
  const spooled_file file = opened->create_unnamed().or_throw();
  std::filesystem::remove_all(at);
  EXPECT_EQ(outcome_of(opened->give_name(file.name, "name", false)), errc::stale_store);
  EXPECT_EQ(outcome_of(opened->create_unnamed()), errc::stale_store);
  EXPECT_EQ(outcome_of(opened->open_or_create("other")), errc::stale_store);
  EXPECT_EQ(outcome_of(opened->rename("name", "other", false)), errc::stale_store);
}

TEST_P(StoreDirectory, SaysThatItIsGoneToWhomeverLooksIntoIt) {
  for (const bool is_made_anew : {false, true}) {
    const temporary_directory above;
    const auto at = above / "store";
    std::filesystem::create_directories(at / "sub");
    const auto opened = store_directory::open(at, false, GetParam()).or_throw();
    const store_listing& listing = opened->listing();
    // It is empty, and there.
    EXPECT_TRUE(listing.list_files("", 100).or_throw().items.empty());
    EXPECT_TRUE(listing.list_directory("sub", "", 100).or_throw().items.empty());
    EXPECT_EQ(opening(*opened, "name"), errc::no_such_name);
    std::filesystem::remove_all(at);
    if (is_made_anew) {
      std::filesystem::create_directories(at / "sub");
      above.make("store/name", "of another directory");
    }
    EXPECT_EQ(opening(*opened, "name"), errc::stale_store);
    for (const std::string path : {"", "sub", "name"}) {
      EXPECT_EQ(outcome_of(opened->stat(path)), errc::stale_store) << path;
      EXPECT_EQ(outcome_of(listing.list_directory(path, "", 100)), errc::stale_store) << path;
      EXPECT_EQ(outcome_of(opened->remove(path)), errc::stale_store) << path;
    }
    EXPECT_EQ(outcome_of(listing.list_files("", 100)), errc::stale_store);
  }
}

TEST_P(StoreDirectory, IsTheOneThatWasOpenedWhereverItsPathLeads) {
  const temporary_directory above;
  const auto at = above / "store";
  std::filesystem::create_directory(at);
  const auto opened = store_directory::open(at, true, GetParam()).or_throw();
  std::filesystem::rename(at, above / "renamed");
  std::filesystem::create_directory(at);
  EXPECT_TRUE(opened->listing().list_files("", 100).or_throw().items.empty());
  EXPECT_EQ(opening(*opened, "name"), errc::no_such_name);
  const spooled_file file = opened->create_unnamed().or_throw();
  EXPECT_EQ(outcome_of(opened->give_name(file.name, "name", false)), std::error_code());
  EXPECT_EQ(outcome_of(opened->rename("name", "other", false)), std::error_code());
  EXPECT_TRUE(std::filesystem::exists(above / "renamed/other"));
  EXPECT_TRUE(std::filesystem::is_empty(at));
}

TEST(StoreDirectory, SaysWhyItCanNotBeWritten) {
  const temporary_directory directory;
  directory.make(".ucxio-unfinished", "no directory");
  const auto opened = store_directory::open(directory / "", true);
  ASSERT_FALSE(opened);
  EXPECT_TRUE(opened.why().code);
  const std::string& what = opened.why().text;
  EXPECT_NE(what.find("for writing"), std::string::npos) << what;
  EXPECT_NE(what.find(".ucxio-unfinished"), std::string::npos) << what;
  EXPECT_NE(what.find("Not a directory"), std::string::npos) << what;
}

TEST(KnownNames, KeepsABoundedNumber) {
  known_names known;
  struct ::stat directory = {};
  for (ino_t inode = 1; inode < 10; ++inode) {
    directory.st_ino = inode;
    run_of_names read{.names = std::vector<ordered_name>(known_names::most_read), .more = true};
    for (std::size_t i = 0; i < read.names.size(); ++i) {
      read.names[i].key = std::to_string(100000 + i);
    }
    EXPECT_EQ(known.keep(directory, "", true, std::move(read)).names.size(),
              known_names::most_told);
    EXPECT_LE(known.size(), known_names::most_kept);
  }
  EXPECT_TRUE(known.next(directory, "100100", true));
  EXPECT_FALSE(known.next(directory, "100100", false));
  EXPECT_FALSE(known.next(directory, "999999", true)) << "that was not read";
  directory.st_ino = 1;
  EXPECT_FALSE(known.next(directory, "100100", true));
}

TEST_P(StoreDirectory, ShowsNoStoreThatLiesWithinItUnfinished) {
  std::filesystem::create_directories(directory_ / "in/.ucxio-unfinished");
  directory_.make("in/.ucxio-unfinished/1.1", "half");
  directory_.make("in/file", "whole");
  const auto opened = open();
  const store_listing& listing = opened->listing();
  EXPECT_EQ(listing.list_files("", 10).or_throw().items.size(), 1U);
  EXPECT_EQ(listing.list_directory("in", "", 10).or_throw().items.size(), 1U);
  EXPECT_EQ(listing.total_size().or_throw(), 5U);
}

TEST_P(StoreDirectory, ReplacesNothingButFiles) {
  const temporary_directory outside;
  outside.make("secret", "x");
  std::filesystem::create_symlink(outside / "secret", directory_ / "link");
  std::filesystem::create_symlink(outside / "new", directory_ / "dangling");
  std::filesystem::create_directories(directory_ / "directory");
  ASSERT_EQ(::mkfifo((directory_ / "pipe").c_str(), 0600), 0);
  directory_.make("file", "12345");
  const auto opened = open(true);
  const std::string spooled = opened->create_unnamed().or_throw().name;
  const auto expect = [&](const std::string& path, errc why) {
    EXPECT_EQ(opened->check_replaced(path, false), why) << path;
    EXPECT_EQ(outcome_of(opened->give_name(spooled, path, false)), why) << path;
    EXPECT_EQ(outcome_of(opened->open_or_create(path)), why) << path;
    EXPECT_EQ(opened->check_replaced(path, true), errc::already_exists) << path;
    EXPECT_EQ(outcome_of(opened->rename("file", path, false)), why) << path;
    EXPECT_EQ(outcome_of(opened->rename("file", path, true)), errc::already_exists) << path;
  };
  expect("link", errc::bad_name);
  expect("dangling", errc::bad_name);
  expect("pipe", errc::not_supported);
  expect("directory", errc::not_supported);
  EXPECT_TRUE(std::filesystem::is_symlink(directory_ / "link"));
  EXPECT_TRUE(std::filesystem::is_fifo(directory_ / "pipe"));
  EXPECT_FALSE(std::filesystem::exists(outside / "new"));
  EXPECT_EQ(content_of(directory_ / "file"), "12345");
}

TEST_P(StoreDirectory, HoldsWhatIsReplacedUntilItIsToBeFreed) {
  directory_.make("old", "12345");
  const auto opened = open(true);
  const std::string spooled = opened->create_unnamed().or_throw().name;
  const replaced_file replaced = opened->give_name(spooled, "old", false).or_throw();
  EXPECT_EQ(replaced.facts.size, 5U);
  EXPECT_EQ(content_of(directory_ / "old"), "");
  EXPECT_EQ(static_cast<bool>(replaced.kept), opened->room_ahead_helps());
  if (!replaced.kept) return;
  struct ::stat about = {};
  ASSERT_EQ(::fstat(replaced.kept.get(), &about), 0);
  EXPECT_EQ(about.st_size, 5);
  EXPECT_EQ(about.st_nlink, 0U);
}

TEST_P(StoreDirectory, KeepsTheDirectoryOfManyFilesWhileItIsThere) {
  std::filesystem::create_directory(directory_ / "to");
  directory_.make("to/old", "12345");
  const auto opened = open(true);
  last_parent last;
  const auto move_to = [&](const std::string& path) {
    const std::string spooled = opened->create_unnamed().or_throw().name;
    const replaced_file replaced = opened->give_name(spooled, path, false, &last).or_throw();
    EXPECT_EQ(content_of(directory_ / path), "") << path;
    return replaced.facts.size;
  };
  EXPECT_EQ(move_to("to/one"), 0U);
  EXPECT_EQ(last.path, "to");
  EXPECT_EQ(move_to("to/old"), 5U) << "it was replaced";
  std::filesystem::remove_all(directory_ / "to");
  EXPECT_EQ(move_to("to/two"), 0U);
  EXPECT_EQ(move_to("elsewhere/two"), 0U);
  EXPECT_EQ(last.path, "elsewhere");
  EXPECT_EQ(move_to("three"), 0U);
  EXPECT_EQ(move_to("four"), 0U);
}

TEST_P(StoreDirectory, GivesAFileItsNameWhenItIsWhole) {
  const auto opened = open(true);
  std::string spooled;
  {
    const spooled_file made = opened->create_unnamed().or_throw();
    ASSERT_EQ(::write(made.descriptor.get(), "text", 4), 4);
    spooled = made.name;
  }
  EXPECT_TRUE(opened->listing().list_files("", 10).or_throw().items.empty());
  const replaced_file replaced = opened->give_name(spooled, "x/y/z", true).or_throw();
  EXPECT_FALSE(opened->sync_name("x/y/z"));
  EXPECT_EQ(replaced.facts.size, 0U);
  EXPECT_FALSE(replaced.kept);
  EXPECT_EQ(content_of(directory_ / "x/y/z"), "text");
  spooled = opened->create_unnamed().or_throw().name;
  EXPECT_EQ(outcome_of(opened->give_name(spooled, "x/y/z", true)), errc::already_exists);
  EXPECT_EQ(outcome_of(opened->give_name(spooled, "x/y", false)), errc::not_supported);
  EXPECT_EQ(outcome_of(opened->give_name(spooled, "x/y/z/below", false)), errc::no_such_name);
  EXPECT_EQ(opened->sync_name("nothing/x"), errc::io_error);
  EXPECT_EQ(outcome_of(opened->rename("x", "moved/to", false)), std::error_code());
  EXPECT_EQ(content_of(directory_ / "moved/to/y/z"), "text");
  EXPECT_EQ(opened->listing().total_size().or_throw(), 4U);
  const auto second = store_directory::open(directory_ / "", true);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.why().code, errc::busy);
}

/// Does that on a thread whose system calls of these numbers are denied, as containers deny some.
/// Returns false where the system has no such filters.
bool without_calls(std::initializer_list<std::uint32_t> denied, const std::function<void()>& work) {
  std::vector<::sock_filter> filter{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(::seccomp_data, nr))};
  for (const std::uint32_t each : denied) {
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, each, 0, 1));
    filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM));
  }
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  bool is_denied = false;
  std::thread([&] {
    const ::sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
    is_denied = ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
                ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
    if (is_denied) work();
  }).join();
  return is_denied;
}

TEST_P(StoreDirectory, MovesOverNothingWithoutRenameat2) {
  const auto opened = store_directory::open(directory_ / "", true, GetParam()).or_throw();
  std::filesystem::create_directory(directory_ / "from");
  std::filesystem::create_directory(directory_ / "other");
  directory_.make("from/file", "content");
  directory_.make("other/file", "other");
  directory_.make("taken", "taken");
  const bool is_denied = without_calls({SYS_renameat2}, [&] {
    const auto moving = [&](const char* from, const char* to) {
      return outcome_of(opened->rename(from, to, true));
    };
    EXPECT_EQ(moving("from", "moved"), std::error_code());
    EXPECT_EQ(moving("other", "moved"), errc::already_exists);
    EXPECT_EQ(moving("other", "taken"), errc::already_exists);
    EXPECT_EQ(moving("other", "other/within"), errc::invalid_argument);
    EXPECT_EQ(moving("moved/file", "alone"), std::error_code());
    EXPECT_EQ(moving("alone", "taken"), errc::already_exists);
  });
  if (!is_denied) GTEST_SKIP() << "this system filters no calls";
  EXPECT_EQ(content_of(directory_ / "alone"), "content");
  EXPECT_TRUE(std::filesystem::is_empty(directory_ / "moved"));
  EXPECT_EQ(content_of(directory_ / "other/file"), "other");
  EXPECT_FALSE(std::filesystem::exists(directory_ / "other/within"));
  EXPECT_FALSE(std::filesystem::exists(directory_ / "from"));
  EXPECT_EQ(content_of(directory_ / "taken"), "taken");
}

TEST_P(StoreDirectory, SaysThatAFileHasItsNameWhereItsOldOneStays) {
  const auto opened = store_directory::open(directory_ / "", true, GetParam()).or_throw();
  const spooled_file file = opened->create_unnamed().or_throw();
  const bool is_denied = without_calls({SYS_renameat2, SYS_unlinkat}, [&] {
    EXPECT_EQ(outcome_of(opened->give_name(file.name, "name", true)), std::error_code());
  });
  if (!is_denied) GTEST_SKIP() << "this system filters no calls";
  EXPECT_TRUE(std::filesystem::exists(directory_ / "name"));
  opened->discard(file.name);
  EXPECT_TRUE(std::filesystem::exists(directory_ / "name"));
}

INSTANTIATE_TEST_SUITE_P(Lookups, StoreDirectory,
                         testing::Values(lookup::automatic, lookup::by_component));

}  // namespace
}  // namespace ucx::detail
