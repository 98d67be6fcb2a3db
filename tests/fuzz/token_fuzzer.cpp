#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>

#include "carrier/token_text.hpp"

/// A text that is intact is the only one of its secret.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ucx::detail;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::array<std::byte, token_size> secret = {};
  if (read_token(text, secret) == token_verdict::intact) {
    std::array<char, token_text_size> again = {};
    write_token(secret, again);
    if (std::string_view(again.data(), again.size()) != text) std::abort();
  }
  if (size >= token_size) {
    const auto given = std::as_bytes(std::span(data, size)).first<token_size>();
    std::array<char, token_text_size> made = {};
    write_token(given, made);
    if (read_token({made.data(), made.size()}, secret) != token_verdict::intact) std::abort();
  }
  return 0;
}
