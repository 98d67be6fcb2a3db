// Tokens: their text, and the file that they are in.
#include <sys/stat.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "carrier/token_store.hpp"
#include "carrier/token_text.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/replaced/failing_calls.hpp"
#include "ucx/error.hpp"
#include "ucx/token_file.hpp"

namespace ucx::detail {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::array<std::byte, token_size> counted_secret() {
  std::array<std::byte, token_size> made = {};
  for (std::size_t i = 0; i < made.size(); ++i) made[i] = static_cast<std::byte>(i + 1);
  return made;
}

std::string text_of(std::span<const std::byte, token_size> secret) {
  std::string text(token_text_size, ' ');
  write_token(secret, std::span<char, token_text_size>(text));
  return text;
}

token_verdict verdict_of(std::string_view text) {
  std::array<std::byte, token_size> secret = {};
  secret.fill(std::byte{1});
  const token_verdict read = read_token(text, secret);
  if (read != token_verdict::intact) {
    EXPECT_EQ(secret, (std::array<std::byte, token_size>{}));
  }
  return read;
}

TEST(TokenText, IsTheSameInEveryVersion) {
  EXPECT_EQ(text_of(counted_secret()),
            "ucxt1-aebagbafaydqqcikbmga2dqpcaireeyuculbogazdinryhi6d4qgtjt5d3dtxasm");
}

TEST(TokenText, IsReadBack) {
  std::array<std::byte, token_size> secret = {};
  EXPECT_EQ(read_token(text_of(counted_secret()), secret), token_verdict::intact);
  EXPECT_EQ(secret, counted_secret());
}

TEST(TokenText, IsRefusedWithAnyLetterChanged) {
  const std::string intact = text_of(counted_secret());
  for (std::size_t at = 0; at < intact.size(); ++at) {
    for (const char other : std::string_view("abcdefghijklmnopqrstuvwxyz234567189A-_ \0\xff", 41)) {
      if (other == intact[at]) continue;
      std::string changed = intact;
      changed[at] = other;
      EXPECT_NE(verdict_of(changed), token_verdict::intact) << at << ' ' << other;
    }
  }
}

TEST(TokenText, IsRefusedWithLettersMissingOrTooMany) {
  const std::string intact = text_of(counted_secret());
  for (std::size_t size = 0; size < intact.size(); ++size) {
    EXPECT_NE(verdict_of(intact.substr(0, size)), token_verdict::intact);
  }
  EXPECT_EQ(verdict_of(intact + 'a'), token_verdict::damaged);
  EXPECT_EQ(verdict_of(intact + '\n'), token_verdict::damaged);
}

TEST(TokenText, TellsOtherVersionsFromOtherTexts) {
  const std::string intact = text_of(counted_secret());
  EXPECT_EQ(verdict_of("ucxt2-" + intact.substr(6)), token_verdict::other_version);
  EXPECT_EQ(verdict_of("ucxt17-abc"), token_verdict::other_version);
  EXPECT_EQ(verdict_of("ucxt-abc"), token_verdict::no_token);
  EXPECT_EQ(verdict_of("ucxt"), token_verdict::no_token);
  EXPECT_EQ(verdict_of(""), token_verdict::no_token);
  EXPECT_EQ(verdict_of("ghp_0123"), token_verdict::no_token);
}

class TokenFile : public testing::Test {
 protected:
  std::filesystem::path path() const { return folder_ / "ucxio/tokens"; }
  void write(std::string_view text, ::mode_t mode = 0600) const {
    std::filesystem::create_directories(path().parent_path());
    std::ofstream(path()) << text;
    ASSERT_EQ(::chmod(path().c_str(), mode), 0);
  }
  std::string content() const {
    std::ifstream file(path());
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  test::temporary_directory folder_;
};

std::vector<std::string> names_in(const token_file& file) {
  std::vector<std::string> made;
  for (const token_file::entry& each : file.list()) made.push_back(each.name);
  return made;
}

TEST_F(TokenFile, IsMadeForItsUserOnly) {
  token_file file(path());
  EXPECT_THAT(file.list(), testing::IsEmpty());
  const std::string text = file.create("alice");
  EXPECT_EQ(verdict_of(text), token_verdict::intact);
  EXPECT_EQ(content(), "accept alice " + text + "\n");
  struct ::stat facts = {};
  ASSERT_EQ(::stat(path().c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 07777U, 0600U);
  ASSERT_EQ(::stat(path().parent_path().c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 07777U, 0700U);
  EXPECT_NE(file.create("bob"), text);
  EXPECT_THAT(names_in(file), ElementsAre("alice", "bob"));
}

TEST_F(TokenFile, HasTwoOfANameForRotation) {
  token_file file(path());
  const std::string first = file.create("alice");
  const std::string second = file.create("alice");
  std::error_code ec;
  file.create("alice", ec);
  EXPECT_EQ(ec, errc::already_exists);
  EXPECT_EQ(file.remove("alice", true), 1U);
  EXPECT_THAT(content(), Not(HasSubstr(first)));
  EXPECT_THAT(content(), HasSubstr(second));
  EXPECT_EQ(file.remove("bob"), 0U);
}

TEST_F(TokenFile, KeepsWhatItDoesNotConcern) {
  write("# of mine\n\nuse node7 " + text_of(counted_secret()) + "\n");
  token_file file(path());
  file.create("alice");
  file.add("node8:7471", text_of(counted_secret()));
  EXPECT_EQ(file.remove("alice"), 1U);
  EXPECT_EQ(content(), "# of mine\n\nuse node7 " + text_of(counted_secret()) + "\nuse node8:7471 " +
                           text_of(counted_secret()) + "\n");
}

/// As those of NFS.
TEST_F(TokenFile, IsChangedWhereFoldersHaveNoLocks) {
  token_file file(path());
  for (const int number : {EBADF, ENOLCK, EOPNOTSUPP}) {
    const test::failing_calls failing(test::disk_call::flock, number);
    file.create("alice" + std::to_string(number));
  }
  EXPECT_EQ(file.list().size(), 3U);
  const test::failing_calls failing(test::disk_call::flock, EIO);
  std::error_code ec;
  file.create("bob", ec);
  EXPECT_EQ(ec, errc::io_error);
  EXPECT_EQ(file.list().size(), 3U);
}

TEST_F(TokenFile, RefusesTextsThatAreDamaged) {
  token_file file(path());
  std::error_code ec;
  file.add("node7", text_of(counted_secret()).substr(1), ec);
  EXPECT_EQ(ec, errc::invalid_argument);
  for (const std::string name : {"", "two words", "a\nb", "ä", "n/x"}) {
    file.create(name, ec);
    EXPECT_EQ(ec, errc::bad_name) << name;
  }
  EXPECT_FALSE(std::filesystem::exists(path()));
}

TEST_F(TokenFile, IsRefusedWhereOthersMaySeeOrChangeIt) {
  for (const ::mode_t mode : {0640U, 0604U, 0620U, 0610U, 0644U}) {
    write("use node7 " + text_of(counted_secret()) + "\n", mode);
    const auto read = read_tokens(path());
    ASSERT_FALSE(read);
    EXPECT_EQ(read.why().code, errc::not_secure);
    EXPECT_THAT(read.why().text, HasSubstr("chmod 600"));
  }
}

TEST_F(TokenFile, TellsTheLineThatIsWrongAndNotTheToken) {
  const std::string damaged = text_of(counted_secret()).substr(0, 60);
  write("# one\naccept alice " + damaged + "\n");
  auto read = read_tokens(path());
  ASSERT_FALSE(read);
  EXPECT_EQ(read.why().code, errc::bad_configuration);
  EXPECT_THAT(read.why().text, HasSubstr("line 2"));
  EXPECT_THAT(read.why().text, Not(HasSubstr(damaged.substr(6, 12))));
  write("allow alice " + text_of(counted_secret()) + "\n");
  read = read_tokens(path());
  ASSERT_FALSE(read);
  EXPECT_THAT(read.why().text, HasSubstr("line 1"));
}

TEST_F(TokenFile, GetsOneTokenOfItsUserHoweverManyMakeIt) {
  std::vector<std::thread> threads;
  std::atomic<int> made = 0;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      auto ensured = ensure_own_token(path());
      for (int tries = 0; tries < 20 && !ensured && ensured.why().code == errc::busy; ++tries) {
        ensured = ensure_own_token(path());  // another one had the lock for 2 s
      }
      ASSERT_TRUE(ensured) << ensured.why().text;
      if (*ensured) ++made;
    });
  }
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(made, 1);
  EXPECT_THAT(content(), StartsWith("accept own ucxt1-"));
  EXPECT_EQ(names_in(token_file(path())), std::vector<std::string>{"own"});
  struct ::stat facts = {};
  ASSERT_EQ(::stat(path().c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 07777U, 0600U);
}

TEST_F(TokenFile, GetsNoTokenOfItsUserWhereItHasOne) {
  write("accept own " + text_of(counted_secret()) + "\n");
  const std::string before = content();
  EXPECT_FALSE(*ensure_own_token(path()));
  EXPECT_EQ(content(), before);
  // Others are of clients, or of another server, whatever its name.
  write("accept alice " + text_of(counted_secret()) + "\nuse own " + text_of(counted_secret()) +
        "\n");
  EXPECT_TRUE(*ensure_own_token(path()));
  EXPECT_EQ(names_in(token_file(path())), (std::vector<std::string>{"alice", "own", "own"}));
}

TEST_F(TokenFile, GetsNoTokenOfItsUserWhereItIsDamagedOrOpenToOthers) {
  write("accept alice ucxt1-nothing\n");
  const std::string before = content();
  EXPECT_EQ(ensure_own_token(path()).why().code, errc::bad_configuration);
  EXPECT_EQ(content(), before);
  write("", 0644);
  EXPECT_EQ(ensure_own_token(path()).why().code, errc::not_secure);
}

}  // namespace
}  // namespace ucx::detail
