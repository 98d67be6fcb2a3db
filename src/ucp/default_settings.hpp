// The settings for UCX where neither options nor environment say otherwise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "ucp/allowed_transports.hpp"
#include "ucp/asked_settings.hpp"
#include "ucp/ucp_api.hpp"
#include "ucx/version.hpp"

namespace ucx::detail {

/// The RDMA hardware that a context can have: as the system shows it, or none, as UCX told.
enum class expected_rdma { as_shown, none };

class default_settings {
 public:
  /// The references have to live as long as it does.
  default_settings(ucp_api& api, version_number version, const asked_settings& asked,
                   const allowed_transports& allowed, expected_rdma hardware);

  /// Decides about all of them; those of `TLS` are not among them. Errors: bad_configuration, where
  /// what options and environment say about segments does not go together.
  result<void> choose();

  const std::vector<configuration_setting>& all() const noexcept { return all_; }
  /// Returns the bytes of one segment of a TCP connection, in sending.
  std::size_t segment_size() const noexcept { return segment_size_; }
  /// Returns whether the machine has RDMA hardware that options and environment let UCX use.
  /// Whether UCX has a transport for it is known only when a context is made.
  bool counts_on_rdma() const noexcept { return counts_on_rdma_; }

 private:
  result<void> choose_segments();
  result<std::optional<std::uint64_t>> segment(const char* key, const char* variable) const;
  void reuse_ports();
  void copy_what_is_sent();
  void connect_by_tcp_first();
  void connect_without_blocking();
  void let_in_many();
  void tell_segments();
  void do_without_events();
  void choose_shared_memory();

  bool allows(std::string_view transport) const { return allowed_.allows(transport); }
  bool finds_rdma(bool software_alone = false) const;
  bool is_told(const char* key) const;
  void set(const char* key, const std::string& value);

  ucp_api& api_;
  const version_number version_;
  const asked_settings& asked_;
  const allowed_transports& allowed_;
  const bool counts_on_rdma_;
  std::size_t segment_size_;
  std::vector<configuration_setting> all_;
};

}  // namespace ucx::detail
