// What a child of fork() makes for itself, over sockets: it works as anywhere, beside what the
// child has of its parent, which is refused and left alone.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "support/basics/changed_variable.hpp"
#include "support/bytes/pattern.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/process/forked_child.hpp"
#include "support/process/test_peer.hpp"
#include "support/transports/url_scheme.hpp"
#include "ucx/buffer.hpp"
#include "ucx/call_channel.hpp"
#include "ucx/call_server.hpp"
#include "ucx/call_table.hpp"
#include "ucx/client.hpp"
#include "ucx/connection_manager.hpp"
#include "ucx/context.hpp"
#include "ucx/cstdio.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/error.hpp"
#include "ucx/fstream.hpp"
#include "ucx/listener.hpp"
#include "ucx/memory_resources.hpp"
#include "ucx/message.hpp"
#include "ucx/pipe_broker.hpp"
#include "ucx/remote_file.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/request.hpp"
#include "ucx/scheduled_call.hpp"
#include "ucx/server.hpp"
#include "ucx/token_file.hpp"
#include "ucx/url.hpp"
#include "ucx/worker.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t size_of_x = 100'000;

/// A process that has a client, streams and a server over one scheme.
class ForkedOwn : public testing::TestWithParam<std::string> {
 protected:
  ForkedOwn() : by_{GetParam(), secrets_ / ""}, context_(by_.context()) {
    if (by_.name == "tls") {
      const std::string token = token_file(by_.folder / "tokens").create("streams");
      token_.emplace("UCXIO_TOKEN", token.c_str());
    }
    files_.make("file", "content");
    where_ = peer_.ask("serve_by " + by_.name + ' ' + by_.folder.string());
    peer_.ask("publish_store " + (files_ / "").string());
    peer_.ask("publish x " + std::to_string(size_of_x) + " 1");
  }

  client_options options() const {
    client_options made{.context = by_.context()};
    made.context.transports.clear();  // the URL says it
    return made;
  }
  /// Returns the options of a server of another process that this one has no place of.
  server_options serving(const std::string& name) const {
    server_options made = by_.server();
    if (by_.name == "unix") made.bind = "unix:" + (by_.folder / (name + ".sock")).string();
    return made;
  }
  /// Uses connections of its own, in each way.
  void use_own(faults_of_child& wrong, const std::string& name) const {
    wrong.doing("a client", [&] { ask(wrong, name); });
    wrong.doing("streams", [&] { stream(wrong, name); });
    wrong.doing("a server", [&] { serve(wrong, name); });
    wrong.doing("calls", [&] { call(wrong, name); });
    wrong.doing("managed connections", [&] { manage(wrong); });
  }
  void ask(faults_of_child& wrong, const std::string& name) const {
    client own(url(where_), options());
    wrong.unless(own.stat("file").size == 7, "the size of a file");
    remote_region opened = own.open("x", access::read);
    std::vector<std::byte> into(size_of_x);
    opened.read_at(0, into);
    wrong.unless(holds_pattern(into, 1), "the bytes of a region");
    remote_region made = own.create(name + ".region");
    made.write_at(0, std::span(into).first(10));
    own.commit(made);
    own.close();
  }
  void stream(faults_of_child& wrong, const std::string& name) const {
    ifstream in(where_ + "/file");
    std::string text;
    in >> text;
    wrong.unless(text == "content", "the text of a file: " + text + in.error_message());
    ofstream out(where_ + '/' + name);
    out << "of " << name;
    out.close();
    wrong.unless(out.good(), "a new file: " + out.error_message());
    std::FILE* const file = open_file(where_ + "/file", "r");
    wrong.unless(file != nullptr && std::fgetc(file) == 'c', "a new file of C's");
    if (file != nullptr) wrong.unless(std::fclose(file) == 0, "the end of a file of C's");
  }
  void serve(faults_of_child& wrong, const std::string& name) const {
    std::vector<std::byte> bytes = pattern(1000, 2);
    server own(serving(name));
    const publication shown = own.publish("bytes", std::span<std::byte>(bytes));
    client asking(url(own.url()), options());
    std::vector<std::byte> into(1000);
    asking.open("bytes", access::read).read_at(0, into);
    wrong.unless(holds_pattern(into, 2), "the bytes of a server");
  }
  void call(faults_of_child& wrong, const std::string& name) const {
    server own(serving(name));
    call_table calls;
    calls.add("add", [](int a, int b) { return a + b; });
    const call_server serves(own, calls);
    const client asking(url(own.url()), options());
    const call_channel channel(asking.connection());
    wrong.unless(channel.call<int>("add", 25, 17) == 42, "the result of a call");
  }
  void manage(faults_of_child& wrong) const {
    const context made(context_);
    const worker driven(made, {.progress = progress_mode::sleeping_thread});
    const std::string place = by_.name == "unix" ? "unix:" + (by_.folder / "own.sock").string()
                                                 : std::string("127.0.0.1:0");
    const listener listening(driven, socket_address(place));
    const worker other(made, {.progress = progress_mode::sleeping_thread});
    connection_manager manager(other);
    manager.add("peer", listening.address());
    wrong.unless(manager.wait_active("peer").state() == connection_state::active,
                 "a managed connection");
  }

  const temporary_directory secrets_;
  const temporary_directory files_;
  const url_scheme by_;
  const context_options context_;
  std::optional<changed_variable> token_;
  test_peer peer_{"tcp"};
  std::string where_;
};

TEST_P(ForkedOwn, IsMadeBesideWhatIsInherited) {
  client asking(url(where_), options());
  remote_region opened = asking.open("x", access::read);
  remote_file file(asking, "file");
  ifstream in(where_ + "/file");
  ofstream out(where_ + "/of_parent");
  out << "begun";
  std::FILE* const c_file = open_file(where_ + "/file", "r");
  std::vector<std::byte> bytes = pattern(1000, 3);
  server serves(serving("parent"));
  const publication shown = serves.publish("bytes", std::span<std::byte>(bytes));
  const context made(context_);
  worker driven(made);
  ASSERT_TRUE(in && out && c_file != nullptr);
  EXPECT_EQ(in.get(), 'c');

  const auto inherited = [&](faults_of_child& wrong) {
    std::vector<std::byte> into(10);
    std::error_code ec;
    wrong.unless_inherited(asking.status(), "a client");
    asking.list({}, ec);
    wrong.unless_inherited(ec, "a list");
    opened.read_at(0, into, {}, ec);
    wrong.unless_inherited(ec, "a read");
    file.read_at(0, into, ec);
    wrong.unless_inherited(ec, "a read of a file");
    const worker none(made, {}, ec);
    wrong.unless_inherited(ec, "a worker of the parent's context");
    const listener no_port(driven, socket_address("127.0.0.1:0"), {}, ec);
    wrong.unless_inherited(ec, "a port of the parent's worker");
    static_cast<void>(serves.url("bytes", ec));
    wrong.unless_inherited(ec, "a server");
    static_cast<void>(serves.allocate("new", 10, access::read, {}, ec));
    wrong.unless_inherited(ec, "a publication");
    wrong.unless(!in.seekg(0) && in.rdbuf()->error() == errc::forked_child, "a stream");
    wrong.unless(!out.flush() && out.rdbuf()->error() == errc::forked_child, "a flush");
    wrong.unless(std::fgetc(c_file) == EOF && errno == ENOTSUP, "a file of C's");
    wrong.unless(!driven.progress(), "a round");
  };
  for (const end_of_child how : {end_of_child::at_once, end_of_child::by_exit}) {
    const std::string name = how == end_of_child::at_once ? "first" : "second";
    EXPECT_EQ(status_of_child(
                  [&](faults_of_child& wrong) {
                    wrong.unless(is_forked_child(), "the process knows it");
                    inherited(wrong);
                    use_own(wrong, name);
                    inherited(wrong);
                    asking.close();
                    serves.close();
                    std::fclose(c_file);
                    use_own(wrong, name + " again");
                  },
                  how),
              0);
    EXPECT_EQ(content_of(files_ / name), "of " + name);
  }
  // The parent's go on.
  EXPECT_EQ(asking.stat("first").size, 8U);
  std::vector<std::byte> into(size_of_x);
  opened.read_at(0, into);
  EXPECT_TRUE(holds_pattern(into, 1));
  file.read_at(0, std::span(into).first(7));
  EXPECT_EQ(in.get(), 'o');
  EXPECT_EQ(std::fgetc(c_file), 'c');
  std::fclose(c_file);
  out.close();
  EXPECT_TRUE(out) << out.error_message();
  EXPECT_EQ(content_of(files_ / "of_parent"), "begun");
  client(url(serves.url()), options())
      .open("bytes", access::read)
      .read_at(0, std::span(into).first(1000));
  EXPECT_TRUE(holds_pattern(std::span(into).first(1000), 3));
}

TEST_P(ForkedOwn, IsNotMadeOverWhatIsInherited) {
  const context made(context_);
  worker driven(made);
  server serves(serving("under"));
  const call_table calls;
  call_server answers(driven, calls);
  scheduled_call waiting = driven.call_after(1h, [] {});
  EXPECT_EQ(status_of_child([&](faults_of_child& wrong) {
              std::error_code ec;
              const connection_manager manager(driven, {}, ec);
              wrong.unless_inherited(ec, "a manager");
              const call_server second(driven, calls, {}, ec);
              wrong.unless_inherited(ec, "a server of calls");
              const call_server third(serves, calls, {}, ec);
              wrong.unless_inherited(ec, "a server of calls over a server");
              const pipe_broker broker(serves, {}, ec);
              wrong.unless_inherited(ec, "a broker of pipes");
              driven.on_message(
                  5, [](const message&) {}, ec);
              wrong.unless_inherited(ec, "a handler of messages");
              waiting.wait_for(10s, ec);
              wrong.unless_inherited(ec, "a call of the parent's");
              bool called = false;
              const auto call = [&] { called = true; };
              scheduled_call later[] = {
                  driven.call_after(1ms, call), driven.call_every(1ms, call),
                  driven.call_in_progress(progress_phase::before, repetition::once, call)};
              for (scheduled_call& each : later) {
                each.wait_for(10s, ec);
                wrong.unless_inherited(ec, "a call later");
                wrong.unless(!each.cancel(), "a call that is taken back");
              }
              wrong.unless(!called, "no call is made");
              wrong.unless(answers.under_way() == 0, "calls that are under way");
              { const call_server gone(std::move(answers)); }
              use_own(wrong, "beside refusals");
            }),
            0);
  EXPECT_TRUE(waiting.cancel());
}

/// As an object of the program's that both processes use, beside workers of their own.
TEST_P(ForkedOwn, TakesNothingFromInheritedPools) {
  const context made(context_);
  buffer_pool pool({.size = 100, .count = 2});
  memory_pool memory(memory_place{});
  buffer out = pool.take();
  void* const block = memory.allocate(100);
  EXPECT_EQ(status_of_child([&](faults_of_child& wrong) {
              std::error_code ec;
              wrong.unless(!pool.take({}, ec), "a buffer");
              wrong.unless_inherited(ec, "a buffer");
              wrong.unless(pool.available() == 0, "the buffers that are there");
              wrong.unless(pool.owns(out), "the owner of a buffer");
              pool.when_available([&] { wrong.unless(false, "a handler"); });
              const context own(context_);
              worker driven(own);
              buffer into;
              request receiving =
                  driven.start_receive(tag_match::any(), receive_target(into, pool));
              wrong.unless_inherited(receiving.error(), "a receive of the child's into the pool");
              out = buffer();
              bool is_refused = false;
              try {
                static_cast<void>(memory.allocate(100));
              } catch (const std::bad_alloc&) {
                is_refused = true;
              }
              wrong.unless(is_refused, "memory");
              memory.deallocate(block, 100);
              wrong.unless(memory.usage().max_size == 0, "the use of memory");
              const memory_pool registered(made, {}, ec);
              wrong.unless_inherited(ec, "a pool over the parent's context");
              use_own(wrong, "beside pools");
            }),
            0);
  EXPECT_EQ(pool.available(), 1U);
  EXPECT_TRUE(pool.take());
  EXPECT_GT(memory.usage().in_use, 0U);
  memory.deallocate(block, 100);
}

/// The child is within a round of a worker that it may not use.
TEST_P(ForkedOwn, IsMadeWhereAHandlerForks) {
  const context made(context_);
  worker driven(made);
  int status = -1;
  scheduled_call forking = driven.call_after(1ms, [&] {
    status = status_of_child([&](faults_of_child& wrong) { use_own(wrong, "of a handler"); });
  });
  EXPECT_TRUE(forking.wait_for(60s));
  EXPECT_EQ(status, 0);
  EXPECT_EQ(content_of(files_ / "of a handler"), "of of a handler");
}

/// Both are asked: the child's worker, and the parent's request.
TEST(ForkedRequest, IsNotAcceptedByAWorkerOfTheChild) {
  const context_options over_sockets{.transports = {"socket"}};
  const context made(over_sockets);
  const worker driven(made);
  const worker calling(made, {.progress = progress_mode::sleeping_thread});
  listener door(driven, socket_address("127.0.0.1:0"), {.manual_accept = true});
  const endpoint caller(calling, door.address(), {.wait = connect_wait::none});
  connection_request knocking = door.accept().wait();
  EXPECT_EQ(status_of_child([&](faults_of_child& wrong) {
              const context own(over_sockets);
              const worker of_child(own);
              std::error_code ec;
              const endpoint none(of_child, std::move(knocking), {}, ec);
              wrong.unless_inherited(ec, "a request of the parent's");
            }),
            0);
  const endpoint accepted(driven, std::move(knocking));
  EXPECT_FALSE(accepted.status());
}

TEST_P(ForkedOwn, IsInheritedByItsOwnChildren) {
  client of_parent(url(where_), options());
  EXPECT_EQ(status_of_child([&](faults_of_child& wrong) {
              client own(url(where_), options());
              ifstream in(where_ + "/file");
              wrong.unless(in.get() == 'c', "a stream of the child");
              const int status = status_of_child([&](faults_of_child& wrong_below) {
                wrong_below.unless_inherited(of_parent.status(), "the parent's client");
                wrong_below.unless_inherited(own.status(), "the child's client");
                wrong_below.unless(!in.seekg(0), "the child's stream");
                use_own(wrong_below, "grandchild");
              });
              wrong.unless(status == 0, "the grandchild");
              wrong.unless(own.stat("file").size == 7, "the child's client afterwards");
              wrong.unless(in.get() == 'o', "the child's stream afterwards");
            }),
            0);
  EXPECT_EQ(of_parent.stat("file").size, 7U);
  EXPECT_EQ(content_of(files_ / "grandchild"), "of grandchild");
}

/// Locks that a thread of the parent's has at that moment are held for ever in the child. By TLS it
/// makes no connections: OpenSSL's locks are none of this library's.
TEST_P(ForkedOwn, IsMadeWhateverTheParentsThreadsDo) {
  std::atomic<bool> failed{false};
  std::atomic<int> rounds{0};
  const client kept = client::shared(url(where_));
  const auto round = [&] {
    client::shared(url(where_)).list();
    ifstream in(where_ + "/x");
    std::vector<char> into(size_of_x);
    std::FILE* const file = open_file(where_ + "/file", "r");
    const bool reads = file != nullptr && std::fgetc(file) == 'c';
    if (file != nullptr) std::fclose(file);
    if (by_.name != "tls") client(url(where_), options()).stat("file");
    if (reads && in.read(into.data(), size_of_x)) ++rounds;
  };
  const std::jthread busy([&](const std::stop_token& stop) {
    try {
      while (!stop.stop_requested()) round();
    } catch (const std::exception& thrown) {
      std::fprintf(stderr, "in the busy thread: %s\n", thrown.what());
      failed = true;
    }
  });
  for (int i = 0; i < 10 && !testing::Test::HasFailure(); ++i) {
    const int before = rounds;
    for (int looks = 0; rounds == before && !failed && looks < 30'000; ++looks) {
      std::this_thread::sleep_for(1ms);
    }
    EXPECT_EQ(status_of_child([&](faults_of_child& wrong) { use_own(wrong, "of a busy parent"); }),
              0);
    EXPECT_GT(rounds, before);
  }
  EXPECT_FALSE(failed);
}

/// What a parent has of UCX's does not survive; the rest is as it was.
TEST_P(ForkedOwn, IsOverSocketsAloneWhereTheParentHadUcx) {
  test_peer other("tcp");
  const std::string by_ucx = other.ask("serve");
  other.ask("publish x 10 1");
  ifstream of_ucx(by_ucx + "/x");
  ASSERT_TRUE(of_ucx) << of_ucx.error_message();
  const auto child = [&](faults_of_child& wrong) {
    std::error_code ec;
    const context none({}, ec);
    wrong.unless_inherited(ec, "a context of UCX's");
    std::string why;
    try {
      const client refused(by_ucx);
    } catch (const error& failed) {
      why = failed.what();
      wrong.unless_inherited(failed.code(), "a client by UCX");
    }
    wrong.unless(why.find("UCX does not survive fork()") != std::string::npos, "why: " + why);
    ifstream in(by_ucx + "/x");
    wrong.unless(!in && in.rdbuf()->error() == errc::forked_child, "a stream by UCX");
    use_own(wrong, "beside ucx");
  };
  EXPECT_EQ(status_of_child([&](faults_of_child& wrong) {
              child(wrong);
              wrong.unless(status_of_child(child) == 0, "a grandchild");
            }),
            0);
  EXPECT_EQ(static_cast<std::byte>(of_ucx.get()), pattern_byte(0, 1));
}

/// Of UCX nothing had begun.
TEST_P(ForkedOwn, MayBeOfUcxWhereTheParentHadSocketsAlone) {
  test_peer other("tcp");
  const std::string by_ucx = other.ask("serve");
  other.ask("publish x 10 1");
  client asking(url(where_), options());
  EXPECT_EQ(status_of_child([&](faults_of_child& wrong) {
              use_own(wrong, "before ucx");
              ifstream in(by_ucx + "/x");
              wrong.unless(static_cast<std::byte>(in.get()) == pattern_byte(0, 1),
                           "a stream by UCX: " + in.error_message());
              wrong.unless_inherited(asking.status(), "a client");
            }),
            0);
  EXPECT_EQ(asking.stat("file").size, 7U);
}

std::string name_of_own(const testing::TestParamInfo<std::string>& each) { return each.param; }

INSTANTIATE_TEST_SUITE_P(, ForkedOwn, testing::Values("socket", "unix"), name_of_own);
#if UCXIO_HAS_TLS
INSTANTIATE_TEST_SUITE_P(ByTls, ForkedOwn, testing::Values("tls"), name_of_own);
#endif

}  // namespace
}  // namespace ucx::test
