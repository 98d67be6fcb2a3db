// Which transports a context may use: those that were asked for, without what would do harm.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ucp/transport_list.hpp"
#include "ucx/version.hpp"

namespace ucx::detail {

/// A transport that a context does without, though it was asked for or is usual.
struct withheld_transport {
  std::string name;
  std::string why;
  bool expected;  ///< It was not named itself, but is one of a group, or of all.
};

class allowed_transports {
 public:
  enum class asked_by { context_options, list };

  /// The transports that UCX chooses among where none are asked for.
  explicit allowed_transports(version_number version);
  /// Of a value of TLS.
  allowed_transports(const std::string& asked, asked_by whom, version_number version);

  /// Returns the value of TLS for UCX.
  const std::string& value() const noexcept { return value_; }
  bool allows(std::string_view transport) const { return transport_list(value_).allows(transport); }
  /// Returns what is left out by more than what was said.
  const std::vector<withheld_transport>& withheld() const noexcept { return withheld_; }

 private:
  void withhold_open_ones(const transport_list& asked);
  void withhold_deadly_one(transport_list& asked, version_number version);

  std::string value_;
  std::vector<withheld_transport> withheld_;
};

}  // namespace ucx::detail
