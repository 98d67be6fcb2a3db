// A variable of the environment that is another one for a while.
#pragma once

#include <stdlib.h>

#include <cstdlib>
#include <optional>
#include <string>

namespace ucx::test {

/// It is as it was when this goes. Null: there is none meanwhile.
class changed_variable {
 public:
  changed_variable(const char* name, const char* value) : name_(name) {
    if (const char* const before = std::getenv(name)) before_ = before;
    value != nullptr ? ::setenv(name, value, 1) : ::unsetenv(name);
  }
  changed_variable(const changed_variable&) = delete;
  changed_variable& operator=(const changed_variable&) = delete;
  ~changed_variable() { before_ ? ::setenv(name_, before_->c_str(), 1) : ::unsetenv(name_); }

 private:
  const char* const name_;
  std::optional<std::string> before_;
};

}  // namespace ucx::test
