#include "ucx/token_file.hpp"

#include <chrono>
#include <utility>

#include "carrier/tls.hpp"
#include "carrier/token_store.hpp"
#include "carrier/token_text.hpp"
#include "os/locked_memory.hpp"
#include "os/resolver.hpp"
#include "ucx/socket_address.hpp"

namespace ucx {
namespace {

using detail::failure;
using detail::locked_memory;
using detail::result;
using detail::token_size;
using detail::token_text_size;

constexpr std::chrono::seconds longest_login{5};

result<std::vector<token_file::entry>> read(const std::filesystem::path& file) {
  const auto tokens = detail::read_tokens(file);
  std::vector<token_file::entry> made;
  if (!tokens && tokens.why().code == errc::no_such_name) return made;
  if (!tokens) return tokens.why();
  for (const detail::token_entry& each : tokens->entries) {
    made.push_back({each.name, each.is_accepted});
  }
  return made;
}

result<std::string> make(const std::filesystem::path& file, std::string_view name) {
  const locked_memory memory(token_size);
  const auto secret = memory.bytes().first<token_size>();
  if (const auto drawn = detail::draw_token(secret); !drawn) return drawn.why();
  if (const auto added = detail::add_token(file, {true, std::string(name)}, secret); !added) {
    return added.why();
  }
  std::string text(token_text_size, ' ');
  detail::write_token(secret, std::span<char, token_text_size>(text));
  return text;
}

result<void> add_to(const std::filesystem::path& file, std::string_view name,
                    std::string_view text) {
  const locked_memory memory(token_size);
  const auto secret = memory.bytes().first<token_size>();
  const auto verdict = detail::read_token(text, secret);
  if (verdict != detail::token_verdict::intact) {
    return failure{errc::invalid_argument,
                   "adding a token: the text " + std::string(words_of(verdict))};
  }
  return detail::add_token(file, {false, std::string(name)}, secret);
}

/// As a line of the file names a server.
std::string name_of(const url& server) {
  const bool is_v6 = server.host().find(':') != std::string::npos;
  return (is_v6 ? '[' + server.host() + ']' : server.host()) + ':' + std::to_string(server.port());
}

result<void> take_invitation(const std::filesystem::path& file, const url& server,
                             std::string_view text) {
  const std::string doing = "logging in at " + to_string(server.server());
  if (!server.is_tls()) {
    return failure{errc::invalid_argument, doing + ": only servers of ucxs:// have tokens"};
  }
  const locked_memory memory(2 * token_size);
  const auto code = memory.bytes().first<token_size>();
  const auto token = memory.bytes().subspan(token_size).first<token_size>();
  if (detail::read_code(text, code) != detail::token_verdict::intact) {
    return failure{errc::invalid_argument,
                   doing + ": the text is no code of `ucxio serve --invite`, or is damaged"};
  }
  // The code counts once: what hinders the file shows before.
  if (const auto list = read(file); !list) return list.why();
  const auto found = detail::look_up(server.host(), server.port(), longest_login);
  if (!found) return failure{found.why().code, doing + ": " + found.why().text};
  result<void> made = failure{errc::host_not_found, doing};
  for (const socket_address& each : *found) {
    made = detail::accept_invitation(each, code, token, longest_login);
    if (made || made.why().code != errc::connection_refused) break;
  }
  if (!made) return failure{made.why().code, doing + ": " + made.why().text};
  return detail::add_token(file, {false, name_of(server)}, token);
}

result<std::filesystem::path> path_or_own(const std::filesystem::path& file) {
  std::filesystem::path made = file.empty() ? detail::own_token_file() : file;
  if (!made.empty()) return made;
  return failure{errc::no_such_name, "there is no file for tokens: $HOME is not set"};
}

}  // namespace

token_file::token_file(const std::filesystem::path& file, std::error_code& ec)
    : path_(path_or_own(file).or_end(ec)) {}

std::vector<token_file::entry> token_file::list(std::error_code& ec) const {
  return read(path_).or_end(ec);
}

std::string token_file::create(std::string_view name, std::error_code& ec) {
  return make(path_, name).or_end(ec);
}

void token_file::add(std::string_view name, std::string_view text, std::error_code& ec) {
  add_to(path_, name, text).or_end(ec);
}

void token_file::log_in(const url& server, std::string_view code, std::error_code& ec) {
  take_invitation(path_, server, code).or_end(ec);
}

std::size_t token_file::remove(std::string_view name, bool oldest_only, std::error_code& ec) {
  return detail::remove_tokens(path_, name, oldest_only).or_end(ec);
}

}  // namespace ucx
