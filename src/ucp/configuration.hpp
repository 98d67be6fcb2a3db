// A context's options as UCX's configuration, checked before UCX sees any of it.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "ucp/allowed_transports.hpp"
#include "ucp/default_settings.hpp"
#include "ucp/ucp_api.hpp"
#include "ucx/context.hpp"

namespace ucx::detail {

/// A configuration for one context: the options, else the environment, else our defaults, else
/// UCX's.
class configuration {
 public:
  /// Reads, checks and applies. A failure names the key, transport or device, and what is accepted
  /// instead; nothing is printed, on any version of UCX.
  /// The first configuration of a process sets UCX's process-wide LOG_LEVEL to "fatal", unless the
  /// environment (UCX_LOG_LEVEL) or the options set it.
  /// `devices` are the only ones, where they are not empty, whatever options and environment say.
  /// Some defaults are other ones where RDMA hardware is used (`hardware`).
  /// Errors: bad_configuration, no_memory.
  static result<configuration> make(ucp_api& api, const context_options& options,
                                    const std::vector<std::string>& devices = {},
                                    expected_rdma hardware = expected_rdma::as_shown);

  const ucp_config_t* handle() const noexcept { return handle_.get(); }

  /// Returns the bytes of one segment of a TCP connection, in sending.
  std::size_t segment_size() const noexcept { return segment_size_; }

  /// Returns whether the defaults are those for RDMA hardware.
  bool counts_on_rdma() const noexcept { return counts_on_rdma_; }

  /// Returns what is in force: all of UCX's own keys, and those of transports and of the process
  /// that the options or our defaults set.
  const std::vector<std::pair<std::string, std::string>>& values() const noexcept {
    return values_;
  }

  /// Returns the transports that are left out, though they were asked for or are usual.
  const std::vector<withheld_transport>& withheld() const noexcept { return withheld_; }

 private:
  struct release {
    ucp_api* api;
    void operator()(ucp_config_t* config) const { api->config_release(config); }
  };
  configuration(ucp_api& api, ucp_config_t* read) noexcept : handle_(read, release{&api}) {}

  std::unique_ptr<ucp_config_t, release> handle_;
  std::size_t segment_size_ = 0;
  bool counts_on_rdma_ = false;
  std::vector<std::pair<std::string, std::string>> values_;
  std::vector<withheld_transport> withheld_;
};

}  // namespace ucx::detail
