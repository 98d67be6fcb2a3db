#include "commands/serve_options.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cstddef>
#include <string>
#include <vector>

#include "commands/commands.hpp"
#include "commands/limit_option.hpp"
#include "output/exit_code.hpp"
#include "output/old_names.hpp"
#include "output/size_option.hpp"
#include "process/client_settings.hpp"
#include "process/core_dumps.hpp"
#include "ucx/server.hpp"

namespace ucx::tool {
namespace {

void add_limits(CLI::App& command, store_options& limits) {
  const auto add = [&](const char* name, const char* before, std::size_t& limit, const char* text) {
    CLI::Option* const option = command.add_option(name, limit, text)->type_name("N");
    add_old_name(command, before, option->check(CLI::PositiveNumber));
  };
  add("--max-open-files", "--most-open-files", limits.max_open_files,
      "files of each store that clients may have open (default: half of `ulimit -n`, shared by all "
      "stores)");
  add("--max-open-files-per-client", "--most-open-files-of-one-client",
      limits.max_open_files_per_client,
      "the same for each client (default: half of --max-open-files)");
  add("--max-writers", "--most-writers", limits.max_writers,
      "files of each store open for writing (default: half of --max-open-files, at most 2048)");
}

/// Adds the options that say where the server is, and for whom.
void add_place(CLI::App& command, serve_options& options) {
  add_listening_options(command, options.listening);
  CLI::Option* const ucx = command.get_option("--ucx");
  CLI::Option* const socket = command.get_option("--socket");
  command
      .add_option("--address-file", options.address_file,
                  "write the server's address to this file, for clients that can read it; "
                  "listen only with --bind")
      ->type_name("PATH");
  command
      .add_option("--token-file", options.token_file,
                  "the file of tokens (default: $UCXIO_TOKEN or ~/.config/ucxio/tokens, which is "
                  "made on loopback)")
      ->type_name("PATH")
      ->excludes(socket)
      ->excludes(ucx);
  for (CLI::Option* each : add_certificate_options(command, options.certificates, false)) {
    each->excludes(socket)->excludes(ucx);
  }
  command
      .add_flag("--invite{guest}", options.invited,
                "let one client in by a code that is printed, for ten minutes; it gets a token of "
                "that name by `ucxio login` (default: guest)")
      ->type_name("[=NAME]")
      ->excludes(socket)
      ->excludes(ucx);
  add_peer_users(command, options.peer_users,
                 "let in clients of this user, by name or number, too; needs --unix");
}

/// Adds the options that say what is served.
void add_content(CLI::App& command, serve_options& options) {
  command
      .add_option("FILE", options.files,
                  "NAME=PATH, or PATH, whose name is then that of the file; read-only")
      ->type_name("[NAME=]PATH");
  CLI::Option* gpu_copies = command
                                .add_option("--gpu-copy", options.gpu_copies,
                                            "a copy of the file, in the memory of a CUDA device")
                                ->type_name("[NAME=]PATH")
                                ->expected(1)
                                ->allow_extra_args(false)
                                ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command.add_option("--gpu", options.gpu, "the device, by the driver's number (default: 0)")
      ->type_name("N")
      ->check(CLI::NonNegativeNumber)
      ->needs(gpu_copies);
  command
      .add_option("--store", options.stores,
                  "the files of a directory, by their paths in it, behind PREFIX/ if there is one")
      ->type_name("[PREFIX=]DIR")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command
      .add_option(
          "--memory-store", options.memory_stores,
          "an empty store in memory that clients may fill, up to SIZE bytes; gone at the end")
      ->type_name("[PREFIX=]SIZE")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  CLI::Option* writable = command.add_flag(
      "--writable", options.writable,
      "clients may also create, change and remove files of stores, and write copies "
      "on devices");
  add_size(command, "--quota", options.quota, "limit the total length of each store's files")
      ->type_name("BYTES")
      ->needs(writable);
  add_limits(command, options.limits);
}

}  // namespace

std::string place_of(const serve_options& options) {
  const auto fail = [](const char* why) { throw failure(exit_code::usage, why); };
  const listening_options& listening = options.listening;
  const bool has_file = !options.address_file.empty();
  if (has_file && !listening.unix_place.empty()) {
    fail("--unix: a server by a Unix socket has no --address-file");
  }
  if (has_file && !listening.by_ucx) {
    fail(
        "--address-file: needs --ucx: others have no worker address; name such a server by --bind "
        "HOST:PORT");
  }
  if (has_file) return place_of(listening, options.peer_users, "");
  return place_of(listening, options.peer_users);
}

fetch_rules rules_of(const serve_options& options) {
  fetch_rules rules;
  for (const std::string& each : options.fetch_from) rules.allow(each);
  return rules;
}

void add_serve_options(CLI::App& command, serve_options& options) {
  add_place(command, options);
  add_no_core(command);
  command.add_flag("-q,--quiet", options.quiet, "do not list on stderr what is served");
  add_content(command, options);
  command
      .add_option("--workers", options.workers,
                  "serving threads, 1 to 64; connections are given to them in turn (default: 1)")
      ->type_name("N");
  add_limit(command, options.client_limits);
  command
      .add_option("--rules", options.rules_file,
                  "the file that says who may do what; read again at SIGHUP (default: each client "
                  "may do all that is served)")
      ->type_name("PATH");
  command
      .add_option("--audit", options.audit_file,
                  "append a line of JSON to this file for each open, refusal and change")
      ->type_name("PATH");
  command.add_flag("--pipes", options.pipes,
                   "let the ends of pipes meet here, under any name: `ucxio pipe --help`");
  command.add_flag("--agent", options.agent,
                   "start an agent for `ucxio cp --compress`; it implies --pipes");
  command
      .add_option("--fetch-from", options.fetch_from,
                  "start an agent that may fetch from HOST, for `ucxio cp --direct`; any: from all")
      ->type_name("HOST[:PORT]")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command.footer(
      "Clients of this user need nothing; others a token (`ucxio token new NAME`)\n"
      "or a certificate (--ca). SIGHUP reads rules and certificates again.\n"
      "The first line of the standard output is the server's URL, as ucxs://HOST:PORT; when it is\n"
      "there, every file can be read. If one of them cannot be served, none is.\n\n"
      "Example:\n"
      "  ucxio serve --bind 127.0.0.1:7471 weights=/data/model.bin notes.txt\n"
      "  ucxio serve --store results=/data/results --writable --quota 10g\n"
      "  ucxio serve --memory-store scratch=2g\n"
      "  ucxio serve --store /data/copies --writable --fetch-from node7\n"
      "  ucxio serve --ucx --address-file /shared/job7 weights=/data/model.bin");
}

}  // namespace ucx::tool
