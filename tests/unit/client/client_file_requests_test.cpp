// The calls of a client about files and regions as requests, in virtual time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "support/bytes/bytes_of.hpp"
#include "support/simulated/stored_files.hpp"
#include "ucx/client.hpp"
#include "ucx/content_digest.hpp"
#include "ucx/entry.hpp"
#include "ucx/error.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/request.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

TEST(ClientFileRequests, OpenWriteCommitAndRead) {
  stored_files at;
  remote_region file;
  EXPECT_EQ(file.status(), errc::closed);
  request creating = at.asking->start_create("new", {.readable = true}, file);
  EXPECT_EQ(file.status(), errc::closed) << "it is made at the end";
  at.succeed(std::move(creating));
  EXPECT_FALSE(file.status());
  const auto text = bytes_of("some text");
  at.succeed(file.start_write_at(0, text));
  at.succeed(at.asking->start_resize(file, 20));
  EXPECT_EQ(file.size(), 20U);
  entry committed;
  at.succeed(at.asking->start_commit(file, {.durable = true, .close = true}, committed));
  EXPECT_EQ(committed.name, "new");
  EXPECT_EQ(committed.size, 20U);
  EXPECT_EQ(file.status(), errc::closed);
  EXPECT_EQ(content_of(at.folder / "new"), "some text" + std::string(11, '\0'));

  at.succeed(at.asking->start_open("new", access::read, file));
  std::vector<std::byte> into(9);
  at.succeed(file.start_read_at(0, into));
  EXPECT_TRUE(std::ranges::equal(into, text));
  std::vector<content_digest> found(3);
  at.succeed(at.asking->start_digest(file, {.offset = 0, .length = 9, .chunk = 4}, found));
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0], digest_of(std::span(into).first(4)));
  entry measured;
  at.succeed(at.asking->start_refresh_size(file, 0, 0ns, measured));
  EXPECT_EQ(measured.size, 20U);
  at.succeed(at.asking->start_digest(file, {.offset = 0, .length = 0, .chunk = 4}, found));
  EXPECT_TRUE(found.empty());
}

TEST(ClientFileRequests, CommitsWhatWasStartedBefore) {
  stored_files at;
  remote_region file = at.asking->create("new");
  const std::vector<std::byte> much(3'000'000, std::byte{5});
  request writing = file.start_write_at(0, much);
  entry committed;
  at.succeed(at.asking->start_commit(file, {}, committed));
  EXPECT_EQ(committed.size, much.size());
  at.succeed(std::move(writing));
  EXPECT_EQ(std::filesystem::file_size(at.folder / "new"), much.size());
}

TEST(ClientFileRequests, MakeDirectories) {
  stored_files at;
  at.succeed(at.asking->start_make_directory("a/b"));
  EXPECT_TRUE(std::filesystem::is_empty(at.folder / "a/b"));
  EXPECT_EQ(at.asking->stat("a/b").type, entry_type::directory);
  std::error_code ec;
  for (const char* taken : {"a", "a/b", "file"}) {
    at.asking->make_directory(taken, {}, ec);
    EXPECT_EQ(ec, errc::already_exists) << taken;
  }
  at.asking->make_directory("file/below", {}, ec);
  EXPECT_EQ(ec, errc::no_such_name);
  at.asking->make_directory("../out", {}, ec);
  EXPECT_EQ(ec, errc::bad_name);
  at.asking->make_directory("memory", {}, ec);
  EXPECT_EQ(ec, errc::not_supported);
  at.asking->remove("a/b");
  EXPECT_FALSE(std::filesystem::exists(at.folder / "a/b"));
}

/// 64 opens share two round trips, whatever they take by themselves.
TEST(ClientFileRequests, OpenSideBySide) {
  constexpr std::chrono::milliseconds latency{10};
  stored_files at({.latency = latency});
  std::vector<remote_region> made(64);
  std::vector<request> asked;
  const auto begin = at.served.network.now();
  for (remote_region& each : made) {
    asked.push_back(at.asking->start_open("memory", access::read, each));
  }
  for (request& each : asked) each.wait();
  const auto took = at.served.network.now() - begin;
  EXPECT_LE(took, 4 * latency + 5ms);
  for (remote_region& each : made) EXPECT_EQ(each.size(), at.bytes.size());
}

TEST(ClientFileRequests, SayWhatTheServerRefuses) {
  stored_files at;
  remote_region made;
  request missing = at.asking->start_open("nothing", access::read, made);
  at.finish(missing);
  EXPECT_EQ(missing.error(), errc::no_such_name);
  EXPECT_EQ(made.status(), errc::closed);
  request denied = at.asking->start_open("memory", access::write, made);
  at.finish(denied);
  EXPECT_EQ(denied.error(), errc::permission_denied);
  std::string blocking;
  try {
    at.asking->open("nothing");
  } catch (const error& thrown) {
    blocking = thrown.what();
  }
  EXPECT_THAT(blocking, testing::HasSubstr(missing.description()));
  EXPECT_EQ(at.asking->start_open(std::string(5000, 'x'), access::read, made).error(),
            errc::bad_name);
  entry described;
  EXPECT_EQ(at.asking->start_commit(made, {}, described).error(), errc::closed);
  remote_region memory = at.asking->open("memory");
  EXPECT_EQ(at.asking->start_refresh_size(memory, 0, 0ns, described).error(), errc::not_supported);
  std::vector<content_digest> found;
  EXPECT_EQ(at.asking->start_digest(memory, {.chunk = 0}, found).error(), errc::invalid_argument);
}

/// A length that does not change is waited for as long as was said, by the clock of the file's
/// disk, which is not simulated.
TEST(ClientFileRequests, WaitForALength) {
  stored_files at;
  remote_region file = at.asking->open("file");
  entry measured;
  const auto begin = std::chrono::steady_clock::now();
  request waiting = at.asking->start_refresh_size(file, 7, 300ms, measured, {.timeout = 100s});
  at.finish(waiting);
  EXPECT_FALSE(waiting.error()) << waiting.description();
  EXPECT_EQ(measured.size, 7U);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 300ms);
}

}  // namespace
}  // namespace ucx::test
