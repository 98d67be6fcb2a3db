// Connections over Unix sockets: where servers listen, who is let in, and which servers are
// believed.
#include <grp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/owned_descriptor.hpp"
#include "carrier/segment.hpp"
#include "support/basics/soon.hpp"
#include "support/files/temporary_directory.hpp"
#include "ucx/client.hpp"
#include "ucx/context.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/error.hpp"
#include "ucx/listener.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/server.hpp"
#include "ucx/url.hpp"
#include "ucx/worker.hpp"

namespace ucx::detail {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using ucx::test::temporary_directory;

constexpr ::uid_t foreign_client = 12345;

::sockaddr_un address_of_path(const std::string& path) {
  ::sockaddr_un there = {};
  there.sun_family = AF_UNIX;
  path.copy(there.sun_path, sizeof there.sun_path - 1);
  return there;
}

/// Runs `work` in a child of another user; returns its exit code.
int as_user(::uid_t user, const std::function<int()>& work) {
  const ::pid_t child = ::fork();
  if (child == 0) {
    if (::setgroups(0, nullptr) != 0 || ::setresgid(user, user, user) != 0 ||
        ::setresuid(user, user, user) != 0) {
      ::_exit(100);
    }
    ::_exit(work());
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

enum told_preamble : int {
  told_nothing = 10,
  told_no_access,
  told_refusal,
  told_welcome,
  told_other
};

/// Connects as a program without the library would, and says which preamble comes.
int preamble_at(const std::string& path) {
  const ::sockaddr_un there = address_of_path(path);
  const owned_descriptor socket(::socket(AF_UNIX, SOCK_STREAM, 0));
  const ::timeval limit{20, 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  if (::connect(socket.get(), reinterpret_cast<const ::sockaddr*>(&there), sizeof there) != 0) {
    return errno == EACCES ? told_no_access : told_nothing;
  }
  ::send(socket.get(), preamble::encoded.data(), preamble::size, MSG_NOSIGNAL);
  std::array<std::byte, preamble::size + 1> said = {};
  std::size_t count = 0;
  while (count < preamble::size) {
    const ::ssize_t read = ::recv(socket.get(), said.data() + count, said.size() - count, 0);
    if (read <= 0) return told_nothing;
    count += static_cast<std::size_t>(read);
  }
  const std::span<const std::byte> first(said.data(), count);
  if (std::ranges::equal(first, preamble::refusal)) {
    return ::recv(socket.get(), said.data(), 1, 0) <= 0 ? told_refusal : told_other;
  }
  return std::ranges::equal(first, preamble::encoded) ? told_welcome : told_other;
}

class UnixCarrier : public testing::Test {
 protected:
  static constexpr std::string_view text = "a text";

  std::string path(const std::string& name = "x.sock") const { return (folder_ / name).string(); }
  server_options at_path() const { return {.bind = "unix:" + path(), .context = unshared()}; }
  static context_options unshared() { return {.share_memory = false}; }
  static client client_of(const server& there) {
    return client(url(there.url()), {.context = unshared()});
  }
  /// Lets other users look for the socket.
  void open_folder() const { ::chmod((folder_ / "").c_str(), 0711); }

  const temporary_directory folder_;
};

TEST_F(UnixCarrier, ServesAndIsGoneAtTheEnd) {
  server served(at_path());
  const auto shown = served.publish("notes", std::as_bytes(std::span(text)));
  EXPECT_EQ(served.url("notes"), "ucx+unix://" + path() + "/notes");
  struct ::stat facts = {};
  ASSERT_EQ(::stat(path().c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777U, 0600U);
  client asking = client_of(served);
  EXPECT_THAT(asking.transports(), ElementsAre("socket/unix"));
  ASSERT_EQ(asking.list().size(), 1U);
  std::string read(text.size(), ' ');
  asking.open("notes").read_at(0, std::as_writable_bytes(std::span(read)));
  EXPECT_EQ(read, text);
  served.close();
  EXPECT_FALSE(std::filesystem::exists(path()));
}

TEST_F(UnixCarrier, ServesAtAPlaceOfItsOwn) {
  const server one({.bind = "unix:", .context = unshared()});
  const server other({.bind = "unix:", .context = unshared()});
  EXPECT_NE(one.url(), other.url());
  EXPECT_THAT(client_of(one).list(), testing::IsEmpty());
  EXPECT_THAT(client_of(other).list(), testing::IsEmpty());
}

TEST_F(UnixCarrier, ServesAtNoPlaceThatAUrlCouldNotName) {
  const auto refused = [](const std::string& bind, const std::string& words) {
    try {
      const server made({.bind = bind, .context = unshared()});
      ADD_FAILURE() << bind;
    } catch (const error& why) {
      EXPECT_EQ(why.code(), errc::bad_address) << why.what();
      EXPECT_THAT(why.what(), HasSubstr(words));
    }
  };
  refused("unix:" + path("x"), "does not end in \".sock\"");
  refused("unix:" + path("d.sock/x.sock"), "would be read as a name");
  refused("unix:x.sock", "absolute");
  refused("unix:/" + std::string(120, 'x') + ".sock", "107");
}

TEST_F(UnixCarrier, ServesWhereNoOtherServerListens) {
  std::error_code ec;
  {
    const server first(at_path());
    const server second(at_path(), ec);
    EXPECT_EQ(ec, errc::address_in_use);
    EXPECT_THAT(client_of(first).list(), testing::IsEmpty());
  }
  const server next(at_path(), ec);
  EXPECT_FALSE(ec);
}

TEST_F(UnixCarrier, IsNotOfUcx) {
  server_options contradicting = at_path();
  contradicting.context.transports = {"tcp"};
  std::error_code ec;
  const server made(contradicting, ec);
  EXPECT_EQ(ec, errc::bad_configuration);
  const context of_ucx({.transports = {"tcp"}, .devices = {"lo"}});
  const worker driver(of_ucx, {.progress = progress_mode::caller});
  const listener door(driver, socket_address("unix:" + path()), {}, ec);
  EXPECT_EQ(ec, errc::not_supported);
  const endpoint there(driver, socket_address("unix:" + path()), {}, ec);
  EXPECT_EQ(ec, errc::not_supported);
}

TEST_F(UnixCarrier, IsToldThatNoServerIsThere) {
  const auto told = [this] {
    try {
      const client made(url::over_unix(path()));
    } catch (const error& why) {
      EXPECT_EQ(why.code(), errc::connection_refused) << why.what();
      return std::string(why.what());
    }
    return std::string("connected");
  };
  EXPECT_THAT(told(), HasSubstr("no socket is there"));
  folder_.make("x.sock", "");
  EXPECT_THAT(told(), HasSubstr("is no socket"));
  std::filesystem::remove(path());
  {
    const owned_descriptor dead(::socket(AF_UNIX, SOCK_STREAM, 0));
    const ::sockaddr_un there = address_of_path(path());
    ASSERT_EQ(::bind(dead.get(), reinterpret_cast<const ::sockaddr*>(&there), sizeof there), 0);
  }
  EXPECT_THAT(told(), HasSubstr("ucx+unix://" + path()));
}

TEST_F(UnixCarrier, LetsInThoseThatItNames) {
  if (::geteuid() != 0) GTEST_SKIP() << "this process may not become another user";
  open_folder();
  std::vector<std::string> lines;
  server_options options = at_path();
  options.context.peer_users = {foreign_client};
  options.context.peer_groups = {777};
  options.context.log = {
      .level = log_level::warning,
      .sink = [&](log_level, std::string_view line) { lines.emplace_back(line); }};
  server served(options);
  EXPECT_EQ(as_user(foreign_client, [&] { return preamble_at(path()); }), told_welcome);
  EXPECT_EQ(as_user(777, [&] { return preamble_at(path()); }), told_welcome) << "by its group";
  EXPECT_EQ(as_user(foreign_client + 1, [&] { return preamble_at(path()); }), told_refusal);
  EXPECT_EQ(as_user(65534, [&] { return preamble_at(path()); }), told_refusal)
      << "the overflow user";
  served.close();
  EXPECT_THAT(lines, testing::Contains(HasSubstr("user 12346, process ")));
  EXPECT_THAT(lines, testing::Not(testing::Contains(HasSubstr("user 12345,"))));
}

TEST_F(UnixCarrier, IsHiddenFromOtherUsers) {
  if (::geteuid() != 0) GTEST_SKIP() << "this process may not become another user";
  open_folder();
  const server served(at_path());
  EXPECT_EQ(as_user(foreign_client, [&] { return preamble_at(path()); }), told_no_access);
  // The mode of the file is not all that there is.
  ASSERT_EQ(::chmod(path().c_str(), 0666), 0);
  EXPECT_EQ(as_user(foreign_client, [&] { return preamble_at(path()); }), told_refusal);
}

TEST_F(UnixCarrier, BelievesNoServerOfAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "this process may not become another user";
  const owned_descriptor door(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const ::sockaddr_un there = address_of_path(path());
  ASSERT_EQ(::bind(door.get(), reinterpret_cast<const ::sockaddr*>(&there), sizeof there), 0);
  // The system remembers who has said that it listens.
  ASSERT_EQ(as_user(foreign_client, [&] { return ::listen(door.get(), 5); }), 0);
  const auto told = [this](const std::vector<std::uint32_t>& users) {
    client_options options{.context = unshared()};
    options.context.peer_users = users;
    options.worker.connect_timeout = std::chrono::seconds(3);
    std::error_code ec;
    const client made(url::over_unix(path()), options, ec);
    return ec;
  };
  EXPECT_EQ(told({}), errc::not_secure);
  EXPECT_EQ(told({foreign_client}), errc::timed_out) << "it is believed, and says nothing";
  std::array<std::byte, 1> said;
  const owned_descriptor came(::accept(door.get(), nullptr, nullptr));
  EXPECT_EQ(::recv(came.get(), said.data(), said.size(), 0), 0) << "it was told something";
}

/// A server may refuse, and be gone, before the client has written anything.
TEST_F(UnixCarrier, IsToldThatItIsRefused) {
  const owned_descriptor door(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const ::sockaddr_un there = address_of_path(path());
  ASSERT_EQ(::bind(door.get(), reinterpret_cast<const ::sockaddr*>(&there), sizeof there), 0);
  ASSERT_EQ(::listen(door.get(), 5), 0);
  const context parent({.transports = {"socket"}});
  for (const bool at_once : {true, false}) {
    worker driver(parent, {.progress = progress_mode::caller});
    endpoint asking(driver, socket_address("unix:" + path()), {.wait = connect_wait::none});
    {
      const owned_descriptor came(::accept(door.get(), nullptr, nullptr));
      std::array<std::byte, preamble::size> heard;
      const auto said = [&] {  // and left unread
        driver.progress();
        return ::recv(came.get(), heard.data(), heard.size(), MSG_DONTWAIT | MSG_PEEK) > 0;
      };
      EXPECT_TRUE(at_once || ucx::test::soon(said));
      ::send(came.get(), preamble::refusal.data(), preamble::size, MSG_NOSIGNAL);
    }
    std::error_code ec;
    asking.wait_connected(ec);
    EXPECT_EQ(ec, errc::permission_denied) << at_once;
  }
}

TEST_F(UnixCarrier, WaitsWhileTheQueueOfAListenerIsFull) {
  const owned_descriptor door(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const ::sockaddr_un there = address_of_path(path());
  ASSERT_EQ(::bind(door.get(), reinterpret_cast<const ::sockaddr*>(&there), sizeof there), 0);
  ASSERT_EQ(::listen(door.get(), 1), 0);
  std::vector<owned_descriptor> waiting;
  const auto has_room = [&] {
    waiting.emplace_back(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    return ::connect(waiting.back().get(), reinterpret_cast<const ::sockaddr*>(&there),
                     sizeof there) == 0;
  };
  while (has_room()) {
  }
  ASSERT_EQ(errno, EAGAIN);
  const context parent({.transports = {"socket"}});
  worker driver(parent, {.progress = progress_mode::caller,
                         .connect_timeout = std::chrono::milliseconds(100)});
  std::error_code ec;
  const endpoint impatient(driver, socket_address("unix:" + path()), {}, ec);
  EXPECT_EQ(ec, errc::timed_out) << "the queue stays full";
  const worker thread(parent, {.progress = progress_mode::sleeping_thread});
  endpoint patient(thread, socket_address("unix:" + path()), {.wait = connect_wait::none});
  for (std::size_t i = 0; i + 1 < waiting.size(); ++i)
    ::close(::accept(door.get(), nullptr, nullptr));
  const ::timeval limit{20, 0};
  ::setsockopt(door.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  const owned_descriptor came(::accept(door.get(), nullptr, nullptr));
  ASSERT_TRUE(came);
  ::setsockopt(came.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  std::array<std::byte, preamble::size> heard = {};
  EXPECT_EQ(::recv(came.get(), heard.data(), heard.size(), MSG_WAITALL), 8);
  EXPECT_EQ(heard, preamble::encoded);
}

TEST_F(UnixCarrier, BlamesAServerThatBreaksTheFraming) {
  const owned_descriptor door(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const ::sockaddr_un there = address_of_path(path());
  ASSERT_EQ(::bind(door.get(), reinterpret_cast<const ::sockaddr*>(&there), sizeof there), 0);
  ASSERT_EQ(::listen(door.get(), 5), 0);
  const context parent({.transports = {"socket"}});
  const worker driver(parent, {.progress = progress_mode::sleeping_thread});
  for (const segment_head& hostile :
       {segment_head{static_cast<std::uint32_t>(segment_head::longest_payload + 1), 64, 255},
        segment_head{0, static_cast<std::uint16_t>(segment_head::longest_header + 1), 255},
        segment_head{std::uint32_t{80} << 10U, 64, 255}, segment_head{0, 64, 7}}) {
    endpoint asking(driver, socket_address("unix:" + path()), {.wait = connect_wait::none});
    const owned_descriptor came(::accept(door.get(), nullptr, nullptr));
    ::send(came.get(), preamble::encoded.data(), preamble::size, MSG_NOSIGNAL);
    const auto said = hostile.encode();
    ::send(came.get(), said.data(), said.size(), MSG_NOSIGNAL);
    std::error_code ec;
    asking.wait_connected(ec);
    EXPECT_EQ(ec, errc::protocol_error) << hostile.payload << ", " << hostile.header;
  }
}

TEST_F(UnixCarrier, HasTheModeThatItsUsersNeedWhateverTheMaskIs) {
  const ::mode_t before = ::umask(0177);
  server_options options = at_path();
  options.context.peer_users = {foreign_client};
  std::error_code ec;
  const server served(options, ec);
  ::umask(before);
  ASSERT_FALSE(ec) << ec.message();
  struct ::stat facts = {};
  ASSERT_EQ(::stat(path().c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777U, 0666U);
}

}  // namespace
}  // namespace ucx::detail
