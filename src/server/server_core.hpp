// A server: its worker and listener, its catalogue, and a session for each client.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "file/file_hasher.hpp"
#include "file/file_watcher.hpp"
#include "server/catalogue.hpp"
#include "server/server_addresses.hpp"
#include "server/server_sessions.hpp"
#include "store/store_host.hpp"
#include "ucx/context.hpp"
#include "ucx/listener.hpp"
#include "ucx/memory_place.hpp"
#include "ucx/server.hpp"
#include "ucx/worker.hpp"

namespace ucx::detail {

class exposed_region;
class other_family;
class published_name;
class rule_list;
class store_core;

/// Every session lives on the first worker, whichever drives its connection (`server_sessions`);
/// the others serve regions. Safe from any thread. Order of locks: the first worker's, another
/// worker's, the catalogue's; that of the addresses alone.
class server_core final : public store_host, public std::enable_shared_from_this<server_core> {
 public:
  /// Makes a server on a new context, as the options say.
  static result<std::shared_ptr<server_core>> make(const server_options& options);
  /// Makes a server on `parent`; the options of the context do not count.
  static result<std::shared_ptr<server_core>> make(context parent, const server_options& options);
  ~server_core();
  server_core(const server_core&) = delete;
  server_core& operator=(const server_core&) = delete;

  /// Where it is not as is expected: invalid_argument.
  result<std::shared_ptr<published_name>> publish(std::string_view name, std::span<std::byte> bytes,
                                                  access granted,
                                                  const std::optional<memory_place>& expected);
  result<std::shared_ptr<published_name>> allocate(std::string_view name, std::size_t size,
                                                   access granted, const memory_place& place);
  result<std::shared_ptr<published_name>> publish_file(std::string_view name,
                                                       const std::filesystem::path& file,
                                                       access granted);
  result<std::shared_ptr<store_core>> publish_store(const std::filesystem::path& directory,
                                                    const store_options& options);
  result<std::shared_ptr<store_core>> allocate_store(const store_options& options,
                                                     const std::filesystem::path& within);
  /// Takes the name out of the catalogue, and tells the clients that opened it.
  void withdraw(const published_name& gone) noexcept;
  void withdraw(const store_core& gone) noexcept override { catalogue_.remove_store(gone); }
  /// Tells the clients that opened a region that it is withdrawn.
  void tell_withdrawn(std::uint64_t region, std::string name) noexcept override;

  const catalogue& names() const noexcept { return catalogue_; }
  /// Counts the files that are open of all stores, also of those that outlast the server.
  const std::shared_ptr<std::atomic<std::size_t>>& open_files_of_stores() const noexcept override {
    return open_files_of_stores_;
  }
  const std::shared_ptr<worker_core>& home() const noexcept override;
  /// Returns the first, a further one, or last the one of the other family.
  ucx::worker& worker(std::size_t number = 0) noexcept;
  std::size_t workers() const noexcept { return further_.size() + (other_ ? 2 : 1); }
  server_address address() const;
  /// Returns whether it is that of a process that this one was forked from.
  bool is_inherited() const noexcept { return made_.is_inherited(); }
  bool is_closed() const noexcept { return closed_.load(std::memory_order_acquire); }
  /// See ucx::server.
  result<void> publish_address(const std::filesystem::path& file);
  /// Returns the URL of `name`, or of the server; nothing where it has none, or any more.
  std::string url(std::string_view name) const override;
  /// See ucx::server.
  result<std::string> invite(std::string_view name);
  result<void> reload_certificates();
  server_statistics statistics() const;
  void set_rules(std::shared_ptr<const rule_list> rules);
  void close() noexcept;

 private:
  result<std::shared_ptr<store_core>> add_store(const std::filesystem::path& directory,
                                                const store_options& options,
                                                std::unique_ptr<memory_directory> memory);
  result<void> check_store(const store_options& options, const std::string& doing) const;
  server_core(context parent, const server_options& options, std::unique_ptr<other_family> other);
  /// Makes a server on `parent` that listens on `local`, or nowhere if that is empty, and also by
  /// `other`, if there is one.
  static result<std::shared_ptr<server_core>> make_at(const socket_address& local, context parent,
                                                      const server_options& options,
                                                      std::unique_ptr<other_family> other);
  void open(const socket_address& local, session_policy policy);
  void listen(const socket_address& local);
  void listen_in_both_families(const socket_address& local);
  void listen_beside();
  void open_further();
  template <class Make>
  result<std::shared_ptr<published_name>> add(std::string_view name, entry described,
                                              Make&& make_region);

  context context_;
  server_options options_;
  std::optional<ucx::worker> worker_;
  std::vector<listener> listeners_;
  /// Also held by what was handed to the further workers. That must not be the last to let it go:
  /// it would end under the lock of one of them, and take the first's.
  std::vector<std::shared_ptr<listener_core>> listening_;
  std::vector<ucx::worker> further_;
  std::unique_ptr<other_family> other_;  // of clients by IPv6; else null
  server_addresses addresses_;
  catalogue catalogue_;
  const std::shared_ptr<std::atomic<std::size_t>> open_files_of_stores_ =
      std::make_shared<std::atomic<std::size_t>>(0);
  std::optional<file_watcher> watcher_;
  std::optional<file_hasher> hasher_;
  std::atomic<bool> closed_{false};
  const process_stamp made_;
  std::shared_ptr<server_sessions> sessions_;
};

}  // namespace ucx::detail
