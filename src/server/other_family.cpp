#include "server/other_family.hpp"

#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "base/error_text.hpp"
#include "connection/listener_core.hpp"
#include "region/exposed/region_service.hpp"
#include "server/server_place.hpp"
#include "ucx/error.hpp"
#include "worker/context_core.hpp"
#include "worker/core_access.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

other_family::other_family(context made, const socket_address& asked,
                           std::vector<socket_address> wanted, ucx::worker worker) noexcept
    : context_(std::move(made)),
      asked_(asked),
      wanted_(std::move(wanted)),
      worker_(std::move(worker)) {}

result<std::unique_ptr<other_family>> other_family::make(const server_place& place,
                                                         const context& first,
                                                         worker_options options) {
  auto own = place.make_context_of_six();
  if (!own) return own.why();
  auto wanted = place.addresses_of_six(*core_access::core(*own));
  if (!wanted) return wanted.why();
  options.progress = progress_mode::sleeping_thread;
  options.thread_mode = thread_mode::multi;
  try {
    ucx::worker serving(*own, options);
    worker_core& core = *core_access::core(serving);
    {
      const std::lock_guard guard(core.lock());
      core.service().serve_regions_of(core_access::core(first));
    }
    return std::unique_ptr<other_family>(
        new other_family(*std::move(own), place.six, *std::move(wanted), std::move(serving)));
  } catch (const error& thrown) {
    return failure_of(thrown);
  }
}

void other_family::set_control_server(control_server* server) noexcept {
  worker_core& core = *core_access::core(worker_);
  const std::lock_guard guard(core.lock());
  core.set_control_server(server);
}

std::uint16_t other_family::listen(std::uint16_t port,
                                   const std::function<void(const listener_failure&)>& on_failure) {
  std::vector<listener> made;
  std::optional<error> left_out;
  listeners_.clear();
  listening_.clear();
  made.reserve(wanted_.size());
  for (const socket_address& each : wanted_) {
    listener_options options;
    if (on_failure) options.on_failure = on_failure;
    try {
      made.emplace_back(worker_, each.with_port(port), std::move(options));
    } catch (const error& failed) {
      if (failed.code() != errc::bad_address || !asked_.is_wildcard()) throw;
      core_access::core(context_)->log().write(log_level::warning,
                                               std::string("not served: ") + failed.what());
      left_out = failed;
      continue;
    }
    port = made.back().address().port();
  }
  if (made.empty() && left_out) throw error(*left_out);
  for (const listener& each : made) listening_.push_back(core_access::core(each));
  listeners_ = std::move(made);
  return port;
}

void other_family::close() noexcept {
  for (listener& each : listeners_) each.close();
}

void other_family::stop() noexcept {
  for (const auto& each : listening_) each->stop();
}

socket_address other_family::told(const socket_address& four) const noexcept {
  return four.is_wildcard() && asked_.is_wildcard() ? asked_.with_port(four.port()) : four;
}

}  // namespace ucx::detail
