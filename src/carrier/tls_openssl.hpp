// TLS by OpenSSL: what its callbacks and a connection have.
#pragma once

#include <openssl/ssl.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "carrier/meeting_book.hpp"
#include "carrier/named_certificates.hpp"
#include "carrier/tls.hpp"
#include "carrier/tls_certificates.hpp"
#include "carrier/tls_keys.hpp"
#include "carrier/token_watch.hpp"

namespace ucx::detail {

/// Length and letters of the one protocol: ALPN.
inline constexpr std::array<unsigned char, 7> alpn_name{6, 'u', 'c', 'x', 's', '/', '1'};

class openssl_context final : public tls_context,
                              public std::enable_shared_from_this<openssl_context> {
 public:
  openssl_context(const tls_settings& settings, std::shared_ptr<const tls_keys> keys)
      : settings_(settings), tokens_(settings, std::move(keys)) {}
  /// Returns whether OpenSSL offers what is needed.
  bool open() noexcept;

  bool can_accept() const noexcept override {
    return (has_certificates() && settings_.accepts_certificates) || keys()->accepts_any();
  }
  bool can_connect(std::string_view towards) const noexcept override {
    if (towards.empty()) towards = settings_.towards;
    return takes_certificate(towards) || keys()->used(towards) != nullptr;
  }
  result<void> check_user(const std::string& towards, const std::string& stranger) const override;
  void refresh() noexcept override { tokens_.look(); }
  void watch() noexcept override { tokens_.begin(); }
  std::uint64_t version() const noexcept override { return tokens_.version(); }
  bool has_certificates() const noexcept override { return names_any(settings_.certificates); }
  bool needs_address() const noexcept override {
    return has_certificates() && settings_.towards.empty();
  }
  result<void> reload_certificates() override;
  void add(token_observer& told) override { tokens_.add(told); }
  void remove(token_observer& told) noexcept override { tokens_.remove(told); }
  std::unique_ptr<tls_session> accept(std::shared_ptr<meeting_book> keys) override;
  std::unique_ptr<tls_session> connect(std::string towards) override;
  std::unique_ptr<tls_session> meet(const meeting_secret& key) override;
  logger& log() const noexcept override { return *settings_.log; }
  result<void> invite(std::string_view name, std::span<const std::byte, token_size> code) override;
  /// Returns the keys that a code of that identity has, while it counts.
  std::shared_ptr<const tls_keys> invited(std::span<const std::byte> identity) const noexcept;
  /// Begins to keep a token of the peer of `by`, which has shown the code of that identity. Returns
  /// nothing where that counts no more.
  std::shared_ptr<const token_addition> redeem(tls_session& by,
                                               std::span<const std::byte> identity) noexcept;

  std::shared_ptr<const tls_keys> keys() const noexcept { return tokens_.keys(); }
  /// Returns null where there are none.
  std::shared_ptr<const certificate_set> certificates() const noexcept;
  std::time_t wall_clock() const noexcept {
    return settings_.wall_clock ? settings_.wall_clock() : std::time(nullptr);
  }

 private:
  struct invitation {
    bool has(std::span<const std::byte> identity) const noexcept {
      return keys && std::chrono::steady_clock::now() < until &&
             keys->accepted(identity) != nullptr;
    }
    std::string name;
    std::shared_ptr<const tls_keys> keys;  // null: there is none
    std::chrono::steady_clock::time_point until;
  };

  using owned_context = owned_by_openssl<SSL_CTX>;
  static owned_context make(const SSL_METHOD* method) noexcept;
  static owned_context make_server() noexcept;
  static owned_context make_client() noexcept;
  result<certificate_set::reading> read_certificates(const certificate_set* before) const;
  /// Returns whether a client shows a certificate towards that server, and no token.
  bool takes_certificate(std::string_view towards) const noexcept;

  const tls_settings settings_;
  owned_context server_;
  owned_context client_;
  token_watch tokens_;
  std::mutex reading_;  // of the files of certificates: what was read last counts
  mutable std::mutex mutex_;
  invitation invited_;                                   // under the mutex
  std::shared_ptr<const certificate_set> certificates_;  // likewise
};

class openssl_session final : public tls_session {
 public:
  /// A client's side has `towards`, "host:port" of the server; it may be empty. With `meeting`
  /// neither side has tokens. With `certificates`, whose context it is, a server's side takes
  /// tokens, too; a client's side takes none, and `towards` names a host.
  openssl_session(std::shared_ptr<openssl_context> of, SSL_CTX* context,
                  std::optional<std::string> towards, std::uint64_t records_per_key,
                  meeting_part meeting = {},
                  std::shared_ptr<const certificate_set> certificates = nullptr);

  handshake shake(int socket) noexcept override;
  ucs_status_t why() const noexcept override { return why_; }
  std::string words() const override;
  const std::string& peer() const noexcept override { return peer_; }
  bool has_met() const noexcept override { return has_shown_key_; }
  bool is_accepted() const noexcept override {
    if (has_shown_key_ || !certificate_.empty()) return true;
    const auto keys = context_->keys();
    const tls_keys::key* const key = keys->accepted(identity_);
    return key != nullptr && key->name == peer_;
  }
  const std::string& certificate() const noexcept override { return certificate_; }
  const char* certificate_fault() noexcept override;
  std::optional<std::chrono::seconds> certificate_time() const noexcept override;
  bool is_invited() const noexcept override { return has_shown_code_; }
  handshake redeem() noexcept override;
  ::ssize_t read(int socket, std::span<const ::iovec> parts,
                 std::span<std::byte> scratch) noexcept override;
  bool may_have_more() const noexcept override;
  ::ssize_t write(int socket, std::span<const ::iovec> parts,
                  std::span<std::byte> scratch) noexcept override;
  bool has_unsent() const noexcept override { return !unsent_.empty(); }
  bool derive_token(std::span<std::byte, token_size> into) noexcept override;
  void end(int socket) noexcept override;
  /// Returns how often this side has changed its key.
  std::uint64_t key_changes() const noexcept { return key_changes_; }
  /// Returns whether this side has the key of a meeting still, which it needs until it has shown
  /// it.
  bool has_key() const noexcept { return meeting_.shows.has_value(); }

  // OpenSSL's callbacks.
  /// Returns the session of the peer's identity, or one that no peer has the key of; null where
  /// there is no memory.
  SSL_SESSION* find(std::span<const std::byte> identity) noexcept;
  /// Returns that of this side's token, with its identity.
  SSL_SESSION* use(std::span<const std::byte>& identity) noexcept;
  int give_input(std::span<std::byte> into) noexcept;
  int take_output(std::span<const std::byte> bytes) noexcept;
  bool has_input() const noexcept { return !input_.empty(); }
  /// Judges a certificate of the peer's chain, which OpenSSL finds good, or not. Returns whether
  /// the handshake goes on.
  bool judge(bool is_good, X509_STORE_CTX* at) noexcept;

 private:
  class place;
  enum class reading { filled, hungry, ended, broken };

  SSL_SESSION* find_meeting(std::span<const std::byte> identity) noexcept;
  SSL_SESSION* session_with(std::span<const std::byte> key) const noexcept;
  handshake failed(ucs_status_t why, const char* reason) noexcept;
  handshake failed_in_openssl() noexcept;
  handshake failed_by_alert(int alert, const char* words) noexcept;
  ucs_status_t status_of_fault() const noexcept;
  /// Returns whether the peer has proven who it is, and speaks the protocol. Forgets what it has
  /// only said.
  bool is_as_agreed() noexcept;
  bool has_proven_certificate() noexcept;
  void note_alert() noexcept;
  void take_terms();
  /// Returns whether nothing waits any more. errno, where it fails.
  bool flush(int socket) noexcept;
  bool keep_unsent(std::span<const std::byte> rest) noexcept;
  reading decrypt(place& into) noexcept;
  bool keep_input() noexcept;
  bool seal(std::span<const std::byte> plain) noexcept;

  const std::shared_ptr<openssl_context> context_;
  owned_by_openssl<SSL> ssl_;
  const std::optional<std::string> towards_;  // nothing: it accepts
  const std::uint64_t records_per_key_;

  ucs_status_t why_ = UCS_OK;
  const char* reason_ = "";
  bool has_shown_token_ = false;
  bool has_shown_code_ = false;
  bool has_shown_key_ = false;                      // of a meeting
  meeting_part meeting_;                            // until the handshake is done
  std::shared_ptr<const token_addition> addition_;  // of the token for the code
  std::string peer_;
  std::shared_ptr<const certificate_set> certificates_;  // null: there are none.
  std::string host_;                                     // the server's; empty: it accepts.
  std::string certificate_;                              // the name of the peer's.
  std::string claimed_;                                  // the name of one that was refused.
  int fault_ = X509_V_OK;
  std::optional<std::time_t> certificate_end_;  // of the peer's that was proven.
  std::array<std::byte, tls_keys::identity_size> identity_ = {};
  std::size_t shaken_bytes_ = 0;

  std::span<const std::byte> input_;  // that OpenSSL has not taken
  std::vector<std::byte> leftover_;   // of `input_`, between calls
  std::span<std::byte> output_;       // room for what OpenSSL gives
  std::size_t output_size_ = 0;
  std::vector<std::byte> unsent_;
  std::uint64_t records_ = 0;  // by this key
  std::uint64_t key_changes_ = 0;
  std::size_t answers_ = 0;  // bytes in `unsent_` that are no writes
  bool may_have_more_ = false;
  bool has_ended_ = false;
  bool is_broken_ = false;
  bool is_open_ = false;
};

}  // namespace ucx::detail
