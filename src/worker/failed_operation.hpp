// An operation that failed before anything was sent: a request that is done when it is returned.
#pragma once

#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "worker/core_access.hpp"
#include "worker/operation.hpp"

namespace ucx::detail {

class failed_operation final : public operation {
 public:
  failed_operation(std::error_code why, std::string what) : what_(std::move(what)) { fail(why); }

  void give_up(errc) noexcept override {}
  void connection_failed(std::error_code) noexcept override {}
  std::string describe() const override { return what_; }

 protected:
  void recycle() noexcept override { delete this; }

 private:
  std::string what_;
};

inline request failed_request(std::error_code why, std::string what) {
  return core_access::make_request(
      std::make_unique<failed_operation>(why, std::move(what)).release());
}

}  // namespace ucx::detail
