// The ends of pipes that wait at a broker for each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "pipes/pipe_introduction.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/error.hpp"
#include "ucx/message.hpp"
#include "ucx/pipe_broker.hpp"

namespace ucx::detail {

/// Every peer is untrusted. It leaves at most a few parties here, as long as its connection lives,
/// and there are so many of all at most. An exception could not be caught where their messages
/// come: without memory they are refused.
class broker_core : public std::enable_shared_from_this<broker_core> {
 public:
  /// So many ends may wait over one connection: one, and those asked for again.
  static constexpr std::size_t most_of_one = 4;

  explicit broker_core(std::size_t most_waiting) : most_(most_waiting) {}

  /// A question came. Called from progress.
  void asked(message question) noexcept;
  /// Refuses everybody who waits.
  void close() noexcept;

  std::size_t waiting() const;
  std::size_t introduced() const;

 private:
  struct party {
    party(endpoint&& from, pipe_question&& asked) noexcept
        : peer(std::move(from)), said(std::move(asked)) {}
    endpoint peer;
    pipe_question said;
  };
  struct coming_question;

  void fetch(endpoint peer, message question) noexcept;
  void hear(endpoint peer, std::span<const std::byte> question) noexcept;
  void forget_the_gone() noexcept;
  bool is_full_for(const endpoint& peer) const noexcept;
  void meet(party& came);
  void introduce(party& listens, party& connects);
  static void answer(endpoint& to, const pipe_answer& said);
  static void refuse(endpoint& to, errc why) noexcept;
  static bool fit(const party& here, const party& came);

  const std::size_t most_;
  mutable std::mutex mutex_;
  std::list<party> waiting_;             // in the order in which they came
  std::vector<std::uint64_t> fetching_;  // of which connections a long question is on its way
  std::size_t introduced_ = 0;
};

}  // namespace ucx::detail
