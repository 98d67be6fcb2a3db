#include "copying/copy_request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "agent/agent_message.hpp"
#include "copying/piece_header.hpp"
#include "output/exit_code.hpp"

namespace ucx::tool {
namespace {

constexpr std::string_view scheme = "ucx://";
constexpr std::string_view socket_scheme = "ucx+tcp://";
constexpr std::string_view tls_scheme = "ucxs://";
constexpr std::size_t most_sources = 4096;
constexpr std::uint64_t most_milliseconds = 1'000'000'000;

/// Of a URL of a host nothing is looked up, not even on this machine's disk.
url read_url(const std::string& text) {
  for (const std::string_view each : {scheme, socket_scheme, tls_scheme}) {
    if (text.starts_with(each)) return url(text);
  }
  throw failure(exit_code::usage, fmt::format("\"{}\" is no URL that begins with {}, {} or {}",
                                              text, scheme, socket_scheme, tls_scheme));
}

location read_source(const std::string& text, const url& own_server, const fetch_rules& rules) {
  const url from = read_url(text);
  if (rules.allows(from)) return location(text);
  throw failure(exit_code::permission,
                fmt::format("{} may not fetch from {}: `ucxio serve --fetch-from {}` there would "
                            "allow it",
                            to_string(own_server), to_string(from.server()), from.host()));
}

/// Keeps what is behind the host, with the slash at its end.
location read_target(const std::string& text, const url& own_server) {
  read_url(text);
  const std::size_t slash = text.find('/', text.find("//") + 2);
  return location(to_string(own_server) + (slash == text.npos ? "" : text.substr(slash)));
}

/// Clients give some to agents that ask for them.
server_tickets read_tickets(const nlohmann::json& question) {
  server_tickets read;
  if (!question.contains("tickets")) return read;
  for (const nlohmann::json& each : objects_in(question, "tickets", most_sources)) {
    std::error_code damaged;
    const ticket made = ticket::parse(text_in(each, "ticket"), damaged);
    if (damaged) throw bad_message("a ticket is none");
    read.insert_or_assign(read_url(text_in(each, "server")).server(), made);
  }
  return read;
}

/// Returns what `read_target` makes the same of: where the agent's server has no host, any.
std::string target_text(const std::string& written) {
  const url target(written);
  if (!target.host().empty()) return written;
  constexpr std::uint16_t any_port = 1;
  return to_string(url("localhost", any_port, target.name()));
}

}  // namespace

nlohmann::json copy_question(const std::vector<std::string>& places, const copy_order& order,
                             const client_settings& settings) {
  const double seconds = settings.timeout_seconds.value_or(0);
  return {{"ask", "copy"},
          {"from", std::vector<std::string>(places.begin(), places.end() - 1)},
          {"to", target_text(places.back())},
          {"recursive", order.recursive},
          {"verify", order.terms.verify},
          {"resume", order.terms.resume},
          {"restart_changed", order.terms.restart_changed},
          {"sparse", order.terms.sparse},
          {"preserve", order.terms.preserve},
          {"codec", name_of(order.terms.source_codec)},
          {"parallel", order.parallel},
          {"rate", order.rate},
          {"max_size", order.terms.largest},
          {"max_list", order.walk.longest_list},
          {"timeout_ms", static_cast<std::uint64_t>(seconds * 1000)}};
}

copy_request read_copy_question(const nlohmann::json& question, const url& own_server,
                                const fetch_rules& rules) {
  copy_request read{.order = {.from = {}, .to = read_target(text_in(question, "to"), own_server)},
                    .settings = {}};
  for (const std::string& each : texts_in(question, "from", most_sources)) {
    read.order.from.push_back(read_source(each, own_server, rules));
  }
  if (read.order.from.empty()) throw bad_message("nothing is to be copied");
  read.tickets = read_tickets(question);
  read.order.recursive = flag_in(question, "recursive");
  read.order.terms.verify = flag_in(question, "verify");
  read.order.terms.resume = flag_in(question, "resume");
  // Clients of earlier versions know of none.
  read.order.terms.restart_changed =
      question.contains("restart_changed") && flag_in(question, "restart_changed");
  read.order.terms.sparse = flag_in(question, "sparse");
  read.order.terms.preserve = flag_in(question, "preserve");
  read.order.terms.source_codec = codec_in(question);
  read.order.parallel =
      static_cast<unsigned>(number_in(question, "parallel", copy_order::most_parallel));
  read.order.rate = number_in(question, "rate");
  if (question.contains("max_size")) read.order.terms.largest = number_in(question, "max_size");
  if (question.contains("max_list")) {  // not more than this process would keep by itself
    std::uint64_t& longest = read.order.walk.longest_list;
    longest = std::min(longest, number_in(question, "max_list"));
  }
  const std::uint64_t limit = number_in(question, "timeout_ms", most_milliseconds);
  if (limit > 0) read.settings.timeout_seconds = static_cast<double>(limit) / 1000;
  return read;
}

}  // namespace ucx::tool
