#include "commands/limit_option.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "output/exit_code.hpp"
#include "output/printable.hpp"
#include "output/size_option.hpp"

namespace ucx::tool {
namespace {

constexpr std::pair<std::string_view, client_limits server_limits::*> scopes[] = {
    {"identity", &server_limits::per_identity},
    {"address", &server_limits::per_address},
    {"all", &server_limits::in_all},
};

constexpr std::pair<std::string_view, std::size_t client_limits::*> names[] = {
    {"connections", &client_limits::connections},
    {"open-names", &client_limits::open_names},
    {"requests", &client_limits::requests_per_second},
    {"bytes", &client_limits::bytes_in_flight},
};

/// Returns what is called that; null where nothing is.
template <class Table>
auto look_up(const Table& table, std::string_view name) {
  for (const auto& [known, member] : table) {
    if (known == name) return member;
  }
  return decltype(table[0].second)();
}

}  // namespace

void add_limit(CLI::App& command, std::vector<std::string>& given) {
  command
      .add_option("--limit", given,
                  "what clients may use: connections, open-names, requests (a second), or bytes "
                  "(in flight); SCOPE is identity (default), address or all; 0: no limit")
      ->type_name("[SCOPE.]NAME=N")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

server_limits limits_of(const std::vector<std::string>& given) {
  server_limits made;
  for (const std::string& each : given) {
    const std::string_view text = each;
    const std::size_t equals = text.find('=');
    std::string_view name = text.substr(0, equals);
    std::string_view scope = scopes[0].first;
    if (const std::size_t dot = name.find('.'); dot != name.npos) {
      scope = name.substr(0, dot);
      name = name.substr(dot + 1);
    }
    const auto within = look_up(scopes, scope);
    const auto what = look_up(names, name);
    std::optional<std::uint64_t> most;
    if (equals != text.npos) most = size_in(std::string(text.substr(equals + 1)));
    if (within == nullptr || what == nullptr || !most) {
      throw failure(exit_code::usage,
                    fmt::format("--limit: \"{}\" is not [identity.|address.|all.]NAME=N, with NAME "
                                "connections, open-names, requests or bytes",
                                printable(each)));
    }
    made.*within.*what = static_cast<std::size_t>(*most);
  }
  return made;
}

}  // namespace ucx::tool
