// The options of `ucxio serve`: what the command line says, and what that means for the server.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "commands/listening_options.hpp"
#include "copying/fetch_rules.hpp"
#include "output/cli_forward.hpp"
#include "ucx/server.hpp"

namespace ucx::tool {

/// The options of `ucxio serve`.
struct serve_options {
  listening_options listening;
  std::string address_file;
  std::string token_file;
  certificate_files certificates;
  std::string invited;  // the name of the token that a client gets; empty: none does
  std::vector<std::string> peer_users;
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
  std::vector<std::string> client_limits;
  std::string rules_file;
  std::string audit_file;
};

/// Adds the options, whose values come to `options`, and the footer to the command.
void add_serve_options(CLI::App& command, serve_options& options);

/// Returns where the server listens, as the library's options say it.
/// Throws a `failure` (usage) for options that exclude each other.
std::string place_of(const serve_options& options);

/// Returns the hosts that others may fetch from; something may be copied also without.
fetch_rules rules_of(const serve_options& options);

}  // namespace ucx::tool
