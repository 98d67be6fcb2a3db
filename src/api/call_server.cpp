#include "ucx/call_server.hpp"

#include <string>
#include <utility>

#include "base/forked_child.hpp"
#include "base/result.hpp"
#include "rpc/call_server_core.hpp"
#include "ucx/server.hpp"
#include "worker/core_access.hpp"

namespace ucx {

call_server::call_server() noexcept = default;
call_server::call_server(call_server&& other) noexcept = default;
call_server& call_server::operator=(call_server&& other) noexcept {
  call_server before(std::move(*this));
  cores_ = std::move(other.cores_);
  return *this;
}

call_server::call_server(const worker& driven, const call_table& calls, call_server_options options,
                         std::error_code& ec) {
  open(driven, calls, std::move(options), ec);
}

call_server::call_server(server& by, const call_table& calls, const call_server_options& options,
                         std::error_code& ec) {
  // Those that were opened are closed where a later one fails.
  call_server made;
  std::error_code outcome = by.workers() == 0 ? make_error_code(errc::closed) : std::error_code();
  detail::end_with(outcome, ec, [] { return std::string("serving calls for no server"); });
  for (std::size_t i = 0; i < by.workers(); ++i) {
    made.open(by.worker(i), calls, options, ec);
    if (&ec != &throws && ec) return;
  }
  cores_ = std::move(made.cores_);
}

void call_server::open(const worker& driven, const call_table& calls, call_server_options options,
                       std::error_code& ec) {
  auto made = std::make_shared<detail::call_server_core>(detail::core_access::core(driven), calls,
                                                         std::move(options));
  cores_.reserve(cores_.size() + 1);
  const detail::result<void> listening = made->listen();
  listening.or_end(ec);
  if (listening) cores_.push_back(std::move(made));
}

call_server::~call_server() {
  auto kept = std::move(cores_);
  for (auto& each : kept) {
    if (!detail::leave_to_parent(each)) each->close();
  }
}

std::size_t call_server::under_way() const noexcept {
  std::size_t sum = 0;
  for (const auto& each : cores_) {
    if (!each->is_inherited()) sum += each->under_way();
  }
  return sum;
}

}  // namespace ucx
