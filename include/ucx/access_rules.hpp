// The rights that a server gives its peers: docs/reference/rules.md.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>

#include "ucx/error.hpp"
#include "ucx/peer_identity.hpp"
#include "ucx/to_string.hpp"
#include "ucx/version.hpp"

namespace ucx {

namespace detail {
class rule_list;
struct core_access;
}  // namespace detail

/// The rights that rules grant for names, as a set.
enum class access_right : unsigned {
  none = 0,
  list = 1U << 0U,    ///< The name is listed and described.
  read = 1U << 1U,    ///< Its bytes are read, fetched and hashed.
  write = 1U << 2U,   ///< It is written, resized and replaced.
  create = 1U << 3U,  ///< A new file gets the name.
  remove = 1U << 4U,  ///< The name is removed, or renamed.
  pipes = 1U << 5U,   ///< Ends of pipes meet under the name.
  agent = 1U << 6U,   ///< The server's agent may be called: its name is `.ucxio-agent`.
  fabric = 1U << 7U,  ///< Keys, places or files of memory are told: past the server's checks.
  call = 1U << 8U,    ///< The function of the name is called, and told of.
  all = 511,
};

/// Returns the names of the rights, with "|" between them.
UCXIO_EXPORT std::string to_string(access_right value);

template <>
inline constexpr bool detail::is_printed<access_right> = true;

constexpr access_right operator|(access_right a, access_right b) noexcept {
  return static_cast<access_right>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
/// Returns whether `set` has every right of `wanted`.
constexpr bool includes(access_right set, access_right wanted) noexcept {
  return (static_cast<unsigned>(set) & static_cast<unsigned>(wanted)) ==
         static_cast<unsigned>(wanted);
}

/// Lines that say who may do what with which names. For each right, the first line that names the
/// right, the peer and the name decides. Where none does, only the server's own user is
/// allowed.
///
/// A value that does not change: copies share it. Safe from any thread.
class UCXIO_EXPORT access_rules {
 public:
  /// Makes rules without a line.
  access_rules();

  /// Reads the lines of a text (`docs/reference/rules.md`). Names of users and groups are looked up
  /// now.
  /// Errors: bad_configuration; the text has the number of the line.
  static access_rules parse(std::string_view text, std::error_code& ec = throws);
  /// Reads a file.
  /// Errors: those of `parse()`; no_such_name, permission_denied, not_supported (no regular file),
  /// io_error. not_secure: the file is of another user than this one and root, or others may write
  /// it.
  static access_rules read(const std::filesystem::path& file, std::error_code& ec = throws);

  /// Returns rules with one line more, at the end. `who` and `names` are as in a text: "token
  /// build", "results/**".
  /// Errors: bad_configuration.
  access_rules allow(std::string_view who, access_right rights, std::string_view names = "**",
                     std::error_code& ec = throws) const;
  access_rules deny(std::string_view who, access_right rights, std::string_view names = "**",
                    std::error_code& ec = throws) const;

  /// Returns whether every right of `wanted` is allowed.
  /// Cost: each line is looked at until one decides.
  bool allows(const peer_identity& who, access_right wanted, std::string_view name) const noexcept;

 private:
  friend struct detail::core_access;
  explicit access_rules(std::shared_ptr<const detail::rule_list> lines);
  std::shared_ptr<const detail::rule_list> lines_;
};

}  // namespace ucx
