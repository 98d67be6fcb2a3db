// Stores over TCP, in one process: what a directory shows to its clients, and what they may write.
#include <gtest/gtest.h>

#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "support/pattern.hpp"
#include "support/soon.hpp"
#include "support/temporary_directory.hpp"
#include "ucx/client.hpp"
#include "ucx/error.hpp"
#include "ucx/filesystem.hpp"
#include "ucx/server.hpp"
#include "ucx/stream.hpp"

namespace ucx::test {
namespace {

using std::filesystem::create_directories;

std::vector<std::string> names_of(const std::vector<entry>& listed) {
  std::vector<std::string> names;
  for (const entry& each : listed) names.push_back(each.name);
  return names;
}

std::string all_of(client& from, const std::string& name) {
  istream in(from.open(name));
  return std::string(std::istreambuf_iterator<char>(in), {});
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

void write_all(client& to, const std::string& name, std::string_view text,
               const create_options& how = {}) {
  remote_region file = to.create(name, how);
  file.write_at(how.mode == creation::append ? file.size() : 0, bytes_of(text));
  to.commit(file);
}

/// Returns what the directory has beside what is whole.
std::size_t unfinished_in(const std::filesystem::path& directory) {
  const auto spool = directory / ".ucxio-unfinished";
  if (!std::filesystem::exists(spool)) return 0;
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(spool), {}));
}

/// Waits until the server has done what nobody is told of.
class Store : public testing::Test {
 protected:
  Store() {
    create_directories(directory_ / "a/b");
    directory_.make("one", "first");
    directory_.make("a/two", "second");
    directory_.make("a/b/three", "third");
    directory_.make("a.txt", "between");
  }
  std::filesystem::path root() const { return directory_ / ""; }

  const temporary_directory directory_;
};

TEST_F(Store, ServesAndListsFilesByTheirPaths) {
  server served;
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
  server served;
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
    EXPECT_EQ(last_write_time(url(served.url() + "/one")), to_system_time(at));
  }
}

/// Opens a file, does something, and returns whether it has the same content then.
bool stays_the_same(client& reader, const std::string& name, const std::function<void()>& change) {
  remote_region file = reader.open(name);
  const content_id before = file.content();
  change();
  reader.measure(file);
  return file.content() == before;
}

TEST_F(Store, HasTheSameContentForAReaderOfWhatIsReplacedOrRemoved) {
  server served;
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
  server served;
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
  server served;
  std::vector<std::byte> memory = pattern(100);
  const publication store = served.publish_store(root(), {.writable = true});
  const publication p = served.publish("one", std::span<std::byte>(memory), access::read);
  const publication q = served.publish("a", std::span<std::byte>(memory), access::read);
  client writer(served.url());
  std::error_code ec;
  writer.remove("one", ec);
  EXPECT_EQ(ec, errc::not_supported);
  writer.rename("one", "two", ec);
  EXPECT_EQ(ec, errc::not_supported);
  writer.rename("a.txt", "one", ec);
  EXPECT_EQ(ec, errc::not_supported);
  writer.resize("one", 1, ec);
  EXPECT_EQ(ec, errc::not_supported);
  writer.list_directory("a", ec);
  EXPECT_EQ(ec, errc::not_supported);
  EXPECT_EQ(content_of(directory_ / "one"), "first");
}

TEST_F(Store, ListsOneDirectory) {
  server served;
  const publication store = served.publish_store(root(), {.prefix = "data"});
  client reader(served.url());
  const std::vector<entry> top = reader.list_directory("data");
  EXPECT_EQ(names_of(top), (std::vector<std::string>{"data/a", "data/a.txt", "data/one"}));
  EXPECT_EQ(top[0].type, entry_type::directory);
  EXPECT_EQ(names_of(reader.list_directory("data/a")),
            (std::vector<std::string>{"data/a/b", "data/a/two"}));
  std::error_code ec;
  reader.list_directory("data/nothing", ec);
  EXPECT_EQ(ec, errc::no_such_name);
  reader.list_directory("data/one", ec);
  EXPECT_EQ(ec, errc::not_supported);
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
  server served;
  const publication store = served.publish_store(root());
  client reader(served.url());
  EXPECT_EQ(names_of(reader.list()), expected);
  EXPECT_EQ(reader.list_directory("many").size(), 5000U);
}

TEST_F(Store, CanNotBeLeft) {
  const temporary_directory outside;
  outside.make("secret", "do not tell");
  std::filesystem::create_symlink(outside / "secret", directory_ / "link");
  std::filesystem::create_directory_symlink(outside / "", directory_ / "linked");
  std::filesystem::create_directory_symlink(directory_ / "", directory_ / "a/loop");
  ASSERT_EQ(::mkfifo((directory_ / "pipe").c_str(), 0600), 0);
  server served;
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
    peer.open(name, access::read, ec);
    EXPECT_EQ(ec, errc::no_such_name) << name;
    peer.stat(name, ec);
    EXPECT_EQ(ec, errc::no_such_name) << name;
    peer.remove(name, ec);
    EXPECT_TRUE(ec == errc::bad_name || ec == errc::no_such_name) << name << ec;
    peer.rename("one", name + "/x", ec);
    EXPECT_TRUE(ec) << name;
  }
  std::error_code ec;
  peer.open("pipe", access::read, ec);
  EXPECT_EQ(ec, errc::not_supported);
  peer.open("a", access::read, ec);
  EXPECT_EQ(ec, errc::not_supported);
  peer.create("linked/new", {}, ec);
  if (!ec) {
    remote_region file = peer.create("linked/newer");
    peer.commit(file, false, ec);
  }
  EXPECT_TRUE(ec);
  EXPECT_FALSE(std::filesystem::exists(outside / "newer"));
  EXPECT_EQ(content_of(outside / "secret"), "do not tell");
  EXPECT_EQ(content_of(directory_ / "one"), "first");
}

TEST_F(Store, ShowsAReaderOneContentWhenTheFileIsReplaced) {
  directory_.make("big", std::string(3'000'000, 'o'));
  server served;
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
  server served;
  const publication store = served.publish_store(root());
  client reader(served.url());
  remote_region file = reader.open("big");
  std::filesystem::resize_file(directory_ / "big", 10);
  std::vector<std::byte> into(1000);
  std::error_code ec;
  file.read_at(2'000'000, into, ec);
  EXPECT_EQ(ec, errc::content_changed);
}

TEST_F(Store, KeepsSparseFilesSparse) {
  const std::uint64_t size = std::uint64_t{6} << 30U;
  std::ofstream(directory_ / "sparse").put('a');
  std::filesystem::resize_file(directory_ / "sparse", size);
  server served;
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
  server served;
  const publication store =
      served.publish_store(root(), {.most_open_files = 8, .most_open_files_of_one_client = 4});
  client reader(served.url());
  for (int round = 0; round < 100; ++round) EXPECT_EQ(all_of(reader, "one"), "first");
  std::vector<remote_region> open;
  for (int i = 0; i < 4; ++i) open.push_back(reader.open("one"));
  std::error_code ec;
  reader.open("one", access::read, ec);
  EXPECT_EQ(ec, errc::too_many_of_client);
  open.pop_back();
  EXPECT_EQ(all_of(reader, "one"), "first");
  client second(served.url());
  for (int i = 0; i < 4; ++i) open.push_back(second.open("one"));
  client third(served.url());
  EXPECT_TRUE(soon([&] {
    third.open("one", access::read, ec);
    return !ec;
  }));
  second.close();
  reader.close();
  open.clear();
  EXPECT_TRUE(soon([&] {
    third.open("one", access::read, ec);
    return !ec;
  }));
}

TEST_F(Store, ClosesWhileClientsHaveFilesOpen) {
  server served;
  publication store = served.publish_store(root());
  client reader(served.url());
  remote_region file = reader.open("one");
  store.close();
  EXPECT_FALSE(store.is_open());
  std::vector<std::byte> into(5);
  std::error_code ec;
  file.read_at(0, into, ec);
  EXPECT_EQ(ec, errc::revoked);
  reader.open("one", access::read, ec);
  EXPECT_EQ(ec, errc::no_such_name);
  const publication again = served.publish_store(root());
  EXPECT_EQ(all_of(reader, "one"), "first");
}

TEST_F(Store, TellsWhatCanNotBePublished) {
  server served;
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
  server served;
  const publication store = served.publish_store(root());
  client writer(served.url());
  std::error_code ec;
  writer.create("new", {}, ec);
  EXPECT_EQ(ec, errc::permission_denied);
  writer.open("one", access::read_write, ec);
  EXPECT_EQ(ec, errc::permission_denied);
  writer.remove("one", ec);
  EXPECT_EQ(ec, errc::permission_denied);
  writer.rename("one", "two", ec);
  EXPECT_EQ(ec, errc::permission_denied);
  writer.resize("one", 1, ec);
  EXPECT_EQ(ec, errc::permission_denied);
  EXPECT_FALSE(std::filesystem::exists(directory_ / ".ucxio-unfinished"));
}

class WritableStore : public Store {
 protected:
  server served_;
  publication store_ = served_.publish_store(root(), {.writable = true});
  client writer_{served_.url()};
};

TEST_F(WritableStore, ShowsANewFileWhenItIsCommitted) {
  remote_region file = writer_.create("deep/er/new");
  EXPECT_EQ(file.size(), 0U);
  EXPECT_GT(file.limit(), std::uint64_t{1} << 50U);
  file.write_at(0, bytes_of("hello "));
  file.write_at(6, bytes_of("world"));
  file.flush();
  EXPECT_EQ(file.size(), 11U);
  std::error_code ec;
  writer_.stat("deep/er/new", ec);
  EXPECT_EQ(ec, errc::no_such_name);
  EXPECT_FALSE(std::filesystem::exists(directory_ / "deep"));
  const entry committed = writer_.commit(file, true);
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
  writer_.stat("new", ec);
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
  second.create("new", {}, ec);
  EXPECT_EQ(ec, errc::busy);
  second.open("new", access::write, ec);
  EXPECT_EQ(ec, errc::busy);
  remote_region edited = writer_.open("one", access::read_write);
  second.open("one", access::write, ec);
  EXPECT_EQ(ec, errc::busy);
  second.remove("one", ec);
  EXPECT_EQ(ec, errc::busy);
  second.rename("a/two", "one", ec);
  EXPECT_EQ(ec, errc::busy);
  EXPECT_EQ(all_of(second, "one"), "first");
  const remote_region below = writer_.create("a/new");
  second.rename("a", "b", ec);
  EXPECT_EQ(ec, errc::busy);
  second.rename("a.txt", "a", ec);
  EXPECT_EQ(ec, errc::busy);
  writer_.commit(file);
  { const remote_region gone = std::move(file); }
  EXPECT_TRUE(soon([&] {
    second.create("new", {}, ec);
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
      writer_.commit(std::move(file), false, ec);
      EXPECT_EQ(ec, errc::busy);
    }
    writer_.resize(file, 1, ec);
    EXPECT_EQ(ec, errc::busy);
  }
  EXPECT_EQ(file.status(), std::error_code());
  EXPECT_EQ(unfinished_in(root()), 1U);
  file.write_at(0, bytes_of("whole"));
  writer_.resize(file, 3);
  writer_.commit(std::move(file));
  EXPECT_EQ(content_of(directory_ / "new"), "who");
  EXPECT_EQ(file.status(), errc::closed);
  writer_.create("new");
}

TEST_F(WritableStore, MakesAFileThatMustBeNewOnlyOnce) {
  std::error_code ec;
  writer_.create("one", {.mode = creation::fresh}, ec);
  EXPECT_EQ(ec, errc::already_exists);
  remote_region file = writer_.create("new", {.mode = creation::fresh});
  directory_.make("new", "faster");
  writer_.commit(file, false, ec);
  EXPECT_EQ(ec, errc::already_exists);
  EXPECT_EQ(content_of(directory_ / "new"), "faster");
  writer_.commit(file, false, ec);
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
  writer_.remove("moved", ec);
  EXPECT_EQ(ec, errc::already_exists);
  writer_.remove("moved/here");
  writer_.remove("moved");
  EXPECT_FALSE(std::filesystem::exists(directory_ / "moved"));
  writer_.remove("moved", ec);
  EXPECT_EQ(ec, errc::no_such_name);
  writer_.resize("a", 3, ec);
  EXPECT_EQ(ec, errc::not_supported);
  writer_.create("a", {}, ec);
  EXPECT_EQ(ec, errc::not_supported);
  writer_.create("one/below/a/file", {}, ec);
  if (!ec) {
    directory_.make("plain", "");
    remote_region below = writer_.create("plain/x");
    writer_.commit(below, false, ec);
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
  writer_.open("one", access::read, ec);
  EXPECT_EQ(ec, errc::permission_denied);
}

TEST_F(WritableStore, IsUsedByUrlAsPathsAre) {
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
}

TEST_F(Store, KeepsToQuotaAndLargestFile) {
  server served;
  const publication store = served.publish_store(
      root(), {.writable = true, .quota = 1000, .largest_file = 600});  // 23 are there
  client writer(served.url());
  remote_region file = writer.create("new");
  std::error_code ec;
  file.write_at(0, std::vector<std::byte>(601), ec);
  EXPECT_EQ(ec, errc::no_space);
  file.write_at(0, std::vector<std::byte>(600));
  writer.commit(file);
  remote_region second = writer.create("second");
  second.write_at(0, std::vector<std::byte>(400));
  second.flush(ec);
  EXPECT_EQ(ec, errc::no_space);
  second.write_at(0, std::vector<std::byte>(377));
  second.flush();
  writer.resize("one", 100, ec);
  EXPECT_EQ(ec, errc::no_space);
  writer.resize("one", 1000, ec);
  EXPECT_EQ(ec, errc::no_space);
  { const remote_region given_up = std::move(second); }
  EXPECT_TRUE(soon([&] {
    writer.resize("one", 100, ec);
    return !ec;
  }));
  { const remote_region done = std::move(file); }
  EXPECT_TRUE(soon([&] {
    writer.remove("new", ec);
    return !ec;
  }));
  write_all(writer, "third", std::string(600, 'x'));
}

TEST_F(Store, CountsNothingForWhatFailed) {
  server served;
  const publication store = served.publish_store(root(), {.writable = true, .quota = 1023});
  client writer(served.url());
  std::error_code ec;
  for (int round = 0; round < 3; ++round) {  // each takes most of the quota
    remote_region file = writer.create("new", {.mode = creation::fresh}, ec);
    ASSERT_TRUE(soon([&] {
      if (ec) file = writer.create("new", {.mode = creation::fresh}, ec);
      return !ec;
    }));
    file.write_at(0, std::vector<std::byte>(900));
    file.flush();
    directory_.make("new", "");
    writer.commit(file, false, ec);
    EXPECT_EQ(ec, errc::already_exists);
    file.write_at(0, std::vector<std::byte>(950), ec);
    if (!ec) file.flush(ec);
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
  server served;
  const publication store =
      served.publish_store(root(), {.writable = true, .quota = 1'000'023, .largest_file = 900'000});
  client writer(served.url());
  remote_region file = writer.create("new");
  std::error_code ec;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &few), 0);
  file.write_at(800'000, std::vector<std::byte>(100'000), ec);
  if (!ec) file.flush(ec);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(ec, errc::no_space);
  remote_region other = writer.create("other");
  other.write_at(0, std::vector<std::byte>(900'000));
  other.flush();
  writer.commit(other);
}

TEST_F(Store, HasAsManyWritersAsItSays) {
  server served;
  const publication store = served.publish_store(root(), {.writable = true, .most_writers = 2});
  client writer(served.url());
  const remote_region first = writer.create("x");
  std::vector<remote_region> second;
  second.push_back(writer.open("one", access::read_write));
  std::error_code ec;
  writer.create("z", {}, ec);
  EXPECT_EQ(ec, errc::too_many_writers);
  second.clear();
  EXPECT_TRUE(soon([&] {
    writer.create("z", {}, ec);
    return !ec;
  }));
}

}  // namespace
}  // namespace ucx::test
