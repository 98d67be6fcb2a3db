// The ends of pipes that wait at a broker for each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "pipes/pipe_introduction.hpp"
#include "ucx/context.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/error.hpp"
#include "ucx/message.hpp"
#include "ucx/pipe_broker.hpp"
#include "ucx/socket_address.hpp"

namespace ucx::detail {

/// Every peer is untrusted. It leaves at most a few parties here, as long as its connection lives,
/// and there are so many of all at most. An exception could not be caught where their messages
/// come: without memory they are refused.
class broker_core : public std::enable_shared_from_this<broker_core> {
 public:
  /// So many ends may wait over one connection: one, and those asked for again.
  static constexpr std::size_t most_of_one = 4;

  explicit broker_core(std::size_t most_waiting) : most_(most_waiting) {}

  /// A question came to the server's worker of that number. Called from progress.
  void asked(std::size_t worker, message question) noexcept;
  /// Refuses everybody who waits.
  void close() noexcept;

  std::size_t waiting() const;
  std::size_t introduced() const;
  /// Returns whether it is that of a process that this one was forked from.
  bool is_inherited() const noexcept { return made_.is_inherited(); }

 private:
  const process_stamp made_;
  /// A connection. Each worker counts from 1.
  struct place {
    std::size_t worker = 0;
    std::uint64_t number = 0;
    bool operator==(const place&) const = default;
  };
  struct party {
    party(place at, endpoint&& from, pipe_question&& asked);
    place from;
    endpoint peer;
    pipe_question said;
    socket_address over_ucx;  ///< The peer's; empty over sockets, and by worker address.
  };
  struct coming_question;

  void fetch(place from, endpoint peer, message question) noexcept;
  void hear(place from, endpoint peer, std::span<const std::byte> question) noexcept;
  void forget_the_gone() noexcept;
  bool is_full_for(const place& from) const noexcept;
  void meet(party& came);
  void introduce(party& listens, party& connects);
  static void answer(endpoint& to, const pipe_answer& said);
  /// `asked`: null where the question could not be read.
  static void refuse(endpoint& to, errc why, const pipe_question* asked) noexcept;
  static bool seek_each_other(const party& here, const party& came);
  static bool agree_on_key(const party& here, const party& came);
  static bool fit(const party& here, const party& came);
  std::optional<errc> what_keeps_apart(const party& came) const;
  static bool miss_each_other(const party& here, const party& came);

  const std::size_t most_;
  mutable std::mutex mutex_;
  std::list<party> waiting_;     // in the order in which they came
  std::vector<place> fetching_;  // of which connections a long question is on its way
  std::size_t introduced_ = 0;
};

}  // namespace ucx::detail
