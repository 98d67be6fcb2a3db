#include "server/audit_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <span>
#include <sstream>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/logger.hpp"
#include "base/owned_descriptor.hpp"
#include "connection/channel.hpp"
#include "server/peer_audit.hpp"
#include "support/basics/soon.hpp"
#include "support/files/temporary_directory.hpp"
#include "ucx/audit.hpp"
#include "ucx/error.hpp"
#include "ucx/peer_identity.hpp"

namespace ucx::detail {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

TEST(JsonText, IsAsciiWhateverItIsOf) {
  EXPECT_EQ(json_text("a b/c"), R"("a b/c")");
  EXPECT_EQ(json_text("\"\\"), R"("\"\\")");
  EXPECT_EQ(json_text(std::string("\0\n\x1b\x7f", 4)), R"("\u0000\u000a\u001b\u007f")");
  EXPECT_EQ(json_text("\u00e9\u2028\U0001f600"), R"("\u00e9\u2028\ud83d\ude00")");
  EXPECT_EQ(json_text("a\xff\xc3"), R"("a\ufffd\ufffd")");
  EXPECT_EQ(json_text("\xed\xa0\x80"), R"("\ufffd\ufffd\ufffd")");
}

class AuditFile : public testing::Test {
 protected:
  AuditFile()
      : log_(*logger::make({.level = log_level::error,
                            .sink =
                                [this](log_level, std::string_view line) {
                                  const std::lock_guard guard(mutex_);
                                  told_ += line;
                                }},
                           "test")) {}

  std::shared_ptr<audit_file> make() { return *audit_file::make(file_, *log_); }
  std::string text() const {
    std::ostringstream all;
    all << std::ifstream(file_).rdbuf();
    return all.str();
  }
  std::string told() {
    const std::lock_guard guard(mutex_);
    return told_;
  }

  const test::temporary_directory folder_;
  std::filesystem::path file_ = folder_ / "audit";
  std::mutex mutex_;
  std::string told_;
  std::unique_ptr<logger> log_;
};

TEST_F(AuditFile, AppendsLinesForTheOwnerAlone) {
  make()->write({{"event", "open"}, {"name", "a\nb"}, {"to", ""}});
  make()->write({{"event", "leave"}});
  EXPECT_THAT(text(),
              testing::MatchesRegex("\\{\"time\":\"....-..-..T..:..:......Z\",\"event\":\"open\","
                                    "\"name\":\"a.u000ab\"\\}\n"
                                    "\\{\"time\":\"[^\"]*\",\"event\":\"leave\"\\}\n"));
  struct ::stat facts = {};
  ASSERT_EQ(::stat(file_.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777U, 0600U);
}

TEST_F(AuditFile, IsAnErrorWhereItCanNotBeOpened) {
  file_ = folder_ / "none" / "audit";
  const auto made = audit_file::make(file_, *log_);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.why().code, errc::no_such_name);
}

TEST_F(AuditFile, CountsWhatAFullDiskHasLost) {
  const auto full = audit_file::make("/dev/full", *log_);
  if (!full) GTEST_SKIP() << "the system has no /dev/full";
  (*full)->write({{"event", "open"}});
  EXPECT_TRUE(test::soon([&] {
    (*full)->write({{"event", "open"}});
    return !told().empty();
  }));
  EXPECT_THAT(told(), HasSubstr("lines of the audit are lost: /dev/full"));
}

TEST_F(AuditFile, WaitsForNoReaderThatHangs) {
  ASSERT_EQ(::mkfifo(file_.c_str(), 0600), 0);
  EXPECT_FALSE(audit_file::make(file_, *log_));  // nobody reads
  const owned_descriptor reader(::open(file_.c_str(), O_RDONLY | O_NONBLOCK));
  const auto begun = std::chrono::steady_clock::now();
  {
    const auto hung = make();
    const std::string longer(1000, 'x');
    for (std::size_t i = 0; i < audit_file::most_waiting + 500; ++i) {
      hung->write({{"event", longer}});
    }
    EXPECT_THAT(told(), HasSubstr("the disk is too slow"));
    // The reader goes on: the next line tells how many are missing.
    std::string read;
    EXPECT_TRUE(test::soon([&] {
      char part[65536];
      const ::ssize_t got = ::read(reader.get(), part, sizeof part);
      if (got > 0) read.append(part, static_cast<std::size_t>(got));
      return read.find("\"event\":\"lost\",\"lines\":") != read.npos;
    }));
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 60s);
}

TEST_F(AuditFile, IsLeftBehindAtTheEndWhereItHangs) {
  ASSERT_EQ(::mkfifo(file_.c_str(), 0600), 0);
  const owned_descriptor reader(::open(file_.c_str(), O_RDONLY | O_NONBLOCK));
  auto hung = make();
  for (int i = 0; i < 200; ++i) hung->write({{"event", std::string(1000, 'x')}});
  const auto begun = std::chrono::steady_clock::now();
  hung.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 20s);
}

TEST_F(AuditFile, IsMadeAnewWhereItWasMovedAway) {
  const auto made = make();
  made->write({{"event", "first"}});
  ASSERT_TRUE(test::soon([&] { return !text().empty(); }));
  std::filesystem::rename(file_, folder_ / "kept");
  EXPECT_TRUE(test::soon([&] {
    made->write({{"event", "second"}});
    return text().find("second") != std::string::npos;
  }));
  EXPECT_THAT(text(), Not(HasSubstr("first")));
}

std::size_t count(const std::string& all, const std::string& word) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = all.find(word, at)) != all.npos; ++at) ++found;
  return found;
}

TEST_F(AuditFile, TellsFewLimitedLinesASecondOfEachPeer) {
  const auto stranger = std::make_shared<audit_file::share>();
  const auto known = std::make_shared<audit_file::share>();
  known->who = "token \"a\"";
  {
    const auto made = make();
    const audit_file::line of_stranger{{"event", "stranger"}};
    const audit_file::line refusal{{"event", "refusal"}};
    const audit_file::line other{{"event", "removal"}};
    for (int i = 0; i < 1000; ++i) {
      made->write(std::span(&of_stranger, 1), audit_file::weight::limited, stranger);
    }
    for (int i = 0; i < 1000; ++i) {
      made->write(std::span(&refusal, 1), audit_file::weight::limited, known);
    }
    made->write(std::span(&other, 1), audit_file::weight::change, known);
  }
  const std::string all = text();
  // The loops may have lasted for some seconds.
  EXPECT_GE(count(all, "stranger"), audit_file::most_of_strangers);
  EXPECT_LE(count(all, "stranger"), 10 * audit_file::most_of_strangers);
  EXPECT_GE(count(all, "refusal"), audit_file::most_of_identity);
  EXPECT_LT(count(all, "refusal"), 1000U);
  EXPECT_EQ(count(all, "removal"), 1U);
}

TEST_F(AuditFile, WritesTheLinesOfAQuestionTogether) {
  const std::array<audit_file::line, 2> lines{audit_file::line{{"name", "a"}},
                                              audit_file::line{{"name", "b"}}};
  const auto made = make();
  made->write(lines, audit_file::weight::usual, nullptr);
  EXPECT_TRUE(test::soon([this] { return count(text(), "\n") == 2; }));
  EXPECT_THAT(text(), testing::MatchesRegex("\\{\"time\":\"[^\"]*\",\"name\":\"a\"\\}\n"
                                            "\\{\"time\":\"[^\"]*\",\"name\":\"b\"\\}\n"));
}

TEST_F(AuditFile, KeepsRoomForOthersAndForChanges) {
  ASSERT_EQ(::mkfifo(file_.c_str(), 0600), 0);
  const owned_descriptor reader(::open(file_.c_str(), O_RDONLY | O_NONBLOCK));
  const auto hung = make();
  const auto flood = std::make_shared<audit_file::share>();
  const auto other = std::make_shared<audit_file::share>();
  const audit_file::line longer{{"event", std::string(1000, 'x')}};
  const auto write = [&](audit_file::weight of, const auto& by) {
    const std::uint64_t before = by->lost;
    hung->write(std::span(&longer, 1), of, by);
    return by->lost <= before;
  };
  // A pipe takes some lines before it is full.
  for (std::size_t i = 0; i < 3000; ++i) write(audit_file::weight::usual, flood);
  EXPECT_GT(flood->lost, 0U);
  EXPECT_LE(flood->waiting, audit_file::most_of_one / 2);
  EXPECT_TRUE(write(audit_file::weight::change, flood)) << "a change has room still";
  EXPECT_TRUE(write(audit_file::weight::usual, other)) << "another connection has, too";
}

// Lines about peers that come from no session.

audit_event meeting() {
  audit_event made;
  made.event = "meet";
  made.name = std::string(1000, 'x');
  return made;
}

peer_facts known_peer(std::uint64_t worker, std::uint64_t number) {
  const auto identity = std::make_shared<peer_identity>();
  identity->user = 1;
  peer_facts made;
  made.identity = identity;
  made.id = number;
  made.worker = worker;
  return made;
}

TEST_F(AuditFile, CountsConnectionsByWorkerAndNumber) {
  ASSERT_EQ(::mkfifo(file_.c_str(), 0600), 0);
  const owned_descriptor reader(::open(file_.c_str(), O_RDONLY | O_NONBLOCK));
  const auto hung = make();
  peer_audit peers(hung);
  // A pipe takes some lines before it is full.
  for (int i = 0; i < 3000; ++i) peers.tell(known_peer(1, 7), meeting(), nullptr);
  EXPECT_EQ(peers.kept(), 1U);
  peers.tell(known_peer(1, 8), meeting(), nullptr);
  EXPECT_EQ(peers.kept(), 2U);
  peers.tell(known_peer(2, 7), meeting(), nullptr);
  EXPECT_EQ(peers.kept(), 3U) << "the number is another worker's, too";
  peers.tell(known_peer(2, 7), meeting(), nullptr);
  EXPECT_EQ(peers.kept(), 3U);
}

/// Connections come and go while nothing is written. What they lose is told in the end.
TEST_F(AuditFile, KeepsNothingOfConnectionsThatOnlyLost) {
  constexpr std::uint64_t connections = 10'000;
  ASSERT_EQ(::mkfifo(file_.c_str(), 0600), 0);
  const owned_descriptor reader(::open(file_.c_str(), O_RDONLY | O_NONBLOCK));
  const auto hung = make();
  {
    peer_audit peers(hung);
    for (std::uint64_t i = 0; i < connections; ++i) {
      peers.tell(known_peer(1, i), meeting(), nullptr);
    }
    EXPECT_LE(peers.kept(), audit_file::most_waiting / 2 + 2);
  }
  EXPECT_THAT(told(), HasSubstr("the disk is too slow"));
  // The reader goes on. The last connection alone has its own count still.
  std::string read;
  const auto lost = [&] {
    constexpr std::string_view before = "\"event\":\"lost\",\"lines\":";
    std::uint64_t all = 0;
    for (std::size_t at = 0; (at = read.find(before, at)) != read.npos; ++at) {
      all += std::strtoull(read.c_str() + at + before.size(), nullptr, 10);
    }
    return all;
  };
  EXPECT_TRUE(test::soon([&] {
    char part[65536];
    const ::ssize_t got = ::read(reader.get(), part, sizeof part);
    if (got > 0) read.append(part, static_cast<std::size_t>(got));
    return lost() + count(read, "\"event\":\"meet\"") + 1 >= connections;
  })) << lost();
  EXPECT_LE(lost() + count(read, "\"event\":\"meet\""), connections);
}

}  // namespace
}  // namespace ucx::detail
