// Which functions exist for a caller.
#pragma once

#include <string_view>

namespace ucx::detail {

/// Asked for each call and each listing, on the thread of the call.
class call_gate {
 public:
  virtual ~call_gate() = default;
  /// Returns whether the caller may call the function. Else there is no such function for it.
  virtual bool shows(std::string_view function) noexcept = 0;
  /// Tells the name of a function that is called by its number, before `shows`.
  virtual void names(std::string_view /*function*/) noexcept {}
};

}  // namespace ucx::detail
