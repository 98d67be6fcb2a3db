// Clients without users, kept for a while for the next user.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "ucx/url.hpp"

namespace ucx::detail {

class client_core;

/// Has a thread while there are any, and for a while behind that. Safe from any thread.
///
/// States of the thread:
///
///     from       | to         | when
///     nothing    | waiting    | a client comes, and there is no thread, or none any more
///     waiting    | dismissing | some have been here for long enough
///     dismissing | waiting    | they are gone
///     waiting    | nothing    | none has come for a while, or none may stay any more: it is over
class lingering_clients {
 public:
  /// Takes the time from the environment, if that says one.
  lingering_clients();
  lingering_clients(const lingering_clients&) = delete;
  lingering_clients& operator=(const lingering_clients&) = delete;
  ~lingering_clients() { end(); }

  /// Returns what is wrong with what the environment says; nothing if all is well.
  const std::string& complaint() const noexcept { return complaint_; }

  /// Returns a share of `made`, a client of `server`, whose last copy leaves the client here.
  /// REQUIRES: this is there until then.
  std::shared_ptr<client_core> lend(const url& server, std::shared_ptr<client_core> made);
  /// Takes back the client of `server`, also where its last copy is just about to leave it here;
  /// returns nothing where there is none. It may be one that others still have: who asks then has
  /// found it lost.
  std::shared_ptr<client_core> take(const url& server) noexcept;

  /// From now on each stays so long. Zero: none does, and those that are here go.
  void set_longest(std::chrono::nanoseconds longest) noexcept;
  /// Those that are here go; so have those that were about to, when this returns.
  void clear() noexcept;
  /// None stays from now on. Those that are here go, and so does the thread.
  void end() noexcept;

 private:
  using clock = std::chrono::steady_clock;
  struct lingering {
    url server;
    std::shared_ptr<client_core> client;
    std::uint64_t number = 0;  // of the lending
    clock::time_point since = {};
  };
  struct lending {
    url server;
    std::weak_ptr<client_core> client;
    std::uint64_t number;
  };
  using all = std::list<lingering>;
  enum class activity { nothing, waiting, dismissing };

  void add(all& one) noexcept;
  bool start() noexcept;
  void run() noexcept;
  bool returns(const lingering& one) noexcept;
  static void dismiss(all& gone) noexcept;

  std::mutex mutex_;
  std::condition_variable changed_;
  all kept_;                 // the one that came first is the first
  std::list<lending> lent_;  // one of a server
  std::uint64_t lendings_ = 0;
  std::string complaint_;  // before what may complain
  std::chrono::nanoseconds longest_;
  bool ended_ = false;
  activity doing_ = activity::nothing;
  std::thread thread_;
};

}  // namespace ucx::detail
