// Which devices and transports a new context is to use, who says so, and what came of it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "os/network_device.hpp"
#include "ucp/allowed_transports.hpp"
#include "ucp/ucp_api.hpp"
#include "ucx/context.hpp"

namespace ucx::detail {

class logger;

class device_choice {
 public:
  /// `limit` counts where nothing else names devices. The devices that the environment names make
  /// it narrower, unless nothing would be left.
  device_choice(ucp_api& api, const context_options& options, const device_limit& limit);

  /// Returns the options of UCX's configuration: the limit is among them where it counts.
  const context_options& options() const noexcept { return options_; }

  /// Leaves out the RDMA hardware among UCX's resources, for which the process may not lock enough
  /// memory. Errors: no_lockable_memory, where it is required, named by the options, or all there
  /// is.
  result<void> leave_out_rdma(const std::vector<std::string>& resources);
  /// Returns the devices that are left then; nothing as long as none was left out.
  const std::vector<std::string>& rest() const noexcept { return rest_; }

  /// Compares with what UCX has, "transport/device" each, and was not let have. Errors:
  /// bad_configuration (a device that the options name is not there, or none of the limit's).
  result<void> check(const std::vector<std::string>& resources,
                     const std::vector<withheld_transport>& withheld);

  /// Returns what is not used, though it was named or is there, with the reasons.
  std::vector<std::string> unused() const;
  /// Writes what was chosen, and what is not used.
  void log(logger& to, const std::vector<std::string>& resources) const;

  /// Returns a part of an error text: what an address limits the context to; empty without a limit.
  std::string limited() const;
  /// Returns the end of an error text: the devices that there are, and what hinders others. Makes
  /// another context for it.
  std::string present() const;

 private:
  enum class source { nobody, options, configuration, environment, limit };
  struct forgone {
    std::string what;  ///< With the reason.
    bool expected;     ///< As by a port that is down.
  };

  source who_names_devices() const;
  std::string named_devices() const;
  std::string why_limited() const;
  result<void> check_names(const std::vector<std::string>& resources) const;
  void look_at_environment();
  void look_at_names(const std::vector<std::string>& resources);
  void look_at_ports(const std::vector<std::string>& resources);
  void look_at_left_out();
  std::string why_of_other_network(const std::string& port) const;
  std::string why_beyond_the_limit() const;
  void look_at_transports(const std::vector<std::string>& resources,
                          const std::vector<withheld_transport>& withheld);
  bool transports_are_named() const;

  ucp_api& api_;
  context_options options_;
  source source_;
  std::string why_limited_;
  std::string inherited_;  // what the environment names, where a limit counts before it
  bool narrowed_ = false;
  bool is_without_rdma_ = false;
  std::vector<device_limit::other_port> others_;
  std::vector<std::string> left_out_;  // RDMA hardware, "transport/device" each
  std::vector<std::string> rest_;      // devices, without those
  std::vector<forgone> unused_;
};

}  // namespace ucx::detail
