#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "server/rule_list.hpp"

/// The first two bytes choose how much of the rest is a name; the rest is the rules' text.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ucx;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  std::string_view name;
  if (!text.empty()) {
    name = text.substr(1, static_cast<unsigned char>(text.front()));
    text.remove_prefix(1 + name.size());
  }
  const auto rules =
      detail::rule_list::parse(text, "rules", [](bool is_group, const std::string& account) {
        return is_group ? std::nullopt : std::optional<std::uint32_t>(account.size());
      });
  if (!rules) return 0;
  const peer_identity peers[] = {{},
                                 {.token = "a"},
                                 {.certificate = "dns:a"},
                                 {.user = 4, .groups = {1, 2}},
                                 {.user = 0, .is_owner = true}};
  for (const peer_identity& each : peers) {
    unsigned single = 0;
    for (unsigned bit = 1; bit < 256; bit *= 2) {
      if (rules->allows(each, static_cast<access_right>(bit), name)) single |= bit;
    }
    // All of several rights are allowed where each of them is.
    const bool all = rules->allows(each, access_right::all, name);
    if (all != (single == 255)) std::abort();
    // What is allowed is below the empty directory.
    const bool lists = rules->allows(each, access_right::list, name);
    if (lists && !rules->may_allow_below(each, access_right::list, {})) std::abort();
    if (rules->allows_all_below(each, access_right::list, {}) && !lists) std::abort();
  }
  return 0;
}
