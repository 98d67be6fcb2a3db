// Bytes at offsets of what a server publishes.
#include "ucx/remote_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <limits>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "support/files/temporary_directory.hpp"
#include "support/transports/ucx_server.hpp"
#include "ucx/client.hpp"
#include "ucx/error.hpp"
#include "ucx/server.hpp"

namespace ucx::test {
namespace {

using testing::HasSubstr;

std::span<const std::byte> as_written(std::string_view text) {
  return std::as_bytes(std::span(text));
}

class RemoteFile : public testing::Test {
 protected:
  static constexpr std::size_t quota = std::size_t{1} << 20U;
  static constexpr remote_file_options both{.wanted = access::read_write};

  url at(const std::string& name = "file") const { return url(served_.url() + '/' + name); }
  std::string content(const std::string& name = "file") const {
    return content_of(directory_ / name);
  }
  static std::string read(remote_file& file, std::uint64_t offset, std::size_t size) {
    std::string into(size, '?');
    into.resize(file.read_at(offset, std::as_writable_bytes(std::span(into))));
    return into;
  }

  const temporary_directory directory_;
  ucx_server served_;
  publication store_ = served_.publish_store(directory_ / "", {.writable = true, .quota = quota});
};

TEST_F(RemoteFile, ReadsUpToItsEnd) {
  directory_.make("file", "0123456789");
  remote_file file(at());
  EXPECT_TRUE(file.is_open());
  EXPECT_EQ(file.size(), 10U);
  EXPECT_EQ(read(file, 2, 3), "234");
  EXPECT_EQ(read(file, 8, 100), "89");
  EXPECT_EQ(read(file, 10, 1), "");
  EXPECT_EQ(read(file, ~std::uint64_t{0}, 1), "");
  EXPECT_EQ(read(file, 3, 0), "");
  EXPECT_THAT(file.description(), HasSubstr("region"));
  file.close();
  EXPECT_FALSE(file.is_open());
  EXPECT_EQ(file.size(), 0U);
  file.close();
}

TEST_F(RemoteFile, AppearsWholeWhenItIsClosed) {
  directory_.make("file", "old");
  client through(served_.url());
  remote_file file(through, "file", {.wanted = access::read_write, .create = creation::replace});
  EXPECT_EQ(file.size(), 0U);
  file.write_at(0, as_written("new"));
  file.write_at(5, as_written("end"));
  EXPECT_EQ(file.size(), 8U);
  EXPECT_EQ(read(file, 0, 100), std::string("new\0\0end", 8));
  file.sync();
  EXPECT_EQ(content(), "old");
  file.close();
  EXPECT_EQ(content(), std::string("new\0\0end", 8));
}

TEST_F(RemoteFile, HasItsNameOnceItIsOnTheDisk) {
  remote_file file(at(), {.wanted = access::write, .create = creation::exclusive});
  file.write_at(0, as_written("one"));
  file.commit();
  EXPECT_EQ(content(), "one");
  file.write_at(3, as_written(" two"));
  file.commit();
  EXPECT_EQ(content(), "one two");
  file.close();
  EXPECT_EQ(content(), "one two");
}

TEST_F(RemoteFile, IsThrownAwayWhereAnExceptionDestroysIt) {
  directory_.make("edited", "....");
  try {
    remote_file fresh(at(), {.wanted = access::write, .create = creation::replace});
    remote_file edited(at("edited"), both);
    fresh.write_at(0, as_written("half"));
    edited.write_at(0, as_written("half"));
    throw std::runtime_error("the program's own");
  } catch (const std::runtime_error&) {
  }
  EXPECT_FALSE(std::filesystem::exists(directory_ / "file"));
  EXPECT_EQ(content("edited"), "half");
  { remote_file(at(), {.wanted = access::write, .create = creation::replace}); }
  EXPECT_TRUE(std::filesystem::exists(directory_ / "file"));
}

// As a database does it: in place, back and forth, always the size that it should have.
TEST_F(RemoteFile, IsWhatAnArrayWouldBe) {
  std::mt19937 random(7);
  std::string expected = "a page of something";
  directory_.make("file", expected);
  remote_file file(at(), both);
  for (int i = 0; i < 400; ++i) {
    const std::size_t offset = random() % 70'000;
    const std::size_t size = random() % (random() % 2 == 0 ? 100 : 40'000);
    switch (random() % 4) {
      case 0: {
        const std::string text(size, static_cast<char>('a' + random() % 26));
        file.write_at(offset, as_written(text));
        if (size > 0 && expected.size() < offset + size) expected.resize(offset + size, '\0');
        if (size > 0) expected.replace(offset, size, text);
        break;
      }
      case 1:
        file.resize(offset);
        expected.resize(offset, '\0');
        break;
      default:
        ASSERT_EQ(read(file, offset, size),
                  offset > expected.size() ? "" : expected.substr(offset, size))
            << i;
    }
    ASSERT_EQ(file.size(), expected.size()) << i;
  }
  file.close();
  EXPECT_TRUE(content() == expected);
}

// The quota counts what a file has, not what was once expected of it.
TEST_F(RemoteFile, GivesBackWhatItDoesNotHaveAnyMore) {
  const std::string half(quota / 2, 'h');
  remote_file file(at(), {.wanted = access::write, .create = creation::append});
  for (int i = 0; i < 6; ++i) {
    file.write_at(0, as_written(half));
    file.resize(10);
    EXPECT_EQ(std::filesystem::file_size(directory_ / "file"), 10U);
  }
  std::error_code ec;
  file.resize(quota + 1, ec);
  EXPECT_EQ(ec, errc::no_space);
  EXPECT_EQ(file.size(), 10U);
  file.resize(quota, ec);
  EXPECT_FALSE(ec) << ec.message();
  file.close();
  client::shared(at()).resize("file", 5);
  {
    remote_file(at("other"), {.wanted = access::write, .create = creation::exclusive})
        .write_at(quota - 6, as_written("x"));
  }
  EXPECT_EQ(std::filesystem::file_size(directory_ / "other"), quota - 5);
}

TEST_F(RemoteFile, IsAlsoWhatWasPublishedByItself) {
  std::string memory = "0123456789";
  const publication fixed =
      served_.publish("memory", std::as_writable_bytes(std::span(memory)), access::read_write);
  remote_file file(at("memory"), both);
  file.write_at(8, as_written("XY"));
  file.commit();
  EXPECT_EQ(memory, "01234567XY");
  std::error_code ec;
  file.write_at(9, as_written("ZZ"), ec);
  EXPECT_EQ(ec, errc::no_space);
  EXPECT_EQ(memory, "01234567XY");
  file.resize(10, ec);
  EXPECT_FALSE(ec);
  file.resize(11, ec);
  EXPECT_EQ(ec, errc::not_supported);
  EXPECT_EQ(read(file, 7, 10), "7XY");
  file.close();
}

TEST_F(RemoteFile, TellsWhatCanNotBe) {
  std::error_code ec;
  EXPECT_FALSE(remote_file(at("missing"), {}, ec).is_open());
  EXPECT_EQ(ec, errc::no_such_name);
  EXPECT_THROW(remote_file(at("missing")), error);
  remote_file(url(served_.url()), {}, ec);
  EXPECT_EQ(ec, errc::bad_url);
  remote_file(at(), {.wanted = access::read, .create = creation::replace}, ec);
  EXPECT_EQ(ec, errc::invalid_argument);
  directory_.make("file", "there");
  client through(served_.url());
  remote_file(through, "file", {.wanted = access::write, .create = creation::exclusive}, ec);
  EXPECT_EQ(ec, errc::already_exists);
  remote_file reading(through, "file", {}, ec);
  EXPECT_FALSE(ec);
  reading.write_at(0, as_written("x"), ec);
  EXPECT_EQ(ec, errc::permission_denied);
  reading.resize(3, ec);
  EXPECT_EQ(ec, errc::not_supported);
  remote_file writing(through, "file", {.wanted = access::write});
  std::byte one{};
  writing.read_at(0, std::span(&one, 1), ec);
  EXPECT_EQ(ec, errc::permission_denied);
  writing.read_at(100, std::span(&one, 1), ec);
  EXPECT_EQ(ec, errc::permission_denied);
  remote_file second(at(), both, ec);
  EXPECT_EQ(ec, errc::busy);
  EXPECT_FALSE(second.is_open());
  for (const auto& call : std::vector<std::function<void(std::error_code&)>>{
           [&](std::error_code& why) { second.read_at(0, std::span(&one, 1), why); },
           [&](std::error_code& why) { second.write_at(0, std::span(&one, 1), why); },
           [&](std::error_code& why) { second.resize(1, why); },
           [&](std::error_code& why) { second.sync(why); },
           [&](std::error_code& why) { second.commit(why); }}) {
    call(ec);
    EXPECT_EQ(ec, errc::closed);
  }
  second.close(ec);
  EXPECT_FALSE(ec);
}

TEST_F(RemoteFile, ReportsAtItsEndWhatWasRefused) {
  remote_file file(at(), {.wanted = access::write, .create = creation::replace});
  const std::string body(quota / 2, 'b');
  file.write_at(0, as_written(body));
  file.write_at(quota, as_written(body));
  std::error_code ec;
  file.sync(ec);
  EXPECT_EQ(ec, errc::no_space);
  file.sync(ec);
  EXPECT_FALSE(ec) << "it was told";
  file.commit(ec);
  EXPECT_EQ(ec, errc::no_space);
  try {
    file.close();
    ADD_FAILURE() << "a name for what lacks bytes";
  } catch (const error& told) {
    EXPECT_EQ(told.code(), errc::no_space);
    EXPECT_THAT(told.what(), HasSubstr("from offset " + std::to_string(quota) + " on"));
  }
  EXPECT_FALSE(file.is_open());
  EXPECT_FALSE(std::filesystem::exists(directory_ / "file"));
  remote_file lost(at("lost"), {.wanted = access::write, .create = creation::replace});
  lost.write_at(quota, as_written(body));
  lost.close(ec);
  EXPECT_EQ(ec, errc::no_space);
  EXPECT_FALSE(std::filesystem::exists(directory_ / "lost"));
}

TEST_F(RemoteFile, HasANameWhenWhatWasRefusedIsThere) {
  const remote_file_options made{.wanted = access::write, .create = creation::replace};
  const std::string body(quota / 2, 'b');
  std::error_code ec;
  {
    remote_file file(at(), made);
    file.write_at(quota, as_written(body));
    file.sync(ec);
    EXPECT_EQ(ec, errc::no_space);
  }
  EXPECT_FALSE(std::filesystem::exists(directory_ / "file")) << "nor by its destructor";
  {
    remote_file other(at("other"), made);
    other.write_at(0, as_written(body));
  }
  remote_file again(at(), made);
  again.write_at(0, as_written(body));
  again.sync();
  again.write_at(quota / 2, as_written(body));
  again.sync(ec);
  EXPECT_EQ(ec, errc::no_space);
  client(served_.url()).remove("other");
  again.write_at(quota / 2, as_written(body));
  again.commit(ec);
  EXPECT_FALSE(ec) << ec.message();
  EXPECT_TRUE(content() == body + body);
  again.close();
  client(served_.url()).remove("file");
  remote_file shorter(at("shorter"), made);
  shorter.write_at(0, as_written("text"));
  shorter.write_at(std::numeric_limits<std::uint64_t>::max() - 1, as_written("text"), ec);
  EXPECT_EQ(ec, errc::no_space);
  shorter.commit(ec);
  EXPECT_EQ(ec, errc::no_space);
  shorter.resize(2);
  shorter.close(ec);
  EXPECT_FALSE(ec) << "what was refused is behind its end: " << ec.message();
  EXPECT_EQ(content("shorter"), "te");
}

TEST_F(RemoteFile, SaysWhatWasLost) {
  directory_.make("file", std::string(100'000, 'x'));
  remote_file reading(at());
  remote_file writing(at("new"), {.wanted = access::write, .create = creation::replace});
  writing.write_at(0, as_written("something"));
  std::filesystem::resize_file(directory_ / "file", 10);
  std::vector<std::byte> into(1000);
  std::error_code ec;
  reading.read_at(50'000, into, ec);
  EXPECT_EQ(ec, errc::content_changed);
  served_.close();
  writing.close(ec);
  EXPECT_TRUE(ec);
  reading.read_at(0, into, ec);
  EXPECT_TRUE(ec);
  EXPECT_FALSE(std::filesystem::exists(directory_ / "new"));
}

TEST_F(RemoteFile, MovesWhileItIsOpen) {
  directory_.make("file", "0123456789");
  remote_file first(at(), both);
  remote_file second(std::move(first));
  EXPECT_FALSE(first.is_open());
  second.write_at(0, as_written("abc"));
  remote_file third(at("other"), {.wanted = access::write, .create = creation::replace});
  third = std::move(second);
  EXPECT_TRUE(std::filesystem::exists(directory_ / "other"));
  EXPECT_EQ(read(third, 0, 5), "abc34");
}

// ---- A name whose writer has closed

TEST_F(RemoteFile, WhenClosedHasANameThatIsFree) {
  client first(served_.url());
  client second(served_.url());
  for (int i = 0; i < 200; ++i) {
    for (client* const each : {&first, &second}) {
      std::error_code ec;
      remote_file file(*each, "file", {.wanted = access::write, .create = creation::replace}, ec);
      ASSERT_FALSE(ec) << i << ' ' << ec.message();
      file.write_at(0, as_written("text"));
      file.close();
    }
  }
}

TEST_F(RemoteFile, OfWhichACommitFailedIsFreeToo) {
  client first(served_.url());
  client second(served_.url());
  for (int i = 0; i < 50; ++i) {
    directory_.make("file", "");
    std::filesystem::remove(directory_ / "file");
    remote_region file = first.create("file", {.mode = creation::exclusive});
    directory_.make("file", "somebody was faster");
    std::error_code ec;
    first.commit(file, {.close = true}, {}, ec);
    ASSERT_EQ(ec, errc::already_exists);
    second.create("file", {}, {}, ec);
    ASSERT_FALSE(ec) << i << ' ' << ec.message();
  }
}

TEST_F(RemoteFile, IsNoMoreOnceItWasCommittedForGood) {
  client through(served_.url());
  remote_region file = through.create("file", {.readable = true});
  file.write_at(0, as_written("text"));
  remote_region shared = file.share();
  EXPECT_EQ(through.commit(file, {.close = true}).size, 4U);
  EXPECT_EQ(shared.status(), errc::closed);
  std::error_code ec;
  through.commit(shared, {}, {}, ec);
  EXPECT_TRUE(ec);
  through.resize(shared, 1, {}, ec);
  EXPECT_TRUE(ec);
}

TEST_F(RemoteFile, IsNotResizedWhereNobodyMay) {
  directory_.make("file", "text");
  client through(served_.url());
  client other(served_.url());
  std::error_code ec;
  remote_region reading = through.open("file");
  through.resize(reading, 1, {}, ec);
  EXPECT_EQ(ec, errc::permission_denied);
  remote_region writing = through.open("file", access::read_write);
  other.resize(writing, 1, {}, ec);
  EXPECT_EQ(ec, errc::no_such_region);
  through.resize(writing, 2, {}, ec);
  EXPECT_FALSE(ec);
  EXPECT_EQ(writing.size(), 2U);
  EXPECT_EQ(content(), "te");
  through.resize(writing, ~std::uint64_t{0}, {}, ec);
  EXPECT_EQ(ec, errc::no_space);
}

}  // namespace
}  // namespace ucx::test
