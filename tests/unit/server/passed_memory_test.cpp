// Memory that a server passes to its clients over a Unix socket, for them to map.
#include <fcntl.h>
#include <grp.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/owned_descriptor.hpp"
#include "carrier/passed_descriptor.hpp"
#include "carrier/segment.hpp"
#include "connection/frame_sender.hpp"
#include "connection/passed_files.hpp"
#include "support/basics/soon.hpp"
#include "support/bytes/pattern.hpp"
#include "support/files/descriptors_now.hpp"
#include "support/files/temporary_directory.hpp"
#include "ucx/access_rules.hpp"
#include "ucx/client.hpp"
#include "ucx/context.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/error.hpp"
#include "ucx/listener.hpp"
#include "ucx/many_files.hpp"
#include "ucx/memory_region.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/server.hpp"
#include "ucx/url.hpp"
#include "ucx/worker.hpp"
#include "wire/control_message.hpp"
#include "wire/frame.hpp"
#include "wire/introduction.hpp"

namespace ucx::detail {
namespace {

using testing::HasSubstr;
using ucx::test::descriptors_now;
using ucx::test::fill_pattern;
using ucx::test::holds_pattern;
using ucx::test::temporary_directory;

constexpr std::size_t passed_size = 10'000;
constexpr ::uid_t passed_to_user = 12345;

/// Speaks byte by byte, as any program can that is let in.
class bare_client {
 public:
  static constexpr std::uint64_t session = 0x5e55;

  explicit bare_client(const std::string& path)
      : socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    ::sockaddr_un there = {};
    there.sun_family = AF_UNIX;
    path.copy(there.sun_path, sizeof there.sun_path - 1);
    const ::timeval limit{20, 0};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (::connect(socket_.get(), reinterpret_cast<const ::sockaddr*>(&there), sizeof there) != 0) {
      return;
    }
    write(preamble::encoded);
    std::array<std::byte, preamble::size> said = {};
    if (::recv(socket_.get(), said.data(), said.size(), MSG_WAITALL) != 8) return;
    introduction ours;
    ours.features = feature::am;
    ours.segment = 8192;
    ours.largest_eager = ours.largest_header = 4096;
    ours.takes_files = true;
    say({.code = opcode::hello, .session = session}, ours.encode());
    owned_descriptor none;
    if (hear(opcode::welcome, none)) control({.type = control_type::hello}, hello_body{});
  }

  template <class Body>
  void control(const control_header& header, const Body& body) {
    const std::vector<std::byte> message = encode_control(header, body);
    say({.code = opcode::control, .session = session, .length = message.size()}, message);
  }
  void say(const frame& said, std::span<const std::byte> payload = {}, int beside = -1) {
    std::array<std::byte, frame::size> header = {};
    said.encode(header);
    const auto head = segment_head{static_cast<std::uint32_t>(payload.size()), frame::size,
                                   static_cast<std::uint8_t>(frame_sender::message_id), beside >= 0}
                          .encode();
    write(head, beside);
    write(header);
    write(payload);
  }
  /// Returns the next frame of this kind, and what came with it; nothing where the connection ends.
  std::optional<frame> hear(opcode awaited, owned_descriptor& file) {
    for (;;) {
      std::array<std::byte, segment_head::size> begun = {};
      if (!read(begun, &file)) return std::nullopt;
      const auto head = decode_segment_head(begun);
      if (!head) return std::nullopt;
      std::vector<std::byte> header(head->header);
      std::vector<std::byte> payload(head->payload);
      if (!read(header, nullptr) || !read(payload, nullptr)) return std::nullopt;
      const auto heard = decode_frame(header);
      if (heard && heard->code == awaited) return heard;
    }
  }

 private:
  void write(std::span<const std::byte> bytes, int beside = -1) {
    if (bytes.empty()) return;
    ::iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
    ::msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    passed_descriptor file;
    if (beside >= 0) file.attach(message, beside);
    [[maybe_unused]] const ::ssize_t sent = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL);
  }
  bool read(std::span<std::byte> into, owned_descriptor* file) {
    while (!into.empty()) {
      ::iovec part{into.data(), into.size()};
      ::msghdr message = {};
      message.msg_iov = &part;
      message.msg_iovlen = 1;
      passed_descriptor beside;
      beside.expect(message);
      const ::ssize_t came = ::recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC);
      if (came <= 0) return false;
      if (file != nullptr) passed_descriptor::take(message, *file);
      into = into.subspan(static_cast<std::size_t>(came));
    }
    return true;
  }

  owned_descriptor socket_;
};

/// Opens a name, and returns the file that the server passes.
owned_descriptor passed_to(const std::string& path, const std::string& name, access wanted) {
  bare_client asking(path);
  control_header header;
  header.type = control_type::open;
  header.request = 1;
  asking.control(header, open_body{name, wanted});
  owned_descriptor file;
  const auto heard = asking.hear(opcode::pass_file, file);
  return heard && heard->offset == static_cast<std::uint64_t>(wanted) ? std::move(file)
                                                                      : owned_descriptor();
}

class PassedMemory : public testing::Test {
 protected:
  std::string path() const { return (folder_ / "x.sock").string(); }
  server_options at_path() const { return {.bind = "unix:" + path()}; }
  publication shown(server& at, access granted = access::read_write,
                    const std::string& name = "memory") {
    publication made = at.allocate(name, passed_size, granted);
    fill_pattern(made.bytes());
    return made;
  }
  static std::string why_by_message(const remote_region& region) {
    EXPECT_EQ(region.transfer_method(), transfer_method::message);
    return region.why_not(transfer_method::mapped);
  }

  const temporary_directory folder_;
};

TEST_F(PassedMemory, IsMapped) {
  server serving(at_path());
  const publication memory = shown(serving);
  client asking{url(serving.url())};
  remote_region opened = asking.open("memory", access::read_write);
  ASSERT_EQ(opened.transfer_method(), transfer_method::mapped)
      << opened.why_not(transfer_method::mapped);
  const std::span<const std::byte> seen = opened.view(0, passed_size);
  EXPECT_TRUE(holds_pattern(seen));
  memory.bytes()[7] = std::byte{0xA5};
  EXPECT_EQ(seen[7], std::byte{0xA5});
  opened.writable_view(0, 10)[9] = std::byte{0x5A};
  EXPECT_EQ(memory.bytes()[9], std::byte{0x5A});
}

TEST_F(PassedMemory, IsMappedByClientsOfEachWorker) {
  server_options options = at_path();
  options.workers = 3;
  server serving(options);
  const publication memory = shown(serving);
  for (int clients = 0; clients < 3; ++clients) {
    client asking{url(serving.url())};
    EXPECT_EQ(asking.open("memory").transfer_method(), transfer_method::mapped) << clients;
  }
}

TEST_F(PassedMemory, CostsNoDescriptorOnceItIsMapped) {
  server serving(at_path());
  std::vector<publication> memories;
  std::vector<std::string> names;
  for (int i = 0; i < 64; ++i) {
    names.push_back("memory-" + std::to_string(i));
    memories.push_back(shown(serving, access::read, names.back()));
  }
  client asking{url(serving.url())};
  asking.list();
  const std::size_t before = descriptors_now();
  const std::vector<open_result> all = open_many(asking, names);
  for (const open_result& each : all) {
    ASSERT_FALSE(each.error) << each.error.message();
    EXPECT_EQ(each.region->transfer_method(), transfer_method::mapped);
  }
  for (int i = 0; i < 300; ++i) {
    EXPECT_EQ(asking.open(names.front()).transfer_method(), transfer_method::mapped) << i;
  }
  EXPECT_TRUE(ucx::test::soon([&] { return descriptors_now() <= before; })) << descriptors_now();
}

TEST_F(PassedMemory, IsWithdrawn) {
  server serving(at_path());
  std::optional<publication> memory = shown(serving);
  client asking{url(serving.url())};
  remote_region opened = asking.open("memory");
  ASSERT_EQ(opened.transfer_method(), transfer_method::mapped);
  memory.reset();
  std::array<std::byte, 8> into;
  std::error_code ec;
  opened.read_at(0, into, {}, ec);
  EXPECT_EQ(ec, errc::revoked);
}

TEST_F(PassedMemory, IsReadByMessageWhereItCanNotBePassed) {
  server serving(at_path());
  std::vector<std::byte> plain(passed_size);
  const publication own = serving.publish("own", std::span(plain), access::read_write);
  const publication memory = shown(serving);
  client asking{url(serving.url())};
  EXPECT_THAT(why_by_message(asking.open("own")), HasSubstr("the owner passed no file"));
  EXPECT_THAT(why_by_message(asking.open("memory", access::write)), HasSubstr("is only written"))
      << "what is mapped for writing can be read";
  client unshared(url(serving.url()), {.context = {.share_memory = false}});
  EXPECT_THAT(why_by_message(unshared.open("memory")), HasSubstr("share no memory"));
  server_options options{.bind = "127.0.0.1:0"};
  options.context.transports = {"socket"};
  server by_tcp(options);
  const publication there = shown(by_tcp);
  client far{url(by_tcp.url())};
  EXPECT_NE(why_by_message(far.open("memory")), "");
}

/// What is mapped goes past the server's checks.
TEST_F(PassedMemory, IsReadByMessageWithoutTheRightToMore) {
  server_options options = at_path();
  options.rules = access_rules()
                      .deny("anybody", access_right::fabric, "memory")
                      .allow("anybody", access_right::all);
  server serving(options);
  const publication memory = shown(serving);
  const publication other = shown(serving, access::read_write, "other");
  client asking{url(serving.url())};
  EXPECT_THAT(why_by_message(asking.open("memory")), HasSubstr("the owner passed no file"));
  EXPECT_EQ(asking.open("other").transfer_method(), transfer_method::mapped);
}

TEST_F(PassedMemory, IsForReadingWhereNoMoreWasAskedFor) {
  server serving(at_path());
  const publication memory = shown(serving);
  const owned_descriptor file = passed_to(path(), "memory", access::read);
  ASSERT_TRUE(file);
  EXPECT_EQ(::fcntl(file.get(), F_GETFL) & O_ACCMODE, O_RDONLY);
  EXPECT_EQ(::mmap(nullptr, passed_size, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0),
            MAP_FAILED);
  void* const seen = ::mmap(nullptr, passed_size, PROT_READ, MAP_SHARED, file.get(), 0);
  ASSERT_NE(seen, MAP_FAILED);
  EXPECT_NE(::mprotect(seen, passed_size, PROT_READ | PROT_WRITE), 0);
  EXPECT_TRUE(holds_pattern({static_cast<const std::byte*>(seen), passed_size}));
  ::munmap(seen, passed_size);
}

TEST_F(PassedMemory, OfAReadOnlyNameIsWrittenByNobody) {
  server serving(at_path());
  const publication memory = shown(serving, access::read);
  const owned_descriptor file = passed_to(path(), "memory", access::read);
  ASSERT_TRUE(file);
  // This user may open it again.
  const std::string name = "/proc/self/fd/" + std::to_string(file.get());
  const owned_descriptor again(::open(name.c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_TRUE(again);
  EXPECT_EQ(::mmap(nullptr, passed_size, PROT_READ | PROT_WRITE, MAP_SHARED, again.get(), 0),
            MAP_FAILED);
  EXPECT_LT(::pwrite(again.get(), "x", 1, 0), 0);
}

/// Runs `work` in a child of another user; returns its exit code.
int as_passed_to_user(const std::function<int()>& work) {
  const ::pid_t child = ::fork();
  if (child == 0) {
    if (::setgroups(0, nullptr) != 0 ||
        ::setresgid(passed_to_user, passed_to_user, passed_to_user) != 0 ||
        ::setresuid(passed_to_user, passed_to_user, passed_to_user) != 0) {
      ::_exit(100);
    }
    ::_exit(work());
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(PassedMemory, GivesOtherUsersNoMoreThanTheyWereGranted) {
  if (::geteuid() != 0) GTEST_SKIP() << "this process may not become another user";
  ::chmod((folder_ / "").c_str(), 0711);
  server_options options = at_path();
  options.context.peer_users = {passed_to_user};
  server serving(options);
  const publication memory = shown(serving);
  const int read_only = as_passed_to_user([&] {
    const owned_descriptor file = passed_to(path(), "memory", access::read);
    if (!file) return 1;
    void* const seen = ::mmap(nullptr, passed_size, PROT_READ, MAP_SHARED, file.get(), 0);
    if (seen == MAP_FAILED) return 2;
    if (!holds_pattern({static_cast<const std::byte*>(seen), passed_size})) return 3;
    const std::string name = "/proc/self/fd/" + std::to_string(file.get());
    if (::open(name.c_str(), O_RDWR | O_CLOEXEC) >= 0 || errno != EACCES) return 4;
    if (::fchmod(file.get(), 0666) == 0) return 5;
    return 0;
  });
  EXPECT_EQ(read_only, 0);
  const int both = as_passed_to_user([&] {
    const owned_descriptor file = passed_to(path(), "memory", access::read_write);
    if (!file) return 1;
    void* const seen =
        ::mmap(nullptr, passed_size, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
    if (seen == MAP_FAILED) return 2;
    static_cast<std::byte*>(seen)[11] = std::byte{0x77};
    return 0;
  });
  EXPECT_EQ(both, 0);
  EXPECT_EQ(memory.bytes()[11], std::byte{0x77});
}

TEST_F(PassedMemory, IsTakenByNoServer) {
  server serving(at_path());
  client other{url(serving.url())};
  const std::size_t before = descriptors_now();
  {
    bare_client hostile(path());
    std::array<int, 2> pipes = {};
    ASSERT_EQ(::pipe2(pipes.data(), O_CLOEXEC), 0);
    const owned_descriptor out(pipes[0]);
    const owned_descriptor in(pipes[1]);
    const frame said{.code = opcode::pass_file, .session = bare_client::session, .offset = 1};
    hostile.say(said, {}, out.get());
    owned_descriptor none;
    EXPECT_TRUE(hostile.hear(opcode::bye, none)) << "it is to blame";
  }
  EXPECT_TRUE(ucx::test::soon([&] { return descriptors_now() == before; }));
  EXPECT_TRUE(other.list().empty());
}

/// A client that opens without end, and reads nothing.
TEST_F(PassedMemory, WaitsForNoPeerInManyDescriptors) {
  server serving(at_path());
  const publication memory = shown(serving);
  const std::size_t before = descriptors_now();
  bare_client greedy(path());
  for (std::uint64_t i = 1; i < 4000; ++i) {
    greedy.control({.type = control_type::open, .request = i},
                   open_body{"memory", access::read_write});
  }
  client other{url(serving.url())};
  EXPECT_EQ(other.open("memory").transfer_method(), transfer_method::mapped);
  EXPECT_LE(descriptors_now(), before + passed_files::most_under_way + 8);
}

/// Two programs without names, connected.
class PassedRegion : public testing::Test {
 protected:
  struct connected {
    explicit connected(PassedRegion& programs, const char* place)
        : door(programs.owner_, socket_address(place), {.manual_accept = true}),
          caller(programs.peer_, door.address(), {.wait = connect_wait::none}),
          accepted(programs.owner_, door.accept().wait()) {
      caller.wait_connected();
    }
    listener door;
    endpoint caller;
    endpoint accepted;
  };

  static context_options of_sockets() { return {.transports = {"socket"}}; }
  /// Returns the descriptor without what only leads there by the system's leave.
  static remote_descriptor told(const memory_region& memory) {
    remote_descriptor made = memory.descriptor();
    made.memfd = {};
    made.cma = {};
    return made;
  }
  /// Waits until the file has come.
  static bool is_mapped(const endpoint& by, const memory_region& memory) {
    return ucx::test::soon([&] {
      const remote_region opened(by, told(memory));
      return opened.transfer_method() == transfer_method::mapped &&
             opened.view(0, 1).front() == memory.bytes().front();
    });
  }

  context owners_{of_sockets()};
  worker owner_{owners_, {.progress = progress_mode::sleeping_thread}};
  context peers_{of_sockets()};
  worker peer_{peers_, {.progress = progress_mode::sleeping_thread}};
};

TEST_F(PassedRegion, IsMappedByTheOtherSideOfAUnixSocket) {
  const connected both(*this, "unix:");
  const memory_region owners = memory_region::allocate(owners_, passed_size, access::read_write);
  const memory_region callers = memory_region::allocate(peers_, passed_size, access::read);
  fill_pattern(owners.bytes());
  EXPECT_FALSE(callers.pass_to(both.accepted)) << "of another context";
  ASSERT_TRUE(owners.pass_to(both.accepted));
  EXPECT_TRUE(is_mapped(both.caller, owners));
  ASSERT_TRUE(callers.pass_to(both.caller));
  EXPECT_TRUE(is_mapped(both.accepted, callers));
}

TEST_F(PassedRegion, IsOfAllocatedMemory) {
  const connected both(*this, "unix:");
  std::vector<std::byte> bytes(passed_size);
  const memory_region plain(owners_, std::span(bytes), access::read_write);
  EXPECT_FALSE(plain.pass_to(both.accepted));
}

TEST_F(PassedRegion, GoesOverNoOtherConnection) {
  const connected both(*this, "127.0.0.1:0");
  const memory_region owners = memory_region::allocate(owners_, passed_size, access::read_write);
  EXPECT_FALSE(owners.pass_to(both.accepted));
}

TEST_F(PassedRegion, IsForgottenBehindManyOthers) {
  const connected both(*this, "unix:");
  const memory_region first = memory_region::allocate(peers_, passed_size, access::read);
  const memory_region other = memory_region::allocate(peers_, passed_size, access::read);
  const memory_region last = memory_region::allocate(peers_, passed_size, access::read);
  const std::size_t before = descriptors_now();
  ASSERT_TRUE(first.pass_to(both.caller));
  for (std::size_t i = 0; i < passed_files::most_of_acceptor; ++i) {
    ASSERT_TRUE(ucx::test::soon([&] { return other.pass_to(both.caller); }))
        << "until some have gone";
  }
  ASSERT_TRUE(last.pass_to(both.caller));
  ASSERT_TRUE(is_mapped(both.accepted, last)) << "and all that was passed before has come";
  EXPECT_TRUE(is_mapped(both.accepted, other));
  const remote_region opened(both.accepted, told(first));
  EXPECT_EQ(opened.transfer_method(), transfer_method::message);
  EXPECT_TRUE(ucx::test::soon(
      [&] { return descriptors_now() <= before + passed_files::most_of_acceptor; }));
}

}  // namespace
}  // namespace ucx::detail
