// Control messages that have come and wait for their turn, so that a peer that asks much delays no
// other one.
#pragma once

#include <chrono>
#include <cstddef>
#include <list>
#include <unordered_map>

#include "base/clock.hpp"
#include "ucx/completion_handler.hpp"

namespace ucx::detail {

class worker_core;

/// The work on them, in a line for each connection. One line has its turn a round: `most_a_turn`
/// messages, or what `longest_turn` is enough for. While others have work done, turns get a fifth
/// of the time. Under the worker's lock.
class control_queue {
 public:
  static constexpr std::size_t most_a_turn = 16;
  static constexpr std::chrono::microseconds longest_turn{4};
  /// A line may hold messages of so much room; what has no answer may take more.
  static constexpr std::size_t most_waiting = std::size_t{16} << 20U;
  static constexpr std::size_t most_unanswerable = most_waiting + most_waiting / 4;
  /// So often a line may be without room until it was empty again.
  static constexpr unsigned most_refusals = 4096;

  explicit control_queue(worker_core& worker) noexcept : worker_(worker) {}
  control_queue(const control_queue&) = delete;
  control_queue& operator=(const control_queue&) = delete;

  /// Puts `work` into the line of `whom`: a round, not this one, does it.
  void add(const void* whom, std::size_t room, move_only_handler<> work);
  /// Returns the room of what waits.
  std::size_t room_of(const void* whom) const noexcept;
  /// Counts a message that there was no room for; returns whether there may be further ones.
  bool may_refuse(const void* whom) noexcept;
  /// Forgets what waits of `whom`.
  void drop(const void* whom) noexcept;
  /// Something was asked that is not in line, and is not to wait for what is.
  void others_ask() noexcept;

 private:
  struct item {
    std::size_t room;
    move_only_handler<> work;
  };
  struct line {
    const void* whom;
    std::list<item> waiting;
    std::size_t room = 0;
    unsigned refusals = 0;
  };

  line& line_of(const void* whom);
  void expect_round();
  void take_turn();
  void serve_first();

  worker_core& worker_;
  std::list<line> lines_;  // that are not empty; the first one is next
  std::unordered_map<const void*, std::list<line>::iterator> found_;
  bool expected_ = false;
  clock::time_point next_turn_ = clock::time_point::min();  // while others ask
  clock::time_point others_asked_ = clock::time_point::min();
};

}  // namespace ucx::detail
