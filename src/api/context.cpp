#include "ucx/context.hpp"

#include <algorithm>
#include <utility>

#include "ucp/ucp_api.hpp"
#include "ucx/error.hpp"
#include "worker/context_core.hpp"
#include "worker/core_access.hpp"

namespace ucx {

context::context() : context(context_options()) {}

context::context(const context_options& options, std::error_code& ec)
    : core_(detail::context_core::make(detail::real_ucp(), options).or_end(ec)) {}

bool context_attributes::supports_cuda() const noexcept {
  return std::find(memory.begin(), memory.end(), memory_kind::cuda) != memory.end();
}

context context::adopt(ucp_context* made, const adopted_context_options& options,
                       std::error_code& ec) {
  return context(detail::context_core::adopt(detail::real_ucp(), made, options).or_end(ec));
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

std::vector<std::string> context::unused() const {
  return core_ ? core_->unused() : std::vector<std::string>();
}

context_attributes context::attributes(std::error_code& ec) const {
  if (core_) return core_->attributes().or_end(ec);
  const detail::failure none{errc::closed, "asking for a context's attributes"};
  return detail::result<context_attributes>(none).or_end(ec);
}

std::string context::description() const { return core_ ? core_->description() : std::string(); }

ucp_context* context::native_handle() const noexcept {
  return core_ && core_->is_of_ucx() ? core_->handle() : nullptr;
}

namespace detail {

context core_access::make_context(ucp_api& api, const context_options& options,
                                  std::error_code& ec) {
  return context(context_core::make(api, options).or_tell(ec));
}

result<context> core_access::make_context(ucp_api& api, const context_options& options,
                                          const device_limit& limit) {
  auto made = context_core::make(api, options, limit);
  if (!made) return made.why();
  return context(*std::move(made));
}

context core_access::adopt_context(ucp_api& api, ucp_context* made,
                                   const adopted_context_options& options, std::error_code& ec) {
  return context(context_core::adopt(api, made, options).or_tell(ec));
}

}  // namespace detail
}  // namespace ucx
