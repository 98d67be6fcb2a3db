#include "commands/call_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>

#include "output/entry_text.hpp"
#include "output/exit_code.hpp"
#include "output/output.hpp"
#include "output/printable.hpp"
#include "ucx/call_channel.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/error.hpp"

namespace ucx::tool {
namespace {

nlohmann::ordered_json json_of_function(const call_description& each) {
  return {{"name", each.called.name()},
          {"version", each.version},
          {"signature", each.called.signature().text()},
          {"hash", ucx::to_string(each.called.signature().hash())},
          {"documentation", each.documentation}};
}

std::string lines_of(const std::vector<call_description>& all, call_list_form form) {
  std::size_t width = 1;
  for (const call_description& each : all) width = std::max(width, each.called.name().size());
  std::string text;
  const auto out = std::back_inserter(text);
  for (const call_description& each : all) {
    const std::string& name = each.called.name();
    const std::string& signature = each.called.signature().text();
    if (form == call_list_form::names) {
      fmt::format_to(out, "{}\n", name);
    } else if (form == call_list_form::usual || each.documentation.empty()) {
      fmt::format_to(out, "{:{}}  {}", name, width, signature);
      if (form == call_list_form::full) {
        fmt::format_to(out, "  {}", ucx::to_string(each.called.signature().hash()));
      }
      text += '\n';
    } else {
      fmt::format_to(out, "{:{}}  {}  {}  {}\n", name, width, signature,
                     ucx::to_string(each.called.signature().hash()), printable(each.documentation));
    }
  }
  return text;
}

}  // namespace

std::vector<call_description> functions_of(client& server, const url& at) {
  try {
    return call_channel(server.connection()).signatures();
  } catch (const error& why) {
    if (why.code() != errc::no_such_handler) throw;
    throw failure(exit_code::not_found,
                  fmt::format("{}: the server's program serves no calls", ucx::to_string(at)));
  }
}

const call_description& function_named(const std::vector<call_description>& all,
                                       std::string_view name, const url& at) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const call_description& each) {
    return each.called.name() == name;
  });
  if (found != all.end()) return *found;
  throw failure(exit_code::not_found,
                fmt::format("{}: there is no function \"{}\"", ucx::to_string(at.server()), name));
}

void list_calls(client& server, const url& at, call_list_form form) {
  std::vector<call_description> all = functions_of(server, at);
  if (!at.name().empty()) all = {function_named(all, at.name(), at)};
  if (form != call_list_form::json) return write_out(lines_of(all, form));
  nlohmann::ordered_json made = nlohmann::ordered_json::array();
  for (const call_description& each : all) made.push_back(json_of_function(each));
  write_out(to_document(made));
}

}  // namespace ucx::tool
