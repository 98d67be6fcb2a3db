// An end of a pipe whose operations are requests.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <ios>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <system_error>
#include <vector>

#include "pipes/async_pipe_input.hpp"
#include "pipes/async_pipe_output.hpp"
#include "pipes/pipe_meeting.hpp"
#include "pipes/pipe_path.hpp"
#include "pipes/pipe_steps.hpp"
#include "ucx/async_pipe.hpp"
#include "ucx/context.hpp"
#include "ucx/pipe_stream.hpp"
#include "ucx/request.hpp"
#include "ucx/request_source.hpp"

namespace ucx::detail {

/// The parts of a pipe are those of a stream. Where they would wait, they say for which requests.
/// Each of those makes a step when it ends. Requests of the program keep this alive. Its life:
///
///     from    | to     | when
///     opening | open   | the other ends are there, and begin to read what this one writes
///     opening | over   | that failed, or its request is gone
///     open    | over   | it was closed, aborted, or its handle has gone
class async_pipe_core final : public pipe_steps,
                              public std::enable_shared_from_this<async_pipe_core> {
 public:
  async_pipe_core(worker& driven, std::string name, std::ios_base::openmode mode,
                  const pipe_options& options);
  ~async_pipe_core() override;
  async_pipe_core(const async_pipe_core&) = delete;
  async_pipe_core& operator=(const async_pipe_core&) = delete;

  /// Opens by a path that there is, or by one that is to be met at `where`.
  request start_open(async_pipe& made, std::unique_ptr<pipe_path> path);
  request start_open(async_pipe& made, const url& where);

  request start_read(std::span<std::byte> into, std::size_t& count);
  request start_output(async_output_kind what, std::span<const std::byte> from = {});
  void abort() noexcept;
  /// Its handle has gone.
  void leave() noexcept;

  /// Returns whether it is that of a process that this one was forked from.
  bool is_inherited() const noexcept { return made_.is_inherited(); }
  bool is_open() const noexcept { return is_open_.load(std::memory_order_acquire); }
  std::uint64_t received() const noexcept { return received_.load(std::memory_order_relaxed); }
  std::uint64_t sent() const noexcept { return sent_.load(std::memory_order_relaxed); }

 private:
  const process_stamp made_;
  enum class stage { opening, open, over };
  struct opening {
    request_source source;
    async_pipe* made = nullptr;
    std::optional<url> where = {};
  };

  /// The kinds of requests, those of output first.
  enum class doing { write, flush, close_output, close, read, open };
  using words = std::array<std::shared_ptr<const std::string>, 6>;

  static words words_of(const std::string& name);
  request begin(request_source& by, doing what, std::chrono::nanoseconds timeout);
  template <class Request>
  std::list<Request> take_spare(std::list<Request>& spare);
  template <class Request>
  void add(std::list<Request>& made, std::list<Request>& to) noexcept;
  template <class Request>
  void give_back(std::list<Request>& over, std::list<Request>& spare) noexcept;
  request begin_opening(async_pipe& made, opening& begun);
  void step() noexcept override;
  void take_arrivals() noexcept;
  void advance();
  void open();
  bool meet();
  bool make_ends();
  static bool serve_without_output(async_output& next);
  void close(async_output& last);
  void end_reads() noexcept;
  void fail_all(std::error_code why) noexcept;
  void give_up() noexcept;
  template <class Connections>
  void let_go(Connections what) noexcept;
  void note_counts() noexcept;

  worker& driven_;
  const std::string name_;
  const words words_;
  const std::ios_base::openmode mode_;
  const pipe_options options_;
  // From any thread.
  std::mutex arriving_;  // with the next four
  std::list<async_read> new_reads_;
  std::list<async_output> new_outputs_;
  std::list<async_read> spare_reads_;  // for the next ones
  std::list<async_output> spare_outputs_;
  std::atomic<bool> aborted_{false};
  std::atomic<bool> left_{false};
  std::atomic<bool> is_open_{false};
  std::atomic<bool> has_begun_{false};  // steps before that do nothing
  std::atomic<std::uint64_t> received_{0};
  std::atomic<std::uint64_t> sent_{0};
  // In steps.
  stage stage_ = stage::opening;
  std::optional<opening> opening_;
  std::optional<pipe_meeting> meeting_;
  std::unique_ptr<pipe_path> path_;
  std::optional<async_pipe_input> in_;
  std::optional<async_pipe_output> out_;
  std::list<async_read> reads_;
  std::list<async_output> outputs_;
  std::list<async_read> reads_over_;  // of the present step
  std::list<async_output> outputs_over_;
  std::vector<pipe_request> closing_;  // connections
  bool closes_ = false;
  std::optional<std::stop_callback<std::function<void()>>> on_stop_;
};

}  // namespace ucx::detail
