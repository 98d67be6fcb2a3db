// The types of a signature as a tree, which values are compared with: docs/reference/calls.md,
// "Signatures".
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "ucx/call_reader.hpp"

namespace ucx::detail {

class call_shape {
 public:
  /// Reads the text of a signature.
  /// Errors: those of `call_signature`.
  static result<call_shape> parse(std::string_view text);

  /// Reads the arguments of a call. `values` fails where they are others. A key that stands twice
  /// in a map is not looked for.
  void read_arguments(call_reader& values) const;
  /// Reads a result likewise.
  void read_result(call_reader& values) const;

 private:
  friend class signature_parser;

  enum class kind : std::uint8_t {
    boolean,
    i8,
    i16,
    i32,
    i64,
    u8,
    u16,
    u32,
    u64,
    f32,
    f64,
    text,
    bytes,
    list,
    array,
    optional,
    tuple,
    map,
    nil,
    record,
    window,
    memory,
    tensor,
  };
  /// The nodes within a node stand right behind it, up to `end`.
  struct node {
    kind what = kind::nil;
    std::uint32_t count = 0;  ///< Elements of an array.
    std::uint32_t end = 0;
  };

  std::size_t read(std::size_t at, call_reader& values) const;
  static void read_tensor(call_reader& values);
  void read_scalar(kind what, call_reader& values) const;
  void read_each(std::size_t at, std::size_t count, call_reader& values) const;

  /// The arguments, as those of a tuple, and the result behind them.
  std::vector<node> nodes_;
};

}  // namespace ucx::detail
