// The failures of both ends of a pipe.
#pragma once

#include <cstdint>
#include <string>
#include <system_error>
#include <utility>

#include "ucx/error.hpp"

namespace ucx::detail {

/// The first failure after which a pipe can not go on; later ones are its consequences.
class pipe_failure {
 public:
  void set(std::error_code why, std::string text) {
    if (code_) return;
    code_ = why;
    text_ = std::move(text);
  }
  explicit operator bool() const noexcept { return static_cast<bool>(code_); }
  std::error_code code() const noexcept { return code_; }
  const std::string& text() const noexcept { return text_; }

 private:
  std::error_code code_;
  std::string text_;
};

/// Returns what a status that came stands for; what this version does not know is `unexpected`.
inline std::error_code pipe_status_error(std::uint32_t status) noexcept {
  if (status == 0) return {};
  return status <= static_cast<std::uint32_t>(errc::broken_pipe) ? static_cast<errc>(status)
                                                                 : errc::unexpected;
}

/// Returns the status that stands for `ec`, which is not 0: what ends well is said otherwise.
inline std::uint32_t pipe_error_status(std::error_code ec) noexcept {
  const bool ours = ec && ec.category() == error_category();
  return ours ? static_cast<std::uint32_t>(ec.value()) : static_cast<std::uint32_t>(errc::canceled);
}

/// Returns "1 byte", "7 bytes".
inline std::string pipe_bytes_text(std::uint64_t count) {
  return std::to_string(count) + (count == 1 ? " byte" : " bytes");
}

}  // namespace ucx::detail
