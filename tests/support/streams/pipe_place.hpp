// Where the ends of a pipe meet, for tests of them in one process.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <istream>
#include <optional>
#include <ostream>
#include <string>
#include <utility>

#include "support/bytes/pattern.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/transports/network.hpp"
#include "support/transports/ucx_server.hpp"
#include "ucx/pipe_broker.hpp"
#include "ucx/pipe_stream.hpp"
#include "ucx/server.hpp"

namespace ucx::test {

inline constexpr std::size_t one_window = pipe_options::min_window;

inline std::string text_of(std::size_t size, std::uint64_t seed = 1) {
  return pattern_text(size, seed);
}

/// Unlike `ignore`, which looks for what is behind.
inline void skip(std::istream& in, std::size_t count) {
  std::string skipped(count, '\0');
  in.read(skipped.data(), static_cast<std::streamsize>(count));
}

/// Returns what comes before the end, or before a failure.
inline std::string all_of(std::istream& in) {
  std::string came;
  for (char each = 0; in.get(each);) came += each;
  return came;
}

/// How the bytes of a pipe go within one host, and where its ends meet.
enum class pipe_route {
  mapped,      ///< In the reader's memory.
  message,     ///< By messages.
  without_ip,  ///< By messages; the server, and the reader, are met by their workers' addresses.
};

inline std::string to_string(pipe_route route) {
  if (route == pipe_route::without_ip) return "without_ip";
  return route == pipe_route::mapped ? "mapped" : "message";
}
inline void PrintTo(pipe_route route, std::ostream* out) { *out << to_string(route); }

/// A server that introduces, and both ends of a pipe, each opened on a thread of its own.
class pipe_place : public testing::Test {
 protected:
  explicit pipe_place(pipe_route route = pipe_route::mapped, server_options options = {})
      : route_(route), server_(at(route, std::move(options))) {
    if (route == pipe_route::without_ip) server_.publish_address(folder_ / "address");
  }

  std::string name(const std::string& of = "pipe") const { return server_.url(of); }

  template <class Stream>
  std::future<Stream> open(pipe_options options = {}, const std::string& of = "pipe") {
    options.context.share_memory = shares_memory();
    return std::async(std::launch::async, [=, this] { return Stream(name(of), options); });
  }
  void connect(const pipe_options& reading = {}, pipe_options writing = {}) {
    writing.context.share_memory = shares_memory();
    auto opened = open<ipipestream>(reading);
    out_.emplace(name(), writing);
    in_.emplace(opened.get());
    ASSERT_TRUE(in_->good()) << in_->error_message();
    ASSERT_TRUE(out_->good()) << out_->error_message();
    // What is written before the reader's offer has come goes by messages.
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (out_->rdbuf()->transfer_method() != wanted_way() &&
           std::chrono::steady_clock::now() < end) {
      out_->consumed();
    }
    ASSERT_EQ(out_->rdbuf()->transfer_method(), wanted_way());
  }
  bool shares_memory() const { return route_ != pipe_route::message; }
  transfer_method wanted_way() const {
    return route_ == pipe_route::mapped ? transfer_method::mapped : transfer_method::message;
  }

  static server_options at(pipe_route route, server_options options) {
    options = served_there(std::move(options));
    if (route == pipe_route::without_ip) options.bind.clear();
    return options;
  }

  const pipe_route route_;
  const temporary_directory folder_;
  ucx_server server_;
  std::optional<pipe_broker> broker_{server_};
  std::optional<ipipestream> in_;
  std::optional<opipestream> out_;
};

}  // namespace ucx::test
