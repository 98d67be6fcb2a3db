// One end of a pipe in the other process of a test: what test_peer.cpp does with "pipe ...".
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <ios>
#include <iostream>
#include <istream>
#include <memory>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "support/bytes/pattern.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/error.hpp"
#include "ucx/pipe_stream.hpp"
#include "ucx/url.hpp"
#include "ucx/worker.hpp"

namespace ucx::test {

class peer_pipe {
 public:
  /// Does the command that `words` go on with.
  std::string obey(std::istringstream& words) {
    std::string verb;
    words >> verb;
    if (verb == "open") return open(words);
    if (verb == "write") return write(words);
    if (verb == "pour") return pour();
    if (verb == "read") return read(words);
    if (verb == "rest") return rest();
    if (verb == "end") return end();
    throw std::invalid_argument("a pipe knows no " + verb);
  }

  /// The same as "open", over a connection that there is.
  void open_over(worker& driven, endpoint connection, const std::string& direction) {
    pipe_ = std::make_unique<pipe_streambuf>(driven, std::move(connection), mode_of(direction));
  }

 private:
  static std::ios_base::openmode mode_of(const std::string& direction) {
    std::ios_base::openmode mode{};
    if (direction != "out") mode |= std::ios_base::in;
    if (direction != "in") mode |= std::ios_base::out;
    return mode;
  }
  /// open in|out|both URL mapped|message
  std::string open(std::istringstream& words) {
    std::string direction;
    std::string where;
    std::string moved;
    words >> direction >> where >> moved;
    pipe_options options;
    options.context.share_memory = moved == "mapped";
    pipe_ = std::make_unique<pipe_streambuf>(url(where), mode_of(direction), options);
    return {};
  }
  /// write SIZE SEED: puts a pattern on its way.
  std::string write(std::istringstream& words) {
    std::size_t size = 0;
    std::uint64_t seed = 0;
    words >> size >> seed;
    put(pattern(size, seed));
    return {};
  }
  /// pour: writes the pattern 1 without end, and answers when the first bytes are on their way.
  std::string pour() {
    std::vector<std::byte> bytes(100'000);
    for (std::uint64_t position = 0;; position += bytes.size()) {
      fill_pattern(bytes, 1, position);
      put(bytes);
      if (position == 0) std::cout << "ok" << std::endl;
    }
  }
  /// read SIZE SEED: whether the next bytes are that pattern.
  std::string read(std::istringstream& words) {
    std::size_t size = 0;
    std::uint64_t seed = 0;
    words >> size >> seed;
    std::vector<std::byte> into(size);
    const auto wanted = static_cast<std::streamsize>(size);
    const bool is_whole = pipe_->sgetn(reinterpret_cast<char*>(into.data()), wanted) == wanted;
    return is_whole && holds_pattern(into, seed) ? "yes" : "no";
  }
  /// rest: reads as far as it goes; answers "eof COUNT" or "bad COUNT VALUE".
  std::string rest() {
    std::istream in(pipe_.get());
    std::uint64_t count = 0;
    while (in.get() != std::char_traits<char>::eof()) ++count;
    if (!in.bad()) return "eof " + std::to_string(count);
    return "bad " + std::to_string(count) + ' ' + std::to_string(pipe_->error().value());
  }
  /// end: of its output.
  std::string end() {
    pipe_->close_output();
    return {};
  }

  void put(std::span<const std::byte> bytes) {
    const auto size = static_cast<std::streamsize>(bytes.size());
    const auto* const from = reinterpret_cast<const char*>(bytes.data());
    if (pipe_->sputn(from, size) != size || pipe_->pubsync() != 0) {
      throw error(pipe_->error(), pipe_->error_message());
    }
  }

  std::unique_ptr<pipe_streambuf> pipe_;
};

}  // namespace ucx::test
