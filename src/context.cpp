#include "ucx/context.hpp"

#include <utility>

#include "detail/context_core.hpp"
#include "detail/core_access.hpp"
#include "detail/ucp_api.hpp"
#include "ucx/error.hpp"

namespace ucx {

context::context() : context(context_options()) {}

context::context(const context_options& options) {
  std::string what;
  std::error_code ec;
  core_ = detail::context_core::make(detail::real_ucp(), options, what, ec);
  if (ec) throw error(ec, what);
}

context::context(const context_options& options, std::error_code& ec) {
  std::string what;
  ec.clear();
  core_ = detail::context_core::make(detail::real_ucp(), options, what, ec);
}

context::context(context&& other) noexcept = default;
context& context::operator=(context&& other) noexcept = default;
context::~context() = default;

feature context::features() const noexcept { return core_ ? core_->features() : feature::none; }

std::vector<std::pair<std::string, std::string>> context::configuration() const {
  return core_ ? core_->configuration() : std::vector<std::pair<std::string, std::string>>();
}

std::vector<std::string> context::transports() const {
  return core_ ? core_->resources() : std::vector<std::string>();
}

namespace detail {

context core_access::make_context(ucp_api& api, const context_options& options,
                                  std::error_code& ec) {
  std::string what;
  ec.clear();
  return context(context_core::make(api, options, what, ec));
}

}  // namespace detail
}  // namespace ucx
