// A worker that an event loop of Python's drives.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <ucx/client.hpp>
#include <ucx/worker.hpp>

namespace ucxio_python {

/// The numbers of operations that have ended. Any thread may use it, without the GIL.
class ended_operations {
 public:
  void add(std::uint64_t number);
  std::vector<std::uint64_t> take();

 private:
  std::mutex lock_;
  std::vector<std::uint64_t> numbers_;
};

/// A worker without a thread, and the ends of its operations. Only `turn` tells these, so that no
/// function of Python's is called from the library.
/// Threads: any; the worker's lock orders them.
class loop_worker {
 public:
  explicit loop_worker(ucx::worker made) : worker_(std::move(made)) {}

  ucx::worker& worker() noexcept { return worker_; }
  std::uint64_t next_number() noexcept { return ++last_number_; }
  const std::shared_ptr<ended_operations>& ended() const noexcept { return ended_; }
  /// Has the loop make a turn, from any thread.
  void wake() noexcept { worker_.signal(); }

  /// Makes up to so many rounds of progress, and prepares the descriptor when there is nothing
  /// left to do. Returns in how many seconds to call again at the latest: 0 where there is more to
  /// do, nothing where nothing is outstanding.
  std::optional<double> drive(std::size_t rounds);

 private:
  std::shared_ptr<ended_operations> ended_ = std::make_shared<ended_operations>();
  std::atomic<std::uint64_t> last_number_ = 0;
  ucx::worker worker_;
};

/// Returns a client to be connected over a loop's worker. The last to have it drops the connection
/// at once, and does not wait for the server, so that the loop goes on.
std::shared_ptr<ucx::client> make_loop_client();

/// The worker for one server, for Python.
class loop_worker_object {
 public:
  /// Makes a context and a worker for the scheme of the URL, without the GIL.
  loop_worker_object(const std::string& url, const std::vector<std::string>& transports,
                     const std::string& token_file, std::optional<double> connect_timeout,
                     std::optional<double> timeout,
                     const std::map<std::string, std::string>& configuration);
  explicit loop_worker_object(std::shared_ptr<loop_worker> made) : worker_(std::move(made)) {}
  loop_worker_object(const loop_worker_object&) = delete;
  loop_worker_object& operator=(const loop_worker_object&) = delete;
  ~loop_worker_object();

  int event_fd() const;
  /// Drives. Returns the numbers of the operations that have ended, and the time to the next turn.
  nanobind::tuple turn(std::size_t rounds);
  /// Begins to connect: an operation, whose result is a client.
  nanobind::object connect(const std::string& url, std::optional<double> timeout);

 private:
  std::shared_ptr<loop_worker> worker_;
};

void add_loop_worker(nanobind::module_& module);

}  // namespace ucxio_python
