#include "call/call_shape.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "call/call_name.hpp"
#include "ucx/call_function.hpp"

namespace ucx::detail {
namespace {

/// In the order of the kinds.
constexpr std::string_view type_words[]{
    "bool", "i8",   "i16",   "i32",  "i64",   "u8",       "u16",   "u32", "u64", "f32",
    "f64",  "text", "bytes", "list", "array", "optional", "tuple", "map", "nil"};
constexpr std::size_t scalar_count = 13;
constexpr std::string_view words_of_no_key[]{"f32", "f64", "bytes"};
/// Memory beside the values.
constexpr std::string_view memory_word = "buffer";
constexpr std::string_view tensor_word = "tensor";
constexpr std::size_t tensor_depth = 2;
/// Values without a fixed type are of later versions.
constexpr std::string_view reserved_word = "any";
/// The rights of a window: no word is the beginning of one that stands behind it.
constexpr std::string_view window_rights[]{"rw", "r", "w"};

template <std::size_t Size>
std::size_t place_of(const std::string_view (&words)[Size], std::string_view word) noexcept {
  const auto* const found = std::find(std::begin(words), std::end(words), word);
  return static_cast<std::size_t>(found - std::begin(words));
}
template <std::size_t Size>
bool is_one_of(const std::string_view (&words)[Size], std::string_view word) noexcept {
  return place_of(words, word) < Size;
}
bool is_scalar(std::string_view word) noexcept { return place_of(type_words, word) < scalar_count; }

template <class Integer>
void read_integer(call_reader& values) {
  values.integer(std::numeric_limits<Integer>::min(), std::numeric_limits<Integer>::max());
}

}  // namespace

/// Walks through a text. The first fault is kept, and nothing is read behind it.
class signature_parser {
 public:
  explicit signature_parser(std::string_view text) noexcept : text_(text) {}

  result<call_shape> parse() {
    if (text_.size() > call_signature::max_size) {
      fail("it is longer than 4096 bytes");
    } else {
      signature();
    }
    if (wrong_) return *std::move(wrong_);
    return std::move(made_);
  }

 private:
  using kind = call_shape::kind;

  void signature() {
    const std::size_t arguments = begin(kind::tuple);
    expect("(");
    if (!accept(")")) {
      do argument();
      while (accept(","));
      expect(")");
    }
    end(arguments);
    expect("->");
    if (text_.substr(at_) == "nil") return end(begin(kind::nil));
    type(0);
    if (at_ != text_.size()) fail("it goes on behind the result");
  }

  std::size_t begin(kind what) {
    made_.nodes_.push_back({.what = what});
    return made_.nodes_.size() - 1;
  }
  void end(std::size_t begun) {
    made_.nodes_[begun].end = static_cast<std::uint32_t>(made_.nodes_.size());
  }

  void argument() {
    if (!text_.substr(at_).starts_with("window:")) return type(0);
    at_ += std::string_view("window:").size();
    const auto* const rights = std::find_if(std::begin(window_rights), std::end(window_rights),
                                            [&](std::string_view each) { return accept(each); });
    if (rights == std::end(window_rights)) fail("the rights of a window are r, w or rw");
    if (++windows_ > call_writer::max_windows) fail("there are more than 8 windows");
    end(begin(kind::window));
  }

  /// `depth`: the lists and maps around it.
  void type(std::size_t depth) {
    const std::size_t began = at_;
    const std::string_view name = word();
    if (wrong_) return;
    if (name == reserved_word) {
      return fail("\"" + std::string(name) + "\" is kept for later versions", errc::not_supported);
    }
    if (name == "window") return fail("a window is an argument, and no part of one: window:r");
    if ((name == memory_word || name == tensor_word) && text_.substr(at_).starts_with("<")) {
      return fail("\"" + std::string(name) + "<\" is kept for later versions", errc::not_supported);
    }
    if (name == memory_word) return end(begin(kind::memory));
    if (name == tensor_word) {
      if (depth + tensor_depth > call_writer::max_depth) {
        return fail("types are deeper than 16 lists and maps");
      }
      return end(begin(kind::tensor));
    }
    const std::size_t place = place_of(type_words, name);
    const bool is_generic = place >= scalar_count && place < std::size(type_words) && name != "nil";
    const std::size_t made =
        begin(place < std::size(type_words) ? static_cast<kind>(place) : kind::record);
    if (is_scalar(name)) return end(made);
    if (name != "optional" && depth == call_writer::max_depth) {
      return fail("types are deeper than 16 lists and maps");
    }
    if (accept("{")) {
      record(name, depth + 1);
    } else if (!is_generic) {
      at_ = began;
      fail("there is no type \"" + std::string(name) + "\"");
    } else {
      expect("<");
      within(name, made, depth);
      expect(">");
    }
    end(made);
  }

  /// Reads what stands between "<" and ">".
  void within(std::string_view name, std::size_t made, std::size_t depth) {
    if (name == "optional") {
      if (text_.substr(at_).starts_with("optional<")) fail("an optional is within an optional");
      return type(depth);
    }
    if (name == "map") {
      key();
      expect(",");
      return type(depth + 1);
    }
    type(depth + 1);
    if (name == "array") {
      expect(",");
      count(made);
    }
    while (name == "tuple" && accept(",")) type(depth + 1);
  }

  void record(std::string_view name, std::size_t depth) {
    if (is_one_of(type_words, name)) return fail("a record has a type's name");
    std::vector<std::string_view> fields;
    do {
      const std::string_view field = word();
      if (std::find(fields.begin(), fields.end(), field) != fields.end()) {
        return fail("a record has two fields \"" + std::string(field) + "\"");
      }
      fields.push_back(field);
      expect(":");
      type(depth);
    } while (accept(","));
    expect("}");
  }

  void key() {
    const std::string_view name = word();
    if (!is_scalar(name) || is_one_of(words_of_no_key, name)) {
      return fail("a key is a bool, an integer or a text");
    }
    end(begin(static_cast<kind>(place_of(type_words, name))));
  }

  void count(std::size_t made) {
    const std::size_t began = at_;
    while (!wrong_ && at_ < text_.size() && is_call_digit(text_[at_])) ++at_;
    const std::string_view digits = text_.substr(began, at_ - began);
    if (digits.empty() || digits.front() == '0' || digits.size() > 7) {
      return fail("the count of an array is no number from 1 to 9999999");
    }
    std::from_chars(digits.data(), digits.data() + digits.size(), made_.nodes_[made].count);
  }

  std::string_view word() {
    const std::size_t began = at_;
    if (wrong_) return {};
    if (at_ == text_.size() || !is_call_letter(text_[at_])) fail("a word is expected");
    while (at_ < text_.size() && (is_call_letter(text_[at_]) || is_call_digit(text_[at_]))) ++at_;
    return text_.substr(began, at_ - began);
  }

  bool accept(std::string_view mark) noexcept {
    if (wrong_ || !text_.substr(at_).starts_with(mark)) return false;
    at_ += mark.size();
    return true;
  }
  void expect(std::string_view mark) {
    if (!accept(mark)) fail("\"" + std::string(mark) + "\" is expected");
  }
  void fail(const std::string& why, errc code = errc::invalid_argument) {
    if (wrong_) return;
    wrong_ = failure{code, "reading the signature \"" +
                               std::string(text_.substr(0, call_signature::max_size)) +
                               "\": at byte " + std::to_string(at_) + ": " + why};
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t windows_ = 0;
  call_shape made_;
  std::optional<failure> wrong_;
};

result<call_shape> call_shape::parse(std::string_view text) {
  return signature_parser(text).parse();
}

void call_shape::read_arguments(call_reader& values) const {
  for (std::size_t at = 1; at < nodes_.front().end;) at = read(at, values);
}

void call_shape::read_result(call_reader& values) const { read(nodes_.front().end, values); }

/// Reads a list of four: element type, shape, strides, memory. `ucx::tensor_view` compares them
/// with each other.
void call_shape::read_tensor(call_reader& values) {
  if (values.list() != 4) values.fail("a tensor is expected, which is a list of 4 values");
  values.unsigned_integer();
  for (int lists = 2; lists > 0; --lists) {
    for (std::size_t left = values.list(); left > 0 && values.ok(); --left) {
      values.unsigned_integer();
    }
  }
  values.memory();
}

void call_shape::read_scalar(kind what, call_reader& values) const {
  switch (what) {
    case kind::boolean:
      values.boolean();
      break;
    case kind::i8:
      return read_integer<std::int8_t>(values);
    case kind::i16:
      return read_integer<std::int16_t>(values);
    case kind::i32:
      return read_integer<std::int32_t>(values);
    case kind::i64:
      return read_integer<std::int64_t>(values);
    case kind::u8:
      return read_integer<std::uint8_t>(values);
    case kind::u16:
      return read_integer<std::uint16_t>(values);
    case kind::u32:
      return read_integer<std::uint32_t>(values);
    case kind::u64:
      values.unsigned_integer();
      break;
    case kind::f32:
      values.float32();
      break;
    case kind::f64:
      values.float64();
      break;
    case kind::text:
      values.text();
      break;
    case kind::bytes:
    case kind::window:  // opening it reads what is in it
      values.bytes();
      break;
    case kind::memory:
      values.memory();
      break;
    case kind::tensor:
      return read_tensor(values);
    default:
      if (!values.nil()) values.fail("nil is expected");
  }
}

/// Reads `count` values of the type at `at`.
void call_shape::read_each(std::size_t at, std::size_t count, call_reader& values) const {
  for (; count > 0 && values.ok(); --count) read(at, values);
}

/// Reads a value of the type at `at`. Returns where the next type is.
std::size_t call_shape::read(std::size_t at, call_reader& values) const {
  const node& type = nodes_[at];
  switch (type.what) {
    case kind::list:
      read_each(at + 1, values.list(), values);
      break;
    case kind::array:
      if (values.list() != type.count) {
        values.fail("the list before has another number of elements");
      }
      read_each(at + 1, type.count, values);
      break;
    case kind::optional:
      if (!values.nil()) read(at + 1, values);
      break;
    case kind::map:
      for (std::size_t pairs = values.map(); pairs > 0 && values.ok(); --pairs) {
        read(read(at + 1, values), values);
      }
      break;
    case kind::tuple:
    case kind::record: {
      std::size_t left = values.list();
      for (std::size_t each = at + 1; each < type.end; each = nodes_[each].end) {
        if (left-- == 0) values.fail("the list before has too few elements");
        if (!values.ok()) break;
        read(each, values);
      }
      if (values.ok() && left != 0) values.fail("the list before has too many elements");
      break;
    }
    default:
      read_scalar(type.what, values);
  }
  return type.end;
}

}  // namespace ucx::detail
