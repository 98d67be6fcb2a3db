#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "ucx/error.hpp"
#include "ucx/export.hpp"

namespace ucx {

namespace detail {
class context_core;
struct core_access;
}  // namespace detail

/// What a context is made for. UCX allocates only what the features need, and an operation whose
/// feature is missing fails with `errc::feature_disabled`.
enum class feature : unsigned {
  none = 0,
  rma = 1U << 0U,     ///< One-sided reads and writes.
  am = 1U << 1U,      ///< Active messages; the region service and heartbeats need them.
  wakeup = 1U << 2U,  ///< Event descriptors: waiting without spinning.
  tag = 1U << 3U,     ///< Tag-matched messages.
  stream = 1U << 4U,  ///< UCX's byte stream.
};

constexpr feature operator|(feature a, feature b) noexcept {
  return static_cast<feature>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
/// Returns whether `set` has every feature of `wanted`.
constexpr bool includes(feature set, feature wanted) noexcept {
  return (static_cast<unsigned>(set) & static_cast<unsigned>(wanted)) ==
         static_cast<unsigned>(wanted);
}

/// How a context is made.
struct context_options {
  /// Shown by UCX's own tools and in error texts.
  std::string name = {};
  feature features = feature::rma | feature::am | feature::wakeup;
  /// Transports that may be used, by UCX's names ("tcp", "posix", "rc", ...); empty: UCX's choice.
  std::vector<std::string> transports = {};
  /// Network devices that may be used ("eth0", "mlx5_0:1", ...); empty: UCX's choice.
  std::vector<std::string> devices = {};
  /// UCX's configuration keys, without the prefix "UCX_", and their values. They win over the
  /// environment. Keys and values are checked here, because UCX itself would only warn, or ignore.
  std::map<std::string, std::string> configuration = {};
};

/// A UCP context: which features and transports are available, and the regions that its workers
/// serve. Workers and regions keep what they need of it alive, so it may be dropped first.
/// Threads: sharing one object is safe.
class UCXIO_EXPORT context {
 public:
  /// Makes a context with the default options. Raises UCX's TCP segments to 1 MiB plus room for a
  /// header, unless the environment or the options set them (`docs/architecture.md`).
  /// Errors: bad_configuration (the text names the key, transport or device), no_memory.
  /// Cost: milliseconds: UCX looks at every device.
  context();
  explicit context(const context_options& options);
  context(const context_options& options, std::error_code& ec);

  context(context&& other) noexcept;
  context& operator=(context&& other) noexcept;
  ~context();

  /// Returns the features that the context was made with.
  feature features() const noexcept;

  /// Returns UCX's configuration in force: keys without "UCX_", and their values.
  std::vector<std::pair<std::string, std::string>> configuration() const;

  /// Returns the transports that are present and allowed, as "transport/device" pairs.
  std::vector<std::string> transports() const;

 private:
  friend struct detail::core_access;
  explicit context(std::shared_ptr<detail::context_core> core) noexcept : core_(std::move(core)) {}

  std::shared_ptr<detail::context_core> core_;
};

}  // namespace ucx
