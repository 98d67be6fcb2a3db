// Which host a process runs on: docs/reference/wire-format.md, "Greetings and introductions".
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace ucx::detail {

/// Equal in all processes of one host and boot.
using host_number = std::array<std::byte, 16>;

/// Returns this host's. Peers compare it to tell whether they share memory with an owner.
host_number host_identity() noexcept;

inline constexpr std::string_view host_letters = "UXHO";

/// Writes the envelope that tells it.
std::vector<std::byte> encode_host(const host_number& host);

/// Reads one; nothing if it is damaged, of another version, all zeros, or there is none.
std::optional<host_number> decode_host(std::span<const std::byte> wire);

}  // namespace ucx::detail
