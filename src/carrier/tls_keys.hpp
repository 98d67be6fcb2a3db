// The keys that TLS takes, and the names that it shows of them: both are derived from tokens.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <ctime>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "carrier/tls.hpp"
#include "carrier/token_store.hpp"
#include "os/locked_memory.hpp"

namespace ucx::detail {

/// Returns the host of "host:port", without brackets.
std::string_view host_in(std::string_view towards) noexcept;

/// HKDF with SHA-256, without salt (RFC 5869). Returns whether OpenSSL did it.
bool derive(std::span<const std::byte> secret, std::string_view label,
            std::span<std::byte> into) noexcept;

/// Of one moment of the file. A value that does not change.
class tls_keys {
 public:
  static constexpr std::size_t key_size = 32;
  static constexpr std::size_t identity_size = 16;

  struct key {
    bool is_accepted = true;
    std::string name;
    std::array<std::byte, identity_size> identity;
    std::span<const std::byte> secret;
  };

  /// Of a moment of the file.
  struct version {
    bool operator==(const version& other) const noexcept {
      return device == other.device && inode == other.inode && size == other.size &&
             changed.tv_sec == other.changed.tv_sec && changed.tv_nsec == other.changed.tv_nsec;
    }
    ::dev_t device = 0;
    ::ino_t inode = 0;
    ::off_t size = 0;
    std::timespec changed = {};
  };

  /// Errors: those of `make_tls`.
  static result<std::shared_ptr<const tls_keys>> make(const tls_settings& settings);
  /// Likewise. A file that has no token, or is gone, is no error.
  static result<std::shared_ptr<const tls_keys>> read(const tls_settings& settings);
  /// Makes the key of a code of one use, which is used and accepted.
  static result<std::shared_ptr<const tls_keys>> of_code(
      std::span<const std::byte, token_size> code);
  /// Returns how many tokens of a name servers accept.
  std::size_t count_accepted(std::string_view name) const noexcept;
  /// Returns the file; empty where they are of the environment.
  const std::filesystem::path& file() const noexcept { return file_; }
  /// Returns nothing for what is no file, and for a descriptor, which is read once.
  std::optional<version> version_now() const noexcept { return version_of(file_); }
  const std::optional<version>& version_read() const noexcept { return version_; }

  /// Returns the key that a server accepts under this identity; null where there is none.
  const key* accepted(std::span<const std::byte> identity) const noexcept;
  /// Returns the key that a client uses towards a server, "host:port"; null where there is none.
  const key* used(std::string_view towards) const noexcept;
  /// Returns whether the user named one for just this server: by a line with its port, or by
  /// `UCXIO_TOKEN`.
  bool has_just_for(std::string_view towards) const noexcept;
  bool accepts_any() const noexcept;
  /// Returns whether a line of the file is for just this server, by its port or by its host.
  bool has_line_for(std::string_view towards) const noexcept;

 private:
  static std::optional<version> version_of(const std::filesystem::path& file) noexcept;
  result<void> fill(const token_list& tokens);
  const key* find(bool is_accepted, std::string_view name) const noexcept;

  std::filesystem::path file_;  // empty: of the environment
  std::optional<version> version_;
  locked_memory secrets_;
  std::vector<key> keys_;
  bool is_only_ = false;  // the one key is for whatever server
};

}  // namespace ucx::detail
