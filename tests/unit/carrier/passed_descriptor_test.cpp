// Files beside messages on Unix sockets: which message they belong to, and what hostile peers pass.
#include "carrier/passed_descriptor.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/owned_descriptor.hpp"
#include "carrier/carrier_endpoint.hpp"
#include "carrier/carrier_failure.hpp"
#include "carrier/carrier_listener.hpp"
#include "carrier/carrier_worker.hpp"
#include "carrier/segment.hpp"
#include "support/basics/soon.hpp"
#include "support/files/descriptors_now.hpp"
#include "support/files/temporary_directory.hpp"
#include "unit/carrier/bare_peer.hpp"

namespace ucx::detail {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

using ucx::test::descriptors_now;

constexpr unsigned id_of_passed = 255;

owned_descriptor file_with_seals(int seals) {
  owned_descriptor made(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(::ftruncate(made.get(), 4096), 0);
  EXPECT_EQ(::fcntl(made.get(), F_ADD_SEALS, seals), 0);
  return made;
}

owned_descriptor sealed_file() { return file_with_seals(F_SEAL_SHRINK | F_SEAL_GROW); }

::ino_t inode_of(int file) {
  struct ::stat facts = {};
  return ::fstat(file, &facts) == 0 ? facts.st_ino : 0;
}

/// An endpoint whose peer is a bare Unix socket, and a handler that takes the files that come.
class PassedDescriptor : public testing::Test {
 protected:
  using bytes = std::vector<std::byte>;

  struct delivery {
    std::byte said;
    ::ino_t inode;
  };

  void SetUp() override {
    ASSERT_EQ(worker_.open(), UCS_OK);
    ucp_am_handler_param_t handler = {};
    handler.id = id_of_passed;
    handler.cb = &PassedDescriptor::heard;
    handler.arg = this;
    worker_.set_handler(handler);
    ucp_ep_params_t params = {};
    params.field_mask = UCP_EP_PARAM_FIELD_ERR_HANDLER;
    params.err_handler = {&PassedDescriptor::failed, this};
    peer_ = test::accept_bare_peer(worker_, params, AF_UNIX, endpoint_);
    ASSERT_NE(endpoint_, nullptr);
    endpoint_->take_files();
    std::array<std::byte, preamble::size> said = {};
    ASSERT_EQ(::recv(peer_.get(), said.data(), said.size(), 0), 8);
    before_ = descriptors_now();
  }

  static bytes message(unsigned char header, bool has_file = false) {
    const auto head = segment_head{0, 1, id_of_passed, has_file}.encode();
    bytes made(head.begin(), head.end());
    made.push_back(std::byte{header});
    return made;
  }
  /// Sends these bytes, with descriptors beside them, as any program can.
  void say(const bytes& said, std::span<const int> beside = {}) {
    ::iovec part{const_cast<std::byte*>(said.data()), said.size()};
    ::msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    std::vector<std::byte> control(CMSG_SPACE(beside.size_bytes()));
    if (!beside.empty()) {
      message.msg_control = control.data();
      message.msg_controllen = control.size();
      ::cmsghdr* const head = CMSG_FIRSTHDR(&message);
      head->cmsg_level = SOL_SOCKET;
      head->cmsg_type = SCM_RIGHTS;
      head->cmsg_len = CMSG_LEN(beside.size_bytes());
      std::memcpy(CMSG_DATA(head), beside.data(), beside.size_bytes());
    }
    ASSERT_EQ(::sendmsg(peer_.get(), &message, MSG_NOSIGNAL), static_cast<::ssize_t>(said.size()));
  }
  void say(const bytes& said, const owned_descriptor& beside) {
    const int descriptor = beside.get();
    say(said, {&descriptor, 1});
  }
  void drive() {
    for (int rounds = 0; rounds < 16; ++rounds) worker_.progress();
  }
  void send(unsigned char header) {
    static constexpr std::array<std::byte, 4> lasting{std::byte{0}, std::byte{1}, std::byte{2},
                                                      std::byte{3}};
    const ucp_request_param_t plain = {};
    const ucs_status_ptr_t sent =
        endpoint_->send(id_of_passed, std::span(lasting).subspan(header, 1), {}, plain);
    if (UCS_PTR_IS_PTR(sent)) worker_.free(*static_cast<carrier_request*>(sent));
  }
  /// Returns what the peer has read, and the inode of what came with it.
  std::pair<bytes, ::ino_t> read(std::size_t most) {
    bytes read(most);
    ::iovec part{read.data(), read.size()};
    ::msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    passed_descriptor beside;
    beside.expect(message);
    const ::ssize_t came = ::recvmsg(peer_.get(), &message, MSG_CMSG_CLOEXEC);
    owned_descriptor file;
    if (came >= 0) passed_descriptor::take(message, file);
    read.resize(came < 0 ? 0 : static_cast<std::size_t>(came));
    return {read, file ? inode_of(file.get()) : 0};
  }
  /// The peer is to blame, and what it has passed is closed.
  void expect_end(const std::string& of) {
    drive();
    EXPECT_EQ(failure_, status_no_message) << of;
    EXPECT_TRUE(deliveries_.empty()) << of;
    const auto is_closed = [&] { return descriptors_now() == before_ - 1; };  // the socket, too
    EXPECT_TRUE(ucx::test::soon(is_closed)) << of << ": " << descriptors_now() << ", " << before_;
  }

  carrier_worker worker_{"test", nullptr};
  carrier_endpoint* endpoint_ = nullptr;
  owned_descriptor peer_;
  std::vector<delivery> deliveries_;
  ucs_status_t failure_ = UCS_OK;
  bool takes_ = true;
  std::size_t before_ = 0;

 private:
  static ucs_status_t heard(void* self, const void* header, std::size_t, void*, std::size_t,
                            const ucp_am_recv_param_t* params) {
    auto& test = *static_cast<PassedDescriptor*>(self);
    auto& from = *reinterpret_cast<carrier_endpoint*>(params->reply_ep);
    const owned_descriptor file = test.takes_ ? from.passed_file() : owned_descriptor();
    test.deliveries_.push_back(
        {*static_cast<const std::byte*>(header), file ? inode_of(file.get()) : 0});
    return UCS_OK;
  }
  static void failed(void* self, ucp_ep_h, ucs_status_t why) {
    static_cast<PassedDescriptor*>(self)->failure_ = why;
  }
};

MATCHER_P2(IsDelivery, said, inode, "") {
  return arg.said == static_cast<std::byte>(said) && arg.inode == inode;
}

TEST_F(PassedDescriptor, BelongsToTheMessageThatSaysSo) {
  const owned_descriptor file = sealed_file();
  const owned_descriptor other = sealed_file();
  say(message(1));
  say(message(2));
  say(message(3, true), file);
  say(message(4, true), other);
  say(message(5));
  drive();
  EXPECT_THAT(deliveries_,
              ElementsAre(IsDelivery(1, 0U), IsDelivery(2, 0U), IsDelivery(3, inode_of(file.get())),
                          IsDelivery(4, inode_of(other.get())), IsDelivery(5, 0U)));
  EXPECT_EQ(descriptors_now(), before_ + 2) << "this test's own";
}

TEST_F(PassedDescriptor, ComesWithTheFirstByteOfItsMessage) {
  const owned_descriptor file = sealed_file();
  bytes both = message(1);
  const bytes second = message(2, true);
  say(message(1));
  say({second.front()}, file);
  drive();
  EXPECT_EQ(deliveries_.size(), 1U);
  say({second.begin() + 1, second.end()});
  say(message(3));
  drive();
  EXPECT_THAT(deliveries_, ElementsAre(IsDelivery(1, 0U), IsDelivery(2, inode_of(file.get())),
                                       IsDelivery(3, 0U)));
}

TEST_F(PassedDescriptor, MayBeLostOnItsWay) {
  say(message(1, true));
  say(message(2));
  drive();
  EXPECT_THAT(deliveries_, ElementsAre(IsDelivery(1, 0U), IsDelivery(2, 0U)));
  EXPECT_EQ(failure_, UCS_OK);
}

TEST_F(PassedDescriptor, IsClosedWhereTheHandlerDoesNotTakeIt) {
  takes_ = false;
  say(message(1, true), sealed_file());
  drive();
  EXPECT_THAT(deliveries_, ElementsAre(IsDelivery(1, 0U)));
  EXPECT_EQ(descriptors_now(), before_);
}

TEST_F(PassedDescriptor, IsDroppedByTheSystemWhereNoneIsExpected) {
  peer_ = test::accept_bare_peer(worker_, ucp_ep_params_t{}, AF_UNIX, endpoint_);
  ASSERT_NE(endpoint_, nullptr);
  std::array<int, 2> pipes = {};
  ASSERT_EQ(::pipe2(pipes.data(), O_CLOEXEC), 0);
  const owned_descriptor out(pipes[0]);
  const owned_descriptor in(pipes[1]);
  drive();  // the first one ends
  const std::size_t before = descriptors_now();
  say(message(1), std::vector<int>(253, out.get()));
  drive();
  say(message(2, true), in);
  drive();
  say(message(3));
  drive();
  say(message(4));
  drive();
  EXPECT_EQ(descriptors_now(), before);
  EXPECT_THAT(deliveries_, ElementsAre(IsDelivery(1, 0U), IsDelivery(2, 0U), IsDelivery(3, 0U),
                                       IsDelivery(4, 0U)));
}

TEST_F(PassedDescriptor, ThatNoMessageNamesEndsTheConnection) {
  say(message(1, true), sealed_file());
  drive();
  deliveries_.clear();
  say(message(2), owned_descriptor(::dup(peer_.get())));
  expect_end("a socket beside a message that has none");
}

TEST_F(PassedDescriptor, OfTwoForOneHeadEndTheConnection) {
  say({std::byte{1}}, sealed_file());
  say({std::byte{0}}, sealed_file());
  expect_end("two beside one head");
}

TEST_F(PassedDescriptor, HasNoPayload) {
  const auto head = segment_head{1, 1, id_of_passed, true}.encode();
  bytes said(head.begin(), head.end());
  said.resize(said.size() + 2);
  say(said, sealed_file());
  expect_end("a payload");
}

TEST_F(PassedDescriptor, OfManyAtOnceEndTheConnection) {
  {
    const owned_descriptor file = sealed_file();
    say(message(1, true), std::vector<int>(253, file.get()));
  }
  expect_end("253");
}

TEST_F(PassedDescriptor, OfTwoAtOnceEndTheConnection) {
  {
    const owned_descriptor file = sealed_file();
    say(message(1, true), std::vector<int>(2, file.get()));
  }
  expect_end("two");
}

/// What a hostile peer may pass, and what must not be read, opened or waited for.
struct hostile_file {
  const char* name;
  owned_descriptor (*open)(const std::string& folder);
};

class HostileDescriptor : public PassedDescriptor,
                          public testing::WithParamInterface<hostile_file> {};

TEST_P(HostileDescriptor, EndsTheConnection) {
  const ucx::test::temporary_directory folder;
  before_ = descriptors_now();
  {
    const owned_descriptor file = GetParam().open((folder / "").string());
    ASSERT_TRUE(file) << GetParam().name;
    say(message(1, true), file);
  }
  expect_end(GetParam().name);
}

INSTANTIATE_TEST_SUITE_P(
    Files, HostileDescriptor,
    testing::Values(
        hostile_file{"fifo",
                     [](const std::string& folder) {
                       const std::string path = folder + "fifo";
                       EXPECT_EQ(::mkfifo(path.c_str(), 0600), 0);
                       return owned_descriptor(::open(path.c_str(), O_RDWR | O_CLOEXEC));
                     }},
        hostile_file{"device",
                     [](const std::string&) {
                       return owned_descriptor(::open("/dev/zero", O_RDWR | O_CLOEXEC));
                     }},
        hostile_file{"unsealed_memory", [](const std::string&) { return file_with_seals(0); }},
        hostile_file{"memory_that_shrinks",
                     [](const std::string&) { return file_with_seals(F_SEAL_GROW); }},
        hostile_file{"file",
                     [](const std::string& folder) {
                       return owned_descriptor(
                           ::open((folder + "file").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
                     }},
        hostile_file{"directory",
                     [](const std::string& folder) {
                       return owned_descriptor(
                           ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
                     }},
        hostile_file{"path",
                     [](const std::string& folder) {
                       return owned_descriptor(::open(folder.c_str(), O_PATH | O_CLOEXEC));
                     }}),
    [](const testing::TestParamInfo<hostile_file>& each) { return each.param.name; });

TEST_F(PassedDescriptor, GoesWithTheNextMessageOnly) {
  owned_descriptor file = sealed_file();
  const ::ino_t inode = inode_of(file.get());
  send(1);
  endpoint_->pass_file(std::move(file));
  send(2);
  send(3);
  EXPECT_EQ(read(9), std::pair(message(1), ::ino_t{0}));
  EXPECT_EQ(read(9), std::pair(message(2, true), inode));
  EXPECT_EQ(read(9), std::pair(message(3), ::ino_t{0}));
  EXPECT_EQ(descriptors_now(), before_);
}

TEST_F(PassedDescriptor, WaitsWithItsMessage) {
  const bytes filling(std::size_t{256} << 10U);
  const ucp_request_param_t plain = {};
  send(1);
  std::vector<carrier_request*> waiting;
  for (int messages = 0; messages < 4; ++messages) {
    const ucs_status_ptr_t sent = endpoint_->send(id_of_passed, {}, filling, plain);
    if (UCS_PTR_IS_PTR(sent)) waiting.push_back(static_cast<carrier_request*>(sent));
  }
  ASSERT_FALSE(waiting.empty()) << "the socket is full";
  owned_descriptor file = sealed_file();
  const ::ino_t inode = inode_of(file.get());
  endpoint_->pass_file(std::move(file));
  send(2);
  send(3);
  EXPECT_EQ(descriptors_now(), before_ + 1);
  bytes all;
  std::size_t where = 0;
  while (all.size() < 4 * (filling.size() + 8) + 27) {
    worker_.progress();
    const auto [came, brought] = read(std::size_t{1} << 20U);
    if (brought == inode) where = all.size() + came.size();
    all.insert(all.end(), came.begin(), came.end());
  }
  // The system ends the read in which the file came behind the bytes that it was sent with.
  ASSERT_GE(where, 9U);
  const bytes with(all.begin() + static_cast<std::ptrdiff_t>(where) - 9,
                   all.begin() + static_cast<std::ptrdiff_t>(where));
  EXPECT_EQ(with, message(2, true));
  drive();
  for (carrier_request* each : waiting) worker_.free(*each);
  EXPECT_EQ(descriptors_now(), before_);
}

TEST_F(PassedDescriptor, IsClosedWithItsConnection) {
  say({std::byte{0}}, sealed_file());
  drive();
  endpoint_->pass_file(sealed_file());
  EXPECT_EQ(descriptors_now(), before_ + 2);
  const ucp_request_param_t plain = {};
  endpoint_->close(plain);
  EXPECT_EQ(descriptors_now(), before_ - 1) << "nor the socket";
}

}  // namespace
}  // namespace ucx::detail
