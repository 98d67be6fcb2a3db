#include <CLI/CLI.hpp>

#include <algorithm>

#include "commands/program_outline.hpp"
#include "output/old_names.hpp"

namespace ucx::tool {
namespace {

/// Returns the commands that `--help` shows.
std::vector<const CLI::App*> below(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* command) {
    return !command->get_name().empty() && !command->get_group().empty();
  });
}

outlined_command command_of(const CLI::App& app, const std::string& above) {
  outlined_command made{above + app.get_name(), app.get_description(), app.get_footer(), {}, {}};
  const auto is_shown = [](const CLI::Option* option) {
    return option->get_group() != old_names_group;
  };
  for (const CLI::Option* each : app.get_options(is_shown)) {
    outlined_option option;
    for (const std::string& name : each->get_snames()) option.names.push_back('-' + name);
    for (const std::string& name : each->get_lnames()) option.names.push_back("--" + name);
    option.description = each->get_description();
    option.is_required = each->get_required();
    if (option.is_positional()) {
      option.value = each->get_type_name().empty() || each->get_type_name() == "TEXT"
                         ? each->get_name(true)
                         : each->get_type_name();
      if (each->get_items_expected_max() > 1 && option.value.find("...") == std::string::npos) {
        option.value += "...";
      }
    } else if (each->get_items_expected_max() > 0) {
      option.value = each->get_type_name();
    }
    made.options.push_back(std::move(option));
  }
  return made;
}

outlined_command with_all_below(const CLI::App& app, const std::string& above) {
  outlined_command made = command_of(app, above);
  for (const CLI::App* each : below(app)) {
    made.commands.push_back(with_all_below(*each, made.name + ' '));
  }
  return made;
}

void add_all(const std::vector<outlined_command>& commands,
             std::vector<const outlined_command*>& all) {
  for (const outlined_command& each : commands) {
    all.push_back(&each);
    add_all(each.commands, all);
  }
}

}  // namespace

std::vector<std::string> outlined_option::choices() const {
  std::vector<std::string> all;
  // A value that stands for something else is in capitals.
  const auto is_small = [](char letter) { return letter >= 'a' && letter <= 'z'; };
  if (std::none_of(value.begin(), value.end(), is_small)) return all;
  for (std::size_t begin = 0, end = 0; end != std::string::npos; begin = end + 1) {
    end = value.find('|', begin);
    all.push_back(value.substr(begin, end - begin));
  }
  return all;
}

std::vector<const outlined_command*> program_outline::all() const {
  std::vector<const outlined_command*> every;
  add_all(commands, every);
  return every;
}

program_outline outline_of(const CLI::App& program) {
  program_outline made{command_of(program, ""), {}};
  for (const CLI::App* each : below(program)) made.commands.push_back(with_all_below(*each, ""));
  return made;
}

}  // namespace ucx::tool
