// Looking for words in what was said.
#pragma once

#include <string>

namespace ucx::test {

inline bool mentions(const std::string& text, const std::string& words) {
  return text.find(words) != std::string::npos;
}

}  // namespace ucx::test
