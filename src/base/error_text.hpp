// The text of an exception beyond its code, from which another exception is made.
#pragma once

#include <string>
#include <system_error>

#include "base/result.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {

/// Returns the text that `failed` was made with: what() without the code's own words at its end.
inline std::string text_of(const error& failed) {
  std::string text = failed.what();
  const std::string ending = ": " + failed.code().message();
  if (text.ends_with(ending)) text.resize(text.size() - ending.size());
  return text;
}

/// Returns the failure that a function which throws has told of.
inline failure failure_of(const error& thrown) { return {thrown.code(), text_of(thrown)}; }

/// Names the feature that a call over a connection lacks, where that is why it failed.
inline const char* lacking(std::error_code why) noexcept {
  return why == errc::feature_disabled ? ", on a context without feature::am" : "";
}

}  // namespace ucx::detail
