// Pipes over a connection that the program has made by worker address: no listener, no server.
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

#include "support/basics/soon.hpp"
#include "support/streams/pipe_place.hpp"
#include "support/transports/message_pair.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/error.hpp"
#include "ucx/message.hpp"
#include "ucx/pipe_stream.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

struct by_address {
  route over = route::tcp_by_address;
  bool connector_writes = true;  ///< Else who was connected to does.
};

std::string to_string(const by_address& chosen) {
  return to_string(chosen.over) +
         (chosen.connector_writes ? "_connector_writes" : "_connector_reads");
}
void PrintTo(const by_address& chosen, std::ostream* out) { *out << to_string(chosen); }

/// Two workers, each with a thread, one of which has connected to the other's address.
class PipeByAddress : public testing::TestWithParam<by_address> {
 protected:
  static message_pair_options options() {
    message_pair_options chosen{GetParam().over, progress_mode::sleeping_thread,
                                progress_mode::sleeping_thread, thread_mode::automatic};
    chosen.defaults.name = "node 7";
    chosen.defaults.close_timeout = 2s;
    return chosen;
  }

  worker& connector() { return *pair_.sender_worker; }
  worker& connected_to() { return pair_.receiver(); }
  /// Returns the connection at the side that has made it, and at the other one: it has to be the
  /// same, and is found by a message.
  endpoint near_end() { return std::move(*pair_.sender); }
  endpoint far_end() { return pair_.back(); }

  /// Returns one more handle of the connection at the side that has made it.
  endpoint near_handle() {
    far_end().send(0xbac, {});
    std::optional<message> came;
    EXPECT_TRUE(soon([&] { return (came = connector().take(0xbac)).has_value(); }));
    return came.value().peer();
  }

  void connect(const pipe_options& reading = {}, const pipe_options& writing = {}) {
    writers_.emplace(GetParam().connector_writes ? near_handle() : far_end());
    readers_.emplace(GetParam().connector_writes ? far_end() : near_handle());
    if (GetParam().connector_writes) {
      in_.emplace(connected_to(), far_end(), reading);
      out_.emplace(connector(), near_end(), writing);
    } else {
      endpoint far = far_end();
      in_.emplace(connector(), near_end(), reading);
      out_.emplace(connected_to(), std::move(far), writing);
    }
    ASSERT_TRUE(*in_) << in_->error_message();
    ASSERT_TRUE(*out_) << out_->error_message();
  }
  /// As if the process of that side had died: its end says nothing any more.
  static void drop(std::optional<endpoint>& connection) {
    std::error_code ignored;
    connection->close(close_mode::abort, ignored);
  }
  void expect_no_end(const std::string& why) const {
    EXPECT_TRUE(in_->bad());
    EXPECT_FALSE(in_->eof()) << "it was taken for the end";
    EXPECT_EQ(in_->error(), errc::connection_reset);
    EXPECT_NE(in_->error_message().find(why), std::string::npos) << in_->error_message();
  }

  message_pair pair_{options()};
  std::optional<endpoint> writers_;
  std::optional<endpoint> readers_;
  std::optional<ipipestream> in_;
  std::optional<opipestream> out_;
};

TEST_P(PipeByAddress, CarriesBytesToTheEnd) {
  connect();
  const std::string sent = text_of(5'000'000);
  auto reading = std::async(std::launch::async, [&] { return all_of(*in_); });
  *out_ << sent;
  out_->close();
  EXPECT_TRUE(*out_) << out_->error_message();
  EXPECT_TRUE(reading.get() == sent);
  EXPECT_TRUE(in_->eof());
  EXPECT_FALSE(in_->bad()) << in_->error_message();
}

TEST_P(PipeByAddress, EndsEachDirectionByItself) {
  const pipe_options bounded{.timeout = 20s};
  auto opening = std::async(std::launch::async, [&, far = far_end()]() mutable {
    return pipestream(connected_to(), std::move(far), bounded);
  });
  pipestream one(connector(), near_end(), bounded);
  pipestream other = opening.get();
  ASSERT_TRUE(one && other) << one.error_message() << other.error_message();
  pipestream& asks = GetParam().connector_writes ? one : other;
  pipestream& answers = GetParam().connector_writes ? other : one;
  asks << "question\n";
  asks.close_output();
  EXPECT_TRUE(asks) << asks.error_message();
  EXPECT_EQ(all_of(answers), "question\n");
  EXPECT_FALSE(answers.bad()) << answers.error_message();
  answers.clear();
  const std::string answer = text_of(1'000'000);
  auto reading = std::async(std::launch::async, [&] { return all_of(asks); });
  answers << answer;
  answers.close();
  EXPECT_TRUE(answers) << answers.error_message();
  EXPECT_TRUE(reading.get() == answer);
  EXPECT_TRUE(asks.eof());
  EXPECT_FALSE(asks.bad()) << asks.error_message();
  asks.clear();
  asks.close();
  EXPECT_TRUE(asks) << asks.error_message();
}

TEST_P(PipeByAddress, ShowsBadbitWhenTheWriterGivesUp) {
  connect();
  *out_ << "only the begin" << std::flush;
  try {
    const opipestream dying = std::move(*out_);
    throw std::runtime_error("the program fails");
  } catch (const std::runtime_error&) {
  }
  EXPECT_EQ(all_of(*in_), "only the begin");
  expect_no_end("the writer gave up");
}

TEST_P(PipeByAddress, ShowsBadbitWhenTheWriterIsLost) {
  connect({.timeout = 30s});
  const std::string sent = text_of(1000);
  *out_ << sent << std::flush;
  auto reading = std::async(std::launch::async, [&] { return all_of(*in_); });
  EXPECT_EQ(reading.wait_for(100ms), std::future_status::timeout);
  drop(writers_);
  ASSERT_EQ(reading.wait_for(20s), std::future_status::ready);
  EXPECT_EQ(reading.get(), sent);
  expect_no_end("after 1000 bytes");
  EXPECT_NE(in_->error_message().find("node 7"), std::string::npos) << in_->error_message();
}

TEST_P(PipeByAddress, FailsTheWriterWhenTheReaderLeaves) {
  connect({.window = one_window}, {.timeout = 20s});
  *out_ << text_of(1000) << std::flush;
  skip(*in_, 500);
  in_->close();
  const std::string much = text_of(one_window);
  while (*out_) out_->write(much.data(), static_cast<std::streamsize>(much.size())).flush();
  EXPECT_EQ(out_->error(), errc::broken_pipe) << out_->error_message();
  out_->close();
  EXPECT_TRUE(out_->fail());
}

TEST_P(PipeByAddress, FailsTheWriterWhenTheReaderIsLost) {
  connect({.window = one_window}, {.timeout = 30s});
  auto writing = std::async(std::launch::async, [&] {
    const std::string much = text_of(one_window);
    while (out_->write(much.data(), static_cast<std::streamsize>(much.size())).flush()) {
    }
  });
  EXPECT_EQ(writing.wait_for(200ms), std::future_status::timeout) << "the window does not bound it";
  drop(readers_);
  ASSERT_EQ(writing.wait_for(20s), std::future_status::ready);
  EXPECT_EQ(out_->error(), errc::connection_reset) << out_->error_message();
  out_->close();
  EXPECT_TRUE(out_->fail()) << "not all of it is there";
}

/// Two connections between two workers are two, even where each side has made one.
TEST_P(PipeByAddress, DoesNotMeetAtAnotherConnection) {
  endpoint another(connected_to(), connector().address());
  ipipestream in(connected_to(), std::move(another));
  const opipestream out(connector(), near_end(), {.connect_timeout = 300ms});
  EXPECT_TRUE(out.fail());
  EXPECT_EQ(out.error(), errc::timed_out);
  EXPECT_NE(out.error_message().find("did not begin to read"), std::string::npos)
      << out.error_message();
}

INSTANTIATE_TEST_SUITE_P(, PipeByAddress,
                         testing::Values(by_address{route::tcp_by_address, true},
                                         by_address{route::tcp_by_address, false},
                                         by_address{route::shared_memory, true},
                                         by_address{route::shared_memory, false}),
                         [](const testing::TestParamInfo<by_address>& chosen) {
                           return to_string(chosen.param);
                         });

}  // namespace
}  // namespace ucx::test
