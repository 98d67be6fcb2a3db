// A connection to a server, for Python.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nanobind/nanobind.h>
#include <ucx/call_channel.hpp>
#include <ucx/client.hpp>

#include "call_form.hpp"
#include "region_object.hpp"

namespace ucxio_python {

class loop_worker;

/// A client. Any thread may call it. Functions that return an object of Python's wait, and return
/// the result. Over a loop's worker they return a `loop_operation` that makes the result.
class client_object {
 public:
  explicit client_object(std::shared_ptr<ucx::client> of,
                         std::shared_ptr<loop_worker> loop = nullptr)
      : loop_(std::move(loop)), client_(std::move(of)) {}
  client_object(client_object&&) noexcept = default;
  client_object& operator=(client_object&&) = delete;
  ~client_object();

  static client_object connect(const std::string& url, const std::vector<std::string>& transports,
                               const std::string& token_file, std::optional<double> connect_timeout,
                               std::optional<double> timeout,
                               const std::map<std::string, std::string>& configuration);
  /// The client that all users of a server share.
  static client_object shared(const std::string& url);

  std::string url() const;
  std::string server_version() const;
  std::string identity() const;
  std::vector<std::string> transports() const;
  bool is_open() const;

  nanobind::object list(std::optional<double> timeout);
  nanobind::object list_directory(const std::string& directory, std::optional<double> timeout);
  nanobind::object stat(const std::string& name, std::optional<double> timeout);
  nanobind::object open(const std::string& name, const std::string& wanted,
                        std::optional<double> timeout);
  nanobind::object create(const std::string& name, const std::string& how, bool readable,
                          std::optional<double> timeout);
  nanobind::list open_many(std::vector<std::string> names, const std::string& wanted,
                           std::optional<double> timeout);
  nanobind::list read_many(std::vector<std::string> names, std::size_t max_size,
                           std::optional<double> timeout);
  nanobind::list write_many(nanobind::handle files, const std::string& how,
                            std::optional<double> timeout);
  nanobind::object remove(const std::string& name, std::optional<double> timeout);
  nanobind::object rename(const std::string& from, const std::string& to,
                          std::optional<double> timeout);
  nanobind::object make_directory(const std::string& name, std::optional<double> timeout);
  nanobind::object resize(const std::string& name, std::uint64_t size,
                          std::optional<double> timeout);
  /// Calls a function of the peer: a `call_form`.
  nanobind::object call(nanobind::object called, nanobind::handle arguments,
                        std::optional<double> timeout);
  /// Asks for a part of the functions: a list of their facts, and whether none are behind it.
  nanobind::object signatures(const std::string& after, std::optional<double> timeout);
  void close();

 protected:
  ucx::client handle() const;
  std::shared_ptr<ucx::client> shared_handle() const;
  template <class Start, class Result>
  nanobind::object ask_server(Start start, Result result,
                              std::shared_ptr<void> target = nullptr) const;
  template <class Start>
  nanobind::object open_by(Start start) const;

 private:
  std::shared_ptr<loop_worker> loop_;
  std::shared_ptr<ucx::call_channel> channel();
  std::shared_ptr<ucx::client> client_;
  std::shared_ptr<ucx::call_channel> channel_;  // made at the first call
};

/// A client over a loop's worker.
class loop_client_object : public client_object {
 public:
  using client_object::client_object;
  /// Begins to close the connection, for every region of it.
  nanobind::object start_close();
};

void add_client(nanobind::module_& module);

}  // namespace ucxio_python
