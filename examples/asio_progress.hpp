// Drives a worker from an Asio io_context, in either form of Asio.
#pragma once

#include <algorithm>
#include <chrono>
#include <utility>  // Boost 1.74 uses it without saying so

#if __has_include(<asio.hpp>)
#include <asio.hpp>
#else
#include <boost/asio.hpp>
namespace asio = boost::asio;
#endif

#include <ucx/worker.hpp>

/// Makes progress at the worker's events, and at its next deadline.
struct asio_progress {
  asio_progress(asio::io_context& io, ucx::worker& worker)
      : driven(worker), events(io, driven.event_fd()), deadline(io) {
    turn();
  }
  ~asio_progress() { events.release(); }  // the descriptor is the worker's
  asio_progress(const asio_progress&) = delete;
  asio_progress& operator=(const asio_progress&) = delete;

  void turn() {
    do {
      while (driven.progress()) {
      }
    } while (!driven.arm());
    events.async_wait(events.wait_read, [this](auto failed) { failed ? void() : turn(); });
    deadline.expires_after(
        std::min<std::chrono::nanoseconds>(driven.next_timeout(), std::chrono::hours(1)));
    deadline.async_wait([this](auto replaced) { replaced ? void() : driven.signal(); });
  }

  ucx::worker& driven;
  asio::posix::stream_descriptor events;
  asio::steady_timer deadline;
};
