// A process that asks a server as fast as it can: the neighbour that nobody wants.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>

namespace ucx::benchmarks {

/// A forked process with one connection, of UCX alone, which speaks our protocol. It uses the
/// processor as much while it does not ask.
class flood_process {
 public:
  enum class question { list, open, hash, create, none };

  /// It keeps so many questions unanswered. REQUIRES: as `server_process`; it forks, too.
  explicit flood_process(std::size_t unanswered);
  flood_process(const flood_process&) = delete;
  flood_process& operator=(const flood_process&) = delete;
  ~flood_process();

  /// Has it connect to the server at `url`, on the core of those that read. The server has the
  /// region "matrix", and a writable store "store" with a file "file" of 4 KiB or more.
  void connect(const std::string& url);
  /// From when it returns on, it asks that.
  void ask(question what);
  /// Returns how many answers it got so far.
  std::size_t answers();

 private:
  std::string talk(const std::string& order);

  ::pid_t child_ = -1;
  int orders_ = -1;
  int words_ = -1;
};

}  // namespace ucx::benchmarks
