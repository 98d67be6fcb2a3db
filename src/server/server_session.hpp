// The server's side of the control protocol, for one client: docs/reference/wire-format.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>

#include "connection/channel.hpp"
#include "server/session_contents.hpp"
#include "server/session_digests.hpp"
#include "server/session_files.hpp"
#include "server/session_grants.hpp"
#include "server/session_rights.hpp"
#include "server/session_watches.hpp"
#include "server/ticket_book.hpp"
#include "wire/control_message.hpp"

namespace ucx::detail {

class audit_file;
class audited_channel;
class catalogue;
class client_ledger;
class file_hasher;
class file_watcher;
class published_name;

/// Counts and limits of all sessions of one server. Under the worker's lock.
struct session_counters {
  std::uint64_t greeted = 0;  ///< Clients that said hello and are there.
  std::uint64_t most = 0;     ///< So many may be there.
  std::uint64_t served = 0;
  std::uint64_t opens = 0;
  std::uint64_t refusals = 0;
};

/// The limits of a server's clients, and the place where these are written to.
struct session_policy {
  std::shared_ptr<const rule_list> rules = nullptr;  ///< Null: everything is allowed.
  std::shared_ptr<audit_file> audit = nullptr;       ///< Null: nowhere.
  std::shared_ptr<client_ledger> ledger = nullptr;
  std::shared_ptr<ticket_book> tickets = nullptr;  ///< Null: there are none.
  /// Is told that a client has left for which others act.
  std::function<void(const ticket_book::connection&)> on_principal_left = {};
};

/// States: *new* (nothing but `hello` is allowed) - hello -> *greeted* - bye, or the end of the
/// channel -> *over*. Whatever breaks the protocol ends the channel.
class server_session final : public channel_receiver {
 public:
  /// `on_end` is told when the session is over, and may destroy it.
  server_session(std::unique_ptr<channel> by, const catalogue& names, file_watcher& watcher,
                 file_hasher& hasher, session_counters& counters, const session_policy& policy,
                 std::function<void()> on_end);
  server_session(const server_session&) = delete;
  server_session& operator=(const server_session&) = delete;
  ~server_session() override;

  void received(std::span<const std::byte> message) override;
  void ended(std::error_code why) noexcept override;

  /// Tells the client, if it opened the region, that it is withdrawn.
  void revoke(std::uint64_t region, const std::string& name);
  /// Other rules are in force: what the client has open, and may not any more, is revoked.
  void set_rules(std::shared_ptr<const rule_list> rules) noexcept;
  /// Ends the connection, if it acts for that client, which has left.
  void principal_left(const ticket_book::connection& gone) noexcept;
  /// Tells the client that the server ends.
  void leave();

 private:
  enum class state { fresh, greeted, over };
  /// A client may have so many lists that go on in later rounds; further ones are refused with
  /// `busy`.
  static constexpr std::size_t most_lists = 64;

  void greet(const control_header& asked, std::span<const std::byte> message);
  std::error_code admit(const hello_body& hello);
  void lend(const control_header& asked, const lend_body& body);
  void let_go() noexcept;
  void stop_acting(std::error_code outcome, const char* why) noexcept;
  void leave_tickets() noexcept;
  void open(const control_header& asked, std::span<const std::byte> message);
  void stat(const control_header& asked, std::span<const std::byte> message);
  void list(const control_header& asked, std::span<const std::byte> message);
  void list_from(const control_header& asked, const list_body& body, const std::string& behind);
  void resize(const control_header& asked, const resize_body& body);
  void create(const control_header& asked, std::span<const std::byte> message);
  template <class Body, class Handle>
  void pass_on(std::optional<Body> body, Handle&& handle);
  void open_published(const control_header& asked, const std::shared_ptr<published_name>& found,
                      access wanted);
  void tell_revoked(std::uint64_t region, const std::string& name);
  void revoke_disallowed();
  void revoke_disallowed(std::uint64_t region, const std::string& name);
  void release(const release_body& body);
  void measure(const control_header& asked, const measure_body& body);
  void digest(const control_header& asked, const digest_body& body);
  void refuse(const control_header& asked, control_type answer, std::error_code why);
  void blame(const char* what);

  /// A published name that is open.
  struct opened_name {
    std::weak_ptr<published_name> what;
    access_right needed = access_right::none;
  };

  audited_channel* audited_ = nullptr;  // `channel_`, if there is an audit
  std::unique_ptr<channel> channel_;
  const catalogue& catalogue_;
  session_counters& counters_;
  std::function<void()> on_end_;
  state state_ = state::fresh;
  std::unordered_map<std::uint64_t, opened_name> opened_;  // by region
  const std::shared_ptr<client_account> account_;          // may be null
  const std::shared_ptr<ticket_book> tickets_;             // likewise
  const std::function<void(const ticket_book::connection&)> on_principal_left_;
  const ticket_book::connection own_;
  std::optional<ticket_book::grant> acts_for_;
  session_rights rights_;
  session_grants grants_;
  session_files files_;
  session_contents contents_;
  session_watches watches_;
  session_digests digests_;
  std::size_t lists_ = 0;                        // that go on in later rounds
  const std::shared_ptr<server_session*> self_;  // null once this is gone
};

}  // namespace ucx::detail
