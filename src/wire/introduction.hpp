// The introductions that two sides exchange in hello and welcome: docs/reference/wire-format.md,
// "Greetings and introductions".
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "ucx/connection_report.hpp"
#include "ucx/context.hpp"
#include "wire/host_identity.hpp"
#include "wire/process_identity.hpp"

namespace ucx::detail {

/// One side's words about itself. A side that says nothing is taken to have said all zeros.
struct introduction {
  static constexpr std::size_t most_info = 1024;
  static constexpr std::size_t most_name = 64;
  static constexpr std::size_t most_words = 256;
  static constexpr std::string_view letters = "UXIN";
  /// More than any introduction of this version has; of another one it is not read.
  static constexpr std::size_t longest = 4096;

  std::uint64_t identity = 0;  ///< Of the worker, drawn at random; 0: not told.
  feature features = feature::none;
  bool borrows = false;      ///< Reads messages out of the peer's memory, where it can.
  bool fetches = false;      ///< Reads messages of the peer by RMA, if that has a key.
  bool lends = false;        ///< Lends room for messages, and takes changes of what it was lent.
  bool takes_files = false;  ///< Keeps files of memory that the peer passes over a Unix socket.
  bool unique = false;       ///< The initiator wants no second connection between the two workers.
  std::uint64_t segment = 0;
  std::uint64_t largest_eager = 0;
  std::uint64_t largest_header = 0;
  std::string name = {};
  std::vector<std::byte> info = {};
  std::string words = {};  ///< Why the connection is refused.
  /// In a separate envelope: the side's process, where that is told.
  std::optional<process_identity> process = {};
  /// Likewise: the side's host, which an initiator tells over UCX.
  std::optional<host_number> host = {};

  /// Writes it; what is longer than its limit is cut off.
  std::vector<std::byte> encode() const;
};

/// Reads an introduction; nothing if it is damaged, or breaks a rule of this version. One of
/// another version, or none at all, says nothing: all zeros.
std::optional<introduction> decode_introduction(std::span<const std::byte> wire);

/// The payload of hello and welcome: envelopes in a row, each known by its letters.
struct greeting {
  bool intact = false;                           ///< Nothing but whole envelopes.
  std::span<const std::byte> address = {};       ///< The envelope of the worker address, if any.
  std::span<const std::byte> introduction = {};  ///< Likewise.
  std::span<const std::byte> process = {};       ///< Likewise.
  std::span<const std::byte> host = {};          ///< Likewise.
};

/// Takes a payload apart, without opening the envelopes. Unknown ones are passed over.
greeting read_greeting(std::span<const std::byte> payload) noexcept;

/// Returns invalid_argument for terms that an introduction has no room for. Returns
/// feature_disabled for any terms where `features` lack `feature::am`: no introductions are made
/// then.
std::error_code complaint_about(const connection_terms& terms, feature features) noexcept;

/// Says the same in words.
const char* words_about_terms(std::error_code complaint) noexcept;

/// Returns `text` as it can be shown: without control characters, and at most `most` bytes.
std::string shown(std::string_view text, std::size_t most);

}  // namespace ucx::detail
