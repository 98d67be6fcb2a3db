// The types that the tests of calls use, beside those of the language.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "ucx/rpc.hpp"

namespace ucx::calls {

struct point {
  double x = 0;
  double y = 0;
  friend bool operator==(const point&, const point&) = default;
};

enum class colour : std::uint8_t { red = 1, green = 2 };
enum class level { low = -1, high = 1 };

struct shape {
  std::string name;
  std::vector<point> corners;
  std::optional<colour> fill;
  friend bool operator==(const shape&, const shape&) = default;
};

}  // namespace ucx::calls

template <>
struct ucx::call_fields<ucx::calls::point> {
  static constexpr std::string_view name = "point";
  static constexpr std::tuple fields{ucx::call_field("x", &ucx::calls::point::x),
                                     ucx::call_field("y", &ucx::calls::point::y)};
};

template <>
struct ucx::call_fields<ucx::calls::shape> {
  static constexpr std::string_view name = "shape";
  static constexpr std::tuple fields{ucx::call_field("name", &ucx::calls::shape::name),
                                     ucx::call_field("corners", &ucx::calls::shape::corners),
                                     ucx::call_field("fill", &ucx::calls::shape::fill)};
};
