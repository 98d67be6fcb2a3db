#include <fmt/format.h>
#include <malloc.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "commands/commands.hpp"
#include "copying/agent.hpp"
#include "copying/device_files.hpp"
#include "copying/fetch_rules.hpp"
#include "copying/store_content.hpp"
#include "output/exit_code.hpp"
#include "output/old_names.hpp"
#include "output/output.hpp"
#include "output/printable.hpp"
#include "output/served_text.hpp"
#include "output/size_option.hpp"
#include "process/shutdown_signals.hpp"
#include "ucx/error.hpp"
#include "ucx/pipe_broker.hpp"
#include "ucx/server.hpp"

namespace ucx::tool {
namespace {

/// How long taking leave of the clients may take at the end.
constexpr std::chrono::milliseconds longest_farewell{1000};
/// How often it is looked whether clients have left.
constexpr std::chrono::seconds between_looks{5};

struct serve_options {
  std::optional<std::string> bind;
  std::string address_file;
  bool insecure = false;
  bool quiet = false;
  std::vector<std::string> files;
  std::vector<std::string> gpu_copies;
  int gpu = 0;
  std::vector<std::string> stores;
  std::vector<std::string> memory_stores;
  bool writable = false;
  bool pipes = false;
  bool agent = false;
  std::vector<std::string> fetch_from;
  std::uint64_t quota = store_options().quota;
  store_options limits;  // how many files may be open; the rest is not said here
  std::size_t workers = 1;
};

struct shared_file {
  std::string name;
  std::filesystem::path path;
};

/// Reads "NAME=PATH", or "PATH", whose name is then the file's own.
shared_file parse_file(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals != std::string::npos) return {text.substr(0, equals), text.substr(equals + 1)};
  return {std::filesystem::path(text).filename().string(), text};
}

failure not_served(const std::string& what, const error& why) {
  return failure(exit_code_of(why.code()),
                 fmt::format("cannot serve \"{}\": {}", what, why.what()));
}

publication publish(server& target, const std::string& text) {
  const shared_file file = parse_file(text);
  try {
    return target.publish_file(file.name, file.path);
  } catch (const error& failed) {
    throw not_served(file.path.string(), failed);
  }
}

publication publish_copy(server& target, const std::string& text, device_files& copies,
                         access granted) {
  const shared_file file = parse_file(text);
  const std::span<std::byte> copy = copies.add(file.path);
  try {
    return target.publish(file.name, copy, granted);
  } catch (const error& failed) {
    throw not_served(file.path.string(), failed);
  }
}

struct shared_directory {
  std::string prefix;
  std::filesystem::path path;
};

/// Reads "PREFIX=DIR", or "DIR", whose files go by their paths in it.
shared_directory parse_directory(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos) return {{}, text};
  return {text.substr(0, equals), text.substr(equals + 1)};
}

publication publish_store(server& target, const std::string& text, const serve_options& options) {
  const shared_directory shared = parse_directory(text);
  store_options chosen = options.limits;
  chosen.writable = options.writable;
  chosen.quota = options.quota;
  chosen.prefix = shared.prefix;
  try {
    return target.publish_store(shared.path, chosen);
  } catch (const error& failed) {
    throw not_served(shared.path.string(), failed);
  }
}

/// Says of which directories nothing is served: that is easily overlooked.
void tell_empty_stores(const std::vector<std::string>& stores, const url& server,
                       const std::stop_token& stop) {
  for (const std::string& each : stores) {
    const shared_directory shared = parse_directory(each);
    const url store = shared.prefix.empty() ? server : server.with_name(shared.prefix);
    if (!serves_nothing(shared.path, store, stop)) continue;
    say(
        fmt::format("ucxio: note: {}: nothing in it is served now: there are no files, or only "
                    "symbolic links, special files, and names that are no UTF-8 or too long\n",
                    printable(shared.path.string())));
  }
}

/// Reads "PREFIX=SIZE", or "SIZE".
publication allocate_store(server& target, const std::string& text, const serve_options& options) {
  const std::size_t equals = text.find('=');
  store_options chosen = options.limits;
  if (equals != std::string::npos) chosen.prefix = text.substr(0, equals);
  const std::optional<std::uint64_t> size = size_in(text.substr(equals + 1));  // npos + 1 is 0
  if (!size) {
    throw failure(exit_code::usage, fmt::format("--memory-store: \"{}\" is no size", text));
  }
  chosen.quota = *size;
  try {
    return target.allocate_store(chosen);
  } catch (const error& failed) {
    throw failure(exit_code_of(failed.code()), fmt::format("cannot serve: {}", failed.what()));
  }
}

/// Memory that clients took: malloc keeps what was freed, and nothing says when it is of no use.
class memory_of_clients {
 public:
  explicit memory_of_clients(const server& of) : server_(of) {}

  /// Gives it back to the system where most of the clients have left.
  void give_back() {
    const server_statistics now = server_.statistics();
    most_ = std::max(most_, now.clients);
    const bool has_changed = now.clients_served != served_ || now.clients < most_;
    served_ = now.clients_served;
    if (!has_changed || now.clients * 2 > most_) return;
    most_ = now.clients;
    ::malloc_trim(0);
  }

 private:
  const server& server_;
  std::uint64_t most_ = 0;    // since that was done
  std::uint64_t served_ = 0;  // when it was looked last
};

/// Tells where the server is: the program that started it waits for this line.
void announce(const std::string& address) {
  try {
    write_out(address + '\n');
  } catch (const output_closed&) {
    throw failure(exit_code::output,
                  "nobody reads the standard output, so " + address + " would be known to nobody");
  }
}

/// Where others may fetch from; something may be copied also without.
fetch_rules rules_of(const serve_options& options) {
  fetch_rules rules;
  for (const std::string& each : options.fetch_from) rules.allow(each);
  return rules;
}

/// Some systems grant a thousand million.
constexpr ::rlim_t most_files = ::rlim_t{1} << 20U;

/// As many descriptors as the system grants: each client takes some.
void raise_limit_of_files() noexcept {
  ::rlimit files = {};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  const ::rlim_t granted = std::min(files.rlim_max, most_files);
  if (files.rlim_cur >= granted) return;
  files.rlim_cur = granted;
  ::setrlimit(RLIMIT_NOFILE, &files);
}

/// A failure that ends the server unasked.
class server_failure {
 public:
  explicit server_failure(shutdown_signals& ending) : ending_(ending) {}

  void happen(const listener_failure& what) {
    const std::lock_guard guard(mutex_);
    if (words_.empty()) words_ = what.error_message;
    ending_.end();
  }
  int exit_code() const {
    const std::lock_guard guard(mutex_);
    return words_.empty() ? EXIT_SUCCESS : EXIT_FAILURE;
  }
  /// Returns what it is, if it has happened.
  std::string words() const {
    const std::lock_guard guard(mutex_);
    return words_;
  }
  /// Throws what ends the program, which has been said.
  void check() const {
    const std::lock_guard guard(mutex_);
    if (!words_.empty()) throw failure(tool::exit_code::failure, {});
  }

 private:
  shutdown_signals& ending_;
  mutable std::mutex mutex_;
  std::string words_;
};

/// The first fault that the user has to repair while clients are served, as the library's log tells
/// it. A user that sets UCXIO_LOG finds it in that log.
class server_complaint {
 public:
  log_options log() {
    const char* const own = std::getenv("UCXIO_LOG");
    if (own != nullptr && *own != '\0') return {};
    return {.level = log_level::error, .sink = [this](log_level, std::string_view line) {
              const std::lock_guard guard(mutex_);
              if (line_.empty()) line_ = line;
            }};
  }
  /// Not where the standard error stream would have this wait.
  void say() {
    std::string line;
    {
      const std::lock_guard guard(mutex_);
      if (said_ || line_.empty()) return;
      line = line_;
    }
    ::pollfd room{STDERR_FILENO, POLLOUT, 0};
    if (::poll(&room, 1, 0) != 1 || (room.revents & POLLOUT) == 0) return;
    said_ = true;
    tool::say("ucxio: " + line + "\n");
  }

  /// Returns whether that is what was said.
  bool has_said(const std::string& words) {
    const std::lock_guard guard(mutex_);
    return said_ && line_.find(words) != line_.npos;
  }

 private:
  std::mutex mutex_;
  std::string line_;
  bool said_ = false;
};

void serve(const serve_options& options, const client_settings& settings) {
  if (settings.timeout_seconds) {
    throw failure(exit_code::usage, "--timeout: serve takes none, it waits until it is ended");
  }
  const fetch_rules rules = rules_of(options);
  const bool has_agent = options.agent || !rules.empty();
  raise_limit_of_files();
  shutdown_signals ending(longest_farewell);
  server_failure failed(ending);
  server_complaint complaint;
  patience farewell(longest_farewell);  // goes last, so that it watches the server's end too
  std::jthread telling;
  const std::string nowhere = options.address_file.empty() ? "127.0.0.1:0" : "";
  if (options.workers == 0 || options.workers > server_options::max_workers) {
    throw failure(exit_code::usage, fmt::format("--workers: {} is not between 1 and {}",
                                                options.workers, server_options::max_workers));
  }
  std::optional<device_files> copies_on_device;
  if (!options.gpu_copies.empty()) copies_on_device.emplace(options.gpu);
  server serving({.bind = options.bind.value_or(nowhere),
                  .insecure = options.insecure,
                  .context = {.log = complaint.log()},
                  .workers = options.workers,
                  .on_failure = [&failed](const listener_failure& what) { failed.happen(what); }});
  std::vector<publication> published;
  for (const std::string& each : options.files) published.push_back(publish(serving, each));
  for (const std::string& each : options.gpu_copies) {
    published.push_back(publish_copy(serving, each, *copies_on_device,
                                     options.writable ? access::read_write : access::read));
  }
  std::vector<publication> stores;
  for (const std::string& each : options.stores) {
    stores.push_back(publish_store(serving, each, options));
  }
  for (const std::string& each : options.memory_stores) {
    stores.push_back(allocate_store(serving, each, options));
  }
  std::optional<pipe_broker> broker;
  if (options.pipes || has_agent) broker.emplace(serving);
  // An agent may have no other way to its server.
  if (!options.address_file.empty()) serving.publish_address(options.address_file);
  std::optional<agent> copies;
  if (has_agent) copies.emplace(url(serving.url()), rules);
  // If the standard error stream is a pipe without a reader this waits, and nothing waits for it.
  // It is made before the URL is told: that it can not be made is an error of the start.
  std::promise<void> announced;
  if (!options.quiet) {
    const std::string text = served_text({.server = url(serving.url()),
                                          .files = published,
                                          .stores = stores,
                                          .has_pipes = options.pipes});
    telling = std::jthread([text, &options, at = url(serving.url()),
                            after = announced.get_future()](const std::stop_token& stop) mutable {
      try {
        after.get();
        say(text);
        tell_empty_stores(options.stores, at, stop);
      } catch (const std::exception&) {
        // The URL was not told; or there is no memory, and clients are served all the same.
      }
    });
  }
  ending.expect();
  try {
    announce(serving.url());
  } catch (...) {
    announced.set_exception(std::current_exception());
    throw;
  }
  announced.set_value();
  memory_of_clients memory(serving);
  while (!ending.wait_for(between_looks)) {
    memory.give_back();
    complaint.say();
  }
  farewell.begin(failed.exit_code());
  // Now: what follows may take longer than the farewell.
  const std::string why = failed.words();
  if (!why.empty() && !complaint.has_said(why)) say("ucxio: " + printable(why) + '\n');
  copies.reset();
  broker.reset();
  serving.close();
  failed.check();
}

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

}  // namespace

void add_serve(CLI::App& program, const client_settings& shared) {
  const auto options = std::make_shared<serve_options>();
  CLI::App& command =
      *program.add_subcommand("serve", "Publish files and directories, until SIGINT or SIGTERM");
  command
      .add_option("--bind", options->bind,
                  "where to listen; port 0 lets the system choose (default: 127.0.0.1:0)")
      ->type_name("HOST:PORT");
  command
      .add_option("--address-file", options->address_file,
                  "write the server's address to this file, for clients that can read it; "
                  "listen only with --bind")
      ->type_name("PATH");
  command.add_flag("--insecure", options->insecure,
                   "allow other addresses than loopback: everyone who can connect gets access");
  command.add_flag("-q,--quiet", options->quiet, "do not list on stderr what is served");
  command
      .add_option("FILE", options->files,
                  "NAME=PATH, or PATH, whose name is then that of the file; read-only")
      ->type_name("[NAME=]PATH");
  CLI::Option* gpu_copies = command
                                .add_option("--gpu-copy", options->gpu_copies,
                                            "a copy of the file, in the memory of a CUDA device")
                                ->type_name("[NAME=]PATH")
                                ->expected(1)
                                ->allow_extra_args(false)
                                ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command.add_option("--gpu", options->gpu, "the device, by the driver's number (default: 0)")
      ->type_name("N")
      ->check(CLI::NonNegativeNumber)
      ->needs(gpu_copies);
  command
      .add_option("--store", options->stores,
                  "the files of a directory, by their paths in it, behind PREFIX/ if there is one")
      ->type_name("[PREFIX=]DIR")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command
      .add_option(
          "--memory-store", options->memory_stores,
          "an empty store in memory that clients may fill, up to SIZE bytes; gone at the end")
      ->type_name("[PREFIX=]SIZE")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  CLI::Option* writable = command.add_flag(
      "--writable", options->writable,
      "clients may also create, change and remove files of stores, and write copies "
      "on devices");
  add_size(command, "--quota", options->quota, "limit the total length of each store's files")
      ->type_name("BYTES")
      ->needs(writable);
  add_limits(command, options->limits);
  command
      .add_option("--workers", options->workers,
                  "serving threads, 1 to 64; connections are given to them in turn (default: 1)")
      ->type_name("N");
  command.add_flag("--pipes", options->pipes,
                   "let the ends of pipes meet here, under any name: `ucxio pipe --help`");
  command.add_flag("--agent", options->agent,
                   "start an agent for `ucxio cp --compress`; it implies --pipes");
  command
      .add_option("--fetch-from", options->fetch_from,
                  "start an agent that may fetch from HOST, for `ucxio cp --direct`; any: from all")
      ->type_name("HOST[:PORT]")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command.footer(
      "The first line of the standard output is the server's URL, ucx://HOST:PORT, or\n"
      "ucx+file://PATH; when it is there, every file can be read. If one of them cannot be\n"
      "served, none is.\n\n"
      "Example:\n"
      "  ucxio serve --bind 127.0.0.1:7471 weights=/data/model.bin notes.txt\n"
      "  ucxio serve --store results=/data/results --writable --quota 10g\n"
      "  ucxio serve --memory-store scratch=2g\n"
      "  ucxio serve --store /data/copies --writable --fetch-from node7\n"
      "  ucxio serve --address-file /shared/job7 weights=/data/model.bin");
  command.callback([options, &shared] { serve(*options, shared); });
}

}  // namespace ucx::tool
