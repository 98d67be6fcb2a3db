// UCX's context, its options and its log.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "ucx/error.hpp"
#include "ucx/memory_place.hpp"
#include "ucx/old_option.hpp"
#include "ucx/to_string.hpp"
#include "ucx/version.hpp"

struct ucp_context;  ///< UCX's type: `ucp_context_h` is a pointer to it.

namespace ucx {

/// The amount of logging. A level has its own lines, and those of the levels before it in this
/// list.
enum class log_level {
  none,     ///< Nothing.
  error,    ///< Resources that are used up: the user has to act.
  warning,  ///< Connections that were lost or refused; devices and transports that failed.
  info,     ///< Contexts, workers, listeners and connections, as they come and go.
  debug,    ///< Each operation as it ends: its kind, its object, its bytes, its outcome.
  trace,    ///< Each message of the library's own protocol.
};

template <>
UCXIO_EXPORT std::string_view detail::enum_name(log_level value) noexcept;

/// Takes one line, without a line break or other control characters. It is called from any thread,
/// one line at a time, and under locks of the library: it must not call the library. An exception
/// of it is dropped, with its line.
using log_sink = std::function<void(log_level level, std::string_view line)>;

/// The place of a context's log, and its level. Without a level the environment decides.
/// `UCXIO_LOG=debug` writes to the standard error stream, and `UCXIO_LOG=debug:/path` appends to a
/// file. Without either the library logs nothing.
struct log_options {
  std::optional<log_level> level = {};
  /// Takes the lines. Empty: the standard error stream, or the environment's file.
  log_sink sink = {};
};

namespace detail {
class context_core;
struct core_access;
}  // namespace detail

/// The purposes of a context. UCX allocates only the resources that the features need. An operation
/// whose feature is missing fails with `errc::feature_disabled`. So does opening a region by a
/// transfer method whose feature is missing.
enum class feature : unsigned {
  none = 0,
  rma = 1U << 0U,     ///< One-sided reads and writes.
  am = 1U << 1U,      ///< Active messages; the region service and heartbeats need them.
  wakeup = 1U << 2U,  ///< Event descriptors: waiting without spinning.
  tag = 1U << 3U,     ///< Tag-matched messages.
  stream = 1U << 4U,  ///< UCX's byte stream.
};

/// Returns the names of the features, with "|" between them.
UCXIO_EXPORT std::string to_string(feature value);

template <>
inline constexpr bool detail::is_printed<feature> = true;

constexpr feature operator|(feature a, feature b) noexcept {
  return static_cast<feature>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
/// Returns whether `set` has every feature of `wanted`.
constexpr bool includes(feature set, feature wanted) noexcept {
  return (static_cast<unsigned>(set) & static_cast<unsigned>(wanted)) ==
         static_cast<unsigned>(wanted);
}

/// The setting that wins where both the options and the environment (`UCX_...`) have one.
enum class precedence { options, environment };

template <>
UCXIO_EXPORT std::string_view detail::enum_name(precedence value) noexcept;

/// The files, in PEM form, by which a side of TLS shows a certificate and trusts those of peers
/// (`docs/how-to/security.md`). Only this user may be able to read `key`, and only this user and
/// root to write the others.
struct certificate_files {
  std::filesystem::path cert = {};  ///< This side's certificate, and those between it and its CA.
  std::filesystem::path key = {};   ///< The certificate's private key, without a passphrase.
  std::filesystem::path ca = {};    ///< The CAs whose certificates are trusted, and no others.
  std::filesystem::path crl = {};   ///< Their revocation lists; empty: nothing is revoked.
};

/// The options of a context.
struct context_options {
  /// The name in UCX's own tools and in error texts.
  std::string name = {};
  feature features = feature::rma | feature::am | feature::wakeup;
  /// Transports that may be used, by UCX's names ("tcp", "posix", "rc", ...); empty: UCX's choice.
  /// Alone, "socket" means TCP sockets of this library, without UCX (`docs/how-to/security.md`).
  /// Native handles are null then, and there is no RMA and no worker address. "tls" means the same
  /// with TLS 1.3, and peers that have a token: `token_file`. "unix" beside "tls": Unix sockets are
  /// in the clear, and a server on loopback has one for clients of the same user. "ucx" alone means
  /// UCX with its own choice.
  std::vector<std::string> transports = {};
  /// Network devices that may be used ("eth0", "mlx5_0:1", ...); empty: UCX's choice. Each has to
  /// exist. The error names the devices that do.
  std::vector<std::string> devices = {};
  /// UCX's configuration keys, without the prefix "UCX_", and their values. Both are checked here,
  /// because UCX itself would only warn, or ignore a mistake.
  std::map<std::string, std::string> configuration = {};
  /// The file, or descriptor ("/dev/fd/3"), that has the tokens for the transport "tls". Empty: the
  /// variable `UCXIO_TOKEN`, else `~/.config/ucxio/tokens` (`ucx::token_file`).
  std::filesystem::path token_file = {};
  /// Certificates for the transport "tls", beside tokens. All empty: listeners accept none; clients
  /// take the files that `UCXIO_CERT`, `UCXIO_KEY`, `UCXIO_CA` and `UCXIO_CRL` name, if any. They
  /// show no token then, unless a line of the file of tokens is for that server.
  certificate_files certificates = {};
  /// Users, by their numbers, whose clients are let in over a Unix socket, and whose servers are
  /// trusted there (`ucx+unix`). This user and root always are. The overflow user (65534), which
  /// stands for users of other user namespaces, can not be named: `bad_configuration`.
  std::vector<std::uint32_t> peer_users = {};
  /// Likewise, groups. Each user counts that has the group, also as a supplementary one.
  std::vector<std::uint32_t> peer_groups = {};
  log_options log = {};
  /// For one version: `configuration_precedence`.
  detail::old_option<precedence> wins = {};
  /// Decides for transports, devices and configuration. Values that the environment overrides are
  /// checked, too.
  precedence configuration_precedence = wins.value_or(precedence::options);
  /// Fails with `no_rdma` unless RDMA hardware is present and allowed, of any kind ("ud", too).
  /// `connection_terms::require_rdma` demands that a connection uses it. Exposing memory that the
  /// hardware can not register is an error then; else peers reach it by message.
  bool require_rdma = false;
  /// Processes of this host and user may map memory that is allocated here. They may read other
  /// exposed memory in place (`docs/reference/regions.md`, "How bytes move"). This process may do
  /// so with theirs. With false, none of these is allowed.
  bool share_memory = true;
  /// Experimental: RDMA hardware may move memory of CUDA devices between hosts
  /// (`docs/how-to/gpu.md`, "Between hosts" and "Limits"). That takes a second context of UCX's,
  /// which is made when it is first needed, and UCX 1.21. With false, such bytes go by message.
  bool device_rma = false;
};

/// UCX's description of a context.
struct context_attributes {
  std::string name = {};
  std::string thread_mode = {};          ///< "single", "serialized" or "multi".
  std::vector<memory_kind> memory = {};  ///< The kinds that can be sent, received and exposed.
  std::size_t request_size = 0;          ///< The size of UCX's own requests, in bytes.
  /// Returns whether UCX was built and set up to move CUDA memory on this machine.
  UCXIO_EXPORT bool supports_cuda() const noexcept;
};

/// The owner of a UCX object that was made elsewhere: it destroys the object.
enum class ownership {
  borrow,  ///< The caller, after all objects that were made from it here.
  take,    ///< This library.
};

template <>
UCXIO_EXPORT std::string_view detail::enum_name(ownership value) noexcept;

/// The facts that UCX does not tell of a context that was made elsewhere.
struct adopted_context_options {
  /// The features that it was made for. A missing feature shows as an error of UCX at its first
  /// use.
  feature features = feature::rma | feature::am | feature::wakeup;
  /// For one version: `segment_size`.
  detail::old_option<std::size_t> segment = {};
  /// The largest payload and header that go as one piece over every transport in use. That is UCX's
  /// TCP segment: 8 KiB, unless it was configured otherwise. If this value is larger than the true
  /// one, peers that die can end the process (UCX 1.13).
  std::size_t segment_size = segment.value_or(std::size_t{8} << 10U);
  ownership owner = ownership::borrow;
  log_options log = {};
  bool share_memory = true;  ///< See `context_options::share_memory`.
};

/// Returns whether this process is a child of `fork()` whose parent had contexts at that moment, or
/// a descendant of one. In such a child, every use of an object of the parent fails with
/// forked_child. Destroying an inherited object leaves the parent's alone. The child can make
/// contexts, and open streams, over sockets alone. Where the parent had a context of UCX's, the
/// child can make none, for good (`docs/conventions.md`).
UCXIO_EXPORT bool is_forked_child() noexcept;

namespace detail {

/// Tells in which process an object was made that has one of these. A copy tells the same. Objects
/// that were made before a `fork()` without contexts count as the child's: no thread, and no peer,
/// has a part in them.
class UCXIO_EXPORT process_stamp {
 public:
  process_stamp() noexcept : generation_(current_.load(std::memory_order_relaxed)) {}
  /// Returns whether this process is a child of that one, by `fork()`, or a descendant, and there
  /// were contexts then.
  bool is_inherited() const noexcept {
    return generation_ != current_.load(std::memory_order_relaxed);
  }

  static void begin_process() noexcept;  ///< Called by `fork()` itself.

 private:
  static constinit std::atomic<std::uint32_t> current_;
  std::uint32_t generation_;
};

}  // namespace detail

/// A UCP context: the available features and transports, and the regions that its workers serve.
/// Workers and regions keep what they need of it alive: it may be dropped first.
/// Threads: sharing one object is safe.
class UCXIO_EXPORT context {
 public:
  /// Makes a context with the default options, or with `options`. Raises UCX's TCP segments to 1
  /// MiB plus room for a header, unless the environment or the options set them
  /// (`docs/architecture.md`).
  /// Errors: bad_configuration (the text names the key, transport or device), no_memory; no_rdma
  /// and no_lockable_memory, where RDMA hardware is required, and absent, or short of memory to
  /// lock. Cost: milliseconds: UCX looks at every device.
  context();
  explicit context(const context_options& options, std::error_code& ec = throws);

  /// Uses a UCP context that was made elsewhere, with any request size.
  /// Errors: invalid_argument (null), and those of UCX. After an error it stays the caller's.
  static context adopt(ucp_context* made, const adopted_context_options& options,
                       std::error_code& ec = throws);

  context(context&& other) noexcept;
  context& operator=(context&& other) noexcept;
  ~context();

  /// Returns the features that the context was made with.
  feature features() const noexcept;

  /// Returns UCX's configuration in force: keys without "UCX_", and their values.
  std::vector<std::pair<std::string, std::string>> configuration() const;

  /// Returns the transports that are present and allowed, as "transport/device" pairs.
  std::vector<std::string> transports() const;

  /// Returns the devices and transports that are not in use, each with the reason ("mlx5_1:1: its
  /// port is DOWN"). It lists those that were named, and those that are a usual part of this
  /// machine.
  std::vector<std::string> unused() const;

  /// Returns UCX's description of the context.
  /// Errors: closed, and those of UCX.
  context_attributes attributes(std::error_code& ec = throws) const;
  /// Returns UCX's own text about the context, of many lines.
  std::string description() const;

  /// Returns UCX's context, for calls of UCX's API; null if there is none. The caller must not
  /// destroy it.
  /// Lifetime: as long as any object that was made from it.
  ucp_context* native_handle() const noexcept;

 private:
  friend struct detail::core_access;
  explicit context(std::shared_ptr<detail::context_core> core) noexcept : core_(std::move(core)) {}

  std::shared_ptr<detail::context_core> core_;
};

}  // namespace ucx
