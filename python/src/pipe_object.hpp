// One end of a pipe to another process, for Python.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ios>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nanobind/nanobind.h>
#include <ucx/async_pipe.hpp>
#include <ucx/pipe_stream.hpp>
#include <ucx/url.hpp>
#include <ucx/worker.hpp>

namespace ucxio_python {

class loop_worker;

/// The worker of one pipe: a loop's, or one with a thread that sleeps.
struct pipe_worker {
  std::shared_ptr<loop_worker> loop = nullptr;
  std::shared_ptr<ucx::worker> own = nullptr;

  ucx::worker& get() const noexcept;
};

/// One end of a pipe. Any thread may call it. Functions that return an object of Python's wait, and
/// return the result. Over a loop's worker they return a `loop_operation` that makes the result.
class pipe_object {
 public:
  /// The pipe goes before its worker.
  struct state {
    pipe_worker by;
    ucx::async_pipe pipe;
    /// How many bytes the last reads have read that signal handlers ended: nobody got those.
    std::vector<std::shared_ptr<std::size_t>> interrupted = {};
  };
  explicit pipe_object(std::shared_ptr<state> of) : state_(std::move(of)) {}
  pipe_object(pipe_object&&) noexcept = default;
  pipe_object& operator=(pipe_object&&) = delete;
  ~pipe_object();

  /// Reads some bytes. The result is how many; 0 is the clean end.
  /// Errors: canceled (an interrupted read had read bytes before this one).
  nanobind::object read_into(nanobind::handle buffer);
  /// Writes all of `buffer`.
  nanobind::object write_from(nanobind::handle buffer);
  nanobind::object flush();
  nanobind::object close_output();
  nanobind::object close();
  /// Gives up: the other end fails. Does not wait.
  void abort();
  /// Lets go of the pipe, which is given up if it is open, and of its worker.
  void drop();

  bool is_open() const;
  std::uint64_t received() const;
  std::uint64_t sent() const;

 private:
  std::shared_ptr<state> open() const;
  template <class Start>
  nanobind::object ask(Start start) const;
  std::shared_ptr<state> state_;
};

/// An end over a loop's worker.
class loop_pipe_object : public pipe_object {
 public:
  using pipe_object::pipe_object;
};

/// How a pipe is to be opened at a URL, and the worker that it gets.
class pipe_place_object {
 public:
  /// Finds out by which way a client reaches the server, so that the end goes the same way as
  /// those of other programs, and makes a worker for that. Waits.
  /// Errors: those of `client`, of `duration_of`; ValueError (an unknown mode or policy).
  pipe_place_object(const std::string& where, const std::string& mode, bool in_loop,
                    std::size_t window, std::optional<double> timeout,
                    std::optional<double> connect_timeout, std::optional<double> heartbeat_timeout,
                    std::size_t writers, std::size_t readers, const std::string& slow_reader,
                    std::optional<double> slow_reader_timeout,
                    const std::vector<std::string>& transports, const std::string& token_file,
                    const std::map<std::string, std::string>& configuration);
  pipe_place_object(const pipe_place_object&) = delete;
  pipe_place_object& operator=(const pipe_place_object&) = delete;
  ~pipe_place_object();

  /// Returns the loop's worker.
  nanobind::object worker() const;
  /// Meets the other end. The result is the pipe.
  nanobind::object open();

 private:
  ucx::pipe_options options_;
  std::ios_base::openmode mode_;
  ucx::url where_;
  pipe_worker by_;
};

/// Gives up the pipes that are open yet.
/// REQUIRES: the interpreter has ended.
void end_pipes() noexcept;

void add_pipe(nanobind::module_& module);

}  // namespace ucxio_python
