// Streams that create, replace, grow and append files of a store: what std::fstream does, by URL.
#include <gtest/gtest.h>

#include <sys/mount.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/files/temporary_directory.hpp"
#include "support/transports/ucx_server.hpp"
#include "ucx/client.hpp"
#include "ucx/error.hpp"
#include "ucx/fstream.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/server.hpp"

namespace ucx::test {
namespace {

using std::ios;

class StoreStream : public testing::Test {
 protected:
  std::string at(const std::string& name) const { return served_.url() + '/' + name; }
  std::string file(const std::string& name) const { return content_of(directory_ / name); }

  const temporary_directory directory_;
  ucx_server served_;
  publication store_ = served_.publish_store(directory_ / "", {.writable = true});
  client client_{served_.url()};
};

TEST_F(StoreStream, CreatesAFileOfAnySize) {
  {
    ofstream out(at("new.bin"));
    ASSERT_TRUE(out) << out.error_message();
    for (int i = 0; i < 300'000; ++i) out << i << '\n';
    EXPECT_GT(out.tellp(), 1'000'000);
    EXPECT_FALSE(std::filesystem::exists(directory_ / "new.bin"));
    out.close();
    EXPECT_TRUE(out) << out.error_message();
  }
  std::ifstream back(directory_ / "new.bin");
  int expected = 0;
  for (int number = 0; back >> number; ++expected) ASSERT_EQ(number, expected);
  EXPECT_EQ(expected, 300'000);
}

TEST_F(StoreStream, CommitsInItsDestructor) {
  { ofstream(at("new")) << "whole"; }
  EXPECT_EQ(file("new"), "whole");
  { ofstream out(at("empty")); }
  EXPECT_TRUE(std::filesystem::exists(directory_ / "empty"));
}

TEST_F(StoreStream, LeavesNothingWhereAnExceptionIsOnItsWay) {
  directory_.make("kept", "old");
  try {
    ofstream out(at("new"));
    ofstream replacing(at("kept"));
    out << "half" << std::flush;
    replacing << "half" << std::flush;
    throw std::runtime_error("the writer's own");
  } catch (const std::runtime_error&) {
  }
  EXPECT_FALSE(std::filesystem::exists(directory_ / "new"));
  EXPECT_EQ(file("kept"), "old");
}

/// Closes in its destructor, and remembers whether that went well.
struct closing_writer {
  ~closing_writer() {
    out.close();
    went_well = out.good();
  }
  ofstream out;
  bool& went_well;
};

TEST_F(StoreStream, ClosedDuringAnExceptionIsCommitted) {
  bool went_well = false;
  try {
    closing_writer writer{ofstream(at("new")), went_well};
    writer.out << "whole";
    throw std::runtime_error("somebody else's");
  } catch (const std::runtime_error&) {
  }
  EXPECT_TRUE(went_well);
  EXPECT_EQ(file("new"), "whole");
}

// However short they are, no more of them are on their way than the store has room for.
TEST_F(StoreStream, WritesOfSingleBytesKeepToTheWindow) {
  store_.close();
  const publication narrow = served_.publish_store(
      directory_ / "", {.prefix = "n", .writable = true, .write_window = std::size_t{4} << 20U});
  remote_region file = client_.create("n/bytes");
  constexpr std::size_t count = 20'000;
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i % 251);
  for (std::size_t i = 0; i < count; ++i) file.post_write_at(i, std::span(bytes).subspan(i, 1));
  file.flush();
  client_.commit(file);
  const std::string back = content_of(directory_ / "bytes");
  ASSERT_EQ(back.size(), count);
  EXPECT_EQ(std::memcmp(back.data(), bytes.data(), count), 0);
}

TEST_F(StoreStream, ThatIsClosedLeavesItsNameFree) {
  client other(served_.url());
  for (int i = 0; i < 200; ++i) {
    for (client* const each : {&client_, &other}) {
      ofstream out(*each, "name", i % 2 == 0 ? ios::out : ios::app);
      ASSERT_TRUE(out) << i << ": " << out.error_message();
      out << i;
      out.close();
      ASSERT_TRUE(out) << out.error_message();
    }
  }
}

class SmallStore : public testing::Test {
 protected:
  static constexpr std::size_t largest = std::size_t{1} << 20U;
  std::string at(const std::string& name) const { return served_.url() + '/' + name; }
  bool exists(const std::string& name) const { return std::filesystem::exists(directory_ / name); }

  const temporary_directory directory_;
  ucx_server served_;
  publication store_ = served_.publish_store(
      directory_ / "", {.writable = true, .quota = 2 * largest, .max_file_size = largest});
};

TEST_F(SmallStore, DoesNotCommitAFileWithAGap) {
  const std::string body(2 * largest, 'b');
  ofstream out(at("new"));
  out << "header" << body << std::flush;
  EXPECT_FALSE(out);
  EXPECT_EQ(out.error(), errc::no_space);
  out.clear();
  out.seekp(0);
  out << "HEADER";
  EXPECT_TRUE(out);
  out.close();
  EXPECT_FALSE(out);
  EXPECT_EQ(out.error(), errc::no_space);
  EXPECT_EQ(out.error_message().find("closed stream"), std::string::npos) << out.error_message();
  EXPECT_FALSE(exists("new"));
}

TEST_F(SmallStore, WhatWasLostAndIsWrittenAgainIsCommitted) {
  const std::string body(largest, 'b');
  { ofstream(at("one")) << body; }
  { ofstream(at("two")) << body.substr(largest / 2); }
  ofstream out(at("three"));
  out << body << std::flush;  // there is room for half of it
  ASSERT_FALSE(out);
  EXPECT_EQ(out.error(), errc::no_space);
  client::shared(url(at("one"))).remove("one");
  out.clear();
  const auto from = static_cast<std::size_t>(out.tellp());
  ASSERT_LE(from, largest);
  out << body.substr(from);
  out.close();
  EXPECT_TRUE(out) << out.error_message();
  EXPECT_EQ(content_of(directory_ / "three"), body);
}

TEST_F(SmallStore, FailedCommitIsNotMendedByAnotherOne) {
  client writer(served_.url());
  const std::vector<std::byte> body(largest);
  remote_region full = writer.create("full");
  full.write_at(0, body);
  full.flush();
  remote_region half = writer.create("half");
  half.write_at(0, std::span(body).first(largest / 2));
  half.flush();
  remote_region file = writer.create("new");
  file.write_at(0, body);  // there is room for half of it
  std::error_code ec;
  writer.commit(file, {}, {}, ec);
  EXPECT_EQ(ec, errc::no_space);
  ec.clear();
  writer.commit(file, {}, {}, ec);
  EXPECT_EQ(ec, errc::no_space);
  EXPECT_FALSE(exists("new"));
}

TEST_F(StoreStream, TruncatesAsFilesDo) {
  for (const ios::openmode mode :
       {ios::openmode(ios::out), ios::out | ios::trunc, ios::in | ios::out | ios::trunc}) {
    directory_.make("kept", "something long");
    fstream out(at("kept"), mode);
    out << "new";
    EXPECT_EQ(file("kept"), "something long");
    out.close();
    EXPECT_TRUE(out) << out.error_message();
    EXPECT_EQ(file("kept"), "new");
  }
}

TEST_F(StoreStream, AppendsAtTheEndWhereverItWas) {
  directory_.make("log", "one\n");
  for (const ios::openmode mode :
       {ios::openmode(ios::app), ios::out | ios::app, ios::in | ios::out | ios::app}) {
    fstream log(at("log"), mode);
    ASSERT_TRUE(log) << log.error_message();
    log.seekp(0);
    log << "two\n" << std::flush;
    EXPECT_TRUE(log) << log.error_message();
    EXPECT_TRUE(file("log").ends_with("two\n"));
  }
  EXPECT_EQ(file("log"), "one\ntwo\ntwo\ntwo\n");
  ofstream(at("fresh"), ios::app) << "made";
  EXPECT_EQ(file("fresh"), "made");
}

TEST_F(StoreStream, WritesItsHeaderOnceWhereItLooksForAnEmptyFile) {
  for (int run = 0; run < 3; ++run) {
    ofstream log(at("table"), ios::app);
    if (log.tellp() == 0) log << "header\n";
    log << run << '\n';
  }
  EXPECT_EQ(file("table"), "header\n0\n1\n2\n");
}

TEST_F(StoreStream, TellsWhatIsWrongWithAPath) {
  directory_.make("target", "text");
  std::filesystem::create_symlink("target", directory_ / "link");
  const std::pair<const char*, const char*> wrong[] = {{"a//b", "empty part"},
                                                       {"a/./b", "part \".\""},
                                                       {"a/../b", "part \".\""},
                                                       {"a/", "empty part"},
                                                       {"link", "symbolic link"}};
  for (const auto& [name, says] : wrong) {
    ofstream out(client_, name);
    EXPECT_EQ(out.error(), errc::bad_name) << name;
    EXPECT_NE(out.error_message().find(says), std::string::npos) << out.error_message();
    if (std::string(name) == "link") continue;
    try {
      client_.remove(name);
      ADD_FAILURE() << name;
    } catch (const ucx::error& failure) {
      EXPECT_NE(std::string(failure.what()).find(says), std::string::npos) << failure.what();
    }
    try {
      client_.rename("target", name);
      ADD_FAILURE() << name;
    } catch (const ucx::error& failure) {
      EXPECT_NE(std::string(failure.what()).find(says), std::string::npos) << failure.what();
    }
  }
}

TEST_F(StoreStream, EditsInPlaceAndGrows) {
  directory_.make("data", "0123456789");
  fstream both(at("data"));
  ASSERT_TRUE(both) << both.error_message();
  both.seekp(4);
  both << "xy";
  both.seekp(0, ios::end);
  EXPECT_EQ(both.tellp(), 10);
  both << "more";
  both.seekg(0);
  std::string all(std::istreambuf_iterator<char>(both), {});
  EXPECT_EQ(all, "0123xy6789more");
  both.clear();
  both.seekp(20);
  both << "!" << std::flush;
  EXPECT_EQ(file("data"), std::string("0123xy6789more\0\0\0\0\0\0!", 21));
  both.seekg(12);
  all.assign(std::istreambuf_iterator<char>(both), {});
  EXPECT_EQ(all, std::string("re\0\0\0\0\0\0!", 9));
}

TEST_F(StoreStream, OpensOnlyWhatExistsWhereAFileWouldHaveTo) {
  for (const ios::openmode mode :
       {ios::openmode(ios::in), ios::in | ios::out, ios::in | ios::ate}) {
    fstream missing(at("missing"), mode);
    EXPECT_FALSE(missing);
    EXPECT_EQ(missing.error(), errc::no_such_name);
  }
  std::filesystem::create_directories(directory_ / "directory");
  for (const ios::openmode mode : {ios::openmode(ios::in), ios::openmode(ios::out),
                                   ios::in | ios::out, ios::openmode(ios::app)}) {
    fstream none(at("directory"), mode);
    EXPECT_FALSE(none);
    EXPECT_EQ(none.error(), errc::not_supported) << none.error_message();
  }
  ofstream second(at("name"));
  ofstream third(at("name"));
  EXPECT_EQ(third.error(), errc::busy);
}

TEST_F(StoreStream, LeavesWhatIsPublishedByNameAsItWas) {
  std::string memory = "fixed";
  const publication p =
      served_.publish("memory", std::as_writable_bytes(std::span(memory)), access::read_write);
  {
    ofstream out(at("memory"));
    ASSERT_TRUE(out) << out.error_message();
    out << "FIX";
  }
  EXPECT_EQ(memory, "FIXed");
  ofstream out(at("memory"), ios::trunc);
  EXPECT_EQ(out.error(), errc::not_supported);
  ofstream app(at("memory"), ios::app);
  EXPECT_EQ(app.error(), errc::not_supported);
}

TEST_F(StoreStream, ReportsAFullStoreAndLeavesNothing) {
  store_.close();
  const publication small =
      served_.publish_store(directory_ / "", {.prefix = "s", .writable = true, .quota = 100'000});
  ofstream out(at("s/new"));
  const std::string text(60'000, 'x');
  out << text << std::flush;
  EXPECT_TRUE(out);
  out << text << std::flush;
  EXPECT_TRUE(out.bad());
  EXPECT_EQ(out.error(), errc::no_space);
  EXPECT_EQ(out.tellp(), -1);  // as of every stream that failed
  out.close();
  EXPECT_TRUE(out.fail());
  EXPECT_FALSE(std::filesystem::exists(directory_ / "new"));
  // Who goes on where bytes are missing has a whole file.
  ofstream again(at("s/new"));
  again << text << std::flush << text << std::flush;
  again.clear();
  EXPECT_EQ(again.tellp(), 60'000);
  again << "end";
  again.close();
  EXPECT_TRUE(again) << again.error_message();
  EXPECT_EQ(file("new"), text + "end");
}

TEST_F(StoreStream, ReportsAFullDiskAndLeavesNothing) {
  const auto small = directory_ / "small";
  std::filesystem::create_directories(small);
  if (::mount("ucxio-test", small.c_str(), "tmpfs", 0, "size=1m") != 0) {
    GTEST_SKIP() << "no file system can be mounted here: " << std::strerror(errno);
  }
  {
    const publication full = served_.publish_store(small, {.prefix = "full", .writable = true});
    ofstream out(at("full/new"));
    out << std::string(3'000'000, 'x') << std::flush;
    EXPECT_TRUE(out.bad());
    EXPECT_EQ(out.error(), errc::no_space) << out.error_message();
    out.close();
    EXPECT_TRUE(out.fail());
    std::error_code ec;
    client_.stat("full/new", {}, ec);
    EXPECT_EQ(ec, errc::no_such_name);
    // What the writer gave up is room again.
    bool fits = false;
    for (int i = 0; i < 2000 && !fits; ++i) {
      ofstream next(at("full/next"));
      next << std::string(900'000, 'y');
      next.close();
      fits = static_cast<bool>(next);
      if (!fits) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_TRUE(fits);
    // What is published in a store is one file system.
    ofstream across(at("small/x"));
    across << "x";
    across.close();
    EXPECT_EQ(across.error(), errc::not_supported) << across.error_message();
  }
  EXPECT_EQ(::umount2(small.c_str(), MNT_DETACH), 0);
}

/// The same calls on a file of a store and on a local one.
TEST_F(StoreStream, DoesWhatAFileDoes) {
  std::mt19937 random(7);
  const auto some = [&](int end) {
    return static_cast<int>(random() % static_cast<unsigned>(end));
  };
  for (int round = 0; round < 40; ++round) {
    const ios::openmode mode = round % 3 == 0   ? ios::in | ios::out | ios::trunc
                               : round % 3 == 1 ? ios::in | ios::out
                                                : ios::in | ios::out | ios::app;
    const std::string before(static_cast<std::size_t>(some(5000)), 'b');
    directory_.make("ours", before);
    directory_.make("theirs", before);
    fstream ours(client_, "ours", mode, {.buffer_size = static_cast<std::size_t>(1 + some(300))});
    std::fstream theirs(directory_ / "theirs", mode);
    ASSERT_TRUE(ours) << ours.error_message();
    for (int step = 0; step < 60; ++step) {
      const int what = some(5);
      if (what == 0) {
        const int to = some(8000);
        ours.seekp(to);
        theirs.seekp(to);
      } else if (what == 1) {
        const std::string text(static_cast<std::size_t>(some(900)),
                               static_cast<char>('a' + step % 26));
        ours << text;
        theirs << text;
        theirs.flush();  // libstdc++ tells a wrong place of what is still to be appended
        theirs.seekp(theirs.tellp());  // std wants one between writing and reading
      } else if (what == 2) {
        std::string a(static_cast<std::size_t>(some(900)), ' ');
        std::string b = a;
        ours.read(a.data(), static_cast<std::streamsize>(a.size()));
        theirs.read(b.data(), static_cast<std::streamsize>(b.size()));
        ASSERT_EQ(ours.gcount(), theirs.gcount()) << round << ' ' << step;
        ASSERT_EQ(a, b);
        ASSERT_EQ(ours.rdstate(), theirs.rdstate());
        ours.clear();
        theirs.clear();
        theirs.seekg(theirs.tellg());
      } else if (what == 3) {
        ours.seekg(0, ios::end);
        theirs.seekg(0, ios::end);
        ASSERT_EQ(ours.tellg(), theirs.tellg()) << round << ' ' << step;
      } else {
        ours.flush();
        theirs.flush();
      }
      ASSERT_EQ(ours.tellp(), theirs.tellp()) << round << ' ' << step << ' ' << what;
    }
    ours.close();
    theirs.close();
    ASSERT_TRUE(ours) << ours.error_message();
    ASSERT_EQ(file("ours"), file("theirs")) << round;
  }
}

}  // namespace
}  // namespace ucx::test
