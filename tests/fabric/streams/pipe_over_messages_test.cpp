// Pipes over connections of the program's, of every kind.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <future>
#include <ios>
#include <string>
#include <utility>
#include <vector>

#include "support/streams/pipe_place.hpp"
#include "support/transports/message_pair.hpp"
#include "ucx/error.hpp"
#include "ucx/pipe_stream.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

class PipeOverMessages : public testing::TestWithParam<message_pair_options> {};

TEST_P(PipeOverMessages, CarriesBytesToTheEnd) {
  message_pair both(GetParam());
  pipe_streambuf in(both.receiver(), both.back(), std::ios_base::in);
  const std::string sent = text_of(5'000'000);
  auto reading = std::async(std::launch::async, [&] {
    std::string came(sent.size() + 1, '\0');
    came.resize(
        static_cast<std::size_t>(in.sgetn(came.data(), static_cast<std::streamsize>(came.size()))));
    return came;
  });
  pipe_streambuf out(both.sender_side(), std::move(*both.sender), std::ios_base::out);
  const auto all = static_cast<std::streamsize>(sent.size());
  EXPECT_EQ(out.sputn(sent.data(), all), all);
  out.close();
  EXPECT_TRUE(reading.get() == sent);
  EXPECT_FALSE(in.error()) << in.error_message();
}

/// Long messages that no receive waits for stay with their sender, who does not wait for that.
TEST_P(PipeOverMessages, WritesLongMessagesBehindUnreadShortOnes) {
  message_pair both(GetParam());
  pipe_streambuf in(both.receiver(), both.back(), std::ios_base::in);
  pipe_streambuf out(both.sender_side(), std::move(*both.sender), std::ios_base::out,
                     {.timeout = 20s});
  std::string sent;
  for (int i = 0; i < 36; ++i) {
    EXPECT_EQ(out.sputn("a line\n", 7), 7);
    ASSERT_EQ(out.pubsync(), 0) << out.error_message();
    sent += "a line\n";
  }
  const std::string more = text_of(5'000'000);
  const auto size = static_cast<std::streamsize>(more.size());
  ASSERT_EQ(out.sputn(more.data(), size), size) << out.error_message();
  sent += more;
  auto reading = std::async(std::launch::async, [&] {
    std::string came(sent.size() + 1, '\0');
    came.resize(
        static_cast<std::size_t>(in.sgetn(came.data(), static_cast<std::streamsize>(came.size()))));
    return came;
  });
  out.close();
  EXPECT_TRUE(reading.get() == sent);
  EXPECT_FALSE(in.error()) << in.error_message();
}

TEST_P(PipeOverMessages, FillTheWindowWhateverTheirLength) {
  message_pair both(GetParam());
  pipe_streambuf in(both.receiver(), both.back(), std::ios_base::in);
  pipe_streambuf out(both.sender_side(), std::move(*both.sender), std::ios_base::out,
                     {.timeout = 3s});
  const std::string large = text_of(9 * out.prepare().size());
  const auto all = static_cast<std::streamsize>(large.size());
  ASSERT_EQ(out.sputn(large.data(), all), all) << out.error_message();
  const std::string small = text_of(17'000);
  for (int i = 0; i < 1000 && !out.error(); ++i) {
    out.sputn(small.data(), static_cast<std::streamsize>(small.size()));
    out.pubsync();
  }
  EXPECT_EQ(out.error(), errc::timed_out) << out.error_message();
  EXPECT_GT(out.sent(), pipe_options().window * 7 / 8);
}

INSTANTIATE_TEST_SUITE_P(, PipeOverMessages, testing::ValuesIn([] {
                           std::vector<message_pair_options> pairs = every_message_pair();
                           std::erase_if(pairs, [](const message_pair_options& each) {
                             // Nobody drives it; or both ends would be of one connection.
                             return each.receiver == progress_mode::caller ||
                                    each.over == route::loopback;
                           });
                           return pairs;
                         }()),
                         name_of_messages);

}  // namespace
}  // namespace ucx::test
