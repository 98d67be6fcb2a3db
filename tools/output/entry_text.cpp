#include "output/entry_text.hpp"

#include "output/printable.hpp"

namespace ucx::tool {

std::string_view name_of(access granted) noexcept {
  switch (granted) {
    case access::read:
      return "read";
    case access::write:
      return "write";
    case access::read_write:
      break;
  }
  return "read_write";
}

std::string_view short_form(access granted) noexcept {
  switch (granted) {
    case access::read:
      return "r-";
    case access::write:
      return "-w";
    case access::read_write:
      break;
  }
  return "rw";
}

std::string memory_text(const entry& described) {
  std::string text(to_string(described.kind));
  if (described.device >= 0) text += ':' + std::to_string(described.device);
  return text;
}

nlohmann::ordered_json to_json(const entry& described, const url& server) {
  nlohmann::ordered_json device;  // null: of none
  if (described.device >= 0) device = described.device;
  return {{"name", described.name},
          {"size", described.size},
          {"type", to_string(described.type)},
          {"access", name_of(described.granted)},
          {"memory", to_string(described.kind)},
          {"device", device},
          {"generation", described.generation},
          {"url", to_string(server.with_name(described.name))}};
}

std::string to_document(const nlohmann::ordered_json& value) {
  // A peer that breaks the rules may send what is no UTF-8.
  constexpr auto replace = nlohmann::ordered_json::error_handler_t::replace;
  return with_visible_strings(value.dump(2, ' ', false, replace)) + '\n';
}

}  // namespace ucx::tool
