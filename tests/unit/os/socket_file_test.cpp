#include "os/socket_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/owned_descriptor.hpp"
#include "support/basics/changed_variable.hpp"
#include "support/files/temporary_directory.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using ucx::test::changed_variable;
using ucx::test::content_of;
using ucx::test::temporary_directory;

constexpr ::uid_t foreign_owner = 12345;

owned_descriptor listen_at_path(const std::string& path) {
  owned_descriptor made(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ::sockaddr_un there = {};
  there.sun_family = AF_UNIX;
  path.copy(there.sun_path, sizeof there.sun_path - 1);
  EXPECT_EQ(::bind(made.get(), reinterpret_cast<const ::sockaddr*>(&there), sizeof there), 0);
  EXPECT_EQ(::listen(made.get(), 5), 0);
  return made;
}

std::error_code code_of_claim(const std::string& path, const std::string& words = {}) {
  const auto claimed = socket_file::claim(path);
  if (claimed) return {};
  EXPECT_THAT(claimed.why().text, HasSubstr(words));
  return claimed.why().code;
}

class SocketFile : public testing::Test {
 protected:
  bool is_there() const { return std::filesystem::exists(std::filesystem::symlink_status(path_)); }

  const temporary_directory folder_;
  const std::string path_ = (folder_ / "x.sock").string();
};

TEST_F(SocketFile, GoesWithItsOwner) {
  auto claimed = socket_file::claim(path_);
  ASSERT_TRUE(claimed) << claimed.why().text;
  const owned_descriptor listening = listen_at_path(path_);
  ASSERT_TRUE((*claimed)->bound());
  EXPECT_EQ((*claimed)->path(), path_);
  (*claimed).reset();
  EXPECT_FALSE(is_there());
}

TEST_F(SocketFile, OfAKilledServerIsReplaced) {
  listen_at_path(path_);  // and closed
  ASSERT_TRUE(is_there());
  EXPECT_EQ(code_of_claim(path_), std::error_code());
  EXPECT_FALSE(is_there());
}

TEST_F(SocketFile, OfALiveServerStays) {
  const owned_descriptor listening = listen_at_path(path_);
  EXPECT_EQ(code_of_claim(path_, "a server listens there"), errc::address_in_use);
  EXPECT_TRUE(is_there());
}

TEST_F(SocketFile, IsNoLinkAndNoOtherFile) {
  folder_.make("file", "kept");
  std::filesystem::create_symlink(folder_ / "file", path_);
  EXPECT_EQ(code_of_claim(path_, "a symbolic link"), errc::already_exists);
  EXPECT_TRUE(is_there());
  std::filesystem::remove(path_);
  folder_.make("x.sock", "kept");
  EXPECT_EQ(code_of_claim(path_, "a file is there"), errc::already_exists);
  EXPECT_EQ(content_of(path_), "kept");
}

TEST_F(SocketFile, OfAnotherUserStays) {
  if (::geteuid() != 0) GTEST_SKIP() << "this process may not become another user";
  listen_at_path(path_);
  ASSERT_EQ(::lchown(path_.c_str(), foreign_owner, foreign_owner), 0);
  EXPECT_EQ(code_of_claim(path_, "belongs to user 12345"), errc::already_exists);
  EXPECT_TRUE(is_there());
}

TEST_F(SocketFile, NeedsADirectoryThatOthersDoNotChange) {
  const std::string folder = std::filesystem::path(path_).parent_path().string();
  ASSERT_EQ(::chmod(folder.c_str(), 0777), 0);
  EXPECT_EQ(code_of_claim(path_, "may be changed by other users"), errc::not_secure);
  ASSERT_EQ(::chmod(folder.c_str(), 01777), 0);
  EXPECT_EQ(code_of_claim(path_), std::error_code());
  ASSERT_EQ(::chmod(folder.c_str(), 0700), 0);
  EXPECT_EQ(code_of_claim(folder + "/none/x.sock", "none"), errc::no_such_name);
  EXPECT_EQ(code_of_claim(folder + "/"), errc::bad_address);
  if (::geteuid() != 0) return;
  ASSERT_EQ(::chown(folder.c_str(), foreign_owner, foreign_owner), 0);
  EXPECT_EQ(code_of_claim(path_, "belongs to user 12345"), errc::not_secure);
}

TEST_F(SocketFile, OfASuccessorStays) {
  auto claimed = socket_file::claim(path_);
  ASSERT_TRUE(claimed);
  const owned_descriptor listening = listen_at_path(path_);
  ASSERT_TRUE((*claimed)->bound());
  std::filesystem::remove(path_);
  const owned_descriptor successor = listen_at_path(path_);
  (*claimed).reset();
  EXPECT_TRUE(is_there());
}

TEST_F(SocketFile, StaysWhereAChildOfForkEnds) {
  auto claimed = socket_file::claim(path_);
  ASSERT_TRUE(claimed);
  const owned_descriptor listening = listen_at_path(path_);
  ASSERT_TRUE((*claimed)->bound());
  const ::pid_t child = ::fork();
  if (child == 0) {
    (*claimed).reset();
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(is_there());
}

TEST_F(SocketFile, IsClaimedByOneServerAtATime) {
  const std::string folder = std::filesystem::path(path_).parent_path().string();
  const owned_descriptor other(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_EQ(::flock(other.get(), LOCK_EX), 0);
  EXPECT_EQ(code_of_claim(path_, "lock"), errc::busy);
  ASSERT_EQ(::flock(other.get(), LOCK_UN), 0);
  EXPECT_EQ(code_of_claim(path_), std::error_code());
}

TEST_F(SocketFile, SaysWhyNoServerIsThere) {
  const auto none = check_socket_file(path_);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.why().code, errc::connection_refused);
  EXPECT_THAT(none.why().text, HasSubstr("no socket is there"));
  folder_.make("x.sock", "");
  const auto file = check_socket_file(path_);
  ASSERT_FALSE(file);
  EXPECT_THAT(file.why().text, HasSubstr("is no socket"));
  std::filesystem::remove(path_);
  const owned_descriptor listening = listen_at_path(path_);
  EXPECT_TRUE(check_socket_file(path_));
}

class SocketDirectory : public testing::Test {
 protected:
  std::error_code refusal(const std::string& words) const {
    const auto found = socket_directory();
    if (found) return {};
    EXPECT_THAT(found.why().text, HasSubstr(words));
    return found.why().code;
  }

  const temporary_directory runtime_;
  const std::string own_ = (runtime_ / "ucxio").string();
  const changed_variable variable_{"XDG_RUNTIME_DIR", (runtime_ / "").c_str()};
};

TEST_F(SocketDirectory, IsMadeForThisUserAlone) {
  const auto found = socket_directory();
  ASSERT_TRUE(found) << found.why().text;
  EXPECT_THAT(*found, EndsWith("/ucxio"));
  struct ::stat facts = {};
  ASSERT_EQ(::stat(own_.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 07777U, 0700U);
  EXPECT_TRUE(socket_directory()) << "it is there";
}

TEST_F(SocketDirectory, IsNoLinkAndOpenToNoOther) {
  std::filesystem::create_directory_symlink(runtime_ / "", own_);
  EXPECT_EQ(refusal("is a symbolic link"), errc::not_secure);
  std::filesystem::remove(own_);
  runtime_.make("ucxio", "");
  EXPECT_EQ(refusal("is no directory"), errc::not_secure);
  std::filesystem::remove(own_);
  std::filesystem::create_directory(own_);
  ASSERT_EQ(::chmod(own_.c_str(), 0750), 0);
  EXPECT_EQ(refusal("is open to other users"), errc::not_secure);
  ASSERT_EQ(::chmod(own_.c_str(), 0700), 0);
  EXPECT_EQ(refusal(""), std::error_code());
  if (::geteuid() != 0) return;
  ASSERT_EQ(::chown(own_.c_str(), foreign_owner, foreign_owner), 0);
  EXPECT_EQ(refusal("belongs to user 12345"), errc::not_secure);
}

TEST_F(SocketDirectory, IsNotMadeWhereTheVariableLeadsNowhere) {
  const changed_variable nowhere("XDG_RUNTIME_DIR", (runtime_ / "none").c_str());
  EXPECT_EQ(refusal("XDG_RUNTIME_DIR"), errc::no_such_name);
}

/// Another user may have taken the place in /tmp, which all can write to.
TEST_F(SocketDirectory, IsNotTheOneThatAnotherUserPutThere) {
  if (::geteuid() != 0) GTEST_SKIP() << "this process may not become another user";
  const auto user = static_cast<::uid_t>(20'000 + ::getpid() % 40'000);
  const std::string squatted = "/tmp/ucxio-" + std::to_string(user);
  std::filesystem::remove(squatted);  // a killed run may have left it
  ASSERT_EQ(::mkdir(squatted.c_str(), 0700), 0);
  const changed_variable unset("XDG_RUNTIME_DIR", nullptr);
  const ::pid_t child = ::fork();
  if (child == 0) {
    if (::setresuid(user, user, user) != 0) ::_exit(2);
    const auto found = socket_directory();
    ::_exit(!found && found.why().code == errc::not_secure ? 0 : 1);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  std::filesystem::remove(squatted);
}

}  // namespace
}  // namespace ucx::detail
