// Stores over TCP, in one process: what a directory shows to its clients.
#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <string>
#include <system_error>
#include <vector>

#include "support/basics/soon.hpp"
#include "support/bytes/pattern.hpp"
#include "support/files/store_directories.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/transports/ucx_server.hpp"
#include "ucx/client.hpp"
#include "ucx/error.hpp"
#include "ucx/server.hpp"
#include "ucx/stream.hpp"

namespace ucx::test {
namespace {

using std::filesystem::create_directories;

TEST_F(Store, ServesAndListsFilesByTheirPaths) {
  ucx_server served;
  std::vector<std::byte> memory = pattern(100);
  const publication p = served.publish("memory", std::span<std::byte>(memory), access::read);
  const publication store = served.publish_store(root(), {.prefix = "data"});
  EXPECT_EQ(store.name(), "data");
  EXPECT_TRUE(store.bytes().empty());
  EXPECT_EQ(store.url(), served.url() + "/data");
  client reader(served.url());
  EXPECT_EQ(names_of(reader.list()),
            (std::vector<std::string>{"data/a.txt", "data/a/b/three", "data/a/two", "data/one",
                                      "memory"}));
  EXPECT_EQ(all_of(reader, "data/a/b/three"), "third");
  const entry found = reader.stat("data/one");
  EXPECT_EQ(found.type, entry_type::file);
  EXPECT_EQ(found.size, 5U);
  EXPECT_EQ(found.granted, access::read);
  EXPECT_GT(found.modified.value_or(file_time()).seconds, 0);
  EXPECT_EQ(reader.stat("data/a").type, entry_type::directory);
  EXPECT_EQ(reader.stat("data").type, entry_type::directory);
}

TEST_F(Store, TellsTimesThatNoNumberOfNanosecondsHolds) {
  ucx_server served;
  const publication store = served.publish_store(root());
  client reader(served.url());
  for (const file_time at : {file_time{-86400, 500'000'000}, file_time{0, 0}, file_time{0, 1},
                             file_time{10'413'792'000, 999'999'999}}) {
    const ::timespec time{at.seconds, at.nanoseconds};
    const ::timespec times[2] = {time, time};
    ASSERT_EQ(::utimensat(AT_FDCWD, (directory_ / "one").c_str(), times, 0), 0);
    struct ::stat about = {};
    ASSERT_EQ(::stat((directory_ / "one").c_str(), &about), 0);
    if (about.st_mtim.tv_sec != at.seconds) continue;  // a file system may not hold them either
    EXPECT_EQ(reader.stat("one").modified, at) << at.seconds;
    for (const entry& each : reader.list()) {
      if (each.name == "one") {
        EXPECT_EQ(each.modified, at);
      }
    }
  }
}

TEST(FileTime, IsAsNearAsTheSystemClockCanHoldIt) {
  using time_point = std::chrono::system_clock::time_point;
  EXPECT_EQ(to_system_time({3, 5}), time_point(std::chrono::nanoseconds(3'000'000'005)));
  EXPECT_EQ(to_system_time({-1, 1}), time_point(std::chrono::nanoseconds(-999'999'999)));
  EXPECT_EQ(to_system_time({std::numeric_limits<std::int64_t>::max(), 0}), time_point::max());
  EXPECT_EQ(to_system_time({std::numeric_limits<std::int64_t>::min(), 0}), time_point::min());
}

/// Opens a file, does something, and returns whether it has the same content then.
bool stays_the_same(client& reader, const std::string& name, const std::function<void()>& change) {
  remote_region file = reader.open(name);
  const content_id before = file.content();
  change();
  reader.refresh_size(file);
  return file.content() == before;
}

TEST_F(Store, HasTheSameContentForAReaderOfWhatIsReplacedOrRemoved) {
  ucx_server served;
  const publication store = served.publish_store(root());
  const publication alone = served.publish_file("alone", directory_ / "a/two");
  client reader(served.url());
  directory_.make("new", "other");
  EXPECT_TRUE(stays_the_same(
      reader, "one", [&] { std::filesystem::rename(directory_ / "new", directory_ / "one"); }));
  EXPECT_TRUE(stays_the_same(reader, "one", [&] { std::filesystem::remove(directory_ / "one"); }));
  EXPECT_TRUE(
      stays_the_same(reader, "alone", [&] { std::filesystem::remove(directory_ / "a/two"); }));
  EXPECT_TRUE(stays_the_same(reader, "alone", [] {})) << "who opens it behind that";
  EXPECT_FALSE(stays_the_same(reader, "a.txt", [&] { directory_.make("a.txt", "BETWEEN"); }));
  EXPECT_FALSE(stays_the_same(reader, "a.txt", [&] {
    directory_.make("a.txt", "longer than before");
    std::filesystem::remove(directory_ / "a.txt");
  }));
}

TEST_F(Store, WithoutAPrefixHasTheBarePathsAndIsHiddenByNames) {
  ucx_server served;
  std::vector<std::byte> memory = pattern(100);
  const publication store = served.publish_store(root());
  const publication p = served.publish("one", std::span<std::byte>(memory), access::read);
  client reader(served.url());
  EXPECT_EQ(names_of(reader.list()),
            (std::vector<std::string>{"a.txt", "a/b/three", "a/two", "one"}));
  EXPECT_EQ(reader.stat("one").type, entry_type::memory);
  EXPECT_EQ(all_of(reader, "a/two"), "second");
}

TEST_F(Store, LeavesAloneWhatAPublishedNameHides) {
  ucx_server served;
  std::vector<std::byte> memory = pattern(100);
  const publication store = served.publish_store(root(), {.writable = true});
  const publication p = served.publish("one", std::span<std::byte>(memory), access::read);
  const publication q = served.publish("a", std::span<std::byte>(memory), access::read);
  client writer(served.url());
  std::error_code ec;
  writer.remove("one", {}, ec);
  EXPECT_EQ(ec, errc::not_supported);
  writer.rename("one", "two", {}, ec);
  EXPECT_EQ(ec, errc::not_supported);
  writer.rename("a.txt", "one", {}, ec);
  EXPECT_EQ(ec, errc::not_supported);
  writer.resize("one", 1, {}, ec);
  EXPECT_EQ(ec, errc::not_supported);
  writer.list_directory("a", {}, ec);
  EXPECT_EQ(ec, errc::not_supported);
  EXPECT_EQ(content_of(directory_ / "one"), "first");
}

TEST_F(Store, ListsOneDirectory) {
  ucx_server served;
  const publication store = served.publish_store(root(), {.prefix = "data"});
  client reader(served.url());
  const std::vector<entry> top = reader.list_directory("data").entries;
  EXPECT_EQ(names_of(top), (std::vector<std::string>{"data/a", "data/a.txt", "data/one"}));
  EXPECT_EQ(top[0].type, entry_type::directory);
  EXPECT_EQ(names_of(reader.list_directory("data/a").entries),
            (std::vector<std::string>{"data/a/b", "data/a/two"}));
  std::error_code ec;
  reader.list_directory("data/nothing", {}, ec);
  EXPECT_EQ(ec, errc::no_such_name);
  reader.list_directory("data/one", {}, ec);
  EXPECT_EQ(ec, errc::not_supported);
}

TEST_F(Store, TellsHowManyNamesOfADirectoryItDoesNotServe) {
  std::filesystem::create_symlink("two", directory_ / "a/link");
  ucx_server served;
  const publication store = served.publish_store(root());
  client reader(served.url());
  const directory_listing found = reader.list_directory("a");
  EXPECT_EQ(names_of(found.entries), (std::vector<std::string>{"a/b", "a/two"}));
  EXPECT_EQ(found.unserved, 1U);
  std::vector<entry> visited;
  const entry_visitor keep = [&](std::vector<entry>&& some) {
    visited.insert(visited.end(), some.begin(), some.end());
    return true;
  };
  EXPECT_EQ(reader.visit_directory("a", keep), 1U);
  EXPECT_EQ(visited, found.entries);
  std::error_code ec;
  EXPECT_EQ(reader.visit_directory("nothing", keep, {}, ec), 0U);
  EXPECT_EQ(ec, errc::no_such_name);
  visited.clear();
  reader.visit(keep);
  EXPECT_EQ(visited, reader.list());
}

TEST_F(Store, ListsMoreThanAPage) {
  std::vector<std::string> expected;
  create_directories(directory_ / "many");
  for (int i = 0; i < 5000; ++i) {
    const std::string name = "many/" + std::to_string(i) + std::string(60, 'x');
    directory_.make(name, "");
    expected.push_back(name);
  }
  for (const char* other : {"one", "a.txt", "a/two", "a/b/three"}) expected.emplace_back(other);
  std::sort(expected.begin(), expected.end());
  ucx_server served;
  const publication store = served.publish_store(root());
  client reader(served.url());
  EXPECT_EQ(names_of(reader.list()), expected);
  EXPECT_EQ(reader.list_directory("many").entries.size(), 5000U);
}

TEST_F(Store, CanNotBeLeft) {
  const temporary_directory outside;
  outside.make("secret", "do not tell");
  std::filesystem::create_symlink(outside / "secret", directory_ / "link");
  std::filesystem::create_directory_symlink(outside / "", directory_ / "linked");
  std::filesystem::create_directory_symlink(directory_ / "", directory_ / "a/loop");
  ASSERT_EQ(::mkfifo((directory_ / "pipe").c_str(), 0600), 0);
  ucx_server served;
  const publication store = served.publish_store(root(), {.writable = true});
  client peer(served.url());
  EXPECT_EQ(peer.list().size(), 4U);
  const std::string escape =
      "../" + std::filesystem::path(outside / "").parent_path().filename().string();
  for (const std::string& name :
       {std::string("link"), std::string("linked/secret"), escape + "/secret",
        (outside / "secret").string(), std::string("a/../one"), std::string("./one"),
        std::string("a//two"), std::string("one/"), std::string("/one"), std::string(".."),
        std::string("a/loop/one"), std::string(300, 'n'), std::string(".ucxio-unfinished/1"),
        std::string("one/two")}) {
    std::error_code ec;
    peer.open(name, access::read, {}, ec);
    EXPECT_EQ(ec, errc::no_such_name) << name;
    peer.stat(name, {}, ec);
    EXPECT_EQ(ec, errc::no_such_name) << name;
    peer.remove(name, {}, ec);
    EXPECT_TRUE(ec == errc::bad_name || ec == errc::no_such_name) << name << ec;
    peer.rename("one", name + "/x", {}, ec);
    EXPECT_TRUE(ec) << name;
  }
  std::error_code ec;
  peer.open("pipe", access::read, {}, ec);
  EXPECT_EQ(ec, errc::not_supported);
  peer.open("a", access::read, {}, ec);
  EXPECT_EQ(ec, errc::not_supported);
  peer.create("linked/new", {}, {}, ec);
  if (!ec) {
    remote_region file = peer.create("linked/newer");
    peer.commit(file, {}, {}, ec);
  }
  EXPECT_TRUE(ec);
  EXPECT_FALSE(std::filesystem::exists(outside / "newer"));
  EXPECT_EQ(content_of(outside / "secret"), "do not tell");
  EXPECT_EQ(content_of(directory_ / "one"), "first");
}

TEST_F(Store, ShowsAReaderOneContentWhenTheFileIsReplaced) {
  directory_.make("big", std::string(3'000'000, 'o'));
  ucx_server served;
  const publication store = served.publish_store(root());
  client reader(served.url());
  const std::uint64_t before = reader.stat("big").generation;
  istream in(reader.open("big"));
  std::string half(1'000'000, ' ');
  in.read(half.data(), 1'000'000);
  directory_.make("other", std::string(3'000'000, 'n'));
  std::filesystem::rename(directory_ / "other", directory_ / "big");
  std::string rest(std::istreambuf_iterator<char>(in), {});
  EXPECT_EQ(rest, std::string(2'000'000, 'o'));
  EXPECT_NE(reader.stat("big").generation, before);
  EXPECT_EQ(all_of(reader, "big"), std::string(3'000'000, 'n'));
}

TEST_F(Store, TellsThatAFileWasCutOff) {
  directory_.make("big", std::string(3'000'000, 'o'));
  ucx_server served;
  const publication store = served.publish_store(root());
  client reader(served.url());
  remote_region file = reader.open("big");
  std::filesystem::resize_file(directory_ / "big", 10);
  std::vector<std::byte> into(1000);
  std::error_code ec;
  file.read_at(2'000'000, into, {}, ec);
  EXPECT_EQ(ec, errc::content_changed);
}

TEST_F(Store, KeepsSparseFilesSparse) {
  const std::uint64_t size = std::uint64_t{6} << 30U;
  std::ofstream(directory_ / "sparse").put('a');
  std::filesystem::resize_file(directory_ / "sparse", size);
  ucx_server served;
  const publication store = served.publish_store(root());
  client reader(served.url());
  istream in(reader.open("sparse"));
  in.seekg(-5, std::ios::end);
  EXPECT_EQ(in.get(), 0);
  EXPECT_EQ(reader.stat("sparse").size, size);
  struct ::stat about = {};
  ASSERT_EQ(::stat((directory_ / "sparse").c_str(), &about), 0);
  EXPECT_LT(about.st_blocks, 100);
}

TEST_F(Store, GivesDescriptorsBackWhenAClientIsDoneWithARegion) {
  ucx_server served;
  const publication store =
      served.publish_store(root(), {.max_open_files = 8, .max_open_files_per_client = 4});
  client reader(served.url());
  for (int round = 0; round < 100; ++round) EXPECT_EQ(all_of(reader, "one"), "first");
  std::vector<remote_region> open;
  for (int i = 0; i < 4; ++i) open.push_back(reader.open("one"));
  std::error_code ec;
  reader.open("one", access::read, {}, ec);
  EXPECT_EQ(ec, errc::too_many_client_files);
  open.pop_back();
  EXPECT_EQ(all_of(reader, "one"), "first");
  client second(served.url());
  for (int i = 0; i < 4; ++i) open.push_back(second.open("one"));
  client third(served.url());
  EXPECT_TRUE(soon([&] {
    third.open("one", access::read, {}, ec);
    return !ec;
  }));
  second.close();
  reader.close();
  open.clear();
  EXPECT_TRUE(soon([&] {
    third.open("one", access::read, {}, ec);
    return !ec;
  }));
}

TEST_F(Store, ClosesWhileClientsHaveFilesOpen) {
  ucx_server served;
  publication store = served.publish_store(root());
  client reader(served.url());
  remote_region file = reader.open("one");
  store.close();
  EXPECT_FALSE(store.is_open());
  std::vector<std::byte> into(5);
  std::error_code ec;
  file.read_at(0, into, {}, ec);
  EXPECT_EQ(ec, errc::revoked);
  reader.open("one", access::read, {}, ec);
  EXPECT_EQ(ec, errc::no_such_name);
  const publication again = served.publish_store(root());
  EXPECT_EQ(all_of(reader, "one"), "first");
}

TEST_F(Store, TellsWhatCanNotBePublished) {
  ucx_server served;
  std::error_code ec;
  EXPECT_FALSE(served.publish_store(directory_ / "missing", {}, ec).is_open());
  EXPECT_EQ(ec, errc::no_such_name);
  EXPECT_FALSE(served.publish_store(directory_ / "one", {}, ec).is_open());
  EXPECT_EQ(ec, errc::not_supported);
  EXPECT_FALSE(served.publish_store(root(), {.prefix = "a/../b"}, ec).is_open());
  EXPECT_EQ(ec, errc::bad_name);
  const publication store = served.publish_store(root(), {.prefix = "data", .writable = true});
  EXPECT_FALSE(served.publish_store(root(), {.prefix = "data"}, ec).is_open());
  EXPECT_EQ(ec, errc::already_exists);
  EXPECT_FALSE(served.publish_store(root(), {.prefix = "again", .writable = true}, ec).is_open());
  EXPECT_EQ(ec, errc::busy);
}

TEST_F(Store, ThatIsReadOnlyCanNotBeWritten) {
  ucx_server served;
  const publication store = served.publish_store(root());
  client writer(served.url());
  std::error_code ec;
  writer.create("new", {}, {}, ec);
  EXPECT_EQ(ec, errc::permission_denied);
  writer.open("one", access::read_write, {}, ec);
  EXPECT_EQ(ec, errc::permission_denied);
  writer.remove("one", {}, ec);
  EXPECT_EQ(ec, errc::permission_denied);
  writer.rename("one", "two", {}, ec);
  EXPECT_EQ(ec, errc::permission_denied);
  writer.resize("one", 1, {}, ec);
  EXPECT_EQ(ec, errc::permission_denied);
  EXPECT_FALSE(std::filesystem::exists(directory_ / ".ucxio-unfinished"));
}

}  // namespace
}  // namespace ucx::test
