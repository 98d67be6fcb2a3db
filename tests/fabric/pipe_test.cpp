// Pipes over real transports: what is written at one end is read at the other, and how they end.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <future>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "support/pattern.hpp"
#include "ucx/client.hpp"
#include "ucx/error.hpp"
#include "ucx/listener.hpp"
#include "ucx/pipe_broker.hpp"
#include "ucx/pipe_stream.hpp"
#include "ucx/server.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

constexpr std::size_t one_window = pipe_options::least_window;

std::string text_of(std::size_t size, std::uint64_t seed = 1) {
  const std::vector<std::byte> bytes = pattern(size, seed);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string all_of(std::istream& in) { return {std::istreambuf_iterator<char>(in), {}}; }

/// A server that introduces, and both ends of a pipe, each opened on a thread of its own.
class Pipe : public testing::Test {
 protected:
  std::string name(const std::string& of = "pipe") const { return server_.url(of); }

  template <class Stream>
  std::future<Stream> open(const pipe_options& options = {}, const std::string& of = "pipe") {
    return std::async(std::launch::async, [=, this] { return Stream(name(of), options); });
  }
  void connect(const pipe_options& reading = {}, const pipe_options& writing = {}) {
    auto opened = open<ipipestream>(reading);
    out_.emplace(name(), writing);
    in_.emplace(opened.get());
    ASSERT_TRUE(in_->good()) << in_->error_message();
    ASSERT_TRUE(out_->good()) << out_->error_message();
  }

  server server_;
  std::optional<pipe_broker> broker_{server_};
  std::optional<ipipestream> in_;
  std::optional<opipestream> out_;
};

TEST_F(Pipe, CarriesBytesToTheEnd) {
  connect();
  for (const std::size_t size : {std::size_t{1}, std::size_t{1000}, std::size_t{300'000},
                                 std::size_t{5'000'000}, std::size_t{20'000'000}}) {
    const std::string sent = text_of(size, size);
    std::string came(size, '\0');
    const auto writing = std::async(std::launch::async, [&] {
      out_->write(sent.data(), static_cast<std::streamsize>(size));
      out_->flush();
    });
    in_->read(came.data(), static_cast<std::streamsize>(size));
    writing.wait();
    ASSERT_TRUE(*in_) << in_->error_message();
    ASSERT_TRUE(*out_) << out_->error_message();
    ASSERT_TRUE(came == sent) << size;
  }
  out_->close();
  EXPECT_TRUE(*out_) << out_->error_message();
  EXPECT_EQ(in_->get(), std::char_traits<char>::eof());
  EXPECT_TRUE(in_->eof());
  EXPECT_FALSE(in_->bad());
}

}  // namespace
}  // namespace ucx::test
