#include "ucx/call_server.hpp"

#include <utility>

#include "base/forked_child.hpp"
#include "base/result.hpp"
#include "rpc/call_server_core.hpp"
#include "worker/core_access.hpp"

namespace ucx {

call_server::call_server() noexcept = default;
call_server::call_server(call_server&& other) noexcept = default;
call_server& call_server::operator=(call_server&& other) noexcept {
  call_server before(std::move(*this));
  core_ = std::move(other.core_);
  return *this;
}

call_server::call_server(const worker& driven, const call_table& calls, call_server_options options,
                         std::error_code& ec) {
  auto made = std::make_shared<detail::call_server_core>(detail::core_access::core(driven), calls,
                                                         std::move(options));
  const detail::result<void> listening = made->listen();
  listening.or_end(ec);
  if (listening) core_ = std::move(made);
}

call_server::~call_server() {
  if (!core_ || is_forked_child()) return;
  const std::shared_ptr<detail::call_server_core> kept = std::move(core_);
  kept->close();
}

std::size_t call_server::under_way() const noexcept { return core_ ? core_->under_way() : 0; }

}  // namespace ucx
