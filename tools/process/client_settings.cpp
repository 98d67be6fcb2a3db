#include "process/client_settings.hpp"

#include <fmt/format.h>
#include <pwd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <filesystem>

#include "output/exit_code.hpp"
#include "process/bounded_connect.hpp"
#include "process/core_dumps.hpp"

namespace ucx::tool {
namespace {

constexpr double least_deadline = 0.001;
constexpr double most_deadline = 1e6;

/// A client that only reads has nothing to flush, and does not wait when it leaves a silent server.
constexpr std::chrono::milliseconds farewell{500};

std::uint32_t number_of(const std::string& user) {
  std::uint32_t number = 0;
  const char* const end = user.data() + user.size();
  const auto [stopped, failed] = std::from_chars(user.data(), end, number);
  if (!user.empty() && failed == std::errc() && stopped == end) return number;
  std::array<char, 16384> texts;
  ::passwd entry = {};
  ::passwd* found = nullptr;
  ::getpwnam_r(user.c_str(), &entry, texts.data(), texts.size(), &found);
  if (found == nullptr) {
    throw failure(exit_code::usage, fmt::format("--peer-user: there is no user \"{}\"", user));
  }
  return found->pw_uid;
}

}  // namespace

client_options client_settings::options() const {
  client_options made;
  made.worker.close_timeout = farewell;
  made.context.token_file = token_file;
  made.context.certificates = certificates;
  made.context.peer_users = numbers_of_users(peer_users);
  if (!timeout_seconds) return made;
  // "nan" is a number to the parser, and in no range.
  if (!(*timeout_seconds >= least_deadline && *timeout_seconds <= most_deadline)) {
    throw failure(exit_code::usage, fmt::format("--timeout: {} is not between {} and {} seconds",
                                                *timeout_seconds, least_deadline, most_deadline));
  }
  const auto limit = std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(*timeout_seconds));
  made.worker.connect_timeout = limit;
  made.worker.operation_timeout = limit;
  made.worker.close_timeout = std::min<std::chrono::nanoseconds>(limit, farewell);
  return made;
}

client client_settings::connect(const url& any) const {
  return bounded_connect(
      *this, any, options(),
      [](const url& server, const client_options& chosen) { return client(server, chosen); });
}

void add_client_options(CLI::App& command, client_settings& settings) {
  command
      .add_option("--timeout", settings.timeout_seconds,
                  "for connecting, and for each operation (default: 5 and 30)")
      ->type_name("SECONDS");
  command
      .add_option("--token-file", settings.token_file,
                  "the file of tokens of ucxs:// (default: $UCXIO_TOKEN or "
                  "~/.config/ucxio/tokens)")
      ->type_name("PATH");
  add_certificate_options(command, settings.certificates, true);
  add_peer_users(command, settings.peer_users,
                 "over ucx+unix:// trust a server of this user, by name or number, too");
  add_no_core(command);
}

std::vector<CLI::Option*> add_certificate_options(CLI::App& command, certificate_files& files,
                                                  bool has_variables) {
  const auto add = [&](const char* name, std::filesystem::path& file, const std::string& text,
                       const char* variable) {
    const std::string otherwise = has_variables ? fmt::format(" (default: ${})", variable) : "";
    return command.add_option(name, file, text + otherwise)->type_name("PATH");
  };
  return {add("--cert", files.cert, "the certificate of this side of ucxs://", "UCXIO_CERT"),
          add("--key", files.key, "its key, which only this user may read", "UCXIO_KEY"),
          add("--ca", files.ca, "the CAs whose certificates are trusted", "UCXIO_CA"),
          add("--crl", files.crl, "their revocation lists", "UCXIO_CRL")};
}

void add_peer_users(CLI::App& command, std::vector<std::string>& users, const char* text) {
  command.add_option("--peer-user", users, text)
      ->type_name("USER")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

std::vector<std::uint32_t> numbers_of_users(const std::vector<std::string>& users) {
  std::vector<std::uint32_t> numbers;
  for (const std::string& user : users) numbers.push_back(number_of(user));
  return numbers;
}

url url_with_name(const std::string& text) {
  url parsed(text);
  if (parsed.name().empty()) {
    throw failure(exit_code::usage,
                  fmt::format("\"{}\" names a server and nothing that it publishes: "
                              "`ucxio ls {}` lists that",
                              text, to_string(parsed)));
  }
  return parsed;
}

}  // namespace ucx::tool
