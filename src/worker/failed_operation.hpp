// An operation that failed before anything was sent: a request that is done when it is returned.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "base/result.hpp"
#include "worker/core_access.hpp"
#include "worker/operation.hpp"

namespace ucx::detail {

class failed_operation final : public operation {
 public:
  failed_operation(std::error_code why, std::string what, std::optional<int> ucx_status)
      : what_(std::move(what)), ucx_status_(ucx_status) {
    fail(why);
  }

  void give_up(errc) noexcept override {}
  void connection_failed(std::error_code) noexcept override {}
  std::string describe() const override { return what_; }
  std::optional<int> own_ucx_status() const noexcept override { return ucx_status_; }

 protected:
  void recycle() noexcept override { delete this; }

 private:
  std::string what_;
  std::optional<int> ucx_status_;
};

inline request failed_request(std::error_code why, std::string what,
                              std::optional<int> ucx_status = {}) {
  return core_access::make_request(
      std::make_unique<failed_operation>(why, std::move(what), ucx_status).release());
}

inline request failed_request(failure why) {
  return failed_request(why.code, std::move(why.text), why.ucx_status);
}

}  // namespace ucx::detail
