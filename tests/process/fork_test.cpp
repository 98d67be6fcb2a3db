// Children of fork(): what they have of their parent's ends with them, and harms nobody.
#include <gtest/gtest.h>

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <future>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "support/bytes/pattern.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/process/forked_child.hpp"
#include "support/process/test_peer.hpp"
#include "support/transports/ucx_server.hpp"
#include "ucx/client.hpp"
#include "ucx/connection_manager.hpp"
#include "ucx/context.hpp"
#include "ucx/cstdio.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/error.hpp"
#include "ucx/fstream.hpp"
#include "ucx/listener.hpp"
#include "ucx/many_files.hpp"
#include "ucx/memory_region.hpp"
#include "ucx/pipe_broker.hpp"
#include "ucx/pipe_stream.hpp"
#include "ucx/progress_loop.hpp"
#include "ucx/remote_atomic.hpp"
#include "ucx/remote_file.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/request.hpp"
#include "ucx/server.hpp"
#include "ucx/worker.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t length = 100'000;

struct ending {
  std::string how;
  std::string plane = "tcp";  // of the process that forks
};

void PrintTo(const ending& each, std::ostream* out) { *out << each.plane << ' ' << each.how; }

class ForkedChild : public testing::TestWithParam<ending> {
 protected:
  static pipe_options by_message() {
    pipe_options options;
    options.context.share_memory = false;
    return options;
  }

  const temporary_directory directory_;
  const std::vector<std::byte> bytes_ = pattern(length, 1);
};

// It has every kind of handle, at either side, over which its parent goes on.
TEST_P(ForkedChild, EndsAndHarmsNeitherItsParentNorThePeers) {
  ucx_server here;
  const pipe_broker introduces(here);
  directory_.make("file", "content");
  const publication store = here.publish_store(directory_ / "", {.prefix = "s", .writable = true});
  const publication memory = here.publish("x", std::span<const std::byte>(bytes_));

  test_peer parent(GetParam().plane);
  const std::string served = parent.ask("serve");
  parent.ask("publish y " + std::to_string(length) + " 2");
  parent.ask("client " + here.url());
  parent.ask("open_name x read");
  parent.ask("until_exit " + here.url("s/file"));
  parent.ask("leave_open " + here.url("s/new"));
  const socket_address listens = parent.listen();
  const remote_descriptor owned = parent.allocate(length, 3);
  parent.say("pipe open out " + here.url("pipe") + " message");
  ipipestream from_parent(here.url("pipe"), by_message());
  EXPECT_TRUE(parent.hear().starts_with("ok"));

  client asking(served);
  ifstream in(served + "/y");
  remote_region opened = asking.open("y", access::read);
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(parent.ask("read 0 1000 1"), "yes");
    EXPECT_NE(parent.ask("list"), "0");
    parent.ask("pipe write 1000 4");
    std::string came(1000, '\0');
    from_parent.read(came.data(), 1000);
    EXPECT_TRUE(from_parent) << from_parent.error_message();
    std::vector<std::byte> into(1000);
    opened.read_at(0, into);
    EXPECT_TRUE(holds_pattern(into, 2));
    EXPECT_EQ(asking.list().size(), 1U);
    char first = 0;
    in.seekg(0).read(&first, 1);
    EXPECT_EQ(static_cast<std::byte>(first), pattern_byte(0, 2));
    if (round < 2) {
      EXPECT_EQ(parent.ask("fork_off " + GetParam().how), "0");
    }
  }
  const context ours;
  const worker driven(ours);
  const endpoint to_parent(driven, listens);
  std::vector<std::byte> into(1000);
  remote_region(to_parent, owned).read_at(0, into);
  EXPECT_TRUE(holds_pattern(into, 3));
  // No child has closed its file: it appears when the parent ends.
  EXPECT_FALSE(std::filesystem::exists(directory_ / "new"));
  parent.say("quit");
  EXPECT_EQ(parent.process().wait(30s), 0);
  EXPECT_EQ(content_of(directory_ / "new"), "left open");
}

INSTANTIATE_TEST_SUITE_P(, ForkedChild,
                         testing::Values(ending{"return"}, ending{"exit"}, ending{"_exit"},
                                         ending{"exec"}, ending{"daemon"}, ending{"system"},
                                         ending{"popen"}, ending{"return", "mapped"},
                                         ending{"exit", "mapped"}));

// What UCX has in shared memory is both processes'.
TEST(ForkedChildren, EndAndHarmNoSharedMemory) {
  test_peer parent("local");
  test_peer other("local");
  for (const auto& [from, to] : {std::pair(&parent, &other), std::pair(&other, &parent)}) {
    const std::string region = to->ask("allocate 100000 read_write 1");
    from->ask("connect " + to->ask("address"));
    from->ask("open " + region);
  }
  for (const std::string how : {"return", "exit", "return"}) {
    EXPECT_EQ(parent.ask("read 0 100000 1"), "yes");
    EXPECT_EQ(other.ask("read 0 100000 1"), "yes");
    EXPECT_EQ(parent.ask("fork_off " + how), "0");
  }
  EXPECT_EQ(parent.ask("read 0 100000 1"), "yes");
  EXPECT_EQ(other.ask("read 0 100000 1"), "yes");
}

TEST(ForkedChildren, AreToldByEveryHandleWhatTheyAre) {
  const temporary_directory directory;
  directory.make("file", "content");
  test_peer peer("tcp");
  const std::string where = peer.ask("serve");
  peer.ask("publish_store " + (directory / "").string());
  const socket_address listens = peer.listen();
  const remote_descriptor owned = peer.allocate(length);

  const context ours;
  worker driven(ours);
  endpoint connection(driven, listens);
  remote_region region(connection, owned);
  listener listening(driven, socket_address("127.0.0.1:0"));
  memory_region lent = memory_region::allocate(ours, length, access::read_write);
  std::vector<std::byte> into(length);
  request under_way = connection.start_receive(tag_match::any(), into);
  request behind = connection.start_receive(tag_match::any(), into);
  ucx_server served;
  const publication published = served.publish("x", std::span<const std::byte>(into));
  client asking(where);
  remote_region opened = asking.open("file", access::read);
  remote_file file{url(where + "/file")};
  ifstream in(where + "/file");
  ofstream out(where + "/made");
  out << "begun";
  std::FILE* const c_file = open_file(where + "/file", "r");
  connection_manager managed(driven);
  progress_loop loop;
  loop.add(driven);
  const pipe_broker introduces(served);
  pipe_options options;
  options.context.share_memory = false;
  std::future<opipestream> writer =
      std::async(std::launch::async, [&] { return opipestream(served.url("pipe"), options); });
  ipipestream reader(served.url("pipe"), options);
  opipestream to_reader = writer.get();
  ASSERT_TRUE(reader && to_reader && in && out && c_file != nullptr);
  in.get();

  const auto work = [&](faults_of_child& wrong) {
    std::error_code ec;
    wrong.unless(is_forked_child(), "the process knows it");
    wrong.unless_inherited_thrown("a context", [] { const context made; });
    wrong.unless_inherited_thrown("a worker", [&] { const worker made(ours); });
    wrong.unless_inherited_thrown("a connection", [&] { const endpoint made(driven, listens); });
    wrong.unless_inherited_thrown("a listener", [&] { const listener made(driven, listens); });
    wrong.unless_inherited_thrown("a region",
                                  [&] { const memory_region made(ours, into, access::read); });
    wrong.unless_inherited_thrown("a remote region",
                                  [&] { const remote_region made(connection, owned); });
    wrong.unless_inherited_thrown("a server", [] { const ucx_server made; });
    wrong.unless_inherited_thrown("a client", [&] { const client made(where); });
    wrong.unless_inherited_thrown("a shared client", [&] { client::shared(url(where)); });
    wrong.unless_inherited_thrown("an address", [&] { driven.address(); });
    wrong.unless_inherited_thrown("a run", [&] { driven.run({}); });
    wrong.unless(!driven.progress(), "a round");
    wrong.unless_inherited_thrown("a loop", [&] { loop.run_once(1s); });
    wrong.unless_inherited(connection.status(), "a status");
    wrong.unless_inherited_thrown("a send",
                                  [&] { connection.send(1, std::span<const std::byte>(into)); });
    wrong.unless_inherited_thrown(
        "a short send", [&] { connection.send(1, std::span(std::as_const(into)).first(8)); });
    wrong.unless_inherited_thrown("a receive", [&] { connection.receive(tag_match::any(), into); });
    wrong.unless_inherited_thrown("a flush", [&] { connection.flush(); });
    wrong.unless_inherited_thrown("a worker's flush", [&] { driven.flush(); });
    wrong.unless_inherited_thrown("a wait", [&] { under_way.wait(); });
    wrong.unless_inherited_thrown("a wait for a while", [&] { under_way.wait_for(1s); });
    wrong.unless_inherited_thrown("a wait for some", [&] { wait_any({&under_way, 1}, 1s); });
    behind.then([&](std::error_code told) { ec = told; });
    wrong.unless_inherited(ec, "a handler");
    wrong.unless_inherited_thrown("a read", [&] { region.read_at(0, into); });
    wrong.unless_inherited_thrown("a write", [&] { region.write_at(0, into); });
    wrong.unless_inherited_thrown("a flush of writes", [&] { region.flush(); });
    wrong.unless_inherited_thrown("a posted write", [&] { region.post_write_at(0, into); });
    wrong.unless_inherited_thrown("an atomic",
                                  [&] { remote_atomic<std::uint64_t>(region, 0).load(); });
    wrong.unless_inherited_thrown("a notification", [&] { region.notify(1); });
    wrong.unless_inherited(region.status(), "a region's status");
    wrong.unless_inherited_thrown("a wait for a notification", [&] { lent.wait_notify(driven); });
    wrong.unless_inherited_thrown("a wait for a peer",
                                  [&] { static_cast<void>(listening.accept().wait()); });
    wrong.unless_inherited_thrown("a close", [&] { connection.close(); });
    wrong.unless_inherited_thrown(
        "a publication", [&] { static_cast<void>(served.allocate("y", 10, access::read)); });
    wrong.unless_inherited_thrown("a URL", [&] { static_cast<void>(served.url("y")); });
    wrong.unless_inherited_thrown("the URL of what is published",
                                  [&] { static_cast<void>(published.url()); });
    wrong.unless_inherited_thrown("a server's address",
                                  [&] { static_cast<void>(served.address()); });
    served.publish_address(directory / "address", ec);
    wrong.unless_inherited(ec, "an address file, asked for by a code");
    wrong.unless_inherited_thrown("an address file",
                                  [&] { served.publish_address(directory / "address"); });
    wrong.unless(served.list().empty(), "what is published");
    wrong.unless(introduces.introduced() == 0, "the pipes that were introduced");
    wrong.unless(served.statistics().names == 0, "a server's statistics");
    wrong.unless_inherited_thrown("a list", [&] { asking.list(); });
    wrong.unless_inherited_thrown("an open", [&] { asking.open("file", access::read); });
    wrong.unless_inherited_thrown("a name's facts", [&] { asking.stat("file"); });
    wrong.unless_inherited_thrown("a new file", [&] { asking.create("new"); });
    wrong.unless_inherited_thrown("a removal", [&] { asking.remove("file"); });
    wrong.unless_inherited_thrown("a new name", [&] { asking.rename("file", "new"); });
    wrong.unless_inherited_thrown("a new size", [&] { asking.resize("file", 1); });
    wrong.unless_inherited_thrown("a directory", [&] { asking.list_directory(""); });
    wrong.unless_inherited_thrown("a new directory", [&] { asking.make_directory("new"); });
    wrong.unless_inherited_thrown("a commit", [&] { asking.commit(opened); });
    wrong.unless_inherited_thrown("a size", [&] { asking.refresh_size(opened); });
    wrong.unless_inherited_thrown("a new size of an open file", [&] { asking.resize(opened, 1); });
    wrong.unless_inherited_thrown("hashes", [&] { asking.digest(opened, {}); });
    client connected;
    wrong.unless_inherited(client::start_connect(driven, url(where), connected).error(),
                           "a client over a worker");
    remote_region made;
    wrong.unless_inherited(asking.start_open("file", access::read, made).error(), "a started open");
    remote_file second;
    wrong.unless_inherited(remote_file::start_open(asking, "file", {}, second).error(),
                           "a started open of a file");
    wrong.unless_inherited(file.start_sync().error(), "a started sync");
    request late = connection.start_receive(tag_match::any(), into);
    late.orphan(into.size());
    wrong.unless_inherited_thrown("a lane", [&] { detail::further_client(asking, 1); });
    wrong.unless_inherited_thrown("a new connection", [&] { detail::reconnected(asking); });
    wrong.unless_inherited(
        open_many(asking, std::vector<std::string>{"file"}, access::read)[0].error,
        "an open of many");
    wrong.unless_inherited_thrown("a read of a file", [&] { file.read_at(0, into); });
    wrong.unless_inherited_thrown("a manager", [&] { managed.add("peer", listens); });
    wrong.unless_inherited_thrown("a managed connection", [&] { managed.wait_active("peer"); });
    wrong.unless_inherited_thrown("a worker's attributes", [&] { driven.attributes(); });
    wrong.unless_inherited_thrown("a wait to be connected", [&] { connection.wait_connected(); });
    wrong.unless(!in.seekg(0), "a stream");
    wrong.unless_inherited(in.rdbuf()->error(), "a stream's error");
    wrong.unless(!out.flush() && out.rdbuf()->error() == errc::forked_child, "a flush of a stream");
    wrong.unless(!(ifstream(where + "/file")), "a new stream");
    wrong.unless(reader.get() == EOF && reader.bad(), "a pipe");
    wrong.unless_inherited(reader.rdbuf()->error(), "a pipe's error");
    wrong.unless(!(to_reader << "more" << std::flush), "the other end of a pipe");
    wrong.unless(std::fgetc(c_file) == EOF && errno == ENOTSUP, "a file of C's");
    std::fclose(c_file);
    listening.close();
    lent.close();
    served.close();
    asking.close();
    file.close(ec);
    in.close();
    out.close();
  };
  EXPECT_EQ(status_of_child(work), 0);
  // The parent goes on with all of it.
  connection.send(1, std::span<const std::byte>(into));
  region.read_at(0, into);
  EXPECT_EQ(asking.list().size(), 1U);
  opened.read_at(0, std::span(into).first(7));
  EXPECT_EQ(in.get(), 'o');
  out.close();
  EXPECT_TRUE(out) << out.error_message();
  EXPECT_EQ(content_of(directory / "made"), "begun");
  to_reader << "more" << std::flush;
  EXPECT_EQ(reader.get(), 'm');
  EXPECT_EQ(std::fgetc(c_file), 'c');
  std::fclose(c_file);
  EXPECT_EQ(client(served.url()).list().size(), 1U);
}

// A lock that another thread has when the process forks is held for ever in the child.
TEST(ForkedChildren, EndWhileTheirParentsThreadsGoOn) {
  test_peer peer("tcp");
  const std::string where = peer.ask("serve");
  peer.ask("publish x " + std::to_string(length) + " 1");
  std::optional<client> asking(std::in_place, where);
  std::optional<ifstream> idle(std::in_place, where + "/x");
  std::atomic<bool> stopping{false};
  std::atomic<int> reads{0};
  std::thread busy([&] {
    ifstream in(where + "/x");
    std::vector<char> into(length);
    while (!stopping && in.seekg(0).read(into.data(), length) && !asking->list().empty()) ++reads;
  });
  for (int i = 0; i < 30; ++i) {
    const int before = reads;
    for (int waited = 0; reads == before && waited < 30'000; ++waited) {
      std::this_thread::sleep_for(1ms);
    }
    EXPECT_EQ(status_of_child([&](faults_of_child&) {
                idle->get();
                idle.reset();
                asking.reset();
              }),
              0);
    EXPECT_GT(reads, before);
  }
  stopping = true;
  busy.join();
  EXPECT_EQ(asking->list().size(), 1U);
}

// Where the parent has none at the moment, UCX is as good as new.
TEST(ForkedChildren, OfAParentWithoutConnectionsHaveTheirOwn) {
  test_peer peer("tcp");
  const std::string where = peer.ask("serve");
  peer.ask("publish x " + std::to_string(length) + " 1");
  const auto read = [&] {
    ifstream in(where + "/x");
    return static_cast<std::byte>(in.get()) == pattern_byte(0, 1);
  };
  EXPECT_TRUE(read());
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(status_of_child([&](faults_of_child& wrong) { wrong.unless(read(), "a stream"); }),
              0);
  }
  EXPECT_TRUE(read());
}

}  // namespace
}  // namespace ucx::test
