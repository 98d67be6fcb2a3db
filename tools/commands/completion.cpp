#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "commands/commands.hpp"
#include "commands/program_outline.hpp"
#include "output/output.hpp"
#include "output/printable.hpp"

namespace ucx::tool {
namespace {

std::vector<std::string> names_of(const outlined_command& command) {
  std::vector<std::string> all;
  for (const outlined_option& option : command.options) {
    all.insert(all.end(), option.names.begin(), option.names.end());
  }
  return all;
}

std::vector<std::string> words_of(const std::vector<outlined_command>& commands) {
  std::vector<std::string> all;
  for (const outlined_command& each : commands) all.push_back(each.word());
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

/// A command is found word by word: `pipe`, and then `pipe send`.
std::string bash_completion(const program_outline& outline) {
  std::string known;
  std::string values;
  std::string words =
      fmt::format("    '') names='{}' words='{}' ;;\n", fmt::join(words_of(outline.commands), " "),
                  fmt::join(names_of(outline.program), " "));
  for (const outlined_command* each : outline.all()) {
    const std::string above = each->name.substr(0, each->name.size() - each->word().size());
    known += fmt::format("{}'{}{}'", known.empty() ? "" : " | ", above.empty() ? " " : above,
                         each->word());
    words += fmt::format("    '{}') names='{}' words='{}' ;;\n", each->name,
                         fmt::join(words_of(each->commands), " "), fmt::join(names_of(*each), " "));
    for (const outlined_option& option : each->options) {
      if (option.choices().empty()) continue;
      for (const std::string& name : option.names) {
        values +=
            fmt::format("    '{} {}') COMPREPLY=($(compgen -W '{}' -- \"$word\")); return ;;\n",
                        each->name, name, fmt::join(option.choices(), " "));
      }
    }
  }
  return "# ucxio: completion for bash\n"
         "_ucxio() {\n"
         "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command= i\n"
         "  for ((i = 1; i < COMP_CWORD; ++i)); do\n"
         "    case \"$command ${COMP_WORDS[i]}\" in\n"
         "      " +
         known +
         ")\n"
         "        command+=${command:+ }${COMP_WORDS[i]} ;;\n"
         "    esac\n"
         "  done\n"
         "  COMPREPLY=()\n"
         "  case \"$command $before\" in\n" +
         values +
         "  esac\n"
         "  local names= words=\n"
         "  case $command in\n" +
         words +
         "  esac\n"
         "  [[ $word == -* ]] || words=$names\n"
         "  COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
         "}\n"
         "complete -o default -F _ucxio ucxio\n";
}

std::string zsh_options(const outlined_command& command) {
  std::string text = "      _arguments";
  for (const outlined_option& option : command.options) {
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
  return text + " \\\n        '*:URL or path:_files' ;;\n";
}

/// Returns zsh's actions where the word at `place` is one of `commands`, or is to become one.
std::string zsh_commands(const std::vector<outlined_command>& commands, std::size_t place) {
  std::string text = "  commands=(\n";
  for (const outlined_command& each : commands) {
    text +=
        fmt::format("    {}\n", in_quotes(each.word() + ':' + escaped(each.description, ":\\")));
  }
  text += fmt::format(
      "  )\n  if (( CURRENT == {} )); then\n    _describe command commands\n    return\n  fi\n"
      "  case $words[{}] in\n",
      place, place);
  for (const outlined_command& each : commands) {
    text += fmt::format("    {})\n", each.word());
    text += each.commands.empty() ? zsh_options(each)
                                  : zsh_commands(each.commands, place + 1) + "    ;;\n";
  }
  return text + "  esac\n";
}

std::string zsh_completion(const program_outline& outline) {
  return "#compdef ucxio\n# ucxio: completion for zsh\n_ucxio() {\n  local -a commands\n" +
         zsh_commands(outline.commands, 2) + "}\n_ucxio \"$@\"\n";
}

/// Returns fish's condition that `command` was given.
std::string fish_seen(const outlined_command& command) {
  std::string text;
  std::string_view left = command.name;
  while (!left.empty()) {
    const std::string_view word = left.substr(0, left.find(' '));
    text += fmt::format("{}__fish_seen_subcommand_from {}", text.empty() ? "" : "; and ", word);
    left.remove_prefix(std::min(left.size(), word.size() + 1));
  }
  return text;
}

std::string fish_completion(const program_outline& outline) {
  std::string text = "# ucxio: completion for fish\n";
  const auto quote = [](std::string_view words) { return '\'' + escaped(words, "'\\") + '\''; };
  const auto add = [&](const outlined_command& command, const std::string& where) {
    text += fmt::format("complete -c ucxio -n {} -f -a {} -d {}\n", where, command.word(),
                        quote(command.description));
  };
  for (const outlined_command& each : outline.commands) add(each, "__fish_use_subcommand");
  for (const outlined_command* each : outline.all()) {
    for (const outlined_command& below : each->commands) {
      add(below, fmt::format("'{}; and not __fish_seen_subcommand_from {}'", fish_seen(*each),
                             fmt::join(words_of(each->commands), " ")));
    }
    for (const outlined_option& option : each->options) {
      if (option.is_positional()) continue;
      text += fmt::format("complete -c ucxio -n '{}'", fish_seen(*each));
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
