// A directory that a server publishes: its files, opened when clients ask for them.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/disk_thread.hpp"
#include "base/handed_work.hpp"
#include "base/result.hpp"
#include "store/file_account.hpp"
#include "store/memory_directory.hpp"
#include "store/published.hpp"
#include "store/put_job.hpp"
#include "store/store_directory.hpp"
#include "store/store_region.hpp"
#include "ucx/access.hpp"
#include "ucx/error.hpp"
#include "ucx/store_options.hpp"

namespace ucx::detail {

class context_core;
class store_host;
class worker_core;

/// What is asked of a store is answered when the disk has done it, by a handler that is called
/// under the worker's lock, within the call or later; with `revoked` where the store is closed
/// before the disk has said anything.
/// Everything is under that lock, but for what `published` has. Whatever disk says runs on threads
/// of the store's.
class store_core final : public published, public std::enable_shared_from_this<store_core> {
 public:
  static result<std::shared_ptr<store_core>> make(const std::shared_ptr<store_host>& server,
                                                  std::shared_ptr<context_core> context,
                                                  const std::filesystem::path& directory,
                                                  const store_options& options);
  ~store_core() override;

  /// Has the directory removed when the store is closed.
  void keep(std::unique_ptr<memory_directory> memory) noexcept { memory_ = std::move(memory); }

  const entry& described() const noexcept override { return described_; }
  std::span<std::byte> bytes() const noexcept override { return {}; }
  std::string url() const override;
  bool is_open() const noexcept override { return !closed_.load(std::memory_order_acquire); }
  void close(clock::time_point until = clock::time_point::max()) noexcept override;
  /// The two halves of that, so that several stores share the time that their disks may take:
  /// withdraws it, and has its threads end; waits for them until `farewell`. The second is for who
  /// got true from the first.
  bool begin_close(clock::time_point until) noexcept;
  void end_close(std::chrono::steady_clock::time_point farewell) noexcept;

  const store_options& options() const noexcept { return options_; }
  /// Returns how much the writer that was let in last may have unconfirmed.
  std::size_t window() const noexcept;
  /// Returns the worker whose lock it is under: the server's first.
  const std::weak_ptr<worker_core>& home() const noexcept { return home_; }
  /// Returns the name of a file of this store.
  std::string name_of(std::string_view path) const;
  /// A longer path makes no name together with the prefix.
  std::size_t longest_path() const noexcept {
    const std::size_t taken = options_.prefix.empty() ? 0 : options_.prefix.size() + 1;
    return longest_name - std::min(taken, longest_name);
  }
  /// Describes a file or directory as `name`.
  entry describe(std::string name, const file_facts& facts) const;

  /// So many bytes of files that come whole may wait for the disk; each takes some by itself.
  static constexpr std::size_t most_put = std::size_t{64} << 20U;
  static constexpr std::size_t room_of_file = std::size_t{1} << 10U;

  using done = std::function<void(std::error_code)>;
  using opened = std::function<void(std::error_code, std::shared_ptr<store_region>, file_facts)>;
  using found = std::function<void(std::error_code, file_facts)>;
  using listed = std::function<void(std::error_code, store_directory::page)>;

  /// Opens a file as it is. Errors: as store_directory's; too_many_of_store, too_many_writers;
  /// permission_denied (to write a store that is not writable); busy (it is being written already,
  /// or too much is asked).
  void open(const std::string& path, access wanted, opened answer);
  struct content {
    file_facts facts;
    std::vector<std::byte> bytes;
  };
  /// Returns all that is in a file of `most` bytes at most, where that can be had without waiting
  /// for a disk; nothing says nothing. Opens nothing that lasts.
  std::optional<content> content_now(const std::string& path, std::size_t most) const;
  /// Begins a file that gets its name when it is committed.
  void create(const std::string& path, access wanted, bool exclusive, opened answer);
  /// Opens a file to be written where it is, and makes it where there is none.
  void append(const std::string& path, access wanted, opened answer);
  /// Gives a file its name, if it has none, and has it on the device where that is wanted.
  void commit(const std::shared_ptr<store_region>& region, bool durable, found answer);
  using stored = std::function<void(std::vector<std::error_code>)>;
  /// Returns whether they may wait for the disk, too.
  bool has_room(const std::vector<whole_file>& files) const noexcept;
  /// Writes files that come whole, and tells how that went with each. Errors: as create and commit;
  /// busy (it is being written already). REQUIRES: has_room(files).
  void put(std::vector<whole_file> files, bool exclusive, bool durable, stored answer);
  /// Takes a region out of its client's hands; what has no name yet is thrown away.
  void let_go(store_region& region) noexcept;

  void stat(const std::string& path, found answer);
  void list_files(const std::string& after, std::size_t most, listed answer);
  void list_directory(const std::string& directory, const std::string& after, std::size_t most,
                      listed answer);
  void remove(const std::string& path, done answer);
  void rename(const std::string& from, const std::string& to, bool exclusive, done answer);
  void resize(const std::string& path, std::uint64_t size, done answer);
  /// The same for a file that is being written, by its writer.
  void resize(const std::shared_ptr<store_region>& region, std::uint64_t size, done answer);

  std::shared_ptr<file_account> open_account(std::uint64_t size) const {
    return std::make_shared<file_account>(quota_, size);
  }
  /// No file of the system's is longer than its offsets reach.
  std::uint64_t largest_file() const noexcept;
  /// Has the disk write; returns whether it will.
  bool write_later(disk_queue::work job);

 private:
  store_core(const std::shared_ptr<store_host>& server, std::shared_ptr<context_core> context,
             std::shared_ptr<store_directory> directory, const store_options& options,
             std::uint64_t used);

  /// Kinds of work that do not wait for each other.
  enum class lane : std::size_t { quick, listing, writing, putting };
  static constexpr std::size_t lanes = 4;
  std::shared_ptr<disk_queue> queue(lane which);
  /// Returns whether it was asked; else it is answered already. `always`: bounded by other means.
  template <class Result, class Work, class Answer>
  bool ask(lane which, Work work, Answer answer, bool always = false);
  template <class Work>
  void open_by(store_place place, access wanted, Work work, opened answer);
  void let_in(const store_place& place, access wanted, owned_descriptor file,
              const file_facts& facts, const opened& answer);
  class put_claim;
  std::error_code claim(const whole_file& file, put_claim& claimed);
  bool is_path(std::string_view path) const noexcept;
  std::error_code admit(const store_place& place);
  std::error_code check_change(const std::string& path) const;
  bool is_written_below(const std::string& path) const;
  void forget(const store_place& place) noexcept;
  bool forget_behind_writes(const store_place& place) noexcept;
  void discard(const std::string& spooled) noexcept;

  const std::weak_ptr<store_host> server_;
  const std::weak_ptr<worker_core> home_;
  const std::shared_ptr<context_core> context_;
  std::shared_ptr<store_directory> directory_;  // until it is closed
  std::unique_ptr<memory_directory> memory_;    // likewise, of one in memory
  const store_options options_;
  const bool shares_descriptors_;  // its limit is what the process has, of which others take, too
  const std::shared_ptr<std::atomic<std::size_t>> open_of_all_;  // files, of the server's stores
  const std::shared_ptr<store_quota> quota_;
  entry described_;
  std::atomic<bool> closed_{false};

  /// What the disk was asked and has not answered, by number: ends with an error, or what it said.
  using questions = std::unordered_map<std::uint64_t, std::function<void(std::error_code)>>;
  std::shared_ptr<questions> questions_ = std::make_shared<questions>();  // until it is closed
  /// Ends those that are left.
  struct last_answers final : handed_work {
    void run(worker_core& by) override;
    std::shared_ptr<questions> left;
  };
  std::shared_ptr<last_answers> ending_ = std::make_shared<last_answers>();
  std::uint64_t last_question_ = 0;

  std::array<std::optional<disk_thread>, lanes> threads_;
  std::map<std::uint64_t, std::weak_ptr<store_region>> regions_;  // by number
  std::shared_ptr<store_region> next_open(std::uint64_t behind) const noexcept;
  std::size_t open_ = 0;  // files that are open, or being opened
  std::size_t writers_ = 0;
  std::set<std::string> written_;  // paths that somebody writes
  std::size_t put_bytes_ = 0;      // of files that come whole
};

template <class Result, class Work, class Answer>
bool store_core::ask(lane which, Work work, Answer answer, bool always) {
  struct asked {
    std::error_code ec;
    Result result = {};
  };
  const std::shared_ptr<disk_queue> disk = queue(which);
  if (!disk || !questions_) {
    answer(is_open() ? errc::busy : errc::revoked, Result());
    return false;
  }
  const auto said = std::make_shared<asked>();
  const std::uint64_t number = ++last_question_;
  disk_queue::answer ending = [number, weak = std::weak_ptr(questions_)] {
    const std::shared_ptr<questions> open = weak.lock();
    if (!open) return;
    auto ended = open->extract(number);
    if (!ended.empty()) ended.mapped()({});
  };
  disk_queue::work job = [said, work = std::move(work), ending = std::move(ending)]() mutable {
    try {
      said->result = work(said->ec);
    } catch (const std::bad_alloc&) {
      said->ec = errc::no_memory;
    }
    return std::move(ending);
  };
  questions_->emplace(number, [said, answer](std::error_code refused) {
    answer(refused ? refused : said->ec, refused ? Result() : std::move(said->result));
  });
  try {
    if (always ? disk->start_always(std::move(job)) : disk->start(std::move(job))) return true;
  } catch (const std::bad_alloc&) {
    questions_->erase(number);
    throw;
  }
  questions_->erase(number);
  answer(errc::busy, Result());
  return false;
}

}  // namespace ucx::detail
