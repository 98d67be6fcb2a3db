// A client: its worker, its connection to one server, and the parts that ask that for something.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "client/client_fetches.hpp"
#include "client/client_files.hpp"
#include "client/client_names.hpp"
#include "client/client_puts.hpp"
#include "client/client_questions.hpp"
#include "client/client_regions.hpp"
#include "client/further_clients.hpp"
#include "client/known_server.hpp"
#include "ucx/client.hpp"
#include "ucx/context.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/worker.hpp"

namespace ucx::detail {

/// Shared by the client's handles and by streams; regions keep the connection alive without it.
/// `client_connector` makes it. Safe from any thread.
class client_core {
 public:
  /// Takes over a connection that is there, and returns when the server has answered over it.
  static result<std::shared_ptr<client_core>> greet(
      ucx::worker&& driver, endpoint&& connection, clock::time_point deadline,
      const std::optional<ticket_secret>& ticket = std::nullopt);
  /// Takes over a connection that is there. Nothing is asked before the server was greeted.
  static std::shared_ptr<client_core> adopt(ucx::worker&& driver, endpoint&& connection);
  ~client_core();
  client_core(const client_core&) = delete;
  client_core& operator=(const client_core&) = delete;

  // Its parts.
  client_names& names() noexcept { return names_; }
  client_regions& regions() noexcept { return regions_; }
  client_files& files() noexcept { return files_; }
  client_fetches& fetches() noexcept { return fetches_; }
  client_puts& puts() noexcept { return puts_; }
  further_clients& further() noexcept { return further_; }

  client_questions& questions() noexcept { return questions_; }
  known_server& server() noexcept { return questions_.server(); }
  std::error_code status() const noexcept { return questions_.status(); }
  /// Returns whether it is that of a process that this one was forked from.
  bool is_inherited() const noexcept { return made_.is_inherited(); }
  /// See client_questions.
  request start_greet(clock::time_point deadline) { return questions_.start_greet(deadline); }
  result<void> hear() { return questions_.hear(); }
  /// Takes notice of what its worker has not looked at for long, as of a lost connection. Calls no
  /// handler.
  void look() noexcept;
  std::vector<std::string> transports() const { return endpoint_->transports(); }
  client_statistics statistics() const noexcept;
  ucx::worker& worker() noexcept { return worker_; }
  /// Returns what may outlive the client.
  std::shared_ptr<endpoint_core> connection() const noexcept;
  void close() noexcept;
  /// Says goodbye and closes the connection without waiting, unless something else needs it.
  /// REQUIRES: this has no other user.
  void leave_at_once() noexcept;

 private:
  client_core(ucx::worker&& driver, endpoint&& connection);

  const process_stamp made_;
  ucx::worker worker_;
  std::optional<endpoint> endpoint_;
  client_questions questions_;
  client_regions regions_;
  client_names names_{questions_};
  client_files files_{questions_, regions_};
  client_fetches fetches_{questions_, regions_};
  client_puts puts_{questions_, files_};
  further_clients further_;
};

}  // namespace ucx::detail
