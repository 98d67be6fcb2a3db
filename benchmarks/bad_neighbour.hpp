// A client of a server by TLS that leaves nothing to others, as far as it is let.
#pragma once

#include <sys/types.h>

#include <string>

namespace ucx::benchmarks {

/// A forked process on the core of those that read. It uses the processor while it rests, as while
/// it reads or stops. The other habits wait for answers: on a shared core they leave more to
/// readers than rest does, so ratios above 1 say only that nobody starves.
class bad_neighbour {
 public:
  enum class habit {
    rest,
    read,   ///< Reads 8 bytes, as often as it may, 512 at a time.
    stat,   ///< Asks for names, likewise.
    stop,   ///< Asks for 1 GiB, and takes nothing of it.
    open,   ///< Opens connections, and closes them.
    shake,  ///< Is 64 strangers that begin a handshake, and others with a wrong token.
  };

  /// REQUIRES: this process runs one thread.
  bad_neighbour();
  bad_neighbour(const bad_neighbour&) = delete;
  bad_neighbour& operator=(const bad_neighbour&) = delete;
  ~bad_neighbour();

  /// Tells it the server's URL, which has the region "matrix" of 64 MiB, and the files of its token
  /// and of a wrong one.
  void meet(const std::string& url, const std::string& token, const std::string& wrong_token);
  /// When it returns, the other one does that.
  void begin(habit what);

 private:
  void tell(const std::string& line);

  ::pid_t child_ = -1;
  int orders_ = -1;
  int words_ = -1;
};

}  // namespace ucx::benchmarks
