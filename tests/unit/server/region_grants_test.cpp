// Which regions of a server a connection reaches, where its peer says what no client of ours does.
#include "connection/region_grants.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <tuple>
#include <vector>

#include "connection/channel.hpp"
#include "connection/endpoint_core.hpp"
#include "region/exposed/exposed_memory.hpp"
#include "region/exposed/exposed_region.hpp"
#include "support/basics/soon.hpp"
#include "support/bytes/pattern.hpp"
#include "support/files/temporary_directory.hpp"
#include "ucx/context.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/error.hpp"
#include "ucx/publication.hpp"
#include "ucx/remote_atomic.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/server.hpp"
#include "ucx/socket_address.hpp"
#include "ucx/url.hpp"
#include "ucx/worker.hpp"
#include "wire/control_message.hpp"
#include "wire/frame.hpp"
#include "worker/core_access.hpp"
#include "worker/worker_core.hpp"

namespace ucx::test {
namespace {

using namespace detail;

TEST(RegionGrants, AddUpAndEnd) {
  region_grants grants;
  EXPECT_FALSE(grants.rights_to(7));
  grants.add(7, access::read);
  EXPECT_EQ(grants.rights_to(7), access::read);
  EXPECT_FALSE(grants.rights_to(8));
  grants.add(7, access::write);
  grants.add(8, access::write);
  EXPECT_EQ(grants.rights_to(7), access::read_write);
  EXPECT_EQ(grants.rights_to(8), access::write);
  EXPECT_TRUE(grants.allow(8, access::write));
  EXPECT_FALSE(grants.allow(8, access::read)) << "as of one that was read before";
  EXPECT_FALSE(grants.allow(9, access::read));
  grants.remove(7);
  grants.remove(9);
  EXPECT_FALSE(grants.rights_to(7));
  EXPECT_TRUE(grants.rights_to(8));
  grants.revoke(8);
  grants.revoke(9);
  EXPECT_FALSE(grants.rights_to(8));
  EXPECT_TRUE(grants.was_revoked(8));
  EXPECT_FALSE(grants.was_revoked(9));
  grants.add(8, access::read);
  EXPECT_EQ(grants.rights_to(8), access::read);
  EXPECT_FALSE(grants.was_revoked(8));
  grants.clear();
  EXPECT_FALSE(grants.rights_to(8));
}

context_options over(const std::string& transport) {
  context_options made{.transports = {transport}, .share_memory = false};
  if (transport == "tcp") made.devices = {"lo"};
  return made;
}

/// A connection that asks a server by hand, and uses descriptors as it likes.
class hand_made_client final : public channel_receiver {
 public:
  hand_made_client(const std::string& transport, const socket_address& served)
      : parent_(over(transport)),
        driver_(parent_, {.progress = progress_mode::sleeping_thread}),
        peer_(driver_, served) {
    const std::lock_guard guard(core_access::core(driver_)->lock());
    core_access::core(peer_)->control().set_receiver(this);
  }
  ~hand_made_client() override {
    const std::lock_guard guard(core_access::core(driver_)->lock());
    core_access::core(peer_)->control().set_receiver(nullptr);
  }
  hand_made_client(const hand_made_client&) = delete;
  hand_made_client& operator=(const hand_made_client&) = delete;

  void greet(std::uint64_t features = control_feature::all) {
    hello_body body;
    body.features = features;
    EXPECT_TRUE(ask(control_type::hello, body));
  }
  std::optional<opened_body> open(const std::string& name, access wanted) {
    const auto answer = ask(control_type::open, open_body{name, wanted});
    return answer ? decode_opened(*answer) : std::nullopt;
  }
  std::optional<opened_body> create(const std::string& name) {
    const auto answer = ask(control_type::create, create_body{name, access::read_write});
    return answer ? decode_opened(*answer) : std::nullopt;
  }
  /// Returns when the server has heard it.
  void release(std::uint64_t region) {
    say(control_type::release, release_body{region});
    EXPECT_TRUE(ask(control_type::list, list_body{}));
  }
  void leave() {
    const std::lock_guard guard(core_access::core(driver_)->lock());
    core_access::core(peer_)->control().send(encode_control(control_header{}));
  }

  std::error_code read(const remote_descriptor& of) const {
    std::array<std::byte, 16> into = {};
    std::error_code ec;
    reached(of).read_at(0, into, {}, ec);
    return ec;
  }
  std::error_code write(const remote_descriptor& of) const {
    const remote_region region = reached(of);
    return written(region, [](remote_region& to, std::error_code& ec) {
      to.write_at(0, pattern(16, 77), {}, ec);
    });
  }
  /// Returns the outcomes of all other questions about the region that need the right to write.
  std::vector<std::error_code> write_otherwise(const remote_descriptor& of) const {
    const std::vector<std::byte> bytes = pattern(8, 77);
    const std::array<write_piece, 2> pieces{write_piece{0, bytes}, write_piece{8, bytes}};
    std::vector<std::error_code> all(3);
    remote_region region = reached(of);
    region.write_batch(pieces, {}, all[0]);
    if (!all[0]) region.flush({}, all[0]);
    region.notify(7, {}, all[1]);
    remote_region counted = reached(of);
    remote_atomic<std::uint64_t>(counted, 0).store(7, {}, all[2]);
    return all;
  }
  std::error_code read_batch(const remote_descriptor& of) const {
    std::array<std::byte, 16> into = {};
    const std::span<std::byte> bytes(into);
    const std::array<read_piece, 2> pieces{read_piece{0, bytes.first(8)},
                                           read_piece{8, bytes.last(8)}};
    std::error_code ec;
    reached(of).read_batch(pieces, {}, ec);
    return ec;
  }

 private:
  remote_region reached(remote_descriptor lie) const {
    lie.granted = access::read_write;
    lie.size = std::uint64_t{1} << 20U;  // only the owner refuses
    return remote_region(peer_, lie, {.transfer_method = transfer_method::message});
  }
  template <class Write>
  static std::error_code written(const remote_region& region, Write&& write) {
    std::error_code ec;
    auto& to = const_cast<remote_region&>(region);
    write(to, ec);
    if (!ec) to.flush({}, ec);
    return ec;
  }
  template <class Body>
  void say(control_type type, const Body& body) {
    const std::lock_guard guard(core_access::core(driver_)->lock());
    control_header asked;
    asked.type = type;
    asked.request = ++last_;
    core_access::core(peer_)->control().send(encode_control(asked, body));
  }
  template <class Body>
  std::optional<std::vector<std::byte>> ask(control_type type, const Body& body) {
    say(type, body);
    const auto heard = [this] {
      const std::lock_guard guard(core_access::core(driver_)->lock());
      return answered_ == last_;
    };
    if (!soon(heard)) return std::nullopt;
    const std::lock_guard guard(core_access::core(driver_)->lock());
    if (const auto said = decode_control(answer_); !said || said->status != 0) return std::nullopt;
    return answer_;
  }
  void received(std::span<const std::byte> message) override {
    const auto said = decode_control(message);
    if (!said || said->type == control_type::revoke) return;
    answered_ = said->request;
    answer_.assign(message.begin(), message.end());
  }
  void ended(std::error_code) noexcept override {}

  const context parent_;
  const worker driver_;
  const endpoint peer_;
  std::uint64_t last_ = 0;
  std::uint64_t answered_ = 0;
  std::vector<std::byte> answer_;
};

/// Over UCX and over sockets, and with connections on the session's worker or on another one.
class GrantedRegions : public testing::TestWithParam<std::tuple<std::string, unsigned>> {
 protected:
  const std::string& transport() const { return std::get<0>(GetParam()); }
  server_options options() const {
    server_options made;
    made.context = over(transport());
    made.context.share_memory = true;
    made.workers = std::get<1>(GetParam());
    return made;
  }
  /// Connections go to the workers in turn.
  std::unique_ptr<hand_made_client> connect() {
    return std::make_unique<hand_made_client>(
        transport(), socket_address("127.0.0.1", url(server_.url()).port()));
  }
  std::unique_ptr<hand_made_client> greeted() {
    auto made = connect();
    made->greet();
    return made;
  }
  static remote_descriptor described(const std::optional<opened_body>& opened) {
    if (!opened) throw std::runtime_error("it was not opened");
    std::error_code ec;
    const auto read = remote_descriptor::decode(opened->descriptor, ec);
    if (ec) throw std::system_error(ec, "decoding a descriptor");
    return read;
  }
  static void expect_nothing(const hand_made_client& of, const remote_descriptor& region,
                             errc why = errc::no_such_region) {
    EXPECT_EQ(of.read(region), why);
    EXPECT_EQ(of.write(region), why);
    EXPECT_EQ(of.read_batch(region), why);
    for (const std::error_code each : of.write_otherwise(region)) EXPECT_EQ(each, why);
  }
  /// Returns whether it is: at once, or when the server has closed it behind the last release.
  static bool is_out_of_reach(std::error_code ec) {
    return ec == errc::no_such_region || ec == errc::revoked;
  }

  std::vector<std::byte> memory_ = pattern(4096);
  server server_{options()};
  const publication shown_ =
      server_.publish("shown", std::span<std::byte>(memory_), access::read_write);
};

TEST_P(GrantedRegions, NumberIsOfNoUseOnAnotherConnection) {
  const auto owner = greeted();
  const remote_descriptor region = described(owner->open("shown", access::read_write));
  for (int i = 0; i < 2; ++i) {  // on each worker
    const auto stranger = connect();
    expect_nothing(*stranger, region);
    stranger->greet();
    expect_nothing(*stranger, region);
  }
  EXPECT_TRUE(holds_pattern(memory_));
  EXPECT_FALSE(owner->read(region));
  EXPECT_FALSE(owner->write(region));
  EXPECT_TRUE(holds_pattern(std::span(memory_).first(16), 77));
}

TEST_P(GrantedRegions, OpenForReadingIsNotForWriting) {
  for (int i = 0; i < 2; ++i) {
    const auto reader = greeted();
    const remote_descriptor region = described(reader->open("shown", access::read));
    EXPECT_EQ(region.granted, access::read);
    EXPECT_FALSE(reader->read(region));
    EXPECT_FALSE(reader->read_batch(region));
    EXPECT_EQ(reader->write(region), errc::permission_denied);
    for (const std::error_code each : reader->write_otherwise(region)) {
      EXPECT_EQ(each, errc::permission_denied);
    }
    const auto writer = greeted();
    const remote_descriptor its = described(writer->open("shown", access::write));
    EXPECT_EQ(writer->read(its), errc::permission_denied);
  }
  EXPECT_TRUE(holds_pattern(memory_));
}

TEST_P(GrantedRegions, EndWithTheLastRelease) {
  for (int i = 0; i < 2; ++i) {
    const auto user = greeted();
    const auto opened = user->open("shown", access::read);
    const remote_descriptor region = described(opened);
    EXPECT_TRUE(opened->held);
    EXPECT_EQ(user->write(region), errc::permission_denied);
    EXPECT_EQ(described(user->open("shown", access::write)).region, region.region);
    EXPECT_FALSE(user->write(region));
    user->release(region.region);
    EXPECT_FALSE(user->read(region));
    user->release(region.region);
    expect_nothing(*user, region);
    user->release(region.region);  // once too often
    const remote_descriptor again = described(user->open("shown", access::read));
    EXPECT_EQ(again.region, region.region);
    EXPECT_FALSE(user->read(again));
    EXPECT_EQ(user->write(again), errc::permission_denied);
  }
}

TEST_P(GrantedRegions, OutliveTheReleaseOfAnother) {
  const auto first = greeted();
  const auto second = greeted();
  const remote_descriptor region = described(first->open("shown", access::read));
  EXPECT_FALSE(second->read(described(second->open("shown", access::read))));
  first->release(region.region);
  second->release(region.region + 1);
  EXPECT_EQ(first->read(region), errc::no_such_region);
  EXPECT_FALSE(second->read(region));
}

TEST_P(GrantedRegions, EndWithTheSessionAndTheConnection) {
  remote_descriptor region;
  for (int i = 0; i < 2; ++i) {
    auto user = greeted();
    region = described(user->open("shown", access::read_write));
    EXPECT_FALSE(user->read(region));
    user->leave();
    EXPECT_TRUE(soon([&] { return user->read(region) == errc::no_such_region; }));
    expect_nothing(*user, region);
    auto other = greeted();
    EXPECT_FALSE(other->read(described(other->open("shown", access::read_write))));
    other.reset();
    const auto next = greeted();
    expect_nothing(*next, region);
  }
}

TEST_P(GrantedRegions, OfOldClientsLastAsLongAsTheSession) {
  const auto old = connect();
  old->greet(0);
  const auto opened = old->open("shown", access::read);
  EXPECT_FALSE(described(opened).granted != access::read);
  EXPECT_FALSE(opened->held);
  EXPECT_FALSE(old->read(described(opened)));
}

TEST_P(GrantedRegions, AreRevokedWithTheName) {
  const auto user = greeted();
  std::vector<std::byte> gone = pattern(100);
  publication brief = server_.publish("brief", std::span<std::byte>(gone), access::read_write);
  const remote_descriptor region = described(user->open("brief", access::read_write));
  EXPECT_FALSE(user->read(region));
  brief.close();
  expect_nothing(*user, region, errc::revoked);
}

TEST_P(GrantedRegions, AreOfFilesOfStoresToo) {
  const temporary_directory folder;
  folder.make("file", std::string(100, 'x'));
  const publication store = server_.publish_store(folder / ".", {.prefix = "s", .writable = true});
  const auto owner = greeted();
  const auto stranger = greeted();
  const remote_descriptor read = described(owner->open("s/file", access::read));
  const remote_descriptor made = described(owner->create("s/new"));
  EXPECT_FALSE(owner->read(read));
  EXPECT_EQ(owner->write(read), errc::permission_denied);
  EXPECT_FALSE(owner->write(made));
  for (const remote_descriptor& each : {read, made}) {
    EXPECT_EQ(stranger->read(each), errc::no_such_region);
    EXPECT_EQ(stranger->write(each), errc::no_such_region);
    owner->release(each.region);
    EXPECT_TRUE(is_out_of_reach(owner->read(each)));
    EXPECT_TRUE(is_out_of_reach(owner->write(each)));
  }
}

TEST_P(GrantedRegions, OfProgramsBelongToWhoeverHasTheDescriptor) {
  std::vector<std::byte> bytes = pattern(100);
  const auto own = expose_memory(core_access::core(server_.worker())->context().shared_from_this(),
                                 bytes, access::read_write, {});
  const remote_descriptor carried = (*own)->descriptor();
  const auto one = greeted();
  const auto other = connect();
  EXPECT_FALSE(one->read(carried));
  EXPECT_FALSE(other->write(carried));
  remote_descriptor guessed = carried;
  guessed.region = carried.region + 1;
  EXPECT_EQ(one->read(guessed), errc::no_such_region);
  guessed.generation = carried.generation + 100;
  EXPECT_EQ(one->read(guessed), errc::no_such_region);
  (*own)->close();
  EXPECT_EQ(one->read(carried), errc::revoked);
}

TEST_P(GrantedRegions, TellOverSocketsNothingOfTheProcess) {
  const publication mapped = server_.allocate("mapped", 4096, access::read_write);
  const auto user = greeted();
  for (const char* name : {"shown", "mapped"}) {
    const remote_descriptor told = described(user->open(name, access::read));
    EXPECT_EQ(told.granted, access::read);
    EXPECT_TRUE(told.remote_key.empty() || transport() == "tcp");
    const bool is_told = told.cma.process != 0 || told.memfd.process != 0;
    EXPECT_EQ(is_told, transport() == "tcp") << name;
    EXPECT_EQ(told.host == remote_descriptor().host, transport() != "tcp") << name;
    EXPECT_EQ(told.address < 16, transport() != "tcp") << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Over, GrantedRegions,
                         testing::Combine(testing::Values(std::string("tcp"),
                                                          std::string("socket")),
                                          testing::Values(1U, 2U)),
                         [](const auto& run) {
                           return std::get<0>(run.param) +
                                  (std::get<1>(run.param) == 1 ? "" : "_two_workers");
                         });

}  // namespace
}  // namespace ucx::test
