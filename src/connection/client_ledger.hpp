// Counts what a server's clients use, by identity, by source address, and in all.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <unordered_map>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "ucx/peer_identity.hpp"
#include "ucx/server_limits.hpp"
#include "ucx/socket_address.hpp"

namespace ucx::detail {

class client_account;
class logger;

/// Safe from any thread: the workers of a server share it.
class client_ledger : public std::enable_shared_from_this<client_ledger> {
 public:
  /// So many connections that are refused may be there at a time, until they have been told.
  static constexpr std::size_t most_refused = 64;

  client_ledger(const server_limits& limits, logger& log) noexcept;
  client_ledger(const client_ledger&) = delete;
  client_ledger& operator=(const client_ledger&) = delete;

  /// Counts a connection, from a peer without identity (null), or without address (empty), until
  /// the account is gone. Where a bound is reached the account says so.
  std::shared_ptr<client_account> admit(const peer_identity* who, const socket_address& from);

 private:
  friend class client_account;

  /// Those who share the bounds of an identity or an address; or everybody.
  struct party {
    const client_limits& most;
    std::string name;
    std::size_t accounts = 0;  // it goes with the last one
    client_limits used = {};
    double requests = 0;  // that may come at once
    clock::time_point refilled = {};
  };
  static constexpr std::size_t scopes = 3;  // identity, address, all
  using parties = std::array<party*, scopes>;

  party* party_of(const client_limits& most, const std::string& name);
  void leave(const parties& of) noexcept;
  void tell(const party& full, const char* of_what, std::size_t most) noexcept;

  const server_limits limits_;
  logger& log_;
  std::mutex mutex_;
  std::unordered_map<std::string, party> named_;  // what is pointed to stays where it is
  party all_{limits_.in_all, "the server"};
  std::size_t refused_ = 0;
  clock::time_point telling_since_ = {};
  unsigned told_lines_ = 0;  // since then
};

/// The part of one connection. Safe from any thread.
class client_account {
 public:
  client_account(std::shared_ptr<client_ledger> of, client_ledger::parties within,
                 failure refusal) noexcept;
  client_account(const client_account&) = delete;
  client_account& operator=(const client_account&) = delete;
  /// Gives back all that it has.
  ~client_account();

  /// Returns why the connection is not let in; no error where it is.
  const failure& refusal() const noexcept { return refusal_; }
  /// Returns whether there is no room even to tell it.
  bool is_one_too_many() const noexcept { return too_many_; }

  /// Returns whether one more name may be open: no error, or too_many_client_files.
  std::error_code may_open() const noexcept;
  void opened() noexcept;
  void closed(std::size_t names = 1) noexcept;
  /// Returns whether requests have to be counted, and bytes.
  bool counts_requests() const noexcept { return counts_requests_; }
  bool counts_bytes() const noexcept { return counts_bytes_; }
  /// Counts a request; busy, where there were too many.
  std::error_code ask(clock::time_point now) noexcept;
  /// Returns whether the client may be sent so much more: no error, or busy.
  std::error_code may_send(std::uint64_t bytes) const noexcept;
  void sends(std::uint64_t bytes) noexcept;
  void sent(std::uint64_t bytes) noexcept;

 private:
  friend class client_ledger;
  using bound = std::size_t client_limits::*;

  bool is_bounded(bound what) const noexcept;
  std::error_code check(bound what, std::size_t more, const char* of_what,
                        std::error_code refused) const noexcept;
  void change(bound what, std::size_t& own, std::size_t by, bool adds) noexcept;

  const std::shared_ptr<client_ledger> ledger_;
  const client_ledger::parties parties_;
  const bool counts_requests_;
  const bool counts_bytes_;
  const failure refusal_;
  bool too_many_ = false;
  std::size_t names_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace ucx::detail
