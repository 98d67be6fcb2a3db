// Pipes of several writers, or several readers, over real transports.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "support/basics/soon.hpp"
#include "support/streams/pipe_place.hpp"
#include "ucx/error.hpp"
#include "ucx/pipe_stream.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

class PipeOfMany : public pipe_place, public testing::WithParamInterface<pipe_route> {
 protected:
  PipeOfMany() : pipe_place(GetParam()) {}
};

TEST_P(PipeOfMany, ReadsSeveralWritersMessageByMessage) {
  constexpr std::size_t writers = 3;
  constexpr int lines = 500;
  auto opened = open<ipipestream>({.writers = writers});
  const auto write = [&](char which) {
    opipestream out(name());
    for (int i = 0; i < lines; ++i) {
      (out << std::string(std::size_t(1 + i % 70), which) << '\n').flush();
    }
    out.close();
    EXPECT_TRUE(out) << out.error_message();
  };
  std::vector<std::jthread> running;
  for (std::size_t i = 0; i < writers; ++i) running.emplace_back(write, static_cast<char>('a' + i));
  ipipestream in = opened.get();
  std::vector<int> came(writers);
  for (std::string line; std::getline(in, line);) {
    ASSERT_FALSE(line.empty());
    const auto which = static_cast<std::size_t>(line[0] - 'a');
    ASSERT_LT(which, writers);
    ASSERT_EQ(line, std::string(std::size_t(1 + came[which] % 70), line[0]));
    ++came[which];
  }
  EXPECT_TRUE(in.eof()) << in.error_message();
  EXPECT_EQ(came, std::vector<int>(writers, lines));
}

TEST_P(PipeOfMany, FailsWhenOneOfSeveralWritersIsLost) {
  auto opened = open<ipipestream>({.writers = 2});
  auto lost = open<opipestream>();
  opipestream whole(name());
  opipestream dying = lost.get();
  ipipestream in = opened.get();
  whole << "all of it";
  whole.close();
  dying.rdbuf()->abort();
  EXPECT_EQ(all_of(in), "all of it");
  EXPECT_TRUE(in.bad());
  EXPECT_EQ(in.error(), errc::connection_reset);
}

TEST_P(PipeOfMany, MissesAReaderOfSeveralWhereItShall) {
  for (const slow_reader_policy slow : {slow_reader_policy::wait, slow_reader_policy::drop}) {
    auto stays = open<ipipestream>();
    auto leaves = open<ipipestream>();
    opipestream out(name(), {.readers = 2, .slow_reader = slow});
    ipipestream first = stays.get();
    leaves.get().close();
    auto reading = std::async(std::launch::async, [&] { return all_of(first); });
    const std::string sent = text_of(one_window);
    const auto limit = clock::now() + 20s;
    while (out && out.rdbuf()->readers() == 2 && clock::now() < limit) out << sent << std::flush;
    if (slow == slow_reader_policy::drop) {
      EXPECT_TRUE(out) << out.error_message();
      EXPECT_EQ(out.rdbuf()->readers(), 1U);
      out.close();
      EXPECT_TRUE(out) << out.error_message();
      EXPECT_EQ(reading.get().size(), out.rdbuf()->sent());
      EXPECT_TRUE(first.eof());
      EXPECT_FALSE(first.bad());
    } else {
      out << sent << std::flush;
      EXPECT_EQ(out.error(), errc::broken_pipe) << out.error_message();
      out.close();
      EXPECT_TRUE(out.fail());
      reading.wait();
      EXPECT_TRUE(first.bad());
    }
  }
}

TEST_P(PipeOfMany, WritesToSeveralReaders) {
  std::vector<std::future<std::string>> readers;
  for (int i = 0; i < 3; ++i) {
    readers.push_back(std::async(std::launch::async, [&] {
      ipipestream in(name());
      std::string came = all_of(in);
      EXPECT_FALSE(in.error()) << in.error_message();
      return came;
    }));
  }
  const std::string sent = text_of(3'000'000);
  opipestream out(name(), {.readers = 3});
  out << sent;
  out.close();
  EXPECT_TRUE(out) << out.error_message();
  for (auto& each : readers) EXPECT_TRUE(each.get() == sent);
}

TEST_P(PipeOfMany, DropsASlowReaderWhereItMay) {
  auto quick = open<ipipestream>();
  ASSERT_TRUE(soon([this] { return broker_->waiting() == 1; }));
  auto slow = open<ipipestream>({.window = one_window});
  ASSERT_TRUE(soon([this] { return broker_->waiting() == 2; }));
  // Longer than a thread that reads is kept from running.
  opipestream out(
      name(), {.readers = 2, .slow_reader = slow_reader_policy::drop, .slow_reader_timeout = 3s});
  ASSERT_TRUE(out) << out.error_message();
  ipipestream stuck = slow.get();
  auto reading = std::async(std::launch::async, [&] {
    ipipestream in = quick.get();
    return all_of(in);
  });
  const std::string sent = text_of(one_window * 4);
  out << sent;
  out.close();
  EXPECT_TRUE(out) << out.error_message();
  EXPECT_TRUE(reading.get() == sent);
  std::string part = all_of(stuck);
  EXPECT_LE(part.size(), one_window);
  EXPECT_EQ(stuck.error(), errc::connection_reset);
  EXPECT_NE(stuck.error_message().find("gave up"), std::string::npos) << stuck.error_message();
}

/// Within its window: what it does not fetch holds nobody up either.
TEST_P(PipeOfMany, DropsAReaderThatFetchesNothing) {
  auto stuck = open<ipipestream>();
  auto quick = open<ipipestream>();
  opipestream out(
      name(), {.readers = 2, .slow_reader = slow_reader_policy::drop, .slow_reader_timeout = 3s});
  ASSERT_TRUE(out) << out.error_message();
  ipipestream here = stuck.get();
  auto reading = std::async(std::launch::async, [&] {
    ipipestream in = quick.get();
    return all_of(in);
  });
  std::string sent;
  for (int i = 0; i < 36; ++i) {
    out << "a line\n" << std::flush;
    sent += "a line\n";
  }
  const std::string more = text_of(5'000'000);
  out << more;
  out.close();
  EXPECT_TRUE(out) << out.error_message();
  EXPECT_TRUE(reading.get() == sent + more);
}

TEST_P(PipeOfMany, CountsAReaderThatLeftWithAllBytes) {
  auto leaving = open<ipipestream>();
  auto staying = open<ipipestream>();
  opipestream out(name(), {.readers = 2, .slow_reader = slow_reader_policy::drop});
  ASSERT_TRUE(out) << out.error_message();
  out << "all there is\n" << std::flush;
  {
    ipipestream first = leaving.get();
    std::string line;
    EXPECT_TRUE(std::getline(first, line));
  }
  EXPECT_TRUE(soon([&] {
    out.rdbuf()->consumed();  // hears what readers said
    return out.rdbuf()->readers() == 1;
  }));
  auto reading = std::async(std::launch::async, [&] {
    ipipestream second = staying.get();
    return all_of(second);
  });
  out.close();
  EXPECT_TRUE(out) << out.error_message();
  EXPECT_EQ(reading.get(), "all there is\n");
  EXPECT_EQ(out.rdbuf()->readers(), 2U);
}

TEST_P(PipeOfMany, WaitsForASlowReaderWhereItShall) {
  auto quick = open<ipipestream>();
  auto slow = open<ipipestream>({.window = one_window});
  opipestream out(name(), {.timeout = 100ms, .readers = 2});
  ipipestream first = quick.get();
  ipipestream second = slow.get();
  const std::string sent = text_of(one_window * 2);
  out.write(sent.data(), static_cast<std::streamsize>(sent.size()));
  EXPECT_EQ(out.error(), errc::timed_out);
  EXPECT_EQ(out.rdbuf()->readers(), 2U);
}

TEST_P(PipeOfMany, IsNotHeldUpByAReaderThatHasTakenEverything) {
  auto narrow = open<ipipestream>({.window = one_window});
  auto wide = open<ipipestream>({.window = one_window * 64});
  opipestream out(name(), {.timeout = 20s, .readers = 2});
  auto reading = std::async(std::launch::async, [&] {
    ipipestream in = narrow.get();
    return all_of(in).size();
  });
  ipipestream second = wide.get();
  const std::string some = text_of(one_window * 3 / 4);
  std::string into(some.size(), '\0');
  const auto size = static_cast<std::streamsize>(some.size());
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(out.write(some.data(), size).flush()) << i << ": " << out.error_message();
    // It does not look for more: with its window it has told nothing yet.
    ASSERT_TRUE(second.read(into.data(), size)) << second.error_message();
    EXPECT_TRUE(into == some);
  }
  out.close();
  EXPECT_TRUE(out) << out.error_message();
  EXPECT_EQ(reading.get(), 4 * some.size());
}

INSTANTIATE_TEST_SUITE_P(, PipeOfMany,
                         testing::Values(pipe_route::mapped, pipe_route::message,
                                         pipe_route::without_ip),
                         [](const auto& chosen) { return to_string(chosen.param); });

}  // namespace
}  // namespace ucx::test
