#include "call_form.hpp"

#include <algorithm>
#include <charconv>
#include <span>
#include <string_view>
#include <utility>

#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <ucx/error.hpp>

namespace ucxio_python {
namespace {

namespace nb = nanobind;
using kind = call_type::kind;

struct named_kind {
  std::string_view word;
  kind what;
};
constexpr named_kind scalars[] = {
    {"bool", kind::boolean}, {"i8", kind::integer},  {"i16", kind::integer},
    {"i32", kind::integer},  {"i64", kind::integer}, {"u8", kind::integer},
    {"u16", kind::integer},  {"u32", kind::integer}, {"u64", kind::integer},
    {"f32", kind::f32},      {"f64", kind::f64},     {"text", kind::text},
    {"bytes", kind::bytes},  {"nil", kind::nil},     {"window", kind::window},
};
constexpr named_kind containers[] = {
    {"list", kind::list},   {"array", kind::array}, {"optional", kind::optional},
    {"tuple", kind::tuple}, {"map", kind::map},
};

kind kind_of(std::span<const named_kind> known, std::string_view word) {
  const auto found =
      std::find_if(known.begin(), known.end(), [&](const auto& each) { return each.word == word; });
  if (found != known.end()) return found->what;
  const std::string text = "the type \"" + std::string(word) + "\" is not known here";
  throw ucx::error(ucx::errc::not_supported, text);
}

/// Reads the text of a signature, which follows the grammar. Depth and length are bounded by it.
class signature_text {
 public:
  explicit signature_text(std::string_view text) noexcept : rest_(text) {}

  call_types all() {
    call_types made;
    take('(');
    while (!rest_.empty() && rest_.front() != ')') {
      made.arguments.push_back(type());
      take(',');
    }
    for (const char mark : {')', '-', '>'}) take(mark);
    made.result = type();
    return made;
  }

 private:
  void take(char mark) noexcept {
    if (rest_.starts_with(mark)) rest_.remove_prefix(1);
  }
  std::string word() {
    const std::string_view found = rest_.substr(0, rest_.find_first_of("<>{}(),:"));
    rest_.remove_prefix(found.size());
    return std::string(found);
  }
  call_type type() {
    call_type made{.word = word()};
    if (rest_.starts_with('{')) {
      made.what = kind::record;
      within(made, '}');
    } else if (rest_.starts_with('<')) {
      made.what = kind_of(containers, made.word);
      within(made, '>');
    } else {
      made.what = kind_of(scalars, made.word);
    }
    if (made.what == kind::window) {
      take(':');
      const std::string rights = word();
      made.is_read = rights.find('r') != rights.npos;
      made.is_written = rights.find('w') != rights.npos;
    }
    return made;
  }
  /// Reads the types within one, up to the mark behind them.
  void within(call_type& of, char end) {
    rest_.remove_prefix(1);
    while (!rest_.empty() && rest_.front() != end) {
      if (of.what == kind::record) {
        of.fields.push_back(word());
        take(':');
      }
      if (of.what == kind::array && !of.parts.empty()) {
        const std::string number = word();
        std::from_chars(number.data(), number.data() + number.size(), of.count);
      } else {
        of.parts.push_back(type());
      }
      take(',');
    }
    take(end);
  }

  std::string_view rest_;
};

}  // namespace

call_types types_of(const ucx::call_signature& signature) {
  return signature_text(signature.text()).all();
}

call_form::call_form(const std::string& name, const std::string& signature,
                     std::map<std::string, nb::object> records)
    : called_(name, signature),
      types_(std::make_shared<const call_types>(types_of(called_.signature()))),
      records_(std::move(records)) {}

void add_call_form(nb::module_& module) {
  nb::class_<call_form>(module, "CallForm")
      .def(nb::init<const std::string&, const std::string&, std::map<std::string, nb::object>>(),
           nb::arg("name"), nb::arg("signature"), nb::arg("records"))
      .def_prop_ro("name", &call_form::name)
      .def_prop_ro("signature", &call_form::signature);
}

}  // namespace ucxio_python
