#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <system_error>

#include "ucx/url.hpp"

/// What can be read is written so that it is read back as the same.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::error_code ec;
  const ucx::url read(std::string_view(reinterpret_cast<const char*>(data), size), ec);
  if (ec) {
    if (!read.empty()) std::abort();
  } else if (ucx::url(ucx::to_string(read)) != read) {
    std::abort();
  }
  return 0;
}
