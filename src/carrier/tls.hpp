// TLS over a socket, as the rest of the carrier sees it. OpenSSL is behind it, or nothing, in a
// build without: docs/reference/wire-format.md, "TLS".
#pragma once

#include <sys/types.h>
#include <ucp/api/ucp.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "carrier/token_text.hpp"
#include "ucx/context.hpp"
#include "ucx/socket_address.hpp"

struct iovec;

namespace ucx::detail {

class logger;
class meeting_book;
struct meeting_secret;

/// One connection. Its reading and writing are those of the system's calls: a count, or -1 and
/// errno. REQUIRES: external synchronization.
class tls_session {
 public:
  enum class handshake { done, going_on, failed };

  tls_session() = default;
  tls_session(const tls_session&) = delete;
  tls_session& operator=(const tls_session&) = delete;
  virtual ~tls_session() = default;

  /// Goes on with the handshake, as far as it can without waiting.
  virtual handshake shake(int socket) noexcept = 0;
  /// Returns why the handshake failed, as the asking side is told, and in words for a log.
  virtual ucs_status_t why() const noexcept = 0;
  virtual std::string words() const = 0;
  /// Returns the name of the token that the peer has; empty where it has the key of a meeting.
  virtual const std::string& peer() const noexcept = 0;
  /// Of a server's side: returns whether the peer has shown the key of a meeting, and no token.
  virtual bool has_met() const noexcept = 0;
  /// Of a server's side: returns whether it would be let in by that token, under that name, now.
  virtual bool is_accepted() const noexcept = 0;
  /// Of a server's side: returns the name of the certificate that the peer has shown
  /// (`certificate_name`); empty where it has shown none.
  virtual const std::string& certificate() const noexcept = 0;
  /// Returns why the peer's certificate does not count any more; null while it does, and where
  /// there is none.
  virtual const char* certificate_fault() noexcept = 0;
  /// Returns in how many seconds that has to be asked again, at the latest; nothing without one.
  virtual std::optional<std::chrono::seconds> certificate_time() const noexcept = 0;

  /// Of a server's side: returns whether the peer has shown the code of an invitation, and no
  /// token. It gets a token, and nothing else.
  virtual bool is_invited() const noexcept = 0;
  /// Goes on with keeping that token, without waiting. REQUIRES: `is_invited()`, and the handshake
  /// is done.
  virtual handshake redeem() noexcept = 0;

  /// Reads into `parts`, in their order. Returns 0 where the peer has ended it in good form; an end
  /// without that is ECONNRESET. `scratch` is for what is not decrypted yet.
  virtual ::ssize_t read(int socket, std::span<const ::iovec> parts,
                         std::span<std::byte> scratch) noexcept = 0;
  /// Returns whether `read` may find more without the system telling of it.
  virtual bool may_have_more() const noexcept = 0;
  /// Takes from `parts`. The bytes that it took are on their way when `has_unsent` says no more. A
  /// call without parts goes on with them.
  virtual ::ssize_t write(int socket, std::span<const ::iovec> parts,
                          std::span<std::byte> scratch) noexcept = 0;
  virtual bool has_unsent() const noexcept = 0;
  /// Derives a secret that the peer derives, too. After the handshake. Returns whether OpenSSL did.
  virtual bool derive_token(std::span<std::byte, token_size> into) noexcept = 0;
  /// Ends the writing side in good form, if the system takes it at once.
  virtual void end(int socket) noexcept = 0;
};

/// Is told, on any thread, that other tokens or certificates are accepted. It must not wait.
class token_observer {
 public:
  virtual void tokens_changed() noexcept = 0;

 protected:
  ~token_observer() = default;
};

/// The keys of a context, and what its sessions have in common. Safe from any thread.
class tls_context {
 public:
  /// The scratch memory that sessions are called with.
  static constexpr std::size_t scratch_size = std::size_t{288} << 10U;

  tls_context() = default;
  tls_context(const tls_context&) = delete;
  tls_context& operator=(const tls_context&) = delete;
  virtual ~tls_context() = default;

  /// Returns whether there is a token or a certificate to accept, or to use.
  virtual bool can_accept() const noexcept = 0;
  virtual bool can_connect(std::string_view towards) const noexcept = 0;
  /// Says whether the server may be asked: `stranger` says that a process of another user listens
  /// there, and is empty where none does.
  /// Errors: not_secure (one does, and no token is for just that server).
  virtual result<void> check_user(const std::string& towards,
                                  const std::string& stranger) const = 0;
  /// Reads the file again if it is another one; a bad one leaves the old tokens in force. Once
  /// `watch()` was called, it waits some milliseconds at most.
  virtual void refresh() noexcept = 0;
  /// Has a thread read the file again, soon after it has changed, from here on.
  virtual void watch() noexcept = 0;
  /// Returns a number that changes with the tokens and the certificates.
  virtual std::uint64_t version() const noexcept = 0;
  /// Returns whether certificates are shown, which does not change.
  virtual bool has_certificates() const noexcept = 0;
  /// Returns whether a connection without `towards` needs one: a certificate is for a name or an
  /// address, and the settings have none.
  virtual bool needs_address() const noexcept = 0;
  /// Reads the files of certificates again. A failure leaves the old ones in force; one of this
  /// side's own certificate leaves just that.
  /// Errors: those of `make_tls`; not_supported (there are none).
  virtual result<void> reload_certificates() = 0;
  /// REQUIRES: `told` is removed before it goes.
  virtual void add(token_observer& told) = 0;
  virtual void remove(token_observer& told) noexcept = 0;
  /// Lets in who has a key of `keys`, and no token; where that is null, who has a token. Throws
  /// std::bad_alloc.
  virtual std::unique_ptr<tls_session> accept(std::shared_ptr<meeting_book> keys = nullptr) = 0;
  /// The token is chosen by `towards`, "host:port" of the server; empty: by that of the settings.
  /// Where certificates are named, and no token is for just that server, the server's certificate
  /// has to be of that host.
  virtual std::unique_ptr<tls_session> connect(std::string towards) = 0;
  /// Connects by the key of a meeting, and by no token. Throws std::bad_alloc.
  virtual std::unique_ptr<tls_session> meet(const meeting_secret& key) = 0;
  virtual logger& log() const noexcept = 0;
  /// Lets one client in by `code`, for ten minutes. It gets a token of that name, which is added to
  /// the file. An earlier code counts no more.
  /// Errors: not_supported (the tokens are in no file), bad_name (also that of the user's own).
  virtual result<void> invite(std::string_view name,
                              std::span<const std::byte, token_size> code) = 0;
};

struct tls_settings {
  std::filesystem::path tokens = {};  ///< Empty: `UCXIO_TOKEN`, else the default file.
  std::string towards = {};           ///< "host:port", of connections that name none.
  logger* log = nullptr;              ///< Outlives all.
  std::uint64_t records_per_key = std::uint64_t{1} << 22U;
  std::chrono::milliseconds longest_invitation = std::chrono::minutes(10);
  certificate_files certificates = {};           ///< Empty: there are none.
  bool accepts_certificates = true;              ///< With false only clients have them.
  std::function<std::time_t()> wall_clock = {};  ///< Empty: the system's, for certificates.
};

/// Returns whether this build has OpenSSL.
bool has_tls() noexcept;

/// Shows the server a code that it has invited by, and derives the token that it keeps.
/// Errors: not_supported, permission_denied (it refused the code), connection_refused, timed_out,
/// and others of a handshake.
result<void> accept_invitation(const socket_address& server,
                               std::span<const std::byte, token_size> code,
                               std::span<std::byte, token_size> token,
                               std::chrono::milliseconds limit);

/// Errors: not_supported (built without OpenSSL); permission_denied (there is neither a token nor a
/// certificate); those of `read_tokens`; bad_configuration (`UCXIO_TOKEN` is no token; a
/// certificate, key or list is none, or the key is of another certificate), no_such_name,
/// not_secure (others may read the key, or write the rest; the certificate has expired).
result<std::shared_ptr<tls_context>> make_tls(const tls_settings& settings);

}  // namespace ucx::detail
