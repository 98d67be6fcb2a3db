#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "commands.hpp"
#include "output.hpp"
#include "program_outline.hpp"

namespace ucx::tool {
namespace {

std::vector<std::string> names_of(const outlined_command& command) {
  std::vector<std::string> all;
  for (const outlined_option& option : command.options) {
    all.insert(all.end(), option.names.begin(), option.names.end());
  }
  return all;
}

std::vector<std::string> command_names(const program_outline& outline) {
  std::vector<std::string> all;
  for (const outlined_command& each : outline.commands) all.push_back(each.name);
  return all;
}

/// Puts a backslash before each of `special`.
std::string escaped(std::string_view text, std::string_view special) {
  std::string made;
  for (const char each : text) {
    if (special.find(each) != special.npos) made += '\\';
    made += each;
  }
  return made;
}

/// Returns a word in single quotes.
std::string in_quotes(std::string_view text) {
  std::string made = "'";
  for (const char each : text) made += each == '\'' ? "'\\''" : std::string(1, each);
  return made + '\'';
}

std::string bash_completion(const program_outline& outline) {
  std::string text =
      "# ucxio: completion for bash\n"
      "_ucxio() {\n"
      "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command= i\n"
      "  for ((i = 1; i < COMP_CWORD; ++i)); do\n"
      "    case ${COMP_WORDS[i]} in\n";
  text += fmt::format("      {}) command=${{COMP_WORDS[i]}} && break ;;\n",
                      fmt::join(command_names(outline), " | "));
  text += "    esac\n  done\n  COMPREPLY=()\n  case $command$before in\n";
  for (const outlined_command& each : outline.commands) {
    for (const outlined_option& option : each.options) {
      if (option.choices().empty()) continue;
      for (const std::string& name : option.names) {
        text += fmt::format("    {}{}) COMPREPLY=($(compgen -W '{}' -- \"$word\")); return ;;\n",
                            each.name, name, fmt::join(option.choices(), " "));
      }
    }
  }
  text += "  esac\n  local words\n  case $command in\n";
  text += fmt::format("    '') words='{} {}' ;;\n", fmt::join(command_names(outline), " "),
                      fmt::join(names_of(outline.program), " "));
  for (const outlined_command& each : outline.commands) {
    text += fmt::format("    {}) words='{}' ;;\n", each.name, fmt::join(names_of(each), " "));
  }
  return text +
         "  esac\n"
         "  if [[ -z $command || $word == -* ]]; then\n"
         "    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
         "  fi\n"
         "}\n"
         "complete -o default -F _ucxio ucxio\n";
}

std::string zsh_completion(const program_outline& outline) {
  std::string text =
      "#compdef ucxio\n# ucxio: completion for zsh\n_ucxio() {\n  local -a commands\n"
      "  commands=(\n";
  for (const outlined_command& each : outline.commands) {
    text += fmt::format("    {}\n", in_quotes(each.name + ':' + escaped(each.description, ":\\")));
  }
  text +=
      "  )\n  if (( CURRENT == 2 )); then\n    _describe command commands\n    return\n  fi\n"
      "  case $words[2] in\n";
  for (const outlined_command& each : outline.commands) {
    text += fmt::format("    {})\n      _arguments", each.name);
    for (const outlined_option& option : each.options) {
      for (const std::string& name : option.names) {
        std::string form = '*' + name + '[' + escaped(option.description, "[]:\\") + ']';
        if (!option.choices().empty()) {
          form += fmt::format(":value:({})", fmt::join(option.choices(), " "));
        } else if (!option.value.empty()) {
          form += ':' + escaped(option.value, ":[]\\") + ":_files";
        }
        text += " \\\n        " + in_quotes(form);
      }
    }
    text += " \\\n        '*:place:_files' ;;\n";
  }
  return text + "  esac\n}\n_ucxio \"$@\"\n";
}

std::string fish_completion(const program_outline& outline) {
  std::string text = "# ucxio: completion for fish\n";
  const auto quote = [](std::string_view words) { return '\'' + escaped(words, "'\\") + '\''; };
  for (const outlined_command& each : outline.commands) {
    text += fmt::format("complete -c ucxio -n __fish_use_subcommand -f -a {} -d {}\n", each.name,
                        quote(each.description));
  }
  for (const outlined_command& each : outline.commands) {
    for (const outlined_option& option : each.options) {
      if (option.is_positional()) continue;
      text += fmt::format("complete -c ucxio -n '__fish_seen_subcommand_from {}'", each.name);
      for (const std::string& name : option.names) {
        text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      }
      if (!option.choices().empty()) {
        text += fmt::format(" -x -a '{}'", fmt::join(option.choices(), " "));
      } else if (!option.value.empty()) {
        text += " -r";
      }
      text += " -d " + quote(option.description) + '\n';
    }
  }
  return text;
}

}  // namespace

void add_completion(CLI::App& program) {
  CLI::App& command = *program.add_subcommand(
      "completion", "Print what bash, zsh or fish needs to complete the command line");
  const auto shell = std::make_shared<std::string>();
  command.add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->transform(CLI::IsMember({"bash", "zsh", "fish"}).description(""));
  command.footer(
      "Example:\n"
      "  ucxio completion bash > ~/.local/share/bash-completion/completions/ucxio");
  command.callback([&program, shell] {
    const program_outline outline = outline_of(program);
    if (*shell == "bash") return write_out(bash_completion(outline));
    if (*shell == "zsh") return write_out(zsh_completion(outline));
    write_out(fish_completion(outline));
  });
}

}  // namespace ucx::tool
