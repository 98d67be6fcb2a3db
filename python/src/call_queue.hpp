// Calls of peers that wait for their functions of Python's.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <ucx/call_table.hpp>
#include <ucx/late_answer.hpp>

#include "call_form.hpp"

namespace ucxio_python {

/// A call that a function of Python's answers later. It goes without the GIL.
struct waiting_call {
  std::uint64_t id = 0;        ///< In its queue.
  std::uint64_t function = 0;  ///< The number that the function was added with.
  std::vector<std::byte> arguments = {};
  std::string identity = {};
  std::optional<std::chrono::steady_clock::time_point> deadline = {};
  std::stop_token stop = {};
  ucx::late_answer later = {};
  std::optional<std::stop_callback<std::function<void()>>> told = {};  // goes first
};

/// The calls that have come, in order. No thread of the library has the GIL: a thread, or an event
/// loop, of Python's takes them from here.
/// Threads: any, without the GIL.
class call_queue : public std::enable_shared_from_this<call_queue> {
 public:
  using waiting_calls = std::list<std::shared_ptr<waiting_call>>;

  /// Errors: too_many_files.
  call_queue();
  call_queue(const call_queue&) = delete;
  call_queue& operator=(const call_queue&) = delete;
  ~call_queue();

  /// Is readable while there is something to take, or the queue is closed.
  int event_fd() const noexcept { return event_fd_; }
  /// Keeps a call until it is taken.
  /// Errors: canceled (the queue was closed), and those of `call_context::defer()`.
  void defer(std::uint64_t function, const call_types& types, ucx::call_context& context,
             ucx::call_reader& arguments);
  /// Waits for a call whose caller has not given up. Returns none when the queue is closed.
  std::shared_ptr<waiting_call> wait();
  /// Returns how many calls wait. One that its caller gives up leaves.
  std::size_t waiting() const;
  /// Returns all calls that have come, and the ids of those that were given up since they were
  /// taken.
  std::pair<waiting_calls, std::vector<std::uint64_t>> take_all();
  bool is_closed() const;
  /// Drops the calls that wait: their callers get `call_failed`.
  void close();

 private:
  void tell() noexcept;
  void give_up(std::uint64_t id) noexcept;

  const int event_fd_;
  mutable std::mutex lock_;
  std::condition_variable changed_;
  waiting_calls calls_;
  // Without arguments. A call can not go from within its own `told`, nor under the lock.
  waiting_calls left_;
  std::vector<std::uint64_t> given_up_;  // of those that were taken
  std::uint64_t last_id_ = 0;
  bool is_closed_ = false;
};

/// A call, for Python.
class call_object {
 public:
  explicit call_object(std::shared_ptr<waiting_call> of) : of_(std::move(of)) {}
  call_object(call_object&&) noexcept = default;
  call_object& operator=(call_object&&) = delete;
  ~call_object();

  std::uint64_t id() const noexcept { return of_->id; }
  std::uint64_t function() const noexcept { return of_->function; }
  std::string identity() const { return of_->identity; }
  /// Returns the seconds until the caller gives up; none where it did not say so.
  std::optional<double> remaining() const;
  bool is_given_up() const noexcept { return of_->stop.stop_requested(); }
  nanobind::object arguments(const call_form& form) const;
  /// Answers with a result.
  /// Errors: those of `write_result()`: then there is no answer yet.
  void answer(const call_form& form, nanobind::handle result);
  /// Answers that the function raised: with a code of the library, or a number of errno.
  void fail(const std::string& text, const std::string& code, int number);

 private:
  std::shared_ptr<waiting_call> of_;
};

/// A queue, for Python.
class call_queue_object {
 public:
  call_queue_object() : of_(std::make_shared<call_queue>()) {}
  call_queue_object(const call_queue_object&) = delete;
  call_queue_object& operator=(const call_queue_object&) = delete;
  ~call_queue_object();

  const std::shared_ptr<call_queue>& queue() const noexcept { return of_; }
  int event_fd() const noexcept { return of_->event_fd(); }
  bool is_closed() const { return of_->is_closed(); }
  std::size_t waiting() const { return of_->waiting(); }
  nanobind::object take();
  nanobind::tuple take_all();
  void close();

 private:
  std::shared_ptr<call_queue> of_;
};

void add_call_queue(nanobind::module_& module);

}  // namespace ucxio_python
