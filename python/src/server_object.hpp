// A server and what it publishes, for Python.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nanobind/nanobind.h>
#include <ucx/pipe_broker.hpp>
#include <ucx/server.hpp>

#include "borrowed.hpp"
#include "call_form.hpp"
#include "call_queue.hpp"
#include "served_calls.hpp"
#include "shared_view.hpp"

namespace ucxio_python {

/// A name that is published, and the buffer behind it.
class publication_object {
 public:
  enum class has { bytes, files };
  publication_object(const std::shared_ptr<ucx::server>& server, ucx::publication of, has memory,
                     borrowed&& lent);
  publication_object(publication_object&&) noexcept = default;
  publication_object& operator=(publication_object&&) = delete;
  ~publication_object();

  std::string name() const;
  std::uint64_t size() const;
  std::string granted() const;
  std::string url() const;
  bool is_open() const;
  nanobind::object view(bool writable) const;
  void close();

 private:
  friend class server_object;
  /// The members go in reverse order: the buffer after the name.
  struct state {
    lent_memory lent;
    has memory;
    left_behind behind;
    ucx::publication of;
    std::weak_ptr<ucx::server> server = {};
    bool is_over = false;  ///< The server was closed, and its memory with it. With the GIL.
  };
  std::shared_ptr<state> open() const;
  std::shared_ptr<state> state_;
};

class server_object {
 public:
  server_object(const std::string& bind, const std::vector<std::string>& transports, bool insecure,
                const std::string& token_file, const std::vector<std::uint32_t>& peer_users,
                std::optional<std::string> rules, std::size_t max_clients, std::size_t workers,
                const std::string& audit_file, bool pipes);
  server_object(const server_object&) = delete;
  server_object& operator=(const server_object&) = delete;
  ~server_object();

  publication_object publish(const std::string& name, nanobind::handle buffer, bool writable);
  publication_object allocate(const std::string& name, std::size_t size, bool writable);
  publication_object publish_file(const std::string& name, const std::string& file);
  publication_object publish_store(const std::string& directory, const std::string& prefix,
                                   bool writable, std::optional<std::uint64_t> quota,
                                   bool in_memory);
  nanobind::list list() const;
  std::string url(const std::string& name) const;
  std::string invite(const std::string& name);
  void publish_address(const std::string& file);
  /// Serves a function, whose calls go into a queue with this number.
  void add_call(const call_form& form, const call_queue_object& queue, std::uint64_t number,
                const std::string& documentation);
  nanobind::tuple statistics() const;
  bool is_open() const;
  /// Closes. Errors: BufferError, where Python has buffers of memory that the server would free.
  void close();
  /// Closes as the interpreter ends. Where Python has buffers, `close_servers` closes it.
  void end();

 private:
  using memory = publication_object::state;
  std::shared_ptr<ucx::server> server() const;
  publication_object remember(publication_object&& made);
  bool is_lent() const noexcept;
  void close_now();
  std::shared_ptr<ucx::server> server_;
  std::shared_ptr<ucx::pipe_broker> broker_;  // goes before it
  std::shared_ptr<served_calls> calls_ = std::make_shared<served_calls>();
  std::vector<std::weak_ptr<memory>> memories_;
};

/// Closes the servers that are open yet.
/// REQUIRES: the interpreter has ended.
void close_servers() noexcept;

void add_server(nanobind::module_& module);

}  // namespace ucxio_python
