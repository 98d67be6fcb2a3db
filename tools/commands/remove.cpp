#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <memory>
#include <string>
#include <vector>

#include "commands/commands.hpp"
#include "copying/tree_walk.hpp"
#include "output/exit_code.hpp"
#include "output/output.hpp"
#include "output/printable.hpp"
#include "ucx/error.hpp"

namespace ucx::tool {
namespace {

struct remove_options {
  std::vector<std::string> urls;
  bool recursive = false;
  bool force = false;
  walk_terms walk;
};

/// Removes what was named, and counts what could not be.
class removal {
 public:
  removal(const remove_options& options, const client_settings& settings)
      : options_(options), clients_(settings) {}

  std::size_t run() {
    for (const std::string& each : options_.urls) url_with_name(each);
    for (const std::string& each : options_.urls) {
      attempt([&] { remove(location(each)); });
    }
    return failures_;
  }

 private:
  template <class Call>
  void attempt(Call&& call) {
    try {
      call();
    } catch (const error& why) {
      if (options_.force && why.code() == errc::no_such_name) return;
      tell(failure(exit_code_of(why.code()), why.what()));
    } catch (const failure& why) {
      tell(why);
    }
  }
  void tell(const failure& why) {
    const bool is_alone = options_.urls.size() == 1 && !options_.recursive;
    if (is_alone || has_ended_ || why.ends_all()) {
      has_ended_ = true;  // also for the attempt that this one is part of
      throw failure(why);
    }
    ++failures_;
    say("ucxio: " + printable(why.what()) + '\n');
  }
  void remove(const location& named) {
    client& server = clients_.of(named.remote());
    const std::string& top = named.remote().name();
    if (!is_directory(named, clients_)) return server.remove(top);
    if (!options_.recursive) {
      throw failure(exit_code::usage, to_string(named) + " is a directory: -r removes it");
    }
    tree_walk tree(clients_, options_.walk, {}, [this](const failure& why) { tell(why); });
    tree.walk(named);
    if (!is_filled(named, server)) return;
    for (const found_file& each : tree.files()) {
      attempt([&] { server.remove(each.at.remote().name()); });
    }
    // Directories within others go first.
    const std::vector<found_directory>& directories = tree.directories();
    for (auto each = directories.rbegin(); each != directories.rend(); ++each) {
      remove_emptied(server, top + '/' + each->path);
    }
    remove_emptied(server, top);
  }
  /// Removes a directory that is empty; of one that never can be removed nothing within is touched.
  bool is_filled(const location& named, client& server) {
    try {
      server.remove(named.remote().name());
      return false;
    } catch (const error& why) {
      if (why.code() == errc::already_exists || why.code() == errc::busy) return true;
      if (why.code() != errc::bad_name) throw;
    }
    has_ended_ = options_.urls.size() == 1;
    throw failure(exit_code::usage, to_string(named) +
                                        " is a store, which its server alone can remove: name "
                                        "what is in it; nothing was removed");
  }
  void remove_emptied(client& server, const std::string& directory) {
    attempt([&] {
      try {
        server.remove(directory);
      } catch (const error& why) {
        if (why.code() != errc::already_exists) throw;
        throw failure(
            exit_code_of(why.code()),
            fmt::format("the directory \"{}\" is not empty: something in it is not served, "
                        "was not removed, or came meanwhile",
                        directory));
      }
    });
  }

  const remove_options& options_;
  server_clients clients_;
  std::size_t failures_ = 0;
  bool has_ended_ = false;
};

void remove(const remove_options& options, const client_settings& settings) {
  const std::size_t failures = removal(options, settings).run();
  if (failures == 0) return;
  throw failure(exit_code::partial, fmt::format("{} of what was to be removed {} not", failures,
                                                failures == 1 ? "was" : "were"));
}

}  // namespace

void add_remove(CLI::App& program, client_settings& shared) {
  const auto options = std::make_shared<remove_options>();
  CLI::App& command = *program.add_subcommand("rm", "Remove files of a store");
  command.add_option("URL", options->urls, "what to remove: ucxs://HOST:PORT/NAME")->required();
  command.add_flag("-r,--recursive", options->recursive, "directories, with all that is in them");
  command.add_flag("-f,--force", options->force, "what is not there is no error");
  add_longest_list(command, options->walk);
  add_client_options(command, shared);
  command.footer(
      "Who reads a file just now goes on with it; one that somebody writes is not removed.\n\n"
      "Example:\n"
      "  ucxio rm -r ucxs://127.0.0.1:7471/store/checkpoints");
  command.callback([options, &shared] { remove(*options, shared); });
}

}  // namespace ucx::tool
