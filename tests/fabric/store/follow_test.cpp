// Files that change while they are read: what is appended, replaced, edited, cut off and removed.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "support/basics/soon.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/transports/ucx_server.hpp"
#include "ucx/client.hpp"
#include "ucx/error.hpp"
#include "ucx/fstream.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/server.hpp"
#include "ucx/stream.hpp"

namespace ucx::test {
namespace {

using std::ios;
using namespace std::chrono_literals;

/// Longer than any test takes: what ends earlier did not end because of it.
constexpr std::chrono::nanoseconds long_time = std::chrono::minutes(10);

/// A file of a store, or one that is published by itself.
class ChangingFile : public testing::TestWithParam<const char*> {
 protected:
  ChangingFile() {
    write("first\n");
    publish();
    client_.emplace(served_.url());
  }

  void publish() {
    const bool in_store = std::string(GetParam()) == "store";
    published_.emplace(in_store ? served_.publish_store(directory_ / "", {.prefix = "s"})
                                : served_.publish_file("s/log", directory_ / "log", access::read));
  }
  void write(const std::string& text) { std::ofstream(directory_ / "log") << text; }
  void append(const std::string& text) { std::ofstream(directory_ / "log", ios::app) << text; }
  ifstream open(const stream_options& options = {}) {
    return ifstream(*client_, "s/log", ios::in, options);
  }
  std::uint64_t questions() const { return client_->statistics().requests; }
  /// Does something as soon as the reader has asked whether there is more than the file had.
  std::jthread while_it_waits(std::function<void()> then) {
    return std::jthread([this, before = questions(), then = std::move(then)] {
      for (int i = 0; i < 30'000 && questions() == before; ++i) std::this_thread::sleep_for(1ms);
      then();
    });
  }

  const temporary_directory directory_;
  ucx_server served_;
  std::optional<publication> published_;
  std::optional<client> client_;
  std::string line_;
};

TEST_P(ChangingFile, ShowsWhatWasAppendedAfterClear) {
  ifstream in = open();
  ASSERT_TRUE(std::getline(in, line_)) << in.error_message();
  EXPECT_FALSE(std::getline(in, line_));
  append("second\nthi");
  in.clear();
  ASSERT_TRUE(std::getline(in, line_)) << in.error_message();
  EXPECT_EQ(line_, "second");
  ASSERT_TRUE(std::getline(in, line_));
  EXPECT_EQ(line_, "thi");
  EXPECT_TRUE(in.eof());
  append("rd\n");
  in.clear();
  ASSERT_TRUE(std::getline(in, line_));
  EXPECT_EQ(line_, "rd");
  EXPECT_EQ(in.tellg(), 19);
}

TEST_P(ChangingFile, FirstEndAsksNobodyAndEachFurtherOneOnce) {
  ifstream in = open();
  const std::uint64_t before = questions();
  std::string all(100, ' ');
  in.read(all.data(), 100);
  EXPECT_EQ(in.gcount(), 6);
  EXPECT_EQ(questions(), before);
  for (std::uint64_t asked = 1; asked < 4; ++asked) {
    in.clear();
    EXPECT_EQ(in.get(), EOF);
    EXPECT_FALSE(in.bad()) << in.error_message();
    EXPECT_EQ(questions(), before + asked);
  }
  in.clear();
  in.seekg(2);
  EXPECT_EQ(in.get(), 'r');
  EXPECT_EQ(questions(), before + 3) << "only the end asks";
}

TEST_P(ChangingFile, SyncHasTheNextEndAskAgain) {
  ifstream in = open();
  ASSERT_TRUE(std::getline(in, line_));
  append("second\n");
  EXPECT_EQ(in.sync(), 0);
  ASSERT_TRUE(std::getline(in, line_)) << in.error_message();
  EXPECT_EQ(line_, "second");
}

TEST_P(ChangingFile, SeeksToTheEndThatIsKnown) {
  ifstream in = open();
  append("second\n");
  in.seekg(0, ios::end);
  EXPECT_EQ(in.tellg(), 6);
  EXPECT_EQ(in.get(), EOF);
  in.clear();
  ASSERT_TRUE(std::getline(in, line_));
  EXPECT_EQ(line_, "second");
  in.seekg(0, ios::end);
  EXPECT_EQ(in.tellg(), 13);
}

TEST_P(ChangingFile, IsFollowedWhileItGrows) {
  ifstream in = open({.follow_timeout = long_time});
  ASSERT_TRUE(std::getline(in, line_)) << in.error_message();
  for (int i = 0; i < 5; ++i) {
    std::atomic<std::uint64_t> asked{0};  // before the first part was there
    const auto writing = while_it_waits([&] {
      const std::uint64_t before = questions();
      append("a line in two ");
      asked = before;
    });
    const auto more = while_it_waits([&] {
      EXPECT_TRUE(soon([&] { return asked > 0 && questions() > asked; }));
      append("parts\n");
    });
    ASSERT_TRUE(std::getline(in, line_)) << in.error_message();
    EXPECT_EQ(line_, "a line in two parts");
  }
}

TEST_P(ChangingFile, IsReadAsFarAsItIsWanted) {
  ifstream in = open({.follow_timeout = long_time});
  const std::string more(3'000'000, 'x');
  const auto writing = while_it_waits([&] { append(more); });
  std::string all(6 + more.size(), ' ');
  ASSERT_TRUE(in.read(all.data(), static_cast<std::streamsize>(all.size()))) << in.error_message();
  EXPECT_EQ(all, "first\n" + more);
}

TEST_P(ChangingFile, EndsWhenNothingComesInTime) {
  ifstream in = open({.follow_timeout = 30ms});
  ASSERT_TRUE(std::getline(in, line_));
  EXPECT_FALSE(std::getline(in, line_));
  EXPECT_TRUE(in.eof());
  EXPECT_FALSE(in.bad()) << in.error_message();
  append("second\n");
  in.clear();
  ASSERT_TRUE(std::getline(in, line_));
  EXPECT_EQ(line_, "second");
}

TEST_P(ChangingFile, ThatIsWithdrawnEndsWhoFollowsIt) {
  ifstream in = open({.follow_timeout = long_time});
  ASSERT_TRUE(std::getline(in, line_));
  const auto closing = while_it_waits([&] { published_->close(); });
  EXPECT_FALSE(std::getline(in, line_));
  EXPECT_TRUE(in.bad());
  EXPECT_EQ(in.error(), errc::revoked) << in.error_message();
}

TEST_P(ChangingFile, OfAServerThatEndsEndsWhoFollowsIt) {
  ifstream in = open({.follow_timeout = long_time});
  ASSERT_TRUE(std::getline(in, line_));
  const auto closing = while_it_waits([&] { served_.close(); });
  EXPECT_FALSE(std::getline(in, line_));
  EXPECT_TRUE(in.bad());
  EXPECT_TRUE(in.error() == errc::connection_reset || in.error() == errc::revoked)
      << in.error_message();
}

TEST_P(ChangingFile, ThatWasCutOffIsAnErrorAndThenWhatItIs) {
  write(std::string(5'000'000, 'a'));
  ifstream in = open();
  in.seekg(4'000'000);
  ASSERT_EQ(in.get(), 'a');
  write("short\n");
  in.seekg(4'500'000);
  EXPECT_EQ(in.get(), EOF);
  EXPECT_TRUE(in.bad());
  EXPECT_EQ(in.error(), errc::content_changed) << in.error_message();
  in.clear();
  EXPECT_EQ(in.get(), EOF);
  EXPECT_FALSE(in.bad()) << "behind the end, as in any file";
  in.clear();
  in.seekg(0);
  ASSERT_TRUE(std::getline(in, line_)) << in.error_message();
  EXPECT_EQ(line_, "short");
  EXPECT_EQ(in.get(), EOF);
  EXPECT_FALSE(in.bad());
}

TEST_P(ChangingFile, ThatWasCutOffIsAnErrorAtItsEnd) {
  ifstream in = open({.follow_timeout = long_time});
  ASSERT_TRUE(std::getline(in, line_));
  const auto cutting = while_it_waits([&] { std::filesystem::resize_file(directory_ / "log", 2); });
  EXPECT_FALSE(std::getline(in, line_));
  EXPECT_TRUE(in.bad());
  EXPECT_EQ(in.error(), errc::content_changed);
  EXPECT_NE(in.error_message().find("4 bytes were cut off"), std::string::npos)
      << in.error_message();
}

TEST_P(ChangingFile, ThatWasReplacedIsTheOldOneToWhoHasItOpen) {
  ifstream in = open();
  ASSERT_EQ(in.get(), 'f');
  std::ofstream(directory_ / "new") << "another, longer one\n";
  std::filesystem::rename(directory_ / "new", directory_ / "log");
  in.sync();
  ASSERT_TRUE(std::getline(in, line_)) << in.error_message();
  EXPECT_EQ(line_, "irst");
  EXPECT_EQ(in.get(), EOF);
  in.clear();
  EXPECT_EQ(in.get(), EOF);
  EXPECT_FALSE(in.bad()) << in.error_message();
  // A single file stays the one that was published; a store has the new one for who opens it now.
  ifstream now = open();
  ASSERT_TRUE(std::getline(now, line_)) << now.error_message();
  EXPECT_EQ(line_, std::string(GetParam()) == "store" ? "another, longer one" : "first");
}

TEST_P(ChangingFile, ThatWasRemovedIsThereForWhoHasItOpen) {
  ifstream in = open();
  ASSERT_EQ(in.get(), 'f');
  std::filesystem::remove(directory_ / "log");
  in.sync();
  ASSERT_TRUE(std::getline(in, line_)) << in.error_message();
  EXPECT_EQ(line_, "irst");
  ifstream now = open();
  EXPECT_EQ(now.is_open(), std::string(GetParam()) != "store");
}

TEST_P(ChangingFile, ThatIsEditedInPlaceShowsNewBytesAfterSync) {
  ifstream in = open();
  ASSERT_EQ(in.get(), 'f');
  std::fstream(directory_ / "log") << "FIRST";
  in.sync();
  ASSERT_TRUE(std::getline(in, line_)) << in.error_message();
  EXPECT_EQ(line_, "IRST");
}

TEST_P(ChangingFile, IsAsLongAsItIsWhenItIsOpened) {
  append("second\n");
  const entry found = client_->stat("s/log");
  EXPECT_EQ(found.size, 13U);
  EXPECT_EQ(client_->list().at(0).size, 13U);
  EXPECT_EQ(client_->open("s/log").size(), 13U);
  append("third\n");
  EXPECT_NE(client_->stat("s/log").generation, found.generation);
}

TEST_P(ChangingFile, TellsWhatItsContentIs) {
  remote_region one = client_->open("s/log");
  client other(served_.url());
  EXPECT_EQ(other.open("s/log").content(), one.content());
  append("second\n");
  const remote_region longer = other.open("s/log");
  EXPECT_EQ(longer.content().object, one.content().object);
  EXPECT_NE(longer.content().generation, one.content().generation);
  client_->refresh_size(one);
  EXPECT_EQ(longer.content(), one.content());
  EXPECT_EQ(one.size(), 13U);
}

TEST_P(ChangingFile, IsMeasuredByWhoHasItOpen) {
  remote_region region = client_->open("s/log");
  EXPECT_TRUE(region.can_refresh_size());
  EXPECT_EQ(client_->refresh_size(region, 1, long_time).size, 6U) << "it is not so long any more";
  EXPECT_EQ(client_->refresh_size(region, 6, 20ms).size, 6U);
  std::error_code ec;
  client other(served_.url());
  other.refresh_size(region, 0, 0ns, {}, ec);
  EXPECT_EQ(ec, errc::no_such_region);
  published_->close();
  client_->refresh_size(region, 6, long_time, {}, ec);
  EXPECT_EQ(ec, errc::revoked) << ec.message();
}

TEST_P(ChangingFile, MayBeClosedWhileOthersMeasureIt) {
  std::atomic<bool> over{false};
  std::atomic<int> asked{0};
  const std::jthread measuring([&] {
    client own(served_.url());
    while (!over) {
      ++asked;
      std::error_code ec;
      own.stat("s/log", {}, ec);
      remote_region region = own.open("s/log", access::read, {}, ec);
      if (!ec) own.refresh_size(region, 0, 0ns, {}, ec);
      EXPECT_TRUE(!ec || ec == errc::no_such_name || ec == errc::revoked ||
                  ec == errc::no_such_region)
          << ec.message();
    }
  });
  for (int i = 0; i < 100; ++i) {
    published_->close();
    published_.reset();
    publish();
    // Somebody is at it again, or there would be nothing to close under.
    const int wanted = asked + 1 + i % 3;
    for (int rests = 0; rests < 20'000 && asked < wanted; ++rests) std::this_thread::sleep_for(1ms);
  }
  over = true;
}

INSTANTIATE_TEST_SUITE_P(Of, ChangingFile, testing::Values("store", "server"),
                         [](const auto& chosen) { return chosen.param; });

TEST(FollowedMemory, EndsAtOnce) {
  std::string text = "memory";
  ucx_server served;
  const publication published =
      served.publish("m", std::as_writable_bytes(std::span(text)), access::read);
  client through(served.url());
  ifstream in(through, "m", ios::in, {.follow_timeout = long_time});
  std::string line;
  ASSERT_TRUE(std::getline(in, line));
  EXPECT_EQ(line, "memory");
  in.clear();
  EXPECT_EQ(in.get(), EOF);
  EXPECT_FALSE(in.bad());
  remote_region region = through.open("m");
  EXPECT_FALSE(region.can_refresh_size());
  std::error_code ec;
  through.refresh_size(region, 6, long_time, {}, ec);
  EXPECT_EQ(ec, errc::not_supported);
}

TEST(FollowedFile, ShowsWhatAnotherClientAppendsWhenItFlushes) {
  const temporary_directory directory;
  directory.make("log", "");
  ucx_server served;
  const publication store = served.publish_store(directory / "", {.writable = true});
  client reading(served.url());
  ofstream out(served.url() + "/log", ios::app);
  ifstream in(reading, "log", ios::in, {.follow_timeout = long_time});
  ASSERT_TRUE(in) << in.error_message();
  std::string word;
  for (int i = 0; i < 100; ++i) {
    out << i << std::endl;
    ASSERT_TRUE(out) << out.error_message();
    int got = -1;
    ASSERT_TRUE(in >> got) << in.error_message();
    EXPECT_EQ(got, i);
  }
}

TEST(FollowedFile, IsNotHeldOpenByAWaitWhenItIsReleased) {
  const temporary_directory directory;
  const std::filesystem::path path = directory.make("log", "ab");
  ucx_server served;
  const publication store = served.publish_store(directory / "", {.writable = true});
  client through(served.url());
  const auto held = [&] {
    std::size_t count = 0;
    for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code gone;
      if (std::filesystem::read_symlink(each, gone) == path) ++count;
    }
    return count;
  };
  std::error_code ended;
  {
    remote_region file = through.open("log", access::read_write);
    remote_region waiting = file.share();
    EXPECT_GT(held(), 0U);
    const std::uint64_t before = through.statistics().requests;
    const std::jthread measuring([&] { through.refresh_size(waiting, 2, long_time, {}, ended); });
    for (int i = 0; i < 10'000 && through.statistics().requests == before; ++i) {
      std::this_thread::sleep_for(1ms);
    }
    through.commit(file, {.close = true});  // which releases it
  }
  EXPECT_TRUE(ended == errc::revoked || ended == errc::no_such_region) << ended.message();
  for (int i = 0; i < 2000 && held() > 0; ++i) std::this_thread::sleep_for(10ms);
  EXPECT_EQ(held(), 0U);
}

TEST(FollowedFile, ShowsAWriterWhatOthersAppend) {
  const temporary_directory directory;
  directory.make("log", "ab");
  ucx_server served;
  const publication store = served.publish_store(directory / "", {.writable = true});
  fstream both(served.url() + "/log");
  ASSERT_EQ(both.get(), 'a');
  both << "B" << std::flush;
  EXPECT_EQ(both.get(), EOF);
  both.clear();
  std::ofstream(directory / "log", ios::app) << "cd";
  ASSERT_EQ(both.get(), 'c') << both.error_message();
  EXPECT_EQ(both.get(), 'd');
  EXPECT_EQ(content_of(directory / "log"), "aBcd");
}

}  // namespace
}  // namespace ucx::test
