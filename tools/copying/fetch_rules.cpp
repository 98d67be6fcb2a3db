#include "copying/fetch_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "output/exit_code.hpp"

namespace ucx::tool {

void fetch_rules::allow(const std::string& text) {
  if (text == "any") {
    any_ = true;
    return;
  }
  std::error_code ec;
  if (text.find('/') == text.npos) {
    const url whole("ucx://" + text, ec);
    if (!ec) return hosts_.push_back({whole.host(), whole.port()});
    const url alone("ucx://" + text + ":1", ec);
    if (!ec) return hosts_.push_back({alone.host(), 0});
  }
  throw failure(exit_code::usage,
                fmt::format("--fetch-from: \"{}\" is neither HOST nor HOST:PORT nor any", text));
}

bool fetch_rules::allows(const url& from) const noexcept {
  return any_ || std::ranges::any_of(hosts_, [&](const host& each) {
           return each.name == from.host() && (each.port == 0 || each.port == from.port());
         });
}

}  // namespace ucx::tool
