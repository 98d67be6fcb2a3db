// The core of a `remote_file`: a region, and the extents that were written to it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/result.hpp"
#include "client/file_turns.hpp"
#include "client/serial_operation.hpp"
#include "connection/write_tracker.hpp"
#include "ucx/client.hpp"
#include "ucx/remote_file.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/request.hpp"

namespace ucx::detail {

class client_core;
class worker_core;

/// Shared by its handle and by what that started. Its requests are those of `remote_file`.
class remote_file_core final : public std::enable_shared_from_this<remote_file_core>,
                               private write_observer {
 public:
  /// Opens it; `then` gets it, when it is open, in a round of the worker.
  static request start_open(const std::shared_ptr<client_core>& through, std::string_view name,
                            const remote_file_options& options,
                            std::function<void(std::shared_ptr<remote_file_core>)> then);

  remote_file_core(const std::shared_ptr<client_core>& through, const remote_file_options& options);
  remote_file_core(const remote_file_core&) = delete;
  remote_file_core& operator=(const remote_file_core&) = delete;
  ~remote_file_core();

  request start_read(std::uint64_t offset, std::span<std::byte> into, std::size_t& count);
  request start_write(std::uint64_t offset, std::span<const std::byte> from);
  request start_resize(std::uint64_t size);
  request start_flush();
  /// Gives the file its name, if it is one that grows. The last one closes it.
  request start_commit(bool durable, bool last);

  /// Fails inside of a handler, where nothing may be started that is to be waited for.
  result<void> may_wait() const;
  worker_core& worker() const noexcept;
  std::uint64_t size() const noexcept { return region_.size(); }
  std::string description() const { return region_.description(); }
  /// Returns whether it has no name before a commit.
  bool is_new() const noexcept { return is_new_; }

 private:
  using step = serial_operation::step;

  /// Where bytes were written; from `begin` to `end`, and not known of each between them.
  struct extent {
    std::uint64_t begin = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t end = 0;

    static extent of(std::uint64_t offset, std::size_t size);
    bool empty() const noexcept { return begin >= end; }
    bool overlaps(extent other) const noexcept { return begin < other.end && other.begin < end; }
    void add(extent other) noexcept;
    /// Takes off what `other` has of either end.
    void remove(extent other) noexcept;
  };

  client_core& core() const noexcept;
  request start(std::string doing, std::vector<step> steps, std::function<void()> at_end = {});
  request start_in_turn(file_change what, std::string doing, std::vector<step> steps);
  request start_in_turn(const std::shared_ptr<file_turn>& turn, std::string doing,
                        std::vector<step> steps, std::function<void(const result<void>&)> end = {});
  void opened(std::optional<creation> how);
  step flushing();
  request write_now(std::uint64_t offset, std::span<const std::byte> from);
  void keep_order(extent written) noexcept;
  void confirmed(std::uint64_t number, std::uint64_t offset,
                 std::uint64_t length) noexcept override;
  void failed(std::uint64_t number, std::uint64_t offset, std::uint64_t length, std::error_code why,
              const std::string& what) noexcept override;
  void note_lost(extent where, std::uint64_t next, std::error_code why,
                 const std::string& text) noexcept;
  void note_not_begun(extent where, std::error_code why, const std::string& text) noexcept;
  result<void> check_room(std::uint64_t offset, std::size_t size) const;
  result<void> check_whole() const;

  client through_;
  remote_region region_;
  const io_options each_;  // call
  bool grows_ = false;
  bool is_new_ = false;
  bool is_named_ = false;
  // Under the worker's lock.
  const std::shared_ptr<file_turns> turns_ = std::make_shared<file_turns>();
  extent unordered_;                      // written by RMA since the last fence
  extent lost_;                           // until it was written again: what has holes gets no name
  std::uint64_t written_again_from_ = 0;  // by writes from this number on
  failure why_lost_;
};

}  // namespace ucx::detail
