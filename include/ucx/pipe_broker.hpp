#pragma once

#include <cstddef>
#include <memory>
#include <system_error>

#include "ucx/error.hpp"
#include "ucx/old_option.hpp"
#include "ucx/server.hpp"
#include "ucx/version.hpp"

namespace ucx {

namespace detail {
class broker_core;
}

/// The options of a broker.
struct pipe_broker_options {
  /// For one version: `max_waiting`.
  detail::old_option<std::size_t> most_waiting = {};
  /// The number of ends of pipes that may wait for their other sides; more are refused (`busy`).
  std::size_t max_waiting = most_waiting.value_or(1024);
};

/// Lets the clients of a server open pipes by names that they choose. The broker introduces two
/// ends that ask for one name. The bytes go straight from one end to the other, never through the
/// server. A server without a broker takes no pipes. A server has at most one broker.
/// Threads: sharing one object is safe, but for the destructor and moves.
class UCXIO_EXPORT pipe_broker {
 public:
  /// Introduces ends from now on.
  /// Lifetime: `by`, until this object is gone.
  /// Errors: closed.
  explicit pipe_broker(server& by, const pipe_broker_options& options = {},
                       std::error_code& ec = throws);
  pipe_broker(pipe_broker&& other) noexcept;
  pipe_broker& operator=(pipe_broker&& other) noexcept;
  /// Refuses the ends that wait (`closed_by_peer`), and those that come later. Pipes that were made
  /// go on.
  ~pipe_broker();

  /// Returns how many ends wait for their other sides.
  std::size_t waiting() const;
  /// Returns how many pipes were introduced so far.
  std::size_t introduced() const;

 private:
  std::shared_ptr<detail::broker_core> core_;
};

}  // namespace ucx
