#include "client/known_server.hpp"

#include "base/name.hpp"
#include "connection/endpoint_core.hpp"
#include "ucx/error.hpp"
#include "wire/control_message.hpp"

namespace ucx::detail {

void known_server::welcomed(welcome_body&& said) {
  version_ = std::move(said.library);
  features_ = said.features;
  identity_ = std::move(said.identity);
}

std::string known_server::place() const {
  return address_.empty() ? "the server at " + connection_.peer_name() : to_string(address_);
}

std::string known_server::attempt(std::string_view doing, std::string_view name) const {
  return std::string(doing) + " \"" + std::string(name) + "\" at " + place();
}

result<std::string> known_server::check_stores(std::string doing) const {
  if (knows(control_feature::stores)) return doing;
  return failure{errc::not_supported,
                 doing + ": the server (ucxio " + version_ + ") knows no stores"};
}

result<std::string> known_server::attempt_at_store(std::string_view doing,
                                                   std::string_view name) const {
  if (const auto fit = check_name(name); !fit) return fit.why();
  return check_stores(attempt(doing, name));
}

result<std::string> known_server::attempt_at_directory(std::string_view directory) const {
  constexpr const char* doing = "listing the directory";
  return directory.empty() ? check_stores(attempt(doing, directory))
                           : attempt_at_store(doing, directory);
}

result<void> known_server::check_name(std::string_view name) {
  const std::string_view complaint = complaint_about_name(name);
  if (complaint.empty()) return {};
  return failure{errc::bad_name, "a name that can not be one: " + std::string(complaint)};
}

failure known_server::of_unserved(failure why, std::string_view what) {
  if (why.code == errc::not_supported) why.text.append(", which is ").append(what);
  return why;
}

}  // namespace ucx::detail
