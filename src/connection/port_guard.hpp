// Looks after the TCP ports by which others reach UCX.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/owned_descriptor.hpp"
#include "ucx/socket_address.hpp"

namespace ucx::detail {

/// A socket of UCX's that listens.
struct guarded_port {
  int descriptor = -1;
  std::uint64_t number = 0;  ///< The system's number of this socket, and of no other one.
  socket_address address = {};
  bool greets = false;  ///< Behind a `greeting_filter`; else it is for data.
  bool is_lost = false;
};

/// A thread that wakes when a peer knocks, and now and then. UCX lets every peer in, and waits
/// without end for what it has to say. When the process has no descriptor left, UCX closes a port
/// for data and forgets it, or asks for the next connection in a loop. The guard acts so:
/// A peer that has been let in and says nothing for `bounds::silence` is sent away. A peer that has
/// begun a greeting by then is told of, for bytes alone do not tell the greeting's end. When
/// descriptors run short, or many peers are silent, these are sent away after `bounds::settling`.
/// When descriptors run short no peer is let in until there are some again: it waits meanwhile, as
/// TCP does. A port at which UCX listens no longer is told of.
/// Descriptors are UCX's: the guard holds none of them, and so keeps no port open.
class port_guard {
 public:
  using clock = std::chrono::steady_clock;

  struct bounds {
    std::chrono::milliseconds silence{20'000};
    /// How long behind a knock it is looked who came: UCX has let them in by then.
    std::chrono::milliseconds settling{100};
    /// How often it is looked without a knock. UCX may have let a peer in before the system could
    /// wake the thread, and then the system does not wake it.
    std::chrono::milliseconds period{5'000};
    /// Where more than these are silent, they are sent away when they have been looked at twice.
    std::size_t most_silent = 64;
  };
  /// Functions that are told, on the guard's thread. REQUIRES: they take no lock that is held where
  /// the guard ends.
  struct listeners {
    /// Once for each port that is lost.
    std::function<void(const guarded_port&)> lost;
    /// These sockets (by their numbers) have greeted so long ago that the whole greeting has come
    /// by now, or never will. Once for each.
    std::function<void(std::vector<std::uint64_t> numbers)> overdue;
    /// No peer is let in from now on, or every peer is again; so many descriptors are left.
    std::function<void(bool let_in, std::size_t left)> changed;
  };

  /// Where there is no descriptor or no thread to be had, nothing is guarded, and no port is behind
  /// a filter. Without a thread, the filter could not be taken away from peers that have greeted.
  port_guard(const std::vector<guarded_port>& ports, bounds within, listeners told) noexcept;
  port_guard(const port_guard&) = delete;
  port_guard& operator=(const port_guard&) = delete;
  /// UCX may close its sockets when this has returned, not before. Ports for data that were closed
  /// for want of descriptors are open again.
  ~port_guard();

  bool is_running() const noexcept { return thread_ != nullptr; }

  /// Guards these, too; returns false where there is no memory for that.
  bool add(const std::vector<guarded_port>& further) noexcept;

 private:
  void start(const std::vector<guarded_port>& ports) noexcept;
  void watch(int listening) noexcept;
  void run() noexcept;
  void look(bool knocked);
  void plan_next_look(clock::time_point began, clock::time_point ended);
  void look_at_ports();
  bool look_at_descriptors();
  void rest() const noexcept;
  void close_doors() noexcept;
  void open_doors() noexcept;
  void turn_away_waiting() noexcept;
  void look_at_peers();
  void tell_of_overdue(std::unordered_map<std::uint64_t, clock::time_point> greeted);
  const guarded_port* port_of(int descriptor) const noexcept;
  int until_next_look() const noexcept;

  const bounds bounds_;
  const listeners told_;
  const ::pid_t owner_;
  owned_descriptor knocks_;    // Epoll: of the ports, and of `stopping_`.
  owned_descriptor stopping_;  // Readable when the thread is to end.
  owned_descriptor spare_;     // Is given up to let a peer in that is then turned away.

  std::mutex mutex_;  // the list of ports grows
  std::vector<guarded_port> ports_;
  bool doors_are_closed_ = false;
  // The thread's own:
  std::unordered_map<std::uint64_t, clock::time_point> silent_;   // since when
  std::unordered_map<std::uint64_t, clock::time_point> greeted_;  // the same; max(): told of
  clock::time_point next_look_;

  std::unique_ptr<std::thread> thread_;
};

}  // namespace ucx::detail
