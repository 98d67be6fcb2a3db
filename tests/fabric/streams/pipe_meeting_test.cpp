// How the ends of a pipe find each other, and who is turned away.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <cstddef>
#include <future>
#include <span>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "support/basics/soon.hpp"
#include "support/streams/pipe_place.hpp"
#include "ucx/client.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/error.hpp"
#include "ucx/file_descriptor.hpp"
#include "ucx/pipe_broker.hpp"
#include "ucx/pipe_stream.hpp"
#include "ucx/server.hpp"
#include "ucx/socket_address.hpp"
#include "ucx/url.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

class PipeMeeting : public pipe_place {};

TEST_F(PipeMeeting, StopsOpening) {
  std::stop_source stop;
  auto opening = open<ipipestream>({.stop = stop.get_token()});
  EXPECT_TRUE(soon([this] { return broker_->waiting() > 0; }));
  stop.request_stop();
  EXPECT_EQ(opening.get().error(), errc::canceled);
}

TEST_F(PipeMeeting, SaysWhoDidNotCome) {
  // Longer than the server takes to answer: one that has not is what the error tells of.
  ipipestream in(name(), {.connect_timeout = 3s});
  EXPECT_TRUE(in.fail());
  EXPECT_EQ(in.error(), errc::timed_out);
  EXPECT_NE(in.error_message().find("no writer came"), std::string::npos) << in.error_message();
  EXPECT_NE(in.error_message().find(name()), std::string::npos) << in.error_message();
  opipestream out(name(), {.connect_timeout = 3s});
  EXPECT_EQ(out.error(), errc::timed_out);
  EXPECT_NE(out.error_message().find("no reader came"), std::string::npos) << out.error_message();
}

TEST_F(PipeMeeting, RefusesWhatMakesNoSense) {
  EXPECT_EQ(ipipestream(name(), {.window = 1}).error(), errc::invalid_argument);
  EXPECT_EQ(ipipestream(name(), {.window = pipe_options::max_window + 1}).error(),
            errc::invalid_argument);
  EXPECT_EQ(ipipestream(name(), {.writers = 0}).error(), errc::invalid_argument);
  EXPECT_EQ(opipestream(name(), {.readers = 0}).error(), errc::invalid_argument);
  EXPECT_EQ(pipestream(name(), {.readers = 2}).error(), errc::invalid_argument);
  EXPECT_EQ(ipipestream(name(), {.heartbeat_timeout = 0s}).error(), errc::invalid_argument);
  EXPECT_EQ(ipipestream(server_.url()).error(), errc::bad_url);
  EXPECT_EQ(ipipestream("no url").error(), errc::bad_url);
  EXPECT_EQ(ipipestream().error(), errc::closed);
}

TEST_F(PipeMeeting, NeedsABroker) {
  broker_.reset();
  EXPECT_EQ(ipipestream(name()).error(), errc::not_supported);
  EXPECT_EQ(opipestream(name()).error(), errc::not_supported);
}

TEST_F(PipeMeeting, RefusesMoreThanMayWait) {
  broker_.emplace(server_, pipe_broker_options{.max_waiting = 1});
  auto first = open<ipipestream>({}, "a");
  EXPECT_TRUE(soon([this] { return broker_->waiting() > 0; }));
  EXPECT_EQ(ipipestream(name("b")).error(), errc::busy);
  opipestream(name("a")).close();
  EXPECT_TRUE(first.get());
}

TEST_F(PipeMeeting, TellsWhoWaitsThatTheBrokerEnds) {
  auto waiting = open<ipipestream>();
  EXPECT_TRUE(soon([this] { return broker_->waiting() > 0; }));
  broker_.reset();
  EXPECT_EQ(waiting.get().error(), errc::closed_by_peer);
}

/// A stranger who speaks to the broker, and to whom it introduces him, byte by byte.
class stranger {
 public:
  explicit stranger(const url& where)
      : through_(where.server(), client()),
        broker_(through_.worker(), {where.host(), where.port()}) {}

  void tell(const std::string& question) {
    broker_.send(active_message{0x7563'7869'706d'6500}, std::as_bytes(std::span(question)));
  }
  /// Returns the broker's answer to `question`.
  std::string ask(const std::string& question) {
    tell(question);
    std::string answer(512, '\0');
    const message_info came =
        broker_.receive(0x7563'7869'706d'6501, std::as_writable_bytes(std::span(answer)));
    answer.resize(static_cast<std::size_t>(came.length));
    return answer;
  }
  std::error_code knock(const std::string& address, const std::string& token) {
    endpoint_options options;
    options.terms = connection_terms();
    const auto bytes = std::as_bytes(std::span(token));
    options.terms->info.assign(bytes.begin(), bytes.end());
    std::error_code ec;
    peers_.emplace_back(through_.worker(), socket_address(address), std::move(options), ec);
    return ec;
  }

 private:
  static client_options client() {
    client_options options;
    options.worker.progress = progress_mode::sleeping_thread;
    return options;
  }

  ucx::client through_;
  endpoint broker_;
  std::vector<endpoint> peers_;
};

TEST_F(PipeMeeting, ConnectsOnlyToWhomItWasIntroduced) {
  auto opening = open<ipipestream>();
  EXPECT_TRUE(soon([this] { return broker_->waiting() > 0; }));
  stranger writer{url(name())};
  std::string question("UXPQ\1\0\0\0\2\0\0\0\1\0\0\0\4\0pipe\0\0", 24);
  const std::string answer = writer.ask(question);
  ASSERT_GT(answer.size(), 34U);
  ASSERT_EQ(answer.substr(0, 12), std::string("UXPA\1\0\0\0\0\0\0\0", 12));
  const std::string token = answer.substr(16, 16);
  const std::string address = answer.substr(34);
  writer.knock(address, "");
  writer.knock(address, std::string(16, 'x'));
  EXPECT_EQ(opening.wait_for(100ms), std::future_status::timeout);
  EXPECT_FALSE(writer.knock(address, token));
  EXPECT_TRUE(opening.get());
}

/// A question of version 1, of a reader (1) or writer (2).
std::string question_of(char role, const std::string& of, const std::string& address) {
  std::string made("UXPQ\1\0\0\0", 8);
  made += role;
  made += std::string("\0\0\0\1\0\0\0", 7);
  made += static_cast<char>(of.size());
  made += '\0' + of + static_cast<char>(address.size());
  return made + '\0' + address;
}

TEST_F(PipeMeeting, LooksForAnotherWhereWhoWasIntroducedIsNotThere) {
  stranger gone{url(name())};
  gone.tell(question_of(1, "pipe", "127.0.0.1:1"));
  EXPECT_TRUE(soon([this] { return broker_->waiting() > 0; }));
  auto writing = open<opipestream>();
  EXPECT_TRUE(soon([this] { return broker_->introduced() > 0; }));
  ipipestream in(name());
  opipestream out = writing.get();
  ASSERT_TRUE(out) << out.error_message();
  out << "found";
  out.close();
  EXPECT_EQ(all_of(in), "found");
}

TEST_F(PipeMeeting, StopsConnectingToWhoDoesNotAnswer) {
  const file_descriptor mute(::socket(AF_INET, SOCK_STREAM, 0));
  ::sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ::socklen_t size = sizeof at;
  auto* const bare = reinterpret_cast<::sockaddr*>(&at);
  ASSERT_EQ(::bind(mute.get(), bare, size), 0);
  ASSERT_EQ(::listen(mute.get(), 8), 0);
  ASSERT_EQ(::getsockname(mute.get(), bare, &size), 0);
  stranger silent{url(name())};
  silent.tell(question_of(1, "pipe", "127.0.0.1:" + std::to_string(ntohs(at.sin_port))));
  EXPECT_TRUE(soon([this] { return broker_->waiting() > 0; }));
  std::stop_source stop;
  auto opening = open<opipestream>({.stop = stop.get_token()});
  ::pollfd connects{mute.get(), POLLIN, 0};
  ASSERT_EQ(::poll(&connects, 1, 20'000), 1);
  stop.request_stop();
  EXPECT_EQ(opening.get().error(), errc::canceled);
}

TEST_F(PipeMeeting, LetsOneConnectionLeaveAFewQuestionsOnly) {
  broker_.emplace(server_, pipe_broker_options{.max_waiting = 10});
  stranger greedy{url(name())};
  for (const std::string of : {"a", "b", "c", "d"}) greedy.tell(question_of(2, of, ""));
  const std::string refused = greedy.ask(question_of(2, "e", ""));
  EXPECT_EQ(refused.substr(0, 12),
            std::string("UXPA\1\0\0\0", 8) + static_cast<char>(errc::busy) + std::string(3, '\0'));
  EXPECT_EQ(broker_->waiting(), 4U);
  connect();
}

TEST_F(PipeMeeting, AnswersBadQuestionsWithAnError) {
  stranger hostile{url(name())};
  const std::string refused("UXPA\1\0\0\0\x0b\0\0\0", 12);
  for (const std::string& question :
       {std::string(), std::string("UXPQ"), std::string(3000, 'x'), std::string(60'000, '\0')}) {
    EXPECT_EQ(hostile.ask(question).substr(0, 12), refused) << question.size();
  }
  EXPECT_EQ(broker_->waiting(), 0U);
  EXPECT_EQ(static_cast<int>(errc::protocol_error), 0x0b);
}

TEST_F(PipeMeeting, OutlivesTheServer) {
  connect();
  server_.close();
  *out_ << "straight";
  out_->close();
  EXPECT_EQ(all_of(*in_), "straight");
}

}  // namespace
}  // namespace ucx::test
