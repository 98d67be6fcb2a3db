// The facts that a client knows of the server.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.hpp"
#include "ucx/url.hpp"

namespace ucx::detail {

class endpoint_core;
struct welcome_body;

/// Where the server is, what it has said of itself, and so what it can be asked for; error texts
/// begin with what this says. Filled in before anybody else has the client.
class known_server {
 public:
  /// REQUIRES: the connection outlives it.
  explicit known_server(endpoint_core& connection) noexcept : connection_(connection) {}
  known_server(const known_server&) = delete;
  known_server& operator=(const known_server&) = delete;

  void set_address(url address) { address_ = std::move(address); }
  /// Returns its URL; empty where the client came by another way.
  const url& address() const noexcept { return address_; }
  void welcomed(welcome_body&& said);
  const std::string& version() const noexcept { return version_; }
  /// Returns who this client is to the server.
  const std::string& identity() const noexcept { return identity_; }
  /// Returns whether it has a `control_feature`.
  bool knows(std::uint64_t feature) const noexcept { return (features_ & feature) != 0; }

  /// Returns the server, for an error text.
  std::string place() const;
  /// Returns what the error text of a call begins with.
  std::string attempt(std::string_view doing, std::string_view name) const;

  // Each returns the text that it got, or made, if there is nothing wrong.
  result<std::string> check_stores(std::string doing) const;
  result<std::string> attempt_at_store(std::string_view doing, std::string_view name) const;
  result<std::string> attempt_at_directory(std::string_view directory) const;

  /// Says whether the server may be asked about the name at all.
  static result<void> check_name(std::string_view name);
  /// Adds what has the name to the failure of a server that only says that it does not serve it.
  static failure of_unserved(failure why, std::string_view what);

 private:
  endpoint_core& connection_;
  url address_;
  std::string version_;
  std::string identity_;
  std::uint64_t features_ = 0;
};

}  // namespace ucx::detail
