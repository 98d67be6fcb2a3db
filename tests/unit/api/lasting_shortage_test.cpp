// Memory that stays short from one allocation on: calls fail, connections end, destructors return,
// and no process ends of it.
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <ios>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "connection/channel.hpp"
#include "connection/control_relay.hpp"
#include "connection/endpoint_core.hpp"
#include "pipes/broker_core.hpp"
#include "pipes/pipe_introduction.hpp"
#include "support/basics/effort.hpp"
#include "support/bytes/pattern.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/replaced/shortage.hpp"
#include "support/simulated/served_region.hpp"
#include "support/simulated/simulated_address.hpp"
#include "support/simulated/simulated_pair.hpp"
#include "support/simulated/simulated_server.hpp"
#include "ucx/connection_manager.hpp"
#include "ucx/error.hpp"
#include "ucx/listener.hpp"
#include "ucx/memory_region.hpp"
#include "ucx/publication.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/stream.hpp"
#include "ucx/url.hpp"
#include "wire/control_message.hpp"
#include "worker/core_access.hpp"
#include "worker/worker_core.hpp"

namespace ucx::test {
namespace {

using std::chrono::milliseconds;

/// Makes a call that may fail as calls do.
template <class Call>
void may_fail(Call call) {
  try {
    call();
  } catch (const std::exception&) {  // std::bad_alloc, or an error
  }
}

/// Calls `scenario` with each number of allocations that go well, until it takes no more.
template <class Scenario>
void with_each_beginning(Scenario scenario) {
  constexpr sampled points(1, 3);  // odd: scenarios differ by what is left of 2 and 4
  std::uint64_t point = static_cast<std::uint64_t>(points.first);
  for (bool any = true; any; point += static_cast<std::uint64_t>(points.step)) {
    ASSERT_LT(point, 3000U);
    SCOPED_TRACE(testing::Message() << "allocation " << point << " and later");
    any = scenario(point);
  }
  EXPECT_GT(point, 20U) << "it allocates nothing";
}

worker_options with_short_limits() {
  worker_options options;
  options.connect_timeout = options.operation_timeout = options.close_timeout = milliseconds(100);
  options.heartbeat_timeout = milliseconds(300);
  return options;
}

enum class end_of_peer { closing, death, silence };

/// What a program does with a peer that serves memory, from connecting to the end.
class short_program {
 public:
  explicit short_program(end_of_peer how) : how_(how) {
    pair_.owner_process.on_pump([this] {
      const callback_scope ours(true);
      round(pair_.owner);
    });
  }

  /// Returns whether memory was short.
  bool run(std::uint64_t point) {
    std::uint64_t failed = 0;
    {
      const lasting_shortage begun(point);
      may_fail([this] {
        exposed_.emplace(pair_.owner_context, std::span(memory_), access::read_write);
        connection_.emplace(
            pair_.connect({.events = {.on_closed = [this](const connection_end&) { ++told_; }}}));
      });
      if (connection_) may_fail([this] { use(); });
      leave();
      failed = current_shortage.failed;
    }
    return failed > 0;
  }

  /// Returns whether the reader's worker is of use again, where its peer lives.
  bool connects_again() {
    if (how_ != end_of_peer::closing) return true;
    endpoint again = pair_.connect();
    std::error_code ec;
    again.wait_connected(ec);
    return !ec;
  }

 private:
  static simulated_pair_options options() {
    simulated_pair_options chosen;
    chosen.owner_worker = chosen.reader_worker = with_short_limits();
    return chosen;
  }

  void use() {
    connection_->wait_connected();
    std::error_code ec;
    region_.emplace(*connection_, exposed_->descriptor());
    requests_[0] = region_->start_read_at(0, into_);
    requests_[1] = region_->start_write_at(into_.size(), std::span<const std::byte>(written_));
    region_->post_write_at(0, std::span<const std::byte>(written_), {}, ec);
    connection_->fence();
    requests_[2] = region_->start_read_at(0, more_);
    requests_[3] = region_->start_notify(7);
    requests_[4] = connection_->start_send(3, written_);
    requests_[5] = pair_.owner.start_receive(3, received_);
    for (request& each : requests_) each.wait(ec);
    requests_[6] = region_->start_write_at(0, std::span<const std::byte>(written_));
    requests_[7] = region_->start_flush();
  }

  void leave() {
    {
      const callback_scope outside(false);
      if (how_ == end_of_peer::death) pair_.owner_process.kill();
      if (how_ == end_of_peer::silence) pair_.owner_process.stop();
    }
    if (how_ != end_of_peer::closing) {
      for (int i = 0; i < 10; ++i) {
        const callback_scope outside(false);
        pair_.network.advance(milliseconds(50));
        const callback_scope ours(true);
        round(pair_.reader);
      }
    }
    for (request& each : requests_) each.cancel();
    for (request& each : requests_) each = {};
    region_.reset();
    if (connection_) may_fail([this] { connection_->close(); });
    connection_.reset();
    exposed_.reset();
    if (how_ == end_of_peer::silence) pair_.owner_process.resume();
  }

  // The test's own memory is not what is short.
  const end_of_peer how_;
  std::vector<std::byte> memory_ = pattern(300'000);
  const std::vector<std::byte> written_ = pattern(100'000);
  std::vector<std::byte> into_ = std::vector<std::byte>(100'000);
  std::vector<std::byte> more_ = std::vector<std::byte>(1000);
  std::vector<std::byte> received_ = std::vector<std::byte>(100'000);
  int told_ = 0;
  simulated_pair pair_{options()};
  std::optional<memory_region> exposed_;
  std::optional<endpoint> connection_;
  std::optional<remote_region> region_;
  std::vector<request> requests_ = std::vector<request>(8);
};

class LastingShortage : public testing::TestWithParam<end_of_peer> {};

TEST_P(LastingShortage, EndsNoProcess) {
  with_each_beginning([](std::uint64_t point) {
    short_program program(GetParam());
    const bool any = program.run(point);
    EXPECT_TRUE(program.connects_again());
    return any;
  });
}

INSTANTIATE_TEST_SUITE_P(Ends, LastingShortage,
                         testing::Values(end_of_peer::closing, end_of_peer::death,
                                         end_of_peer::silence),
                         [](const auto& instance) {
                           switch (instance.param) {
                             case end_of_peer::closing:
                               return "closing";
                             case end_of_peer::death:
                               return "death";
                             case end_of_peer::silence:
                               break;
                           }
                           return "silence";
                         });

/// Everything is made, used and destroyed where nothing can be allocated behind a point.
TEST(LastingShortageOfAServer, EndsNoProcess) {
  std::vector<std::byte> memory = pattern(100'000);
  std::vector<std::byte> into(memory.size());
  with_each_beginning([&](std::uint64_t point) {
    simulated_server_options options;
    options.server.worker = options.client.worker = with_short_limits();
    simulated_server pair(options);
    pair.process.on_pump([&] {
      const callback_scope ours(true);
      if (pair.made) round(pair.made->worker());
    });
    std::optional<client> reader = pair.connect();
    std::optional<publication> published;
    std::optional<publication> second;
    std::optional<remote_region> region;
    std::uint64_t failed = 0;
    {
      const lasting_shortage begun(point);
      may_fail([&] {
        published = pair.server().publish("matrix", std::span(memory), access::read);
        second = pair.server().publish("vector", std::span(memory), access::read);
        reader->list();
        region = reader->open("matrix", access::read);
        region->read_at(0, into);
      });
      published.reset();  // its readers are told
      may_fail([&] { reader->stat("vector"); });
      region.reset();
      if (point % 2 == 0) reader->close();
      if (point % 4 < 2) pair.made->close();
      reader.reset();
      second.reset();
      pair.made.reset();
      failed = current_shortage.failed;
    }
    return failed > 0;
  });
}

/// A directory is published, or is not.
TEST(LastingShortageOfAStore, EndsNoProcess) {
  const temporary_directory directory;
  with_each_beginning([&](std::uint64_t point) {
    simulated_server_options options;
    options.server.worker = options.client.worker = with_short_limits();
    simulated_server pair(options);
    std::uint64_t failed = 0;
    {
      const lasting_shortage begun(point);
      std::optional<publication> store;
      may_fail([&] { store = pair.server().publish_store(directory / "", {}); });
      store.reset();
      failed = current_shortage.failed;
    }
    return failed > 0;
  });
}

TEST(LastingShortageOfAListener, EndsNoProcess) {
  with_each_beginning([](std::uint64_t point) {
    simulated_pair_options options;
    options.owner_worker = options.reader_worker = with_short_limits();
    simulated_pair pair(options);
    pair.owner_process.on_pump([&] {
      const callback_scope ours(true);
      round(pair.owner);
    });
    std::vector<std::optional<endpoint>> all(3);
    std::optional<listener> door;
    std::uint64_t failed = 0;
    {
      const lasting_shortage begun(point);
      may_fail([&] {
        door.emplace(pair.owner, socket_address("127.0.0.1:0"));
        for (auto& each : all) each.emplace(pair.reader, door->address());
        all[0]->wait_connected();
        all[1]->wait_connected();
      });
      if (door && point % 2 == 0) may_fail([&] { door->close(); });
      door.reset();
      for (auto& each : all) each.reset();
      failed = current_shortage.failed;
    }
    return failed > 0;
  });
}

// The library's own code, where users' code is due and nobody could catch what it throws.

/// An owner's worker and a reader's, which make their rounds whatever becomes of them.
simulated_pair_options short_pair() {
  simulated_pair_options options;
  options.owner_worker = options.reader_worker = with_short_limits();
  return options;
}
void keep_driving_owner(simulated_pair& pair) {
  pair.owner_process.on_pump([&pair] {
    const callback_scope ours(true);
    round(pair.owner);
  });
}

/// Knocks three times while memory is short, and once behind that.
class knocked_door {
 public:
  knocked_door() { keep_driving_owner(pair_); }

  template <class Open>
  bool knock(std::uint64_t point, Open open) {
    const listener door(pair_.owner, any_port, open(pair_.owner, accepted_));
    std::uint64_t failed = 0;
    {
      const lasting_shortage begun(point);
      for (int i = 0; i < 3; ++i) {
        may_fail([&] { endpoint(pair_.reader, door.address()).wait_connected(); });
      }
      failed = current_shortage.failed;
    }
    std::error_code ec;
    const endpoint again(pair_.reader, door.address(), {}, ec);
    EXPECT_FALSE(ec) << ec.message();
    return failed > 0;
  }

 private:
  simulated_pair pair_{short_pair()};
  std::list<endpoint> accepted_;
};

TEST(LastingShortageOfAnAcceptHandler, EndsNoProcess) {
  const auto open = [](worker& driven, std::list<endpoint>& accepted) {
    listener_options made;
    made.on_request = [&](connection_request request) {
      may_fail([&] { accepted.emplace_back(driven, std::move(request)); });
    };
    return made;
  };
  with_each_beginning([&](std::uint64_t point) { return knocked_door().knock(point, open); });
}

/// What a coroutine would be, without memory of its own.
struct nothing_to_await {
  bool await_ready() const noexcept { return true; }
  void await_suspend(std::coroutine_handle<>) const noexcept {}
  void await_resume() const noexcept {}
};

TEST(LastingShortageOfAnAwaitableAcceptHandler, EndsNoProcess) {
  const auto open = [](worker& driven, std::list<endpoint>& accepted) {
    listener_options made;
    made.on_request = [&](connection_request request) {
      may_fail([&] { accepted.emplace_back(driven, std::move(request)); });
      return nothing_to_await();
    };
    return made;
  };
  with_each_beginning([&](std::uint64_t point) { return knocked_door().knock(point, open); });
}

/// It waits for one peer after the other, and begins at once.
struct waiting_for_peers {
  struct promise_type {
    waiting_for_peers get_return_object() noexcept { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
    void unhandled_exception() noexcept {}
  };
};

waiting_for_peers take_all(listener& door, worker& driven, std::list<endpoint>& accepted,
                           std::error_code& ended) {
  try {
    for (;;) {
      connection_request came = co_await door.accept();
      may_fail([&] { accepted.emplace_back(driven, std::move(came)); });
    }
  } catch (const error& closed) {
    ended = closed.code();
  } catch (const std::bad_alloc&) {
    ended = errc::no_memory;
  }
}

TEST(LastingShortageOfWhoAwaitsPeers, EndsNoProcess) {
  with_each_beginning([](std::uint64_t point) {
    simulated_pair pair(short_pair());
    keep_driving_owner(pair);
    std::list<endpoint> accepted;
    std::error_code ended;
    listener_options awaited;
    awaited.manual_accept = true;
    listener door(pair.owner, any_port, std::move(awaited));
    take_all(door, pair.owner, accepted, ended);
    const socket_address at = door.address();
    std::uint64_t failed = 0;
    {
      const lasting_shortage begun(point);
      for (int i = 0; i < 3; ++i) {
        may_fail([&] { endpoint(pair.reader, at).wait_connected(); });
      }
      failed = current_shortage.failed;
    }
    accepted.clear();
    door.close();
    pair.network.advance(milliseconds(1));
    EXPECT_TRUE(ended) << "it was forgotten";
    return failed > 0;
  });
}

TEST(LastingShortageOfAWorkerThatIsToldOfPeers, EndsNoProcess) {
  with_each_beginning([](std::uint64_t point) {
    int established = 0;
    int closed = 0;
    simulated_pair pair(short_pair());
    pair.owner.set_connection_events(
        {.on_established = [&](const endpoint&, const connection_report&) { ++established; },
         .on_closed = [&](const connection_end&) { ++closed; }});
    keep_driving_owner(pair);
    std::uint64_t failed = 0;
    {
      const lasting_shortage begun(point);
      may_fail([&] {
        endpoint peer = pair.connect();
        peer.wait_connected();
        peer.close();
      });
      failed = current_shortage.failed;
    }
    endpoint again = pair.connect();
    again.wait_connected();
    again.close();
    pair.network.advance(std::chrono::seconds(3));
    EXPECT_GE(established, 1);
    EXPECT_GE(closed, established) << "an end was not told";
    return failed > 0;
  });
}

/// Who asks before each attempt is told of all changes, and may be short of memory at any time.
TEST(LastingShortageOfAConnectionManager, ForgetsNoPeer) {
  with_each_beginning([](std::uint64_t point) {
    simulated_pair pair(short_pair());
    keep_driving_owner(pair);
    pair.reader_process.on_pump([&] {
      const callback_scope ours(true);
      round(pair.reader);
    });
    const listener door(pair.owner, any_port);
    connection_manager_options wanted;
    wanted.connect_timeout = milliseconds(50);
    wanted.reconnect.first_delay = wanted.reconnect.max_delay = milliseconds(20);
    wanted.reconnect.max_attempts = 1000;
    wanted.on_attempt = [](const managed_peer&) { return true; };
    std::map<std::string, connection_state> told;
    wanted.on_change = [&](const managed_peer& peer) {
      const callback_scope outside(false);
      told[peer.name] = peer.state;
    };
    connection_manager manager(pair.reader, std::move(wanted));
    const std::string names[] = {"by its socket", "by its worker", "not there"};
    const peer_address places[] = {door.address(), pair.owner.address(), nobody};
    std::uint64_t failed = 0;
    {
      const lasting_shortage begun(point);
      for (int i = 0; i < 3; ++i) {
        may_fail([&] { manager.add(names[i], places[i]); });
      }
      for (int i = 0; i < 20; ++i) {
        const callback_scope outside(false);
        pair.network.advance(milliseconds(5));
        const callback_scope ours(true);
        round(pair.reader);
        if (i == 10) may_fail([&] { manager.reconnect(names[0]); });
      }
      failed = current_shortage.failed;
    }
    const std::size_t added = manager.peers().size();
    EXPECT_TRUE(pair.network.run_until([&] {
      for (const std::string& each : {names[0], names[1]}) {
        const auto status = manager.status(each);
        if (status && status->state != connection_state::active) return false;
      }
      return true;
    })) << "a peer is not tried again";
    pair.network.advance(milliseconds(20));
    for (const std::string& each : {names[0], names[1]}) {
      if (!manager.status(each)) continue;
      EXPECT_EQ(told[each], connection_state::active) << each;
    }
    EXPECT_EQ(manager.peers().size(), added);
    return failed > 0;
  });
}

/// Two who ask a broker for each other.
class asking_pair {
 public:
  asking_pair(simulated_pair& pair, std::string name)
      : name_(std::move(name)), reader_(pair.connect()), writer_(pair.connect()) {
    reader_.wait_connected();
    writer_.wait_connected();
    answers_.push_back(reader_.start_receive(detail::pipe_answer_tag, std::span(heard_[0])));
    answers_.push_back(writer_.start_receive(detail::pipe_answer_tag, std::span(heard_[1])));
  }

  void ask() {
    using enum detail::pipe_role;
    const std::vector<std::byte> reads =
        encode(detail::pipe_question{.role = reader, .name = name_, .address = "127.0.0.1:1"});
    const std::vector<std::byte> writes =
        encode(detail::pipe_question{.role = writer, .name = name_});
    std::error_code ec;
    reader_.send(active_message{detail::pipe_question_number}, reads, {}, ec);
    writer_.send(active_message{detail::pipe_question_number}, writes, {}, ec);
  }

  /// Returns what both are told.
  std::vector<std::uint32_t> told() {
    std::vector<std::uint32_t> all;
    for (std::size_t i = 0; i < 2; ++i) {
      std::error_code ec;
      answers_[i].wait(ec);
      const auto length = static_cast<std::size_t>(answers_[i].received().length);
      const auto heard =
          detail::decode_pipe_answer(std::span<const std::byte>(heard_[i]).first(length));
      if (!ec && heard) all.push_back(heard->status);
    }
    return all;
  }

 private:
  const std::string name_;
  endpoint reader_;
  endpoint writer_;
  std::vector<std::byte> heard_[2] = {std::vector<std::byte>(detail::pipe_answer::longest),
                                      std::vector<std::byte>(detail::pipe_answer::longest)};
  std::vector<request> answers_;
};

/// It is asked where users' messages come, in questions that come at once and in longer ones.
TEST(LastingShortageOfABroker, EndsNoProcess) {
  for (const std::size_t length : {std::size_t{5}, url::max_name_size}) {
    with_each_beginning([&](std::uint64_t point) {
      simulated_pair_options options = short_pair();
      options.link.segment = 1U << 10U;
      simulated_pair pair(options);
      keep_driving_owner(pair);
      const auto broker = std::make_shared<detail::broker_core>(3);
      pair.owner.on_message(detail::pipe_question_number,
                            [&](message asked) { broker->asked(0, std::move(asked)); });
      asking_pair first(pair, std::string(length, 'f'));
      std::uint64_t failed = 0;
      {
        const lasting_shortage begun(point);
        const callback_scope outside(false);
        may_fail([&] { first.ask(); });
        pair.network.advance(milliseconds(50));
        failed = current_shortage.failed;
      }
      // One of the first may wait still; no place is lost, or these would find none.
      for (int i = 0; i < 3; ++i) {
        asking_pair again(pair, std::string(length, 'a'));
        again.ask();
        EXPECT_EQ(again.told(), std::vector<std::uint32_t>(2));
      }
      broker->close();
      return failed > 0;
    });
  }
}

/// The thread that asks the system's resolver tells of what it found, whatever memory is left.
TEST(LastingShortageOfTheResolversThread, EndsNoProcess) {
  simulated_pair_options options;
  options.link.time = time_mode::real;
  simulated_pair pair(options);
  const listener door(pair.owner, any_port);
  const shortage_of_other_threads begun;
  std::error_code ec;
  const endpoint none(pair.reader, {"localhost", door.address().port()}, {}, ec);
  EXPECT_EQ(ec, errc::no_memory) << ec.message();
}

/// What a child of fork() has of its parent's streams it keeps without memory, on any thread.
TEST(LastingShortageOfAForkedChild, LetsItsStreamsGo) {
  served_region served(1000);
  std::vector<std::optional<remote_streambuf>> streams(64);
  for (auto& each : streams) each.emplace(served.region, std::ios::in | std::ios::out);
  const ::pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < 4; ++t) {
      threads.emplace_back([&streams, t] {
        const lasting_shortage begun;
        for (std::size_t i = t; i < streams.size(); i += 4) streams[i].reset();
      });
    }
    for (std::thread& each : threads) each.join();
    ::_exit(0);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

/// What a session of another worker is asked reaches it, or the connection ends.
TEST(LastingShortageOfARelay, LosesNoQuestionInSilence) {
  struct session final : public detail::channel_receiver {
    void received(std::span<const std::byte>) override { ++count; }
    void ended(std::error_code) noexcept override {}
    int count = 0;
  };
  with_each_beginning([](std::uint64_t point) {
    std::optional<endpoint> served;
    simulated_pair pair;
    pair.owner.set_connection_events(
        {.on_established = [&](endpoint peer, const connection_report&) {
          served.emplace(std::move(peer));
        }});
    worker home(pair.owner_context);
    endpoint peer = pair.connect();
    peer.wait_connected();
    pair.network.advance(milliseconds(1));
    session answers;
    std::shared_ptr<detail::control_relay> relay;
    const auto& away = detail::core_access::core(*served);
    {
      const std::lock_guard guard(away->worker().lock());
      relay = detail::control_relay::begin(*away, detail::core_access::core(home));
    }
    relay->attach(&answers);
    {
      const auto& asks = detail::core_access::core(peer);
      const std::lock_guard guard(asks->worker().lock());
      detail::control_header said;
      said.type = detail::control_type::stat;
      for (int i = 0; i < 3; ++i) {
        asks->control().send(encode_control(said, detail::stat_body{"x"}));
      }
    }
    std::uint64_t failed = 0;
    {
      const lasting_shortage begun(point);
      for (int i = 0; i < 10; ++i) {
        round(pair.owner);
        round(home);
      }
      failed = current_shortage.failed;
    }
    for (int i = 0; i < 10; ++i) {
      pair.network.advance(milliseconds(1));
      home.progress();
    }
    EXPECT_TRUE(answers.count == 3 || away->status() == errc::no_memory)
        << answers.count << " answered, " << away->status().message();
    relay->attach(nullptr);
    relay.reset();
    served.reset();
    return failed > 0;
  });
}

}  // namespace
}  // namespace ucx::test
