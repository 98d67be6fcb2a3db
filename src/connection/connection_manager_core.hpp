// The peers of a connection manager, and what is done for each.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "connection/connection_observer.hpp"
#include "ucx/connection_manager.hpp"

namespace ucx::detail {

class alarm;
class close_operation;
class connection_manager_core;
class connector;
class endpoint_core;
class worker_core;

/// One peer: *connecting* (a connector works, or an alarm waits for the next attempt, or the user
/// is asked about it), *active*, *failed*, *closing*. An attempt that there is no memory for has
/// failed. Under the worker's lock.
class managed_connection final : public connection_observer,
                                 public std::enable_shared_from_this<managed_connection> {
 public:
  managed_connection(connection_manager_core& manager, std::string_view name, peer_address where);
  ~managed_connection() override;
  /// Takes the memory that it lacks nowhere then. Before everything else.
  void prepare();

  const managed_peer& peer() const noexcept { return peer_; }
  const std::shared_ptr<endpoint_core>& connection() const noexcept { return connection_; }
  /// Connects, if the user wants that.
  void try_now() noexcept;
  /// As if nothing had failed yet.
  void connect_again() noexcept;
  /// Returns whether this question is to be answered still.
  bool awaits(std::uint64_t question) const noexcept {
    return manager_ != nullptr && question == question_;
  }
  /// The user's answer, to the question before the attempt that it was about.
  void answered(bool go_on, std::uint64_t question) noexcept;
  /// Nothing is done any more; the connection is the caller's.
  std::shared_ptr<endpoint_core> let_go() noexcept;
  /// As `let_go()`, for a connection that takes its time to close: tells so.
  std::shared_ptr<endpoint_core> begin_close() noexcept;
  bool closing() const noexcept { return peer_.state == connection_state::closing; }

  void established(endpoint_core&) override {}
  void ended(endpoint_core& connection, bool was_established) noexcept override;

 private:
  void look() noexcept;
  void plan() noexcept;
  void ask();
  void connect() noexcept;
  std::shared_ptr<connector> start();
  void connected(connector& done) noexcept;
  void failed(std::error_code why, std::string words) noexcept;
  void change(connection_state state) noexcept;
  void tell() noexcept;

  connection_manager_core* manager_;  // null: let go
  managed_peer peer_;
  peer_address where_;
  std::shared_ptr<connector> connector_;
  std::shared_ptr<endpoint_core> connection_;
  std::unique_ptr<alarm> alarm_;
  clock::time_point attempt_at_ = clock::time_point::max();
  bool untold_ = false;       // the last change, for want of memory
  clock::duration waited_{};  // before the last attempt
  clock::time_point active_since_{};
  unsigned failed_before_ = 0;  // what the connection that stands now was made behind
  std::uint64_t question_ = 0;
};

/// Takes the worker's lock itself, where nothing else is said.
class connection_manager_core final : public std::enable_shared_from_this<connection_manager_core> {
 public:
  static result<std::shared_ptr<connection_manager_core>> make(std::shared_ptr<worker_core> worker,
                                                               connection_manager_options options);
  connection_manager_core(std::shared_ptr<worker_core> worker, connection_manager_options options);

  worker_core& worker() const noexcept { return *worker_; }
  /// Returns whether it is that of a process that this one was forked from.
  bool is_inherited() const noexcept;
  const std::shared_ptr<worker_core>& shared_worker() const noexcept { return worker_; }
  const connection_manager_options& options() const noexcept { return options_; }

  std::error_code add(std::string_view name, peer_address where);
  result<std::shared_ptr<endpoint_core>> wait_active(std::string_view name,
                                                     const io_options& options);
  /// Returns the failure where there is no connection with that peer.
  static failure not_active(std::string_view name, std::error_code why,
                            const std::string& words = {});
  std::shared_ptr<endpoint_core> find(std::string_view name) const;
  std::optional<managed_peer> status(std::string_view name) const;
  std::vector<managed_peer> peers() const;
  std::error_code reconnect(std::string_view name);
  /// Closes one peer, or all of them without a name.
  void close(std::optional<std::string_view> name, close_mode mode) noexcept;

  // Under the lock, for the connections.
  /// Returns how long to wait before the attempt after so many failed ones.
  clock::duration delay(unsigned failed);
  void tell_change(const managed_peer& peer);
  /// Asks the user, who answers `asked` later.
  void ask(const managed_peer& peer, std::weak_ptr<managed_connection> asked,
           std::uint64_t question);

 private:
  std::shared_ptr<managed_connection> at(std::string_view name) const;
  using chosen = std::vector<std::shared_ptr<managed_connection>>;
  chosen choose(std::optional<std::string_view> name) const;
  void forget(const managed_connection& closed) noexcept;
  void close_at_once(std::optional<std::string_view> name) noexcept;
  void close_in_order(std::optional<std::string_view> name) noexcept;

  std::shared_ptr<worker_core> worker_;
  const connection_manager_options options_;
  std::map<std::string, std::shared_ptr<managed_connection>, std::less<>> peers_;
  std::minstd_rand random_;
  bool closed_ = false;
  bool silent_ = false;  // users' handlers are not called any more
  int untold_ = 0;       // changes that are about to be told
  int calling_ = 0;      // users' handlers
};

}  // namespace ucx::detail
