// A client: its worker, its connection to one server, and its side of the control protocol.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "client/client_session.hpp"
#include "client/client_slot.hpp"
#include "connection/endpoint_channel.hpp"
#include "ucx/bulk_open.hpp"
#include "ucx/client.hpp"
#include "ucx/context.hpp"
#include "ucx/directory_listing.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/worker.hpp"

namespace ucx::detail {

class remote_region_core;

/// Shared by the client's handles and by streams; regions keep the connection alive without it.
/// Safe from any thread.
class client_core {
 public:
  /// Each connects, and returns when the server has answered.
  static result<std::shared_ptr<client_core>> connect(const url& server,
                                                      const client_options& options);
  static result<std::shared_ptr<client_core>> connect(const worker_address& server,
                                                      const client_options& options);
  /// The same on `parent`, which counts instead of the options' context.
  static result<std::shared_ptr<client_core>> connect(context parent, const socket_address& server,
                                                      const client_options& options);
  static result<std::shared_ptr<client_core>> connect(context parent, const worker_address& server,
                                                      const client_options& options);
  /// Returns `lost`, or what takes its place where its connection is lost.
  static result<std::shared_ptr<client_core>> successor(const std::shared_ptr<client_core>& lost);
  /// Returns the `number`th further connection to the server: see ucx::client.
  result<std::shared_ptr<client_core>> lane(std::size_t number);
  ~client_core();
  client_core(const client_core&) = delete;
  client_core& operator=(const client_core&) = delete;

  result<std::vector<entry>> list(const io_options& options);
  result<entry> stat(std::string_view name, const io_options& options);
  result<remote_region> open(std::string_view name, access wanted, const io_options& options);

  std::vector<opened_name> open_each(std::span<const std::string> names, access wanted,
                                     const io_options& options);
  std::vector<fetched_name> fetch_each(std::span<const std::string> names, std::size_t most,
                                       const io_options& options);
  std::vector<std::error_code> store_each(std::span<const short_file> files, creation how,
                                          const io_options& options);

  result<void> visit_names(const entry_visitor& visit, const io_options& options);
  result<std::uint64_t> visit_directory(std::string_view directory, const entry_visitor& visit,
                                        const io_options& options);
  // Of stores; see ucx::client.
  result<directory_listing> read_directory(std::string_view directory, const io_options& options);
  result<remote_region> create(std::string_view name, const create_options& how,
                               const io_options& options);
  result<entry> commit(remote_region& file, bool durable, bool released, const io_options& options);
  result<entry> measure(remote_region& file, std::uint64_t known, std::chrono::nanoseconds wait,
                        const io_options& options);
  result<std::vector<content_digest>> digest(remote_region& file, const digest_range& wanted,
                                             const io_options& options);
  result<void> remove(std::string_view name, const io_options& options);
  result<void> rename(std::string_view from, std::string_view to, const io_options& options);
  result<void> resize(remote_region& file, std::uint64_t size, const io_options& options);
  result<void> resize_by_name(std::string_view name, std::uint64_t size, const io_options& options);

  /// Asks about `name`, whatever the server says of it, unless it was heard a moment ago: before
  /// what is not asked twice. Errors: connection_reset, and timed_out.
  result<void> hear(std::string_view name);
  std::error_code status() const noexcept;
  const url& server() const noexcept { return server_; }
  const std::string& server_version() const noexcept { return server_version_; }
  std::vector<std::string> transports() const { return endpoint_->transports(); }
  client_statistics statistics() const noexcept;
  ucx::worker& worker() noexcept { return worker_; }
  /// Returns what may outlive the client.
  std::shared_ptr<endpoint_core> connection() const noexcept;
  void close() noexcept;
  /// Says goodbye and closes the connection, waiting for nobody, unless something else needs it.
  /// REQUIRES: nobody uses this any more.
  void leave_at_once() noexcept;

 private:
  client_core(ucx::worker&& driver, endpoint&& connection);
  static result<std::shared_ptr<client_core>> connect_by_file(const url& server,
                                                              const client_options& options);
  static result<std::shared_ptr<client_core>> connect_by_host(const url& server,
                                                              const client_options& options);
  template <class Address>
  static result<std::shared_ptr<client_core>> connect_on(context& parent, const Address& server,
                                                         const client_options& options);
  static result<std::shared_ptr<client_core>> greet(ucx::worker&& driver, endpoint&& connection,
                                                    clock::time_point deadline);
  /// Asks, and waits until the answer is there; returns the whole message. `doing` is what the
  /// text of a failure begins with.
  template <class Body>
  result<std::vector<std::byte>> ask(control_type type, control_type answer_type, const Body& body,
                                     clock::time_point deadline, const std::string& doing) {
    return await(answer_type, deadline, doing,
                 [&](client_session::question& asked) { session_.ask(asked, type, body); });
  }
  std::vector<client_session::question> ask_names(std::span<const std::string> names, access wanted,
                                                  const io_options& options);
  /// A server answers more questions than these at a time.
  static constexpr std::size_t most_at_once = 64;
  void ask_all(std::span<client_session::question> asked,
               const std::function<void(std::size_t)>& send, clock::time_point deadline);
  bool can_be_put(const short_file& file) const;
  std::error_code put_some(std::span<const short_file> files, creation how,
                           const io_options& options, std::vector<std::error_code>& all);
  class put_room;
  std::vector<client_session::question> ask_to_put(const std::vector<put_body>& bodies,
                                                   clock::time_point deadline);
  void count_failures(std::span<const std::error_code> outcomes) noexcept;
  std::error_code store_alone(const short_file& file, creation how, const io_options& options);
  void fetch_some(std::span<const std::string> names, std::size_t most, const io_options& options,
                  std::span<fetched_name> all);
  std::vector<std::size_t> fetch_now(const std::vector<std::size_t>& wanted,
                                     std::span<const std::string> names, std::size_t most,
                                     clock::time_point deadline, std::span<fetched_name> all,
                                     std::vector<std::size_t>& missing);
  void read_each(std::span<const std::size_t> numbers, std::span<const std::string> names,
                 std::size_t most, const io_options& options, std::span<fetched_name> all);
  result<std::vector<std::byte>> await(control_type answer_type, clock::time_point deadline,
                                       const std::string& doing,
                                       const std::function<void(client_session::question&)>& send);
  clock::time_point deadline_after(const io_options& options);
  clock::time_point now() const noexcept;
  template <class Place>
  void remember_way(const Place& server, const client_options& options);
  /// What an error text of a call begins with.
  std::string attempt(std::string_view doing, std::string_view name) const;
  std::string place() const;
  static bool continues(const list_body& asked, const listed_body& listed);
  /// Gives `visit` every entry that `page` asks for, page by page, each of which has to be there
  /// when `deadline` says; returns how many names are not served.
  result<std::uint64_t> list_pages(list_body page, const entry_visitor& visit,
                                   const std::function<clock::time_point()>& deadline,
                                   const std::string& doing);
  result<directory_listing> list_all(list_body page, clock::time_point deadline,
                                     const std::string& doing);
  /// Makes a region of the answer to an open or create.
  result<remote_region> region_of(const std::vector<std::byte>& answer, std::string_view name,
                                  access wanted, const std::string& doing);
  result<std::shared_ptr<remote_region_core>> ours(const remote_region& file,
                                                   const std::string& doing) const;
  result<std::shared_ptr<remote_region_core>> flushed(remote_region& file,
                                                      const io_options& options,
                                                      const std::string& doing);
  failure of_region(failure why, const remote_region_core& asked_about);
  /// Each returns the text that it got, or made, if there is nothing wrong.
  result<std::string> check_stores(std::string doing) const;
  result<std::string> attempt_at_store(std::string_view doing, std::string_view name) const;
  result<std::string> attempt_at_directory(std::string_view directory) const;
  static result<void> check_name(std::string_view name);
  void revoked(std::uint64_t region);
  void remember(std::uint64_t region, const std::shared_ptr<remote_region_core>& opened);

  ucx::worker worker_;
  std::optional<endpoint> endpoint_;
  endpoint_channel channel_;
  client_session session_;
  url server_;
  std::string server_version_;
  std::uint64_t features_ = 0;
  // Regions of stores say through it that they are released; nobody, once this is gone. Under the
  // worker's lock.
  std::shared_ptr<client_session*> releasing_;
  // Under the worker's lock: regions that are open, by the owner's number.
  std::unordered_multimap<std::uint64_t, std::weak_ptr<remote_region_core>> opened_;
  std::size_t sweep_at_ = 64;
  // Likewise: what short files that are being stored take of the server's room, by any thread.
  std::size_t put_bytes_ = 0;
  std::size_t put_files_ = 0;

  /// Connects as this was connected.
  client_slot::connector again_;
  /// The same, on a worker with a thread of its own.
  client_slot::connector beside_;
  std::mutex lanes_mutex_;
  std::map<std::size_t, client_slot> lanes_;
  client_slot successor_;
  std::atomic<bool> closed_{false};  // by its user, whatever became of the connection

  std::atomic<clock::time_point> heard_at_;  // the server's last answer
  std::atomic<std::uint64_t> opens_{0};
  std::atomic<std::uint64_t> requests_{0};
  std::atomic<std::uint64_t> failures_{0};
};

}  // namespace ucx::detail
