#include "file/file_hasher.hpp"

#include <algorithm>
#include <new>
#include <optional>
#include <span>
#include <utility>

#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

constexpr std::size_t read_size = std::size_t{256} << 10U;

}  // namespace

class file_hasher::question {
 public:
  question(std::shared_ptr<file_source> file, std::uint64_t offset, std::uint64_t length,
           std::uint64_t chunk, hashed then)
      : offset_(offset),
        left_(length),
        chunk_(chunk),
        file_(std::move(file)),
        then_(std::move(then)) {}

  std::uint64_t left() const noexcept { return left_; }
  /// Hashes what one turn allows; returns nothing where the question was withdrawn.
  std::optional<std::error_code> hash_some();
  void withdraw() noexcept {
    const std::lock_guard guard(mutex_);
    file_ = nullptr;
    then_ = nullptr;
  }
  void answer(std::error_code ec) {
    hashed then;
    {
      const std::lock_guard guard(mutex_);
      then = std::exchange(then_, nullptr);
      file_ = nullptr;
    }
    if (then) then(ec, std::move(digests_));
  }

 private:
  std::error_code hash_some(file_source& file, std::span<std::byte> buffer);

  // Of the thread.
  std::uint64_t offset_;
  std::uint64_t left_;
  const std::uint64_t chunk_;
  content_hasher hasher_ = {};
  std::uint64_t of_chunk_ = 0;  // bytes of the one that is being hashed
  std::vector<content_digest> digests_ = {};

  std::mutex mutex_;
  std::shared_ptr<file_source> file_;  // nothing where it is unwanted
  hashed then_;
};

std::optional<std::error_code> file_hasher::question::hash_some() {
  std::shared_ptr<file_source> file;
  {
    const std::lock_guard guard(mutex_);
    file = file_;
  }
  if (!file) return std::nullopt;
  try {
    std::vector<std::byte> buffer(read_size);
    return hash_some(*file, buffer);
  } catch (const std::bad_alloc&) {
    return make_error_code(errc::no_memory);
  }
}

std::error_code file_hasher::question::hash_some(file_source& file, std::span<std::byte> buffer) {
  for (std::size_t of_turn = turn; of_turn > 0 && left_ > 0;) {
    const std::uint64_t size =
        std::min<std::uint64_t>({buffer.size(), of_turn, left_, chunk_ - of_chunk_});
    const auto piece = buffer.first(static_cast<std::size_t>(size));
    const std::size_t at_once = file.read_now(offset_, piece);
    if (at_once < piece.size()) {
      const std::error_code ec = file.read(offset_ + at_once, piece.subspan(at_once));
      if (ec) return ec;
    }
    hasher_.update(piece);
    offset_ += size;
    left_ -= size;
    of_chunk_ += size;
    of_turn -= piece.size();
    if (of_chunk_ < chunk_ && left_ > 0) continue;
    digests_.push_back(hasher_.digest());
    hasher_ = content_hasher();
    of_chunk_ = 0;
  }
  return {};
}

namespace {

disk_queue::work turn_of(file_hasher::asked doing, std::weak_ptr<disk_queue> by) {
  return [doing = std::move(doing), by = std::move(by)]() -> disk_queue::answer {
    const std::optional<std::error_code> outcome = doing->hash_some();
    if (!outcome) return {};
    std::error_code ec = *outcome;
    if (!ec && doing->left() > 0) {
      try {
        const std::shared_ptr<disk_queue> queue = by.lock();
        if (queue) queue->start_always(turn_of(doing, by));
        return {};  // or the thread is ending
      } catch (const std::bad_alloc&) {
        ec = errc::no_memory;
      }
    }
    return [doing, ec] { doing->answer(ec); };
  };
}

}  // namespace

file_hasher::asked file_hasher::start(std::shared_ptr<file_source> file, std::uint64_t offset,
                                      std::uint64_t length, std::uint64_t chunk, hashed then) {
  auto made = std::make_shared<question>(std::move(file), offset, length, chunk, std::move(then));
  const std::lock_guard guard(mutex_);
  if (stopped_) return nullptr;
  try {
    if (!thread_) thread_.emplace(most_waiting, deliver_);
  } catch (const std::system_error&) {
    return nullptr;
  }
  const std::shared_ptr<disk_queue>& queue = thread_->queue();
  return queue->start(turn_of(made, queue)) ? made : nullptr;
}

void file_hasher::withdraw(question& unwanted) noexcept { unwanted.withdraw(); }

void file_hasher::stop(std::chrono::steady_clock::time_point until) noexcept {
  const std::lock_guard guard(mutex_);
  stopped_ = true;
  if (thread_) thread_->stop(until);
}

}  // namespace ucx::detail
