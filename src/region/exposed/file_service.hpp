// The owner's side of files: answers peers' reads out of a bounded number of buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <system_error>
#include <unordered_map>
#include <vector>

#include "base/intrusive_list.hpp"
#include "base/pool.hpp"
#include "file/slow_reader.hpp"
#include "region/exposed/file_answer.hpp"
#include "wire/frame.hpp"

namespace ucx::detail {

class driven_connection;
class endpoint_core;
class counted_region;
class exposed_region;
class held_access;
class worker_core;

struct waiting_client_tag {};

/// A connection whose peer reads files.
struct file_client : list_hook<waiting_client_tag> {
  using list = intrusive_list<file_client, waiting_client_tag>;

  const endpoint_core* peer = nullptr;
  unsigned answers = 0;
  unsigned buffers = 0;                                 ///< Held by its answers.
  intrusive_list<file_answer, hungry_tag> hungry = {};  ///< Those that want one, in order.
  list* queue = nullptr;                                ///< Where it waits, while some do.
};

/// All answers of a worker share `most_buffers`. Beyond them every connection may have one buffer,
/// so that peers that do not take their answers do not block the others. Everything happens under
/// the worker's lock.
class file_service {
 public:
  static constexpr std::size_t most_buffers = 16;

  explicit file_service(worker_core& worker);
  ~file_service();
  file_service(const file_service&) = delete;
  file_service& operator=(const file_service&) = delete;

  /// Answers `asked`, which was checked; `access`, that to `region`, ends with the answer.
  void read(endpoint_core& from, exposed_region& region, held_access& access, const frame& asked);

  /// Returns whether an answer uses `region` now.
  bool answering(const counted_region& region) const noexcept;
  /// Refuses the rest of every answer from `region`; none of them uses it when this returns.
  void withdraw(const counted_region& region);
  /// Ends what is under way to a connection that is lost, as far as UCX has let go of it.
  void connection_failed(const driven_connection& connection);
  /// Ends the reads that the disk has not answered; bounded. Nothing is started any more.
  void stop() noexcept;

  /// Takes back the buffers of unwanted reads that the disk has not begun. Behind a disk that hangs
  /// they would pile up.
  void reclaim_buffers() noexcept;
  /// Replaces the thread that reads what has to be waited for; before the first read.
  void read_slowly_by(std::unique_ptr<slow_reader> reader) noexcept { slow_ = std::move(reader); }
  /// Takes a read that has ended back; called by what was handed to the worker.
  void finished(slow_read& done);

  /// Returns how many buffers there are in the hands of answers, and of the disk.
  std::size_t buffers_in_use() const noexcept { return in_use_; }

 private:
  friend class file_answer;
  std::size_t piece_size() const noexcept;
  void queue(file_answer& hungry);
  void unqueue(file_answer& fed) noexcept;
  /// Gives buffers to those who want one, as far as there are any.
  void serve();
  void give_back(file_client& client, staging_buffer buffer) noexcept;
  /// The disk keeps a buffer for which no answer waits.
  void abandon_buffer(file_client& client) noexcept;
  bool read_slowly(std::shared_ptr<slow_read> read);
  void refuse(endpoint_core& to, const frame& asked, std::error_code why);
  void ended(file_answer& answer) noexcept;

  void keep(staging_buffer buffer) noexcept;
  file_client* next_in_line() noexcept;
  void place(file_client& client) noexcept;

  worker_core& worker_;
  std::unordered_map<const endpoint_core*, file_client> clients_;
  file_client::list starving_;  // those that wait without a buffer: they get one
  file_client::list sharing_;   // those that wait for another one
  intrusive_list<file_answer, file_answer_tag> answers_;
  pool<file_answer> idle_;
  std::size_t in_use_ = 0;
  bool serving_ = false;
  bool stopped_ = false;
  std::unique_ptr<slow_reader> slow_;
};

}  // namespace ucx::detail
