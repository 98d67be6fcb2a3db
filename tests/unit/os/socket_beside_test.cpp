#include "os/socket_beside.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "os/socket_lookup.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/transports/loopback_connection.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

/// Has a directory of its own for sockets.
class SocketBeside : public test::loopback_connection {
 protected:
  SocketBeside() {
    if (const char* const before = std::getenv("XDG_RUNTIME_DIR")) before_ = before;
    ::setenv("XDG_RUNTIME_DIR", (folder_ / "").c_str(), 1);
  }
  ~SocketBeside() override {
    before_.empty() ? ::unsetenv("XDG_RUNTIME_DIR")
                    : ::setenv("XDG_RUNTIME_DIR", before_.c_str(), 1);
  }
  void SetUp() override {
    loopback_connection::SetUp();
    if (!IsSkipped() && !socket_lookup().find_listener(door_)) {
      GTEST_SKIP() << "this system does not tell";
    }
  }
  /// Makes the file of a Unix socket at `path`.
  static owned_descriptor bound_to(const std::string& path) {
    ::sockaddr_un at = {};
    at.sun_family = AF_UNIX;
    EXPECT_LT(path.size(), sizeof at.sun_path);
    path.copy(at.sun_path, sizeof at.sun_path - 1);
    owned_descriptor made(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::bind(made.get(), reinterpret_cast<const ::sockaddr*>(&at), sizeof at), 0);
    return made;
  }

  test::temporary_directory folder_;

 private:
  std::string before_;
};

INSTANTIATE_TEST_SUITE_P(Families, SocketBeside, SocketBeside::families(),
                         SocketBeside::name_of_family);

TEST_P(SocketBeside, IsNamedByPortAndNumberOfTheListener) {
  struct ::stat facts = {};
  ASSERT_EQ(::fstat(listening_.get(), &facts), 0);
  const auto place = socket_beside(door_);
  ASSERT_TRUE(place) << place.why().text;
  EXPECT_EQ(*place, (folder_ / "").string() + "/ucxio/tls-" + std::to_string(door_.port()) + '-' +
                        std::to_string(facts.st_ino) + ".sock");
}

TEST_P(SocketBeside, IsFoundWhereItIsThisUsers) {
  EXPECT_EQ(find_socket_beside(door_).why().code, errc::no_such_name);
  const std::string place = *socket_beside(door_);
  const owned_descriptor bound = bound_to(place);
  const auto found = find_socket_beside(door_);
  ASSERT_TRUE(found) << found.why().text;
  EXPECT_EQ(*found, place);
  if (::geteuid() != 0) return;
  ASSERT_EQ(::lchown(place.c_str(), 12345, 12345), 0);
  EXPECT_EQ(find_socket_beside(door_).why().code, errc::not_secure);
}

TEST_P(SocketBeside, IsNoOtherFile) {
  const std::string place = *socket_beside(door_);
  std::filesystem::create_symlink("/nowhere", place);
  EXPECT_EQ(find_socket_beside(door_).why().code, errc::no_such_name);
}

TEST_P(SocketBeside, OfASuccessorAtThePortIsAnotherOne) {
  const std::string place = *socket_beside(door_);
  const owned_descriptor bound = bound_to(place);
  listening_ = owned_descriptor();
  EXPECT_EQ(find_socket_beside(door_).why().code, errc::not_supported) << "nobody listens";
  const ::linger none{1, 0};
  for (owned_descriptor* const each : {&peer_, &accepted_}) {
    ::setsockopt(each->get(), SOL_SOCKET, SO_LINGER, &none, sizeof none);
    *each = owned_descriptor();
  }
  const owned_descriptor next(::socket(door_.native()->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::bind(next.get(), door_.native(), door_.native_size()), 0);
  ASSERT_EQ(::listen(next.get(), 1), 0);
  const auto found = find_socket_beside(door_);
  EXPECT_EQ(found.why().code, errc::no_such_name);
  EXPECT_THAT(found.why().text, HasSubstr("has no Unix socket at"));
}

TEST_P(SocketBeside, IsRemovedWhereNobodyListens) {
  ASSERT_TRUE(socket_beside(door_));
  const std::string folder = (folder_ / "ucxio").string();
  const std::string left = folder + "/tls-1-2.sock";
  const std::string other = folder + "/4711.sock";
  const std::string live = *socket_beside(door_);
  (void)bound_to(left);
  (void)bound_to(other);
  const owned_descriptor listens = bound_to(live);
  ASSERT_EQ(::listen(listens.get(), 1), 0);
  folder_.make("ucxio/tls-file", "");
  remove_stale_sockets_beside();
  EXPECT_FALSE(std::filesystem::exists(left));
  EXPECT_TRUE(std::filesystem::exists(other));
  EXPECT_TRUE(std::filesystem::exists(live));
  EXPECT_TRUE(std::filesystem::exists(folder + "/tls-file"));
}

}  // namespace
}  // namespace ucx::detail
