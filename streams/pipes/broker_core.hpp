// Who waits for whom at a broker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "pipes/pipe_introduction.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/message.hpp"
#include "ucx/pipe_broker.hpp"

namespace ucx::detail {

/// Every peer is untrusted: what it leaves here is a few parties, as long as its connection lives,
/// and there are so many of all at most.
class broker_core : public std::enable_shared_from_this<broker_core> {
 public:
  /// So many ends may wait over one connection: one, and those asked for again.
  static constexpr std::size_t most_of_one = 4;

  explicit broker_core(std::size_t most_waiting) : most_(most_waiting) {}

  /// A question came. Called from progress.
  void asked(message question);
  /// Refuses everybody who waits.
  void close();

  std::size_t waiting() const;
  std::size_t introduced() const;

 private:
  struct party {
    endpoint peer;
    pipe_question said;
  };

  void fetch(endpoint peer, message question);
  void hear(endpoint peer, std::span<const std::byte> question);
  void forget_the_gone();
  bool is_full_for(const endpoint& peer) const noexcept;
  void meet(party& came);
  void introduce(party& listens, party& connects);
  static void answer(endpoint& to, const pipe_answer& said);
  static bool fit(const party& here, const party& came);

  const std::size_t most_;
  mutable std::mutex mutex_;
  std::list<party> waiting_;             // in the order in which they came
  std::vector<std::uint64_t> fetching_;  // of which connections a long question is on its way
  std::size_t introduced_ = 0;
};

}  // namespace ucx::detail
