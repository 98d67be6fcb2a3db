// Clients that nobody uses any more, kept for a while for who comes next.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "ucx/url.hpp"

namespace ucx::detail {

class client_core;

/// Has a thread while there are any, and for a while behind that. Safe from any thread.
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
  /// Takes back the client of `server`; returns nothing where none is here.
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
    clock::time_point since = {};
  };
  using all = std::list<lingering>;

  void add(all& one) noexcept;
  bool start() noexcept;
  void run() noexcept;
  static void dismiss(all& gone) noexcept;

  std::mutex mutex_;
  std::condition_variable changed_;
  all kept_;               // the one that came first is the first
  std::string complaint_;  // before what may complain
  std::chrono::nanoseconds longest_;
  bool ended_ = false;
  bool running_ = false;
  bool dismissing_ = false;  // the thread
  std::thread thread_;
};

}  // namespace ucx::detail
