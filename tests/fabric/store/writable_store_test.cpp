// Stores over TCP, in one process: what clients may write, and how much.
#include <gtest/gtest.h>

#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

#include "support/basics/soon.hpp"
#include "support/bytes/pattern.hpp"
#include "support/files/store_directories.hpp"
#include "support/transports/ucx_server.hpp"
#include "ucx/client.hpp"
#include "ucx/error.hpp"
#include "ucx/server.hpp"
#include "ucx/stream.hpp"

namespace ucx::test {
namespace {

using std::filesystem::create_directories;

class WritableStore : public Store {
 protected:
  ucx_server served_;
  publication store_ = served_.publish_store(root(), {.writable = true});
  client writer_{served_.url()};
};

TEST_F(WritableStore, ShowsANewFileWhenItIsCommitted) {
  remote_region file = writer_.create("deep/er/new");
  EXPECT_EQ(file.size(), 0U);
  EXPECT_GT(file.max_size(), std::uint64_t{1} << 50U);
  file.write_at(0, bytes_of("hello "));
  file.write_at(6, bytes_of("world"));
  file.flush();
  EXPECT_EQ(file.size(), 11U);
  std::error_code ec;
  writer_.stat("deep/er/new", {}, ec);
  EXPECT_EQ(ec, errc::no_such_name);
  EXPECT_FALSE(std::filesystem::exists(directory_ / "deep"));
  const entry committed = writer_.commit(file, {.durable = true});
  EXPECT_EQ(committed.name, "deep/er/new");
  EXPECT_EQ(committed.size, 11U);
  EXPECT_EQ(content_of(directory_ / "deep/er/new"), "hello world");
  EXPECT_EQ(unfinished_in(root()), 0U);
}

TEST_F(WritableStore, ReplacesAFileAtOnceWhenItIsCommitted) {
  istream old(writer_.open("one"));
  remote_region file = writer_.create("one");
  file.write_at(0, bytes_of("another"));
  file.flush();
  EXPECT_EQ(all_of(writer_, "one"), "first");
  writer_.commit(file);
  EXPECT_EQ(all_of(writer_, "one"), "another");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(old), {}), "first");
}

TEST_F(WritableStore, LeavesNothingOfAWriterThatGaveUp) {
  {
    remote_region file = writer_.create("new");
    file.write_at(0, bytes_of("half"));
    file.flush();
    EXPECT_EQ(unfinished_in(root()), 1U);
  }
  EXPECT_TRUE(soon([&] { return unfinished_in(root()) == 0; }));
  std::error_code ec;
  writer_.stat("new", {}, ec);
  EXPECT_EQ(ec, errc::no_such_name);
  client other(served_.url());
  remote_region file = other.create("new");
  other.close();
  EXPECT_TRUE(soon([&] { return unfinished_in(root()) == 0; }));
}

TEST_F(WritableStore, SweepsWhatADeadServerLeft) {
  store_.close();
  const auto spool = directory_ / ".ucxio-unfinished";
  create_directories(spool);
  std::ofstream(spool / "123.4") << "half";
  const publication again = served_.publish_store(root(), {.prefix = "p", .writable = true});
  EXPECT_EQ(unfinished_in(root()), 0U);
}

TEST_F(WritableStore, HasOneWriterOfAName) {
  client second(served_.url());
  remote_region file = writer_.create("new");
  std::error_code ec;
  second.create("new", {}, {}, ec);
  EXPECT_EQ(ec, errc::busy);
  second.open("new", access::write, {}, ec);
  EXPECT_EQ(ec, errc::busy);
  remote_region edited = writer_.open("one", access::read_write);
  second.open("one", access::write, {}, ec);
  EXPECT_EQ(ec, errc::busy);
  second.remove("one", {}, ec);
  EXPECT_EQ(ec, errc::busy);
  second.rename("a/two", "one", {}, ec);
  EXPECT_EQ(ec, errc::busy);
  EXPECT_EQ(all_of(second, "one"), "first");
  const remote_region below = writer_.create("a/new");
  second.rename("a", "b", {}, ec);
  EXPECT_EQ(ec, errc::busy);
  second.rename("a.txt", "a", {}, ec);
  EXPECT_EQ(ec, errc::busy);
  writer_.commit(file);
  { const remote_region gone = std::move(file); }
  EXPECT_TRUE(soon([&] {
    second.create("new", {}, {}, ec);
    return !ec;
  }));
}

TEST_F(WritableStore, EditsAndAppendsInPlace) {
  remote_region file = writer_.open("one", access::read_write);
  EXPECT_EQ(file.size(), 5U);
  file.write_at(0, bytes_of("F"));
  file.write_at(8, bytes_of("end"));  // a hole
  file.flush();
  EXPECT_EQ(file.size(), 11U);
  EXPECT_EQ(content_of(directory_ / "one"), std::string("First\0\0\0end", 11));
  std::vector<std::byte> into(11);
  file.read_at(0, into);
  EXPECT_EQ(std::to_integer<char>(into[10]), 'd');
  write_all(writer_, "a/two", " and more", {.mode = creation::append});
  EXPECT_EQ(content_of(directory_ / "a/two"), "second and more");
  write_all(writer_, "log/new", "line", {.mode = creation::append});
  EXPECT_EQ(content_of(directory_ / "log/new"), "line");
}

/// While it lives no thread begins: none has the memory for such a stack.
class no_threads {
 public:
  no_threads() {
    ::pthread_getattr_default_np(&before_);
    ::pthread_attr_t huge;
    ::pthread_attr_init(&huge);
    ::pthread_attr_setstacksize(&huge, std::size_t{1} << 60U);
    works_ = ::pthread_setattr_default_np(&huge) == 0;
    ::pthread_attr_destroy(&huge);
  }
  no_threads(const no_threads&) = delete;
  no_threads& operator=(const no_threads&) = delete;
  ~no_threads() {
    ::pthread_setattr_default_np(&before_);
    ::pthread_attr_destroy(&before_);
  }
  bool works() const { return works_; }

 private:
  ::pthread_attr_t before_{};
  bool works_ = false;
};

// The thread that writes is made for the first write, or commit.
TEST_F(WritableStore, KeepsAFileThatItCanNotCommitNow) {
  remote_region file = writer_.create("new");
  std::error_code ec;
  {
    const no_threads meanwhile;
    ASSERT_TRUE(meanwhile.works());
    for (int i = 0; i < 3; ++i) {
      writer_.commit(file, {.close = true}, {}, ec);
      EXPECT_EQ(ec, errc::busy);
    }
    writer_.resize(file, 1, {}, ec);
    EXPECT_EQ(ec, errc::busy);
  }
  EXPECT_EQ(file.status(), std::error_code());
  EXPECT_EQ(unfinished_in(root()), 1U);
  file.write_at(0, bytes_of("whole"));
  writer_.resize(file, 3);
  writer_.commit(file, {.close = true});
  EXPECT_EQ(content_of(directory_ / "new"), "who");
  EXPECT_EQ(file.status(), errc::closed);
  writer_.create("new");
}

TEST_F(WritableStore, MakesAFileThatMustBeNewOnlyOnce) {
  std::error_code ec;
  writer_.create("one", {.mode = creation::exclusive}, {}, ec);
  EXPECT_EQ(ec, errc::already_exists);
  remote_region file = writer_.create("new", {.mode = creation::exclusive});
  directory_.make("new", "faster");
  writer_.commit(file, {}, {}, ec);
  EXPECT_EQ(ec, errc::already_exists);
  EXPECT_EQ(content_of(directory_ / "new"), "faster");
  writer_.commit(file, {}, {}, ec);
  EXPECT_EQ(ec, errc::no_such_name);
  EXPECT_TRUE(soon([&] { return unfinished_in(root()) == 0; }));
}

TEST_F(WritableStore, RemovesRenamesAndResizes) {
  writer_.rename("one", "moved/here");
  EXPECT_EQ(content_of(directory_ / "moved/here"), "first");
  writer_.resize("moved/here", 3);
  EXPECT_EQ(content_of(directory_ / "moved/here"), "fir");
  writer_.resize("moved/here", 5);
  EXPECT_EQ(content_of(directory_ / "moved/here"), std::string("fir\0\0", 5));
  std::error_code ec;
  writer_.remove("moved", {}, ec);
  EXPECT_EQ(ec, errc::already_exists);
  writer_.remove("moved/here");
  writer_.remove("moved");
  EXPECT_FALSE(std::filesystem::exists(directory_ / "moved"));
  writer_.remove("moved", {}, ec);
  EXPECT_EQ(ec, errc::no_such_name);
  writer_.resize("a", 3, {}, ec);
  EXPECT_EQ(ec, errc::not_supported);
  writer_.create("a", {}, {}, ec);
  EXPECT_EQ(ec, errc::not_supported);
  writer_.create("one/below/a/file", {}, {}, ec);
  if (!ec) {
    directory_.make("plain", "");
    remote_region below = writer_.create("plain/x");
    writer_.commit(below, {}, {}, ec);
  }
  EXPECT_EQ(ec, errc::no_such_name);
}

TEST_F(WritableStore, TakesMoreThanItsWindow) {
  const std::vector<std::byte> bytes = pattern(50'000'000);
  remote_region file = writer_.create("big", {.readable = true});
  file.write_at(0, bytes);
  writer_.commit(file);
  std::vector<std::byte> back(bytes.size());
  file.read_at(0, back);
  EXPECT_TRUE(holds_pattern(back));
  EXPECT_EQ(std::filesystem::file_size(directory_ / "big"), bytes.size());
}

TEST_F(WritableStore, RefusesWhatTheSystemRefuses) {
  if (::geteuid() == 0) GTEST_SKIP() << "the superuser is refused nothing";
  std::filesystem::permissions(directory_ / "one", std::filesystem::perms::none);
  std::error_code ec;
  writer_.open("one", access::read, {}, ec);
  EXPECT_EQ(ec, errc::permission_denied);
}

TEST_F(WritableStore, TellsWhatExists) {
  EXPECT_TRUE(writer_.exists("one"));
  EXPECT_TRUE(writer_.exists("a"));
  EXPECT_TRUE(writer_.exists("a/b/three"));
  EXPECT_FALSE(writer_.exists("other"));
  std::error_code ec = errc::busy;
  EXPECT_FALSE(writer_.exists("other", {}, ec));
  EXPECT_FALSE(ec) << "that there is none is no failure";
  EXPECT_FALSE(writer_.exists("", {}, ec));
  EXPECT_EQ(ec, errc::bad_name);
  EXPECT_THROW(writer_.exists(""), error);
  writer_.close();
  EXPECT_FALSE(writer_.exists("one", {}, ec));
  EXPECT_EQ(ec, errc::closed);
}

TEST_F(WritableStore, IsUsedByUrlAsPathsAre) {
  client shared = client::shared(url(served_.url()));
  EXPECT_EQ(shared.stat("one").size, 5U);
  const auto age =
      std::chrono::system_clock::now() - to_system_time(shared.stat("one").modified.value());
  EXPECT_LT(age, std::chrono::hours(1));
  shared.rename("one", "x/moved");
  EXPECT_FALSE(shared.exists("one"));
  EXPECT_TRUE(shared.exists("x/moved"));
  shared.resize("x/moved", 9);
  EXPECT_EQ(shared.stat("x/moved").size, 9U);
  EXPECT_EQ(shared.list_directory("").entries.size(), 3U);
  EXPECT_EQ(names_of(shared.list_directory("x").entries), std::vector<std::string>{"x/moved"});
  shared.remove("x/moved");
  std::error_code ec;
  shared.remove("x/moved", {}, ec);
  EXPECT_EQ(ec, errc::no_such_name);
  shared.stat("x/moved", {}, ec);
  EXPECT_EQ(ec, errc::no_such_name);
  shared.remove("a", {}, ec);
  EXPECT_EQ(ec, errc::already_exists);
  shared.resize("x/moved", 1, {}, ec);
  EXPECT_EQ(ec, errc::no_such_name);
  shared.list_directory("x/moved", {}, ec);
  EXPECT_EQ(ec, errc::no_such_name);
}

TEST_F(Store, KeepsToQuotaAndLargestFile) {
  ucx_server served;
  const publication store = served.publish_store(
      root(), {.writable = true, .quota = 1000, .max_file_size = 600});  // 23 are there
  client writer(served.url());
  remote_region file = writer.create("new");
  std::error_code ec;
  file.write_at(0, std::vector<std::byte>(601), {}, ec);
  EXPECT_EQ(ec, errc::no_space);
  file.write_at(0, std::vector<std::byte>(600));
  writer.commit(file);
  remote_region second = writer.create("second");
  second.write_at(0, std::vector<std::byte>(400));
  second.flush({}, ec);
  EXPECT_EQ(ec, errc::no_space);
  second.write_at(0, std::vector<std::byte>(377));
  second.flush();
  writer.resize("one", 100, {}, ec);
  EXPECT_EQ(ec, errc::no_space);
  writer.resize("one", 1000, {}, ec);
  EXPECT_EQ(ec, errc::no_space);
  { const remote_region given_up = std::move(second); }
  EXPECT_TRUE(soon([&] {
    writer.resize("one", 100, {}, ec);
    return !ec;
  }));
  { const remote_region done = std::move(file); }
  EXPECT_TRUE(soon([&] {
    writer.remove("new", {}, ec);
    return !ec;
  }));
  write_all(writer, "third", std::string(600, 'x'));
}

TEST_F(Store, CountsNothingForWhatFailed) {
  ucx_server served;
  const publication store = served.publish_store(root(), {.writable = true, .quota = 1023});
  client writer(served.url());
  std::error_code ec;
  for (int round = 0; round < 3; ++round) {  // each takes most of the quota
    remote_region file = writer.create("new", {.mode = creation::exclusive}, {}, ec);
    ASSERT_TRUE(soon([&] {
      if (ec) file = writer.create("new", {.mode = creation::exclusive}, {}, ec);
      return !ec;
    }));
    file.write_at(0, std::vector<std::byte>(900));
    file.flush();
    directory_.make("new", "");
    writer.commit(file, {}, {}, ec);
    EXPECT_EQ(ec, errc::already_exists);
    file.write_at(0, std::vector<std::byte>(950), {}, ec);
    if (!ec) file.flush({}, ec);
    EXPECT_EQ(ec, errc::no_such_name);
    std::filesystem::remove(directory_ / "new");
  }
  write_all(writer, "last", std::string(1000, 'x'));
}

TEST_F(Store, CountsWhatAFileHasWhenTheDiskRefusesAWrite) {
  struct ::rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  struct ::rlimit few = before;
  few.rlim_cur = 100'000;
  ucx_server served;
  const publication store = served.publish_store(
      root(), {.writable = true, .quota = 1'000'023, .max_file_size = 900'000});
  client writer(served.url());
  remote_region file = writer.create("new");
  std::error_code ec;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &few), 0);
  file.write_at(800'000, std::vector<std::byte>(100'000), {}, ec);
  if (!ec) file.flush({}, ec);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(ec, errc::no_space);
  remote_region other = writer.create("other");
  other.write_at(0, std::vector<std::byte>(900'000));
  other.flush();
  writer.commit(other);
}

TEST_F(Store, HasAsManyWritersAsItSays) {
  ucx_server served;
  const publication store = served.publish_store(root(), {.writable = true, .max_writers = 2});
  client writer(served.url());
  const remote_region first = writer.create("x");
  std::vector<remote_region> second;
  second.push_back(writer.open("one", access::read_write));
  std::error_code ec;
  writer.create("z", {}, {}, ec);
  EXPECT_EQ(ec, errc::too_many_writers);
  second.clear();
  EXPECT_TRUE(soon([&] {
    writer.create("z", {}, {}, ec);
    return !ec;
  }));
}

}  // namespace
}  // namespace ucx::test
