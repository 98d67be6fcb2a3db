// The end of a connection, step by step and without waiting: docs/architecture.md,
// "Closing".
#pragma once

#include <cassert>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <system_error>

#include "base/clock.hpp"
#include "connection/flush_operation.hpp"
#include "ucx/endpoint.hpp"
#include "worker/operation.hpp"

namespace ucx::detail {

/// The peer answers what is outstanding, which is then flushed. The peer is told of the end, and
/// says farewell. At last UCX's endpoint is dropped. `abort`, a deadline and a lost connection go
/// straight to the last step. Its stages:
///
///     from        to         when
///     answering   flushing   everything that was asked is answered
///     answering   dropping   there is nothing to flush, or no peer to tell
///     flushing    parting    that is over, and the peer is told
///     flushing    dropping   that failed, or there is no peer to tell
///     parting     dropping   the peer said farewell, or took too long
///
/// From any of them it ends when UCX has let go.
class close_operation final : public operation {
 public:
  static constexpr std::size_t most_idle = 8;  ///< Connections end seldom.

  /// How long UCX may take to end what a dropped endpoint had in flight.
  static constexpr std::chrono::seconds drop_limit{2};

  /// REQUIRES: the connection is open, and nothing else closes it.
  void begin(worker_core& worker, std::shared_ptr<endpoint_core> endpoint, close_mode mode,
             clock::time_point deadline);
  /// Something of the connection has changed: goes on as far as that allows. Not inside of UCX.
  void step();
  /// UCX's endpoint is gone, or will never be told: ends.
  void finish() noexcept;

  void give_up(errc why) noexcept override;
  void connection_failed(std::error_code why) noexcept override;
  bool is_own() const noexcept override { return true; }
  std::string describe() const override;
  request_attributes attributes() const override { return {.kind = operation_kind::close}; }

 protected:
  void recycle() noexcept override;

 private:
  enum class stage { answering, flushing, parting, dropping };
  /// The table above.
  static constexpr bool may_become(stage now, stage next) noexcept {
    return now < next && (next != stage::parting || now == stage::flushing);
  }
  void reach(stage next) noexcept {
    assert(may_become(stage_, next));
    stage_ = next;
  }
  void flush();
  void part();
  void drop_connection();

  std::shared_ptr<endpoint_core> kept_;
  close_mode mode_ = close_mode::flush;
  stage stage_ = stage::answering;
  flush_operation* flush_ = nullptr;
  std::error_code outcome_;
};

}  // namespace ucx::detail
