#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "commands/commands.hpp"
#include "output/entry_text.hpp"
#include "output/output.hpp"
#include "output/printable.hpp"
#include "output/transfer_method_reason.hpp"
#include "ucx/context.hpp"
#include "ucx/error.hpp"
#include "ucx/version.hpp"

namespace ucx::tool {
namespace {

struct info_options {
  std::string url;
  bool json = false;
};

/// How the bytes of one published name move, and why so.
struct described_name {
  entry described;
  ucx::transfer_method method = ucx::transfer_method::automatic;
  std::string why;
  std::string region;
  std::optional<std::uint64_t> in_huge_pages;
};

struct server_info {
  url address;
  std::string version;
  std::vector<std::string> transports;
  std::string protection;
  std::string identity;             ///< Of this side, at the server.
  std::vector<std::string> unused;  ///< On this side.
  std::string why_not_rma;          ///< Empty where hardware reads and writes memory.
  std::vector<described_name> names;
};

described_name look_at(client& server, const entry& described,
                       const std::vector<std::string>& transports) {
  const remote_region region = server.open(described.name, described.granted);
  return {described, region.transfer_method(),
          transfer_method_reason(described, region, transports), region.description(),
          region.bytes_in_huge_pages()};
}

std::string protection_of(const url& server, const std::vector<std::string>& transports,
                          const std::string& identity) {
  if (std::ranges::find(transports, "socket/unix") != transports.end()) {
    return fmt::format("Unix socket, by user {}", ::geteuid());
  }
  const bool by_certificate = identity.find("certificate \"") != identity.npos;
  if (server.is_tls() && by_certificate) return "TLS 1.3, by certificates of both sides";
  if (server.is_tls()) return "TLS 1.3, by a token";
  return "none";
}

server_info ask(const url& from, const client_settings& settings) {
  client server = settings.connect(from);
  server_info found{from.server(),
                    server.server_version(),
                    server.transports(),
                    {},
                    server.identity(),
                    server.worker().parent().unused(),
                    server.connection().report().why_not_rma,
                    {}};
  found.protection = protection_of(from, found.transports, found.identity);
  if (!from.name().empty()) {
    found.names.push_back(look_at(server, server.stat(from.name()), found.transports));
    return found;
  }
  for (const entry& each : server.list()) {
    try {
      found.names.push_back(look_at(server, each, found.transports));
    } catch (const error& failed) {
      // Withdrawn since it was listed: it is not there, which is no failure of the others.
      if (failed.code() != errc::no_such_name) throw;
    }
  }
  return found;
}

nlohmann::ordered_json json_of_this_side() {
  const context own;
  return {{"ucxio", to_string(version())},
          {"ucx", to_string(ucx_version())},
          {"protocol", protocol_version()},
          {"transports", own.transports()},
          {"unused", own.unused()}};
}

nlohmann::ordered_json json_of(const server_info& found) {
  nlohmann::ordered_json names = nlohmann::ordered_json::array();
  for (const described_name& each : found.names) {
    nlohmann::ordered_json described = to_json(each.described, found.address);
    described["transfer_method"] = ucx::to_string(each.method);
    described["why"] = each.why;
    described["region"] = each.region;
    described["huge_pages"] = nullptr;
    if (each.in_huge_pages) described["huge_pages"] = *each.in_huge_pages;
    described["way"] = ucx::to_string(each.method);  // old, for one version
    names.push_back(std::move(described));
  }
  return {{"url", to_string(found.address)},  {"version", found.version},
          {"transports", found.transports},   {"protection", found.protection},
          {"identity", found.identity},       {"unused", found.unused},
          {"why_not_rma", found.why_not_rma}, {"names", std::move(names)}};
}

/// Devices and transports that are not used, and why, where there are any.
std::string lines_of_unused(const std::vector<std::string>& unused) {
  if (unused.empty()) return {};
  std::string text = "not used   ";
  for (const std::string& each : unused) {
    if (&each != &unused.front()) text += "           ";
    text += ' ' + printable(each) + '\n';
  }
  return text;
}

std::string lines_of_this_side() {
  const context own;
  return fmt::format("ucxio       {}\nUCX         {}\nprotocol    {}\ntransports  {}\n{}",
                     to_string(version()), to_string(ucx_version()), protocol_version(),
                     fmt::join(own.transports(), "\n            "), lines_of_unused(own.unused()));
}

std::string lines(const server_info& found) {
  std::string text = fmt::format(
      "server      {}\nversion     {}\nconnection  {}\nprotection  {}\nidentity    {}\n{}RDMA      "
      "  {}\n",
      to_string(found.address), printable(found.version),
      fmt::join(found.transports, "\n            "), found.protection,
      printable(found.identity.empty() ? "not told" : found.identity),
      lines_of_unused(found.unused),
      found.why_not_rma.empty() ? "used" : "no: " + printable(found.why_not_rma));
  for (const described_name& each : found.names) {
    fmt::format_to(std::back_inserter(text),
                   "\n{}\n  memory      {}\n  transfer    {}: {}\n  region      {}\n",
                   printable(each.described.name), memory_text(each.described),
                   ucx::to_string(each.method), each.why, printable(each.region));
    if (each.in_huge_pages) {
      fmt::format_to(std::back_inserter(text), "  huge pages  {} bytes\n", *each.in_huge_pages);
    }
  }
  return text;
}

void info(const info_options& options, const client_settings& settings) {
  if (!options.json) {
    write_out(lines_of_this_side());
    if (!options.url.empty()) write_out(lines(ask(url(options.url), settings)));
    return;
  }
  nlohmann::ordered_json all = json_of_this_side();
  if (!options.url.empty()) all["server"] = json_of(ask(url(options.url), settings));
  write_out(to_document(all));
}

}  // namespace

void add_info(CLI::App& program, client_settings& shared) {
  const auto options = std::make_shared<info_options>();
  CLI::App& command =
      *program.add_subcommand("info", "Tell versions, transports, and how bytes move, and why");
  command.add_option("URL", options->url,
                     "a server, or one of its names, to connect to: ucxs://HOST:PORT[/NAME]");
  command.add_flag("--json", options->json, "an object");
  add_client_options(command, shared);
  command.footer(
      "Example:\n"
      "  ucxio info ucxs://127.0.0.1:7471/weights");
  command.callback([options, &shared] { info(*options, shared); });
}

}  // namespace ucx::tool
