// Connections that the program dropped, until they are closed.
#pragma once

#include <mutex>
#include <vector>

#include <ucx/endpoint.hpp>
#include <ucx/request.hpp>

namespace ucxio_python {

/// Closes connections without waiting.
/// Threads: any, without the GIL.
class closing_connections {
 public:
  /// Begins to close a connection. Where that can not be begun, it is dropped at once.
  void close(ucx::endpoint gone) noexcept;
  /// Returns what has begun, and was not taken.
  std::vector<ucx::request> take() noexcept;

 private:
  std::mutex lock_;
  std::vector<ucx::request> closing_;
};

}  // namespace ucxio_python
