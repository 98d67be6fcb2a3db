// Memory of another process, mapped: what its owner does meanwhile, and what becomes of it.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "support/bytes/bytes_of.hpp"
#include "support/bytes/pattern.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/process/command.hpp"
#include "support/process/own_namespace.hpp"
#include "support/process/test_peer.hpp"
#include "ucx/access.hpp"
#include "ucx/client.hpp"
#include "ucx/context.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/error.hpp"
#include "ucx/fstream.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/url.hpp"
#include "ucx/worker.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

constexpr std::size_t mapped_size = std::size_t{4} << 20U;

std::string get_text(std::istream& in) {
  return std::string(std::istreambuf_iterator<char>(in), {});
}

/// Reads until the region says something else than that all is well, or for too long.
std::error_code failure_of(remote_region& region) {
  const clock::time_point until = clock::now() + 20s;
  std::error_code ec;
  std::vector<std::byte> into(8);
  while (!ec && clock::now() < until) {
    region.read_at(0, into, {}, ec);
    std::this_thread::sleep_for(1ms);
  }
  return ec;
}

class MappedOwner : public testing::Test {
 protected:
  explicit MappedOwner(progress_mode mode = progress_mode::sleeping_thread)
      : worker_(context_, {.progress = mode}) {}
  static context_options over_tcp() {
    context_options options;
    options.transports = {"tcp"};
    options.devices = {"lo"};
    return options;
  }

  test_peer owner_{"mapped"};
  const socket_address where_ = owner_.listen();
  const remote_descriptor descriptor_ = owner_.allocate(mapped_size);
  context context_{over_tcp()};
  worker worker_;
  endpoint connection_{worker_, where_};
  remote_region region_{connection_, descriptor_};
};

TEST_F(MappedOwner, SharesItsMemoryWithAnotherProcess) {
  ASSERT_EQ(region_.transfer_method(), transfer_method::mapped);
  EXPECT_TRUE(holds_pattern(region_.view(0, mapped_size), 1));
  const std::vector<std::byte> changed = pattern(mapped_size, 5);
  region_.write_at(0, changed);
  EXPECT_EQ(owner_.ask("holds 5"), "yes");
}

TEST_F(MappedOwner, IsReadWhileItIsStopped) {
  owner_.process().stop();
  std::vector<std::byte> into(mapped_size);
  region_.read_at(0, into);
  EXPECT_TRUE(holds_pattern(into, 1));
  owner_.process().resume();
}

TEST_F(MappedOwner, LeavesWhatWasThereWhenItDies) {
  const std::span<const std::byte> seen = region_.view(0, mapped_size);
  owner_.process().kill();
  // Its death is noticed over the connection; nobody who looks is harmed before or after.
  EXPECT_EQ(failure_of(region_), errc::connection_reset);
  EXPECT_TRUE(holds_pattern(seen, 1));
}

/// Its calls are all that drives the worker, and none of them waits.
class MappedOwnerOfACaller : public MappedOwner {
 protected:
  MappedOwnerOfACaller() : MappedOwner(progress_mode::caller) {}

  /// Calls `access` until it says that something is wrong, or for too long.
  static std::error_code failure_of(const std::function<void(std::error_code&)>& access) {
    const clock::time_point until = clock::now() + 20s;
    std::error_code ec;
    while (!ec && clock::now() < until) {
      access(ec);
      std::this_thread::sleep_for(1ms);
    }
    return ec;
  }
  std::vector<std::byte> some_ = pattern(8, 1);
};

TEST_F(MappedOwnerOfACaller, IsMissedByReads) {
  ASSERT_EQ(region_.transfer_method(), transfer_method::mapped);
  owner_.process().kill();
  EXPECT_EQ(failure_of([&](std::error_code& ec) { region_.read_at(0, some_, {}, ec); }),
            errc::connection_reset);
}

TEST_F(MappedOwnerOfACaller, IsMissedByWrites) {
  owner_.process().kill();
  EXPECT_EQ(failure_of([&](std::error_code& ec) { region_.write_at(0, some_, {}, ec); }),
            errc::connection_reset);
}

TEST_F(MappedOwnerOfACaller, IsMissedByTheFlushOfALaterWrite) {
  region_.write_at(0, some_);
  region_.flush();
  owner_.process().kill();
  EXPECT_EQ(failure_of([&](std::error_code& ec) {
              region_.write_at(0, some_, {}, ec);
              if (!ec) region_.flush({}, ec);
            }),
            errc::connection_reset);
}

TEST_F(MappedOwnerOfACaller, OfFlushedWritesMayDie) {
  region_.write_at(0, some_);
  region_.flush();
  owner_.process().kill();
  std::this_thread::sleep_for(100ms);
  std::error_code ec;
  region_.flush({}, ec);
  EXPECT_FALSE(ec) << "the owner had what was written";
}

class MappedName : public testing::Test {
 protected:
  MappedName() { owner_.ask("provide weights " + std::to_string(mapped_size) + " 3"); }

  test_peer owner_{"mapped"};
  const std::string url_ = owner_.ask("serve");
};

TEST_F(MappedName, IsAStreamInPlace) {
  client server(url_);
  remote_region region = server.open("weights", access::read_write);
  EXPECT_EQ(region.transfer_method(), transfer_method::mapped);
  ifstream in(url_ + "/weights");
  EXPECT_TRUE(holds_pattern(bytes_of(get_text(in)), 3));
  fstream both(url_ + "/weights");
  both.seekp(100);
  both << "in place" << std::flush;
  ASSERT_TRUE(both.good());
  EXPECT_EQ(std::to_integer<char>(region.view(103, 1).front()), 'p');
}

TEST_F(MappedName, IsMissedByStreamsWhenItsOwnerDies) {
  ifstream in(url_ + "/weights");
  ofstream out(url_ + "/weights", std::ios::in | std::ios::out);
  ASSERT_NE(in.get(), EOF);
  out << 'x' << std::flush;
  ASSERT_TRUE(out.good());
  owner_.process().kill();
  const clock::time_point until = clock::now() + 20s;
  while ((in.good() || out.good()) && clock::now() < until) {
    in.seekg(0);
    in.sync();
    in.get();
    out << 'x' << std::flush;
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_EQ(in.error(), errc::connection_reset);
  EXPECT_EQ(out.error(), errc::connection_reset);
}

TEST_F(MappedName, IsGoneAtOnceWhenItIsWithdrawn) {
  client server(url_);
  remote_region region = server.open("weights", access::read);
  ifstream in(url_ + "/weights");
  ASSERT_NE(in.get(), EOF);
  owner_.ask("unpublish weights");
  std::error_code ec;
  std::vector<std::byte> into(8);
  region.read_at(0, into, {}, ec);
  EXPECT_EQ(ec, errc::revoked);
  std::string rest(mapped_size, '\0');
  in.read(rest.data(), static_cast<std::streamsize>(rest.size()));
  EXPECT_TRUE(in.bad());
  EXPECT_EQ(in.error(), errc::revoked);
}

/// Over a Unix socket the owner passes its memory, and nobody looks at its process.
class PassedName : public testing::Test {
 protected:
  /// Has the owner serve memory that is read and written in place.
  void expect_mapped(test_peer& owner) {
    owner.ask("hide");
    const std::string served = owner.ask("serve unix:" + (folder_ / "x.sock").string());
    owner.ask("provide weights " + std::to_string(mapped_size) + " 3");
    context_options trusting;
    trusting.peer_users = {other_user};
    client asking(url(served), {.context = trusting});
    remote_region region = asking.open("weights", access::read_write);
    ASSERT_EQ(region.transfer_method(), transfer_method::mapped)
        << region.why_not(transfer_method::mapped);
    EXPECT_TRUE(holds_pattern(region.view(0, mapped_size), 3));
    region.writable_view(0, 1).front() = std::byte{0x5A};
    EXPECT_EQ(asking.open("weights").view(0, 1).front(), std::byte{0x5A});
    owner.process().kill();
    EXPECT_EQ(failure_of(region), errc::connection_reset);
  }

  static constexpr ::uid_t other_user = 12345;
  const temporary_directory folder_;
};

TEST_F(PassedName, IsMappedThoughItsOwnerCanNotBeLookedAt) {
  test_peer owner("mapped");
  expect_mapped(owner);
}

TEST_F(PassedName, IsMappedFromAnotherNamespaceOfProcesses) {
  const own_namespace apart({"--pid", "--fork"});
  if (!apart.why_not().empty()) GTEST_SKIP() << apart.why_not();
  test_peer owner(
      child_process(own_namespace::program,
                    apart.line({sibling_program("ucxio-test-peer"), "mapped", "sleeping"})));
  expect_mapped(owner);
}

TEST_F(PassedName, IsMappedFromAnotherUser) {
  constexpr const char* program = "/usr/bin/setpriv";
  if (::geteuid() != 0 || ::access(program, X_OK) != 0) {
    GTEST_SKIP() << "this process may not become another user";
  }
  // Who may change the directory could replace the socket.
  ASSERT_EQ(::chown((folder_ / "").c_str(), other_user, static_cast<::gid_t>(-1)), 0);
  const std::vector<std::string> user{"--reuid", std::to_string(other_user), "--clear-groups"};
  std::vector<std::string> tried = user;
  tried.insert(tried.end(), {"/usr/bin/test", "-x", sibling_program("ucxio-test-peer")});
  if (command(program, tried).finish().code != 0) {
    GTEST_SKIP() << "another user may not run this program";
  }
  std::vector<std::string> words = user;
  words.insert(words.end(), {sibling_program("ucxio-test-peer"), "mapped", "sleeping"});
  test_peer owner(child_process(program, words));
  expect_mapped(owner);
}

}  // namespace
}  // namespace ucx::test
