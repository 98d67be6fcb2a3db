// A connection as its worker and its operations know it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <system_error>

#include "worker/unshared_refcount.hpp"

namespace ucx::detail {

/// Everything happens under the worker's lock.
class driven_connection : public unshared_refcount<driven_connection> {
 public:
  driven_connection() = default;
  driven_connection(const driven_connection&) = delete;
  driven_connection& operator=(const driven_connection&) = delete;
  virtual ~driven_connection() = default;

  /// Its number at its worker, for the log.
  virtual std::uint64_t number() const noexcept = 0;
  /// Says more of how it was lost than the error does; nothing where there is no more.
  virtual std::string words() const = 0;
  /// Returns the status by which UCX ended it; nothing where it did not, or not for `why`.
  virtual std::optional<int> ucx_status_of(std::error_code why) const noexcept = 0;
  /// Returns whether it has a share of the worker.
  virtual bool keeps_worker() const noexcept = 0;
  /// Returns whether it is lost when its peer is, so that UCX gives back what was sent.
  virtual bool detects_failure() const noexcept = 0;
  /// The connection is lost for `why`, which `words` say more of, and UCX's status, if it has one.
  virtual void fail(std::error_code why, const std::string& words,
                    std::optional<int> ucx_status = {}) = 0;
  /// Has UCX end it at once.
  virtual void drop() noexcept = 0;
};

}  // namespace ucx::detail
