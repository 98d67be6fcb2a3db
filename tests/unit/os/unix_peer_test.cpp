#include "os/unix_peer.hpp"

#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/owned_descriptor.hpp"

namespace ucx::detail {
namespace {

// Neither this user nor root.
const ::uid_t foreign_user = ::geteuid() + 12345;

TEST(UnixPeer, IsWhomTheSystemNames) {
  std::array<int, 2> ends = {};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  const owned_descriptor one(ends[0]);
  const owned_descriptor other(ends[1]);
  const auto peer = unix_peer::of(one.get());
  ASSERT_TRUE(peer);
  EXPECT_EQ(peer->user, ::geteuid());
  EXPECT_EQ(peer->group, ::getegid());
  EXPECT_EQ(peer->process, ::getpid());
  std::vector<::gid_t> own(static_cast<std::size_t>(::getgroups(0, nullptr)));
  ASSERT_EQ(::getgroups(static_cast<int>(own.size()), own.data()), static_cast<int>(own.size()));
  EXPECT_THAT(peer->groups, testing::UnorderedElementsAreArray(own));
  EXPECT_EQ(peer->words(),
            "user " + std::to_string(::geteuid()) + ", process " + std::to_string(::getpid()));
}

TEST(UnixPeer, IsNotKnownOfWhatIsNoSocket) { EXPECT_FALSE(unix_peer::of(STDIN_FILENO + 1000)); }

TEST(TrustedPeers, AreThisUserRootAndThoseThatAreNamed) {
  const trusted_peers usual;
  EXPECT_TRUE(usual.trusts({::geteuid(), 7, 1, {}}));
  EXPECT_TRUE(usual.trusts({0, 0, 1, {}}));
  EXPECT_FALSE(usual.trusts({foreign_user, 0, 1, {0}}));
  EXPECT_FALSE(usual.has_others());
  const trusted_peers named{{foreign_user}, {}};
  EXPECT_TRUE(named.trusts({foreign_user, 7, 1, {}}));
  EXPECT_FALSE(named.trusts({foreign_user + 1, 7, 1, {}}));
  EXPECT_TRUE(named.has_others());
  const trusted_peers grouped{{}, {77}};
  EXPECT_TRUE(grouped.trusts({foreign_user, 77, 1, {}}));
  EXPECT_TRUE(grouped.trusts({foreign_user, 7, 1, {5, 77}}));
  EXPECT_FALSE(grouped.trusts({foreign_user, 7, 1, {5}}));
  EXPECT_TRUE(grouped.has_others());
}

TEST(TrustedPeers, AreNeverTheOverflowUser) {
  const ::uid_t overflow = overflow_user();
  const trusted_peers named{{overflow}, {77}};
  EXPECT_FALSE(named.trusts({overflow, 77, 1, {77}}));
  EXPECT_FALSE(named.trusts({static_cast<::uid_t>(-1), 77, 1, {}}));
}

/// A user that the system can not name there is the overflow user, and so is the process itself.
TEST(TrustedPeers, AreNotOfAnotherUserNamespace) {
  std::array<int, 2> ends = {};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
  const owned_descriptor one(ends[0]);
  const owned_descriptor other(ends[1]);
  const ::pid_t child = ::fork();
  if (child == 0) {
    if (::unshare(CLONE_NEWUSER) != 0) ::_exit(2);
    const auto peer = unix_peer::of(one.get());
    ::_exit(peer && peer->user == overflow_user() && !trusted_peers().trusts(*peer) ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 2) GTEST_SKIP() << "no namespace can be made here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace ucx::detail
