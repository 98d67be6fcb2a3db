// `ucxio cp --compress`: what arrives is what was there, whatever it was on the way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "support/basics/soon.hpp"
#include "support/bytes/pattern.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/process/command.hpp"
#include "support/tool/agent_talk.hpp"
#include "support/tool/copy_place.hpp"
#include "support/tool/tool.hpp"
#include "support/transports/ucx_server.hpp"
#include "ucx/content_digest.hpp"
#include "ucx/pipe_broker.hpp"
#include "ucx/server.hpp"

namespace ucx::test {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

constexpr std::size_t large_file = 16 * mib;

/// Returns bytes that do not become shorter.
std::string noise(std::size_t size) {
  std::string all(size, '\0');
  std::uint64_t state = 1;
  for (char& each : all) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    each = static_cast<char>(state >> 56U);
  }
  return all;
}

/// A server whose agent compresses, and a directory here.
class CompressedCopy : public ::testing::Test {
 protected:
  CompressedCopy() { std::filesystem::create_directories(folder_ / "here"); }

  std::string here(const std::string& name) const { return (folder_ / ("here/" + name)).string(); }
  std::string there(const std::string& name) const { return (store_ / name).string(); }
  std::string url(const std::string& name) const { return server_.url(name); }

  static command_result copy(std::vector<std::string> arguments, const std::string& by = "zstd") {
    arguments.insert(arguments.begin(), {"cp", "--compress", by});
    return run_tool(arguments);
  }
  /// Expects that it went well, quietly.
  static void expect_copied(const std::vector<std::string>& arguments,
                            const std::string& by = "zstd") {
    const command_result result = copy(arguments, by);
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_EQ(result.err, "");
    EXPECT_EQ(result.out, "");
  }
  /// Begins to copy, so slowly that things happen meanwhile; returns when `partial` has something.
  static std::unique_ptr<command> begin(const std::string& from, const std::string& to,
                                        const std::string& partial) {
    auto running = std::make_unique<command>(
        tool_program(), std::vector<std::string>{"cp", "--compress", "lz4", "--resume", "--bwlimit",
                                                 "2M", from, to});
    EXPECT_TRUE(soon([&] {
      std::error_code ec;
      const auto size = std::filesystem::file_size(partial, ec);
      return !ec && size >= 2 * mib;
    }));
    return running;
  }

  const temporary_directory folder_;
  const temporary_directory store_;
  tool_server server_{{"--store", (store_ / "").string(), "--writable", "--agent"}};
};

TEST_F(CompressedCopy, BringsEverySizeThereAndBack) {
  for (const std::string by : {"zstd", "lz4"}) {
    for (const std::size_t size :
         {std::size_t{0}, std::size_t{1}, mib - 1, mib, mib + 1, 4 * mib + 3}) {
      for (const std::string& all : {log_text(size), noise(size)}) {
        folder_.make("here/x", all);
        expect_copied({here("x"), url("sub/x")}, by);
        EXPECT_TRUE(content_of(there("sub/x")) == all) << by << size;
        expect_copied({url("sub/x"), here("back")}, by);
        EXPECT_TRUE(content_of(here("back")) == all) << by << size;
      }
    }
  }
  EXPECT_THAT(names_in(folder_ / "here"), UnorderedElementsAre("x", "back"));
}

TEST_F(CompressedCopy, TakesTheOtherOptionsToo) {
  const std::string all = log_text(2 * mib) + std::string(3 * mib, '\0') + "end";
  folder_.make("here/x", all);
  expect_copied({"--verify", "--sparse", "--parallel", "3", here("x"), url("x")});
  EXPECT_TRUE(content_of(there("x")) == all);
  const auto long_ago = std::filesystem::last_write_time(there("x")) - std::chrono::hours(24 * 365);
  std::filesystem::last_write_time(there("x"), long_ago);
  expect_copied({"--verify", "--sparse", "--resume", "-p", url("x"), here("back")});
  EXPECT_TRUE(content_of(here("back")) == all);
  EXPECT_EQ(std::filesystem::last_write_time(here("back")), long_ago);
  const command_result again =
      copy({"--resume", "--progress", "json", url("x"), here("back")}, "lz4");
  EXPECT_THAT(again.err, HasSubstr("\"average_bytes_per_second\":0.0"));
}

TEST_F(CompressedCopy, BringsTreesThereAndBack) {
  std::filesystem::create_directories(folder_ / "tree/a/b");
  folder_.make("tree/a/b/large", log_text(3 * mib));
  for (int i = 0; i < 200; ++i)
    folder_.make("tree/a/f" + std::to_string(i), log_text(10U * static_cast<unsigned>(i)));
  expect_copied({"-r", (folder_ / "tree").string(), url("new")});
  expect_copied({"-r", url("new"), here("back")}, "lz4");
  for (int i = 0; i < 200; ++i) {
    EXPECT_EQ(content_of(here("back/a/f" + std::to_string(i))),
              log_text(10U * static_cast<unsigned>(i)));
  }
  EXPECT_TRUE(content_of(here("back/a/b/large")) == log_text(3 * mib));
}

TEST_F(CompressedCopy, BringsFilesFromServerToServer) {
  const temporary_directory other;
  const tool_server second(
      {"--store", (other / "").string(), "--writable", "--fetch-from", "127.0.0.1"});
  store_.make("x", log_text(3 * mib));
  expect_copied({url("x"), second.url("through")});
  EXPECT_TRUE(content_of(other / "through") == log_text(3 * mib));
  expect_copied({"--direct", "--verify", url("x"), second.url("direct")}, "lz4");
  EXPECT_TRUE(content_of(other / "direct") == log_text(3 * mib));
  const tool_server plain({"--store", (folder_ / "here").string()});
  folder_.make("here/y", "1");
  expect_failure(copy({plain.url("y"), second.url("y")}), 1, "ucxio serve --agent");
  expect_failure(copy({"--direct", plain.url("y"), second.url("y")}), 1, "ucxio serve --agent");
}

TEST_F(CompressedCopy, GoesOnWhereItWasInterrupted) {
  store_.make("x", log_text(large_file));
  folder_.make("here/x", log_text(large_file));
  const auto interrupt = [&](const std::string& from, const std::string& to,
                             const std::string& partial) {
    const auto running = begin(from, to, partial);
    running->send_signal(SIGINT);
    const command_result result = running->finish();
    EXPECT_EQ(result.signal, SIGINT);
    EXPECT_EQ(result.err, "ucxio: interrupted; --resume goes on with what is there\n");
    const std::string part = content_of(partial);
    EXPECT_LT(part.size(), large_file);
    EXPECT_TRUE(part == log_text(large_file).substr(0, part.size()));
    EXPECT_TRUE(soon([&] { return copy({"--resume", from, to}).code == 0; }));
    EXPECT_FALSE(std::filesystem::exists(partial));
  };
  interrupt(url("x"), here("y"), here(".y.ucxio-part"));
  EXPECT_TRUE(content_of(here("y")) == log_text(large_file));
  interrupt(here("x"), url("y"), there(".y.ucxio-part"));
  EXPECT_TRUE(content_of(there("y")) == log_text(large_file));
}

TEST_F(CompressedCopy, KeepsWhatMayBeResumedWhenOneSideIsKilled) {
  folder_.make("here/x", log_text(large_file));
  const auto running = begin(here("x"), url("y"), there(".y.ucxio-part"));
  running->send_signal(SIGKILL);
  running->finish();
  const auto again = [this] { return copy({"--resume", here("x"), url("y")}).code == 0; };
  EXPECT_TRUE(soon(again));
  EXPECT_TRUE(content_of(there("y")) == log_text(large_file));

  const auto loses = begin(url("y"), here("y"), here(".y.ucxio-part"));
  server_.process().kill();
  EXPECT_EQ(loses->finish().code, lost);
  EXPECT_TRUE(std::filesystem::exists(here(".y.ucxio-part")));
}

TEST_F(CompressedCopy, RefusesASourceThatChangesMeanwhile) {
  store_.make("x", log_text(6 * mib));
  const auto running = begin(url("x"), here("y"), here(".y.ucxio-part"));
  std::ofstream(there("x"), std::ios::app) << "more";
  expect_failure(running->finish(), 8, "changed");
  EXPECT_THAT(names_in(folder_ / "here"), UnorderedElementsAre());
  folder_.make("here/x", log_text(6 * mib));
  const auto back = begin(here("x"), url("y"), there(".y.ucxio-part"));
  std::ofstream(here("x"), std::ios::app) << "more";
  expect_failure(back->finish(), 8, "changed");
  EXPECT_FALSE(std::filesystem::exists(there(".y.ucxio-part")));
}

TEST_F(CompressedCopy, TellsWhatIsInTheWay) {
  folder_.make("here/x", log_text(3 * mib));
  expect_failure(copy({url("missing"), here("y")}), 3, "missing");
  const tool_server small({"--memory-store", "1M", "--agent"});
  expect_failure(copy({here("x"), small.url("x")}), 12, "x");
  const tool_server reading({"--store", (folder_ / "here").string(), "--agent"});
  expect_failure(copy({here("x"), reading.url("y")}), 5, "y");
  const tool_server plain({"--store", (folder_ / "here").string()});
  expect_failure(copy({"-r", plain.url(""), here("tree")}), 1, "ucxio serve --agent");
  const tool_server introduces({"--store", (folder_ / "here").string(), "--pipes"});
  expect_failure(copy({"--timeout", "3", introduces.url("x"), here("y")}), 6,
                 "ucxio serve --agent");
  expect_failure(copy({"ucx://127.0.0.1:1/x", here("y")}), 4, "ucx://127.0.0.1:1");
}

TEST_F(CompressedCopy, IsToldOfWrongArguments) {
  folder_.make("here/x", "1");
  expect_failure(copy({here("x"), here("y")}), 2, "--compress");
  expect_failure(copy({here("x"), url("y")}, "zip"), 2, "zip");
  expect_failure(copy({here("x"), url("y")}, "none"), 2, "none");
}

TEST_F(CompressedCopy, ServesManyAtOnce) {
  std::vector<std::unique_ptr<command>> all;
  for (int i = 0; i < 12; ++i) {
    const std::string name = "f" + std::to_string(i);
    store_.make(name, log_text(mib) + name);
    all.push_back(std::make_unique<command>(
        tool_program(), std::vector<std::string>{"cp", "--compress", "zstd", "--timeout", "100",
                                                 url(name), here(name)}));
  }
  for (const auto& each : all) {
    const command_result result = each->finish(std::chrono::seconds(120));
    EXPECT_EQ(result.code, 0) << result.err;
  }
  for (int i = 0; i < 12; ++i) {
    const std::string name = "f" + std::to_string(i);
    EXPECT_TRUE(content_of(here(name)) == log_text(mib) + name);
  }
}

/// An agent that answers "read" with something.
class LyingAgent : public ::testing::Test {
 protected:
  /// Copies 1000 bytes that it is asked for.
  command_result copy(const std::string& header, const std::string& payload) {
    std::jthread lying([&] {
      agent_talk client = agent_talk::with_client(owner_.url());
      while (const std::optional<nlohmann::json> question = client.hear()) {
        const bool is_read = (*question)["ask"] == "read";
        client.say(is_read ? agent_bytes(header, payload) : agent_bytes(R"({"id":1,"size":1000})"));
      }
    });
    return run_tool({"cp", "--compress", "zstd", shown_.url(), (folder_ / "y").string()});
  }

  const temporary_directory folder_;
  const std::string memory_ = std::string(1000, 'x');
  ucx_server owner_;
  const publication shown_ = owner_.publish("x", std::as_bytes(std::span(memory_)));
  const pipe_broker broker_{owner_};
};

TEST_F(LyingAgent, IsFoundOut) {
  const std::string zeros(32, '0');
  const std::string none = R"({"codec":"none","digest":")" + zeros + "\"}";
  expect_failure(copy(none, memory_), 10, "damaged");
  expect_failure(copy(none, ""), 10, "damaged");
  expect_failure(copy(R"({"codec":"zstd","digest":")" + zeros + "\"}", memory_), 10, "damaged");
  expect_failure(copy(R"({"codec":"lz4","digest":")" + zeros + "\"}", memory_), 10, "damaged");
  expect_failure(copy(R"({"codec":"zip","digest":")" + zeros + "\"}", memory_), 4, "codec");
  expect_failure(copy(R"({"codec":"none","digest":"?"})", memory_), 4, "hash");
  expect_failure(copy("{}", memory_), 4, "there is no");
  expect_failure(copy("[]", memory_), 4, "JSON");
  expect_failure(copy(R"({"failed":"it says so","code":3,"ends_all":false})", ""), 3, "it says so");
  expect_failure(copy(R"({"failed":"it says so","code":77,"ends_all":true})", ""), 1, "it says so");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "y"));
  const std::string right = to_string(digest_of(std::as_bytes(std::span(memory_))));
  EXPECT_EQ(copy(R"({"codec":"none","digest":")" + right + "\"}", memory_).code, 0);
  EXPECT_EQ(content_of(folder_ / "y"), memory_);
}

}  // namespace
}  // namespace ucx::test
