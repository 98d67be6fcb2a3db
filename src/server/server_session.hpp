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
#include "server/session_watches.hpp"
#include "wire/control_message.hpp"

namespace ucx::detail {

class catalogue;
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

/// States: *new* (nothing but `hello` is allowed) - hello -> *greeted* - bye, or the end of the
/// channel -> *over*. Whatever breaks the protocol ends the channel.
class server_session final : public channel_receiver {
 public:
  /// `on_end` is told when the session is over, and may destroy it.
  server_session(std::unique_ptr<channel> by, const catalogue& names, file_watcher& watcher,
                 file_hasher& hasher, session_counters& counters, std::function<void()> on_end);
  server_session(const server_session&) = delete;
  server_session& operator=(const server_session&) = delete;
  ~server_session() override;

  void received(std::span<const std::byte> message) override;
  void ended(std::error_code why) noexcept override;

  /// Tells the client, if it opened the region, that it is withdrawn.
  void revoke(std::uint64_t region, const std::string& name);
  /// Tells the client that the server ends.
  void leave();

 private:
  enum class state { fresh, greeted, over };

  void greet(const control_header& asked, std::span<const std::byte> message);
  void open(const control_header& asked, std::span<const std::byte> message);
  void stat(const control_header& asked, std::span<const std::byte> message);
  void list(const control_header& asked, std::span<const std::byte> message);
  void create(const control_header& asked, std::span<const std::byte> message);
  template <class Body, class Handle>
  void pass_on(std::optional<Body> body, Handle&& handle);
  bool is_published(const control_header& asked, const std::string& name);
  void open_published(const control_header& asked, const std::shared_ptr<published_name>& found,
                      access wanted);
  void measure(const control_header& asked, const measure_body& body);
  void digest(const control_header& asked, const digest_body& body);
  void refuse(const control_header& asked, control_type answer, std::error_code why);
  void blame(const char* what);

  std::unique_ptr<channel> channel_;
  const catalogue& catalogue_;
  session_counters& counters_;
  std::function<void()> on_end_;
  state state_ = state::fresh;
  std::unordered_map<std::uint64_t, std::weak_ptr<published_name>> opened_;  // by region
  session_files files_;
  session_contents contents_;
  session_watches watches_;
  session_digests digests_;
};

}  // namespace ucx::detail
