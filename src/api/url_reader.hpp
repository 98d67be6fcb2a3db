// Makes URLs of text, and says what is wrong with it.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.hpp"
#include "ucx/url.hpp"

namespace ucx::detail {

struct url_reader {
  static result<url> read(std::string_view text);
  static result<url> of_parts(std::string_view host, std::uint16_t port, std::string_view name);
  /// Likewise, of a server that is reached by a socket.
  static result<url> of_socket(std::string_view host, std::uint16_t port, std::string_view name);
  static result<url> of_tls(std::string_view host, std::uint16_t port, std::string_view name);
  /// Likewise, by a Unix socket.
  static result<url> of_unix(std::string_view path, std::string_view name);
  static result<url> from_address_file(std::string_view file, std::string_view name);
  /// Returns `made` with another name.
  static result<url> named(url made, std::string_view name);

 private:
  static result<url> read_address_file(std::string_view rest);
  static result<url> read_socket_file(std::string_view rest);
  static result<url> read_authority(std::string_view rest);
  static result<url> by_socket(result<url> made, bool by_tls = false);
};

}  // namespace ucx::detail
