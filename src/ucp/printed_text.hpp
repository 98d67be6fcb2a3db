// UCX's printed output, as text.
#pragma once

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

namespace ucx::detail {

/// Returns what `print(file)` writes; nothing where there is no memory for a file. Throws
/// std::bad_alloc.
template <class Print>
std::string printed_text(Print&& print) {
  struct freeing {
    void operator()(char* text) const noexcept { std::free(text); }
  };
  char* text = nullptr;
  std::size_t size = 0;
  std::FILE* const file = ::open_memstream(&text, &size);
  if (file == nullptr) return {};
  print(file);
  std::fclose(file);
  const std::unique_ptr<char, freeing> owned(text);
  return text == nullptr ? std::string() : std::string(text, size);
}

}  // namespace ucx::detail
