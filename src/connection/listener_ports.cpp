#include "connection/listener_ports.hpp"

#include <cstddef>
#include <utility>

#include "connection/data_ports.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

listener_ports::listener_ports(worker_core& worker, const socket_address& address,
                               std::vector<guarded_port> own, listeners told)
    : worker_(worker), address_(to_string(address)) {
  if (own.empty()) {
    if (uses_tcp(worker_)) {
      log_unguarded("the port " + address_ + ", for its socket is not to be found in this process");
    }
    return;
  }
  add_data_ports(worker_, own);
  const auto tell_of_doors = [&log = worker_.context().log()](bool let_in, std::size_t left) {
    log.write(let_in ? log_level::warning : log_level::error,
              std::to_string(left) + " file descriptors are left: " +
                  (let_in ? "peers are let in again"
                          : "no peer is let in until there are more; raise the limit (ulimit -n)"));
  };
  guard_ = std::make_unique<port_guard>(
      own, port_guard::bounds(),
      port_guard::listeners{std::move(told.lost), std::move(told.overdue), tell_of_doors});
  if (guard_->is_running()) return;
  log_unguarded("the port " + address_ + ", for want of a thread or of file descriptors");
}

void listener_ports::add(const std::vector<std::weak_ptr<worker_core>>& others) {
  if (!guard_) return;
  std::vector<guarded_port> ports;
  for (const std::weak_ptr<worker_core>& each : others) {
    if (const auto other = each.lock()) add_data_ports(*other, ports);
  }
  if (guard_->add(ports)) return;
  log_unguarded("the ports by which data come to further workers of " + address_ +
                ", for want of memory");
}

/// Where UCX does not say which they are, they are not looked after.
void listener_ports::add_data_ports(worker_core& of, std::vector<guarded_port>& to) {
  const data_ports own = data_ports_of(of);
  to.insert(to.end(), own.found.begin(), own.found.end());
  if (own.why_none.empty()) return;
  log_unguarded("the ports by which data come to " + address_ + ", for " + own.why_none);
}

void listener_ports::log_unguarded(const std::string& which) {
  worker_.context().log().write(log_level::warning,
                                "nobody looks after " + which +
                                    ": strangers are let in and kept there, and nobody notices "
                                    "when UCX closes one for want of descriptors");
}

}  // namespace ucx::detail
