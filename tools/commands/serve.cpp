#include <fmt/format.h>
#include <malloc.h>
#include <poll.h>
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
#include <utility>
#include <vector>

#include "commands/commands.hpp"
#include "commands/limit_option.hpp"
#include "commands/serve_options.hpp"
#include "copying/agent.hpp"
#include "copying/device_files.hpp"
#include "copying/fetch_rules.hpp"
#include "copying/store_content.hpp"
#include "output/exit_code.hpp"
#include "output/output.hpp"
#include "output/printable.hpp"
#include "output/served_text.hpp"
#include "output/size_option.hpp"
#include "process/file_limit.hpp"
#include "process/secret_line.hpp"
#include "process/shutdown_signals.hpp"
#include "ucx/error.hpp"
#include "ucx/pipe_broker.hpp"
#include "ucx/server.hpp"
#include "ucx/token_file.hpp"

namespace ucx::tool {
namespace {

/// How long taking leave of the clients may take at the end.
constexpr std::chrono::milliseconds longest_farewell{1000};
/// How often it is looked whether clients have left.
constexpr std::chrono::seconds between_looks{5};

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

/// Returns whether the standard error stream takes words without a wait.
bool may_say() noexcept {
  ::pollfd room{STDERR_FILENO, POLLOUT, 0};
  return ::poll(&room, 1, 0) == 1 && (room.revents & POLLOUT) != 0;
}

std::optional<access_rules> access_rules_of(const serve_options& options) {
  if (options.rules_file.empty()) return std::nullopt;
  return access_rules::read(options.rules_file);
}

/// Certificates that can not be read leave the old ones in force.
void read_certificates_again(server& of) {
  std::string said = "the certificates were read again";
  try {
    of.reload_certificates();
  } catch (const error& why) {
    if (why.code() == errc::not_supported) return;  // there are none
    said = fmt::format("error: {}", printable(why.what()));
  }
  if (may_say()) say(fmt::format("ucxio: {}\n", said));
}

/// Rules that can not be read leave the old ones in force.
void read_rules_again(server& of, const serve_options& options) {
  if (options.rules_file.empty()) return;
  std::string said = "the rules were read again";
  try {
    of.set_rules(access_rules_of(options));
  } catch (const error& why) {
    said = fmt::format("error: the rules stay as they were: {}", printable(why.what()));
  }
  if (may_say()) say(fmt::format("ucxio: {}\n", said));
}

/// Rules that were read again are known to be so when a client calls.
void tell_refusal(const std::optional<agent>& copies, bool& is_told) {
  const bool is_refused = copies && copies->is_refused();
  if (is_told == is_refused || !may_say()) return;
  is_told = is_refused;
  if (!is_told) return;
  say("ucxio: error: the rules let no agent serve: clients that call it are not answered\n");
}

/// Two things of the library's log that the user has to know. One is which devices ought to be used
/// and are not, the other the first fault to repair while clients are served. A user that sets
/// UCXIO_LOG finds them in that log.
class server_complaint {
 public:
  log_options log() {
    const char* const own = std::getenv("UCXIO_LOG");
    if (own != nullptr && *own != '\0') return {};
    return {.level = log_level::warning,
            .sink = [this](log_level level, std::string_view line) { take(level, line); }};
  }
  /// Says which devices are not used, though nothing that the user chose forbids them.
  void say_unused() {
    const std::lock_guard guard(mutex_);
    if (!unused_.empty() && may_say()) tool::say(std::exchange(unused_, {}));
  }
  /// Not where the standard error stream would have this wait.
  void say() {
    std::string line;
    {
      const std::lock_guard guard(mutex_);
      if (said_ || line_.empty()) return;
      line = line_;
    }
    if (!may_say()) return;
    said_ = true;
    tool::say("ucxio: " + line + "\n");
  }

  /// Returns whether that is what was said.
  bool has_said(const std::string& words) {
    const std::lock_guard guard(mutex_);
    return said_ && line_.find(words) != line_.npos;
  }

 private:
  void take(log_level level, std::string_view line) {
    const std::lock_guard guard(mutex_);
    if (level == log_level::error) {
      if (line_.empty()) line_ = line;
    } else if (line.starts_with("not used: ")) {
      unused_.append("ucxio: ").append(line).append("\n");
    }
  }

  std::mutex mutex_;
  std::string unused_;
  std::string line_;
  bool said_ = false;
};

/// An invited client gets a token beside that of the user, which may be missing yet.
void make_own_token(const std::string& path) {
  token_file tokens(path);
  for (const token_file::entry& each : tokens.list()) {
    if (each.is_accepted && each.name == "own") return;
  }
  const secret_text made(tokens.create("own"));
}

/// Prints the code for one client.
void tell_code(const secret_text& code, const std::string& url) {
  say("ucxio: for one client, within ten minutes: ucxio login " + url + "\nucxio: its code: ");
  say(code.text);
  say("\n");
}

/// Returns whether SIGHUP is a wish to look at files again.
bool reads_again_at_hangup(const serve_options& options) {
  const bool has_certificates =
      !options.certificates.cert.empty() && options.listening.unix_place.empty();
  return !options.rules_file.empty() || has_certificates;
}

/// They are a client's. The clients in here, such as the agent, are of this user's own server.
void forget_certificates_of_environment() {
  for (const char* const each : {"UCXIO_CERT", "UCXIO_KEY", "UCXIO_CA", "UCXIO_CRL"}) {
    ::unsetenv(each);
  }
}

void serve(const serve_options& options, const client_settings& settings) {
  forget_certificates_of_environment();
  if (settings.timeout_seconds) {
    throw failure(exit_code::usage, "--timeout: serve takes none, it waits until it is ended");
  }
  const fetch_rules rules = rules_of(options);
  const bool has_agent = options.agent || !rules.empty();
  raise_limit_of_files();
  shutdown_signals ending(longest_farewell, reads_again_at_hangup(options));
  server_failure failed(ending);
  server_complaint complaint;
  patience farewell(longest_farewell);  // goes last, so that it watches the server's end too
  std::jthread telling;
  const std::string place = place_of(options);
  if (options.workers == 0 || options.workers > server_options::max_workers) {
    throw failure(exit_code::usage, fmt::format("--workers: {} is not between 1 and {}",
                                                options.workers, server_options::max_workers));
  }
  std::optional<device_files> copies_on_device;
  if (!options.gpu_copies.empty()) copies_on_device.emplace(options.gpu);
  const std::string tokens = options.token_file.empty() ? settings.token_file : options.token_file;
  if (!options.invited.empty()) make_own_token(tokens);
  // Nothing in the initialiser below may throw: g++ 12 would destroy parts of it twice.
  const std::vector<std::uint32_t> users = numbers_of_users(options.peer_users);
  const std::optional<access_rules> access = access_rules_of(options);
  const server_limits limits = limits_of(options.client_limits);
  server serving({.bind = place,
                  .insecure = options.listening.insecure,
                  .context = {.transports = transports_of(options.listening),
                              .token_file = tokens,
                              .certificates = options.certificates,
                              .peer_users = users,
                              .log = complaint.log()},
                  .limits = limits,
                  .workers = options.workers,
                  .on_failure = [&failed](const listener_failure& what) { failed.happen(what); },
                  .rules = access,
                  .audit_file = options.audit_file});
  if (options.address_file.empty()) say(note_of_no_tls(options.listening, serving.url()));
  complaint.say_unused();
  complaint.say();
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
  std::optional<secret_text> code;
  if (!options.invited.empty()) code.emplace(serving.invite(options.invited));
  std::optional<pipe_broker> broker;
  if (options.pipes || has_agent) broker.emplace(serving);
  // An agent may have no other way to its server.
  if (!options.address_file.empty()) serving.publish_address(options.address_file);
  std::optional<agent> copies;
  if (has_agent) copies.emplace(url(serving.url()), rules, access.has_value());
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
  if (code) tell_code(*code, serving.url());
  memory_of_clients memory(serving);
  bool is_refusal_told = false;
  while (!ending.wait_for(between_looks)) {
    if (ending.take_hangup()) {
      read_certificates_again(serving);
      read_rules_again(serving, options);
    }
    tell_refusal(copies, is_refusal_told);
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

}  // namespace

void add_serve(CLI::App& program, const client_settings& shared) {
  const auto options = std::make_shared<serve_options>();
  CLI::App& command =
      *program.add_subcommand("serve", "Publish files and directories, until SIGINT or SIGTERM");
  add_serve_options(command, *options);
  command.callback([options, &shared] { serve(*options, shared); });
}

}  // namespace ucx::tool
