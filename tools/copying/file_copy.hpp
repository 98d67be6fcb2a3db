// One file that is being copied.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <vector>

#include "copying/copy_ends.hpp"
#include "copying/copy_order.hpp"
#include "copying/location.hpp"
#include "copying/rate_limit.hpp"
#include "output/exit_code.hpp"
#include "output/transfer_counters.hpp"

namespace ucx::tool {

/// Is told where a file was copied to, and the hash of what is there; by any thread.
using hash_report = std::function<void(const location&, const content_digest&)>;

/// Shared by all files of one command. Lifetime: what is referred to, until the last is copied.
struct copy_context {
  server_clients& clients;
  copy_terms terms;
  rate_limit& limit;
  transfer_counters& counters;
  std::atomic<bool>& left_something;  ///< Of what is not whole something may be resumed.
  hash_report tell_hash;              ///< With `copy_terms::hash`.
  std::stop_token stop;
};

/// One file, and where it goes.
struct copy_task {
  location from;
  location to;
  std::uint64_t size = 0;      ///< As it was when it was found.
  bool goes_into_new = false;  ///< There was no such directory: no earlier copy has left anything.
};

/// Goes piece by piece, by any number of threads. They read at the same time, and write in order,
/// so that the file always has the beginning. The thread that makes it is one of them.
class file_copy {
 public:
  static constexpr std::size_t piece_size = digest_chunk;

  struct piece {
    std::uint64_t index = 0;
    std::uint64_t offset = 0;
    std::size_t size = 0;
  };

  /// Opens both ends, and proves what an earlier copy has left. Errors: failure.
  file_copy(const copy_task& task, const copy_context& context);
  file_copy(const file_copy&) = delete;
  file_copy& operator=(const file_copy&) = delete;

  /// Returns whether it has so many pieces that others may help.
  bool is_large() const noexcept { return source_->size() > piece_size_; }
  /// Enters a thread that wants to help; false where there is nothing left to do.
  bool join();
  /// Returns what the calling thread has to move next; nothing where everything is given out.
  std::optional<piece> take();
  /// Moves it. A failure ends the copy, and is told by `finish`.
  void move(const piece& taken, std::span<std::byte> buffer) noexcept;
  /// Leaves; returns whether the caller was the last, and has to call `finish`.
  bool leave();
  /// Gives the file its name. Errors: failure, of any piece too; then there is nothing left, or
  /// what may be resumed.
  void finish();

 private:
  void resume();
  using hashing = std::function<std::vector<content_digest>(const digest_range&)>;
  bool is_there();
  std::optional<std::uint64_t> first_difference(std::uint64_t length, const hashing& other);
  std::optional<std::uint64_t> first_spoiled(std::uint64_t length);
  failure difference(exit_code code, const char* what, std::uint64_t at) const;
  void put(const piece& taken, std::span<const std::byte> bytes);
  void hash(std::uint64_t offset, std::span<const std::byte> bytes);
  content_digest whole_digest();
  void give_name();
  void fail(const failure& why);
  std::condition_variable& turn_of(std::uint64_t index) { return turns_[index % turns_.size()]; }
  void check_stop() const;

  const copy_task task_;
  const copy_context& context_;
  std::unique_ptr<copy_source> source_;
  std::unique_ptr<copy_target> target_;  // nothing where an earlier copy was finished
  std::size_t piece_size_;
  bool has_holes_ = false;
  std::optional<content_hasher> hasher_;  // where all of it passes here
  std::uint64_t hashed_ = 0;              // everything before was hashed

  std::mutex mutex_;
  /// Of pieces, by their index, of which no more are under way: each wakes the next one alone.
  std::array<std::condition_variable, copy_order::most_parallel> turns_;
  std::uint64_t next_ = 0;        // the first byte that no thread has taken
  std::uint64_t next_index_ = 0;  // of the next piece
  std::uint64_t turn_ = 0;        // the piece that is to be written next
  std::uint64_t written_ = 0;     // everything before is there
  unsigned users_ = 1;
  std::optional<failure> failed_;
};

/// Errors: failure with exit_code::no_space, where it is larger than `terms` allow.
void check_size(const location& of, std::uint64_t size, const copy_terms& terms);

/// The failure of an interrupted copy.
failure interrupted();

}  // namespace ucx::tool
