#include "output/old_names.hpp"

#include <CLI/CLI.hpp>

#include <cstdlib>

#include "output/output.hpp"

namespace ucx::tool {
namespace {

void warn(const std::string& before, const std::string& now) {
  say("ucxio: warning: " + before + " is now " + now + '\n');
}

bool is_set(const char* variable) noexcept {
  const char* const value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

struct renamed {
  const char* before;
  const char* now;
};

constexpr renamed variables[]{{"UCXIO_WAY", "UCXIO_TRANSFER_METHOD"},
                              {"UCXIO_LINGER", "UCXIO_SHARED_IDLE_TIMEOUT"}};

}  // namespace

void add_old_name(CLI::App& command, const std::string& before, CLI::Option* now) {
  // The parser calls it after the whole line: `now` has its own values by then, wherever they
  // stand.
  const auto give = [before, now](const CLI::results_t& values) {
    if (now->count() > 0) {
      throw CLI::ValidationError(before, "it is now " + now->get_name() + ", give only that");
    }
    for (const std::string& each : values) now->add_result(each);
    now->run_callback();
    warn(before, now->get_name());
    return true;
  };
  command.add_option(before, CLI::callback_t(give))
      ->group(old_names_group)
      ->expected(now->get_expected_min(), now->get_expected_max())
      ->allow_extra_args(now->get_allow_extra_args());
}

void warn_of_old_variables() {
  for (const renamed& each : variables) {
    if (is_set(each.before) && !is_set(each.now)) warn(each.before, each.now);
  }
}

}  // namespace ucx::tool
