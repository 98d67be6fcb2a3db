// Which process of this host somebody is: docs/reference/wire-format.md, "Greetings and
// introductions".
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/owned_descriptor.hpp"

namespace ucx::detail {

/// Numbers of processes come again, and mean something within one namespace only.
struct process_identity {
  static constexpr std::string_view letters = "UXPR";

  std::uint64_t process = 0;
  std::uint64_t pid_namespace = 0;  ///< The system's number of it; 0: not known.
  std::uint64_t started = 0;        ///< In the system's ticks since its start.

  /// Returns this process's; nothing where the system does not say.
  static std::optional<process_identity> own();

  std::vector<std::byte> encode() const;

  /// The state of a process that told its identity.
  struct opened {
    bool gone = false;                 ///< It has ended already.
    owned_descriptor descriptor = {};  ///< Polls readable when it ends.
  };
  /// Finds the process. Returns neither for this process, for one of another namespace, where a
  /// number was used again, and before Linux 5.3.
  opened open() const;

  friend bool operator==(const process_identity&, const process_identity&) = default;
};

/// Returns when a process of this host started, in the same ticks; 0 where the system does not say.
std::uint64_t start_of_process(std::uint64_t process);

/// Reads one; nothing if it is damaged, of another version, or there is none.
std::optional<process_identity> decode_process_identity(std::span<const std::byte> wire);

}  // namespace ucx::detail
