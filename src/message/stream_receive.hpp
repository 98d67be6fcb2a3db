// A receive from the byte stream of a connection.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <system_error>

#include "base/clock.hpp"
#include "base/intrusive_list.hpp"
#include "message/byte_runs.hpp"
#include "ucx/endpoint.hpp"
#include "worker/operation.hpp"

namespace ucx::detail {

struct stream_tag {};

/// Takes the bytes that come, in their order; done when it has some, or all that it wants. UCX
/// never has the memory: giving up costs nothing, and leaves what comes later to the next one.
class stream_receive final : public operation, public list_hook<stream_tag> {
 public:
  /// Starts, without looking for anything. It is done already where its memory is a device's that
  /// can not be reached.
  void begin(worker_core& worker, kept_alive&& held, clock::time_point deadline,
             stream_amount amount, std::span<std::byte> into);

  bool wants_nothing() const noexcept { return into_.size() == 0; }
  /// Returns how many bytes it still takes.
  std::size_t wants() const noexcept { return into_.size() - received_; }
  bool into_device() const noexcept { return into_.on_device(); }
  /// Takes what it wants, and returns how much that is; nothing, where its memory is a device's and
  /// they can not be copied there.
  std::size_t feed(std::span<const std::byte> bytes);

  void give_up(errc why) noexcept override { end(make_error_code(why)); }
  void connection_failed(std::error_code why) noexcept override { end(why); }
  bool awaits_peer() const noexcept override { return true; }
  message_info received() const noexcept override { return {.length = received_}; }
  std::string describe() const override;
  request_attributes attributes() const override {
    return {.kind = operation_kind::stream_receive, .size = received_, .memory = into_.kind()};
  }

 protected:
  void recycle() noexcept override;

 private:
  void end(std::error_code why) noexcept {
    if (!done()) finish(why);
  }
  void finish(std::error_code outcome) noexcept;

  byte_runs<std::byte> into_;
  std::size_t received_ = 0;
  stream_amount amount_ = stream_amount::some;
};

}  // namespace ucx::detail
