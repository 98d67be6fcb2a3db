// The listing of a table's functions: docs/reference/calls.md, "Discovery".
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "ucx/call_writer.hpp"

namespace ucx::detail {

/// The function that each table has. No other one may have such a name.
inline constexpr std::string_view listing_name = ".signatures";
/// Its signature.
inline constexpr std::string_view listing_types =
    "(text)->listing{functions:list<function{name:text,signature:text,documentation:text}>,"
    "whole:bool}";

/// Bytes of the documentation of a function at most.
inline constexpr std::size_t longest_documentation = 4096;

/// A part of the functions, on its way into an answer. It refers to their texts.
class listing_part {
 public:
  /// Adds a function. Returns false where it finds no room: it goes into the next part. The first
  /// one always does.
  bool add(std::string_view name, std::string_view signature, std::string_view documentation);
  /// `is_whole`: no functions come behind it.
  void write(call_writer& to, bool is_whole) const;

 private:
  /// An answer with so much goes at once, over connections of each kind.
  static constexpr std::size_t most_bytes = std::size_t{48} << 10U;

  struct texts {
    std::string_view name;
    std::string_view signature;
    std::string_view documentation;
  };
  std::vector<texts> functions_;
  std::size_t bytes_ = 0;
};

}  // namespace ucx::detail
