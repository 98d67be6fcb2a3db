// A client that is being connected over a worker of the caller's, as a request.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "connection/connector.hpp"
#include "ucx/request.hpp"
#include "ucx/url.hpp"
#include "worker/operation_group.hpp"

namespace ucx::detail {

class client_core;

/// First finds and connects to the server, then greets it. Under the worker's lock, but for
/// `start`.
class connecting_client final : public operation, private operation_group {
 public:
  /// `then` gets the client in a round of the worker.
  static request start(const std::shared_ptr<worker_core>& over, const url& server,
                       const io_options& options,
                       std::function<void(std::shared_ptr<client_core>)> then);

  connecting_client(url server, std::function<void(std::shared_ptr<client_core>)> then)
      : server_(std::move(server)), then_(std::move(then)) {}

  void give_up(errc why) noexcept override;
  void connection_failed(std::error_code) noexcept override {}  // it has none
  std::string describe() const override;
  std::optional<int> own_ucx_status() const noexcept override { return ucx_status_; }
  bool leaves_to_round() const noexcept override { return true; }  // users of a client

 protected:
  void recycle() noexcept override { delete this; }

 private:
  void begin(destination to, clock::time_point deadline);
  void connected(connector& by) noexcept;
  void greet(std::shared_ptr<endpoint_core> connection);
  void member_ended(operation& member, std::error_code outcome) noexcept override;
  void finish(const result<void>& outcome) noexcept;

  const url server_;
  std::function<void(std::shared_ptr<client_core>)> then_;
  std::string text_;  // of a failure
  std::optional<int> ucx_status_;
  clock::time_point until_;
  std::shared_ptr<connector> connector_;
  std::shared_ptr<client_core> made_;
};

}  // namespace ucx::detail
