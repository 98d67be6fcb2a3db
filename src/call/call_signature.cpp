#include <span>
#include <utility>

#include "base/result.hpp"
#include "call/call_shape.hpp"
#include "ucx/call_function.hpp"

namespace ucx {
namespace {

detail::result<std::string> checked_signature(std::string_view text) {
  if (auto parsed = detail::call_shape::parse(text); !parsed) return std::move(parsed).why();
  return std::string(text);
}

}  // namespace

call_signature::call_signature(std::string_view text, std::error_code& ec)
    : text_(checked_signature(text).or_end(ec)),
      hash_(digest_of(std::as_bytes(std::span(text_)))) {}

}  // namespace ucx
