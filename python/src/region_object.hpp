// A region of a server, for Python.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <nanobind/nanobind.h>
#include <ucx/client.hpp>
#include <ucx/remote_region.hpp>

#include "shared_view.hpp"

namespace ucxio_python {

class loop_worker;

/// A region, and the client that opened it. Functions that return an object of Python's wait, and
/// return the result. Over a loop's worker they return a `loop_operation` that makes the result.
class region_object {
 public:
  region_object(std::shared_ptr<ucx::client> through, ucx::remote_region region,
                std::shared_ptr<loop_worker> loop = nullptr);
  region_object(region_object&&) noexcept = default;
  region_object& operator=(region_object&&) = delete;
  ~region_object();

  std::uint64_t size() const;
  std::uint64_t max_size() const;
  std::string granted() const;
  std::string kind() const;
  std::string transfer_method() const;
  std::string why_not(const std::string& wanted) const;
  std::string description() const;
  bool is_open() const;
  std::uint64_t content() const;

  /// Reads to fill the buffer. With `up_to_end` it reads less at the end, and returns how much.
  nanobind::object read_into(nanobind::handle buffer, std::uint64_t offset, bool up_to_end,
                             std::optional<double> timeout, bool verify);
  nanobind::object read(std::uint64_t offset, std::uint64_t length, std::optional<double> timeout,
                        bool verify);
  nanobind::object write_from(nanobind::handle buffer, std::uint64_t offset, bool up_to_end,
                              std::optional<double> timeout);
  nanobind::object read_batch(nanobind::handle pieces, std::optional<double> timeout, bool verify);
  /// Reads from many regions at once: pairs of a region and its pieces. Returns None, or the
  /// exception, for each.
  static nanobind::list read_across(nanobind::handle parts, std::optional<double> timeout,
                                    bool verify);
  nanobind::object write_batch(nanobind::handle pieces, std::optional<double> timeout);
  /// Returns the number before.
  nanobind::object atomic(const std::string& operation, std::uint64_t offset, std::size_t width,
                          std::uint64_t operand, std::uint64_t expected, bool fetches,
                          std::optional<double> timeout);
  nanobind::object flush(std::optional<double> timeout);
  nanobind::object notify(std::uint64_t value, std::optional<double> timeout);
  nanobind::object view(std::uint64_t offset, std::optional<std::uint64_t> length, bool writable);

  // Of a file that the client writes, or that may have grown.
  nanobind::object commit(bool durable, bool close, std::optional<double> timeout);
  nanobind::object resize(std::uint64_t size, std::optional<double> timeout);
  nanobind::object refresh(std::uint64_t known, double wait, std::optional<double> timeout);
  nanobind::object digest(std::uint64_t offset, std::uint64_t length, std::uint64_t chunk,
                          std::optional<double> timeout);
  /// Lets go of the region. What was not committed is thrown away.
  void close();

 private:
  struct state {
    std::shared_ptr<loop_worker> loop;
    std::shared_ptr<ucx::client> through;
    std::shared_ptr<ucx::remote_region> region;
    lent_memory lent;
    std::mutex one_at_a_time;
  };
  /// Returns what stays while a call uses it, also if the region is closed meanwhile.
  std::shared_ptr<state> open() const;
  template <class Start>
  auto alone(Start start) const;

  std::shared_ptr<state> state_;
};

/// A region over a loop's worker.
class loop_region_object : public region_object {
 public:
  using region_object::region_object;
};

void add_region(nanobind::module_& module);

}  // namespace ucxio_python
