// One random script of stream operations, played into a stream under test and into an oracle.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <iosfwd>
#include <random>
#include <string>
#include <utility>

namespace ucx::test {

/// Returns `size` bytes of words, numbers, lines and some noise: something to parse.
std::string sample_text(std::size_t size, std::uint64_t seed);

/// What a script leaves out, for streams that do less than a file does.
struct script_limits {
  bool reads = true;
  bool writes = true;
  bool goes_back = true;       ///< unget, and putback of what was not the last one read.
  bool asks_what_left = true;  ///< in_avail, readsome.
  bool seeks_outside = true;
  bool tells_always = true;  ///< The position after each operation, else after some of them.
  bool grows = false;        ///< It goes behind the end: reads nothing there, and writes.
  bool appends = false;      ///< What is written goes to the end.
};

/// Operations on a stream over `content.size()` bytes that stay within them, unless it grows; the
/// same seed gives the same script. Between reading and writing there is the seek that a file
/// needs.
class stream_script {
 public:
  /// Calls `use` with memory of some kind that holds `bytes`, and has in `bytes` what is there
  /// then.
  using memory = std::function<void(std::string& bytes, const std::function<void(char*)>& use)>;

  /// `reach` is how many bytes an operation covers at most.
  stream_script(std::uint64_t seed, std::string content, std::size_t reach,
                const script_limits& limits = {});

  /// Plays the next `steps` operations, and compares after each of them what it returned, the
  /// state, the position, what is available, and what it read. Streams may be moved, or exchanged
  /// for others in the same state, between two calls.
  testing::AssertionResult play(std::iostream& ours, std::iostream& oracle, std::size_t steps);

  /// Has the stream under test read and write blocks in such memory.
  void use_memory(memory kind) { memory_ = std::move(kind); }

  /// Returns what the content is after what was played, and flushed.
  const std::string& content() const noexcept { return content_; }

 private:
  /// An operation: its text, and what it does; returns everything that can be observed by it.
  struct step {
    std::string text;
    std::function<std::string(std::iostream&)> run;
  };
  enum class direction { either, reading, writing };

  std::uint64_t below(std::uint64_t limit);
  std::size_t length(std::size_t most);
  step next(std::iostream& oracle);
  step seek();
  step read_one();
  step read_text();
  step read_block();
  step write();
  step put(std::string bytes, bool formatted);
  step restore();
  void with_memory(std::string& bytes, const std::function<void(char*)>& use) const;

  std::mt19937_64 random_;
  std::string content_;
  std::size_t reach_;
  script_limits limits_;
  memory memory_;
  bool ours_in_turn_ = false;
  direction direction_ = direction::either;
  std::size_t position_ = 0;
  bool read_past_buffer_ = false;
  std::deque<std::string> recent_;
};

}  // namespace ucx::test
