// Which values a key of UCX's configuration takes: UCX itself ignores most bad ones, or prints.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ucx::detail {

/// A rule that a value has to follow, stricter than UCX's parsers: nothing may trail a value.
class value_rule {
 public:
  enum class form : std::uint8_t {
    anything,  ///< Not known here; UCX decides.
    text,
    boolean,
    ternary,  ///< A boolean, or "try".
    ternary_or_auto,
    on_off_auto,
    natural,        ///< 32 bits, or "inf".
    integer,        ///< 32 bits with a sign.
    count,          ///< 64 bits.
    count_or_auto,  ///< 64 bits, "inf" or "auto".
    size,           ///< Bytes with a unit, "inf" or "auto".
    real,
    positive_or_auto,
    duration,
    duration_or_auto,  ///< A duration, "inf" or "auto".
    bandwidth,         ///< Bytes or bits a second with units, or "auto".
    range,             ///< "first-last", or one number.
    hexadecimal,       ///< "0x...", or "auto".
    choice,
  };
  enum class arity : std::uint8_t {
    one,
    list,
    allowed,  ///< A list that "^" in front negates.
    keyed,    ///< "key:value" pairs; a value without a key is for the rest.
  };

  /// Makes a rule; `choices` are separated by "|".
  explicit value_rule(form single, std::string_view choices = {}, arity count = arity::one);
  static value_rule keyed(form single, std::string_view keys);

  /// Reads the line in which UCX's own listing documents what a key takes.
  static value_rule of_syntax(std::string_view documented);

  bool accepts(std::string_view value) const;

  /// Returns what is accepted, for an error text: "a number of bytes, as 8k, 1m, inf or auto".
  std::string description() const;

 private:
  bool accepts_one(std::string_view value) const;
  bool accepts_pairs(std::string_view value) const;

  form form_;
  arity arity_;
  std::string choices_;
  std::string keys_;
};

/// Returns the bytes that "64k" says; nothing for "inf", "auto" and what is no size.
std::optional<std::uint64_t> read_size(std::string_view text) noexcept;

}  // namespace ucx::detail
