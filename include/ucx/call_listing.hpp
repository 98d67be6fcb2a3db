// The functions of a peer, as the peer tells of them: docs/reference/calls.md, "Discovery".
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ucx/call_function.hpp"
#include "ucx/call_reader.hpp"
#include "ucx/call_types.hpp"
#include "ucx/call_writer.hpp"
#include "ucx/version.hpp"

namespace ucx {

/// A function that a peer serves.
struct call_description {
  /// Its name and its signature, for `call_channel::start_dynamic_call()`. The signature has the
  /// text and the hash.
  call_function called;
  /// The version that the name has: 2 for "add/2", and 1 for "add".
  std::uint32_t version = 1;
  /// The peer's own words, in UTF-8: 4096 bytes at most. They may have any characters.
  std::string documentation = {};
};

/// Functions of a peer, in the order of the bytes of their names. Names and signatures are checked:
/// they follow the grammar.
struct call_listing {
  /// A peer that tells of more is not believed.
  static constexpr std::size_t max_functions = std::size_t{1} << 16U;
  /// Bytes of all names, signatures and documentations of a peer at most.
  static constexpr std::size_t max_size = std::size_t{64} << 20U;

  std::vector<call_description> functions = {};
  /// Whether there are none behind the last one.
  bool is_whole = true;
};

namespace detail {

template <>
struct UCXIO_EXPORT call_type<call_listing> {
  static constexpr std::size_t depth = 3;
  static constexpr bool borrows = false;
  static void describe(std::string& text);
  static void write(call_writer& to, const call_listing& value);
  static call_listing read(call_reader& from);
};

}  // namespace detail

}  // namespace ucx
