#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "call/call_name.hpp"
#include "ucx/call_function.hpp"

namespace ucx {
namespace {

using detail::failure;
using detail::result;

constexpr std::string_view scalar_words[]{"bool", "i8",  "i16", "i32", "i64",  "u8",   "u16",
                                          "u32",  "u64", "f32", "f64", "text", "bytes"};
constexpr std::string_view words_of_no_key[]{"f32", "f64", "bytes"};
constexpr std::string_view generic_words[]{"list", "array", "optional", "tuple", "map", "nil"};
/// Memory beside the body, and values without a fixed type, are of later versions.
constexpr std::string_view reserved_words[]{"any", "buffer", "tensor", "window"};

template <std::size_t Size>
bool is_one_of(const std::string_view (&words)[Size], std::string_view word) noexcept {
  return std::find(std::begin(words), std::end(words), word) != std::end(words);
}

/// Walks through a text. The first fault is kept, and nothing is read behind it.
class signature_parser {
 public:
  explicit signature_parser(std::string_view text) noexcept : text_(text) {}

  result<void> parse() {
    if (text_.size() > call_signature::max_size) {
      fail("it is longer than 4096 bytes");
    } else {
      signature();
    }
    if (wrong_) return *std::move(wrong_);
    return {};
  }

 private:
  void signature() {
    expect("(");
    if (!accept(")")) {
      do type(0);
      while (accept(","));
      expect(")");
    }
    expect("->");
    if (text_.substr(at_) == "nil") return;
    type(0);
    if (at_ != text_.size()) fail("it goes on behind the result");
  }

  /// `depth`: the lists and maps around it.
  void type(std::size_t depth) {
    const std::size_t began = at_;
    const std::string_view name = word();
    if (wrong_) return;
    if (is_one_of(reserved_words, name)) {
      return fail("\"" + std::string(name) + "\" is kept for later versions", errc::not_supported);
    }
    if (is_one_of(scalar_words, name)) return;
    if (name != "optional" && depth == call_writer::max_depth) {
      return fail("types are deeper than 16 lists and maps");
    }
    if (accept("{")) return record(name, depth + 1);
    if (!is_one_of(generic_words, name) || name == "nil") {
      at_ = began;
      return fail("there is no type \"" + std::string(name) + "\"");
    }
    expect("<");
    within(name, depth);
    expect(">");
  }

  /// Reads what stands between "<" and ">".
  void within(std::string_view name, std::size_t depth) {
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
      count();
    }
    while (name == "tuple" && accept(",")) type(depth + 1);
  }

  void record(std::string_view name, std::size_t depth) {
    if (is_one_of(generic_words, name)) return fail("a record has a type's name");
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
    if (!is_one_of(scalar_words, name) || is_one_of(words_of_no_key, name)) {
      fail("a key is a bool, an integer or a text");
    }
  }

  void count() {
    const std::size_t began = at_;
    while (!wrong_ && at_ < text_.size() && detail::is_call_digit(text_[at_])) ++at_;
    const std::string_view digits = text_.substr(began, at_ - began);
    if (digits.empty() || digits.front() == '0' || digits.size() > 7) {
      fail("the count of an array is no number from 1 to 9999999");
    }
  }

  std::string_view word() {
    const std::size_t began = at_;
    if (wrong_) return {};
    if (at_ == text_.size() || !detail::is_call_letter(text_[at_])) fail("a word is expected");
    while (at_ < text_.size() &&
           (detail::is_call_letter(text_[at_]) || detail::is_call_digit(text_[at_])))
      ++at_;
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
  std::optional<failure> wrong_;
};

result<std::string> checked_signature(std::string_view text) {
  if (auto parsed = signature_parser(text).parse(); !parsed) return std::move(parsed).why();
  return std::string(text);
}

}  // namespace

call_signature::call_signature(std::string_view text, std::error_code& ec)
    : text_(checked_signature(text).or_end(ec)),
      hash_(digest_of(std::as_bytes(std::span(text_)))) {}

}  // namespace ucx
