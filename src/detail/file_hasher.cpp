#include "detail/file_hasher.hpp"

#include <algorithm>
#include <new>
#include <span>
#include <utility>

#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

constexpr std::size_t read_size = std::size_t{256} << 10U;

struct job {
  std::shared_ptr<file_source> file;
  std::uint64_t offset = 0;
  std::uint64_t left = 0;
  std::uint64_t chunk = 0;
  file_hasher::hashed then;
  file_hasher::unwanted unwanted;

  content_hasher hasher = {};
  std::uint64_t of_chunk = 0;  // bytes of the one that is being hashed
  std::vector<content_digest> digests = {};
};

/// Hashes what one turn allows.
std::error_code hash_some(job& doing, std::span<std::byte> buffer) {
  for (std::size_t turn = file_hasher::turn; turn > 0 && doing.left > 0;) {
    const std::uint64_t size =
        std::min<std::uint64_t>({buffer.size(), turn, doing.left, doing.chunk - doing.of_chunk});
    const auto piece = buffer.first(static_cast<std::size_t>(size));
    const std::size_t at_once = doing.file->read_now(doing.offset, piece);
    if (at_once < piece.size()) {
      const std::error_code ec = doing.file->read(doing.offset + at_once, piece.subspan(at_once));
      if (ec) return ec;
    }
    doing.hasher.update(piece);
    doing.offset += size;
    doing.left -= size;
    doing.of_chunk += size;
    turn -= piece.size();
    if (doing.of_chunk < doing.chunk && doing.left > 0) continue;
    doing.digests.push_back(doing.hasher.digest());
    doing.hasher = content_hasher();
    doing.of_chunk = 0;
  }
  return {};
}

disk_queue::work turn_of(std::shared_ptr<job> doing, std::weak_ptr<disk_queue> by) {
  return [doing = std::move(doing), by = std::move(by)]() -> disk_queue::answer {
    if (*doing->unwanted) return {};
    std::error_code ec;
    try {
      std::vector<std::byte> buffer(read_size);
      ec = hash_some(*doing, buffer);
    } catch (const std::bad_alloc&) {
      ec = errc::no_memory;
    }
    if (!ec && doing->left > 0) {
      const std::shared_ptr<disk_queue> queue = by.lock();
      if (queue && queue->start_always(turn_of(doing, by))) return {};
      return {};  // the thread is ending
    }
    return [doing, ec] {
      if (!*doing->unwanted) doing->then(ec, std::move(doing->digests));
    };
  };
}

}  // namespace

file_hasher::unwanted file_hasher::start(std::shared_ptr<file_source> file, std::uint64_t offset,
                                         std::uint64_t length, std::uint64_t chunk, hashed then) {
  auto asked = std::make_shared<job>();
  asked->file = std::move(file);
  asked->offset = offset;
  asked->left = length;
  asked->chunk = chunk;
  asked->then = std::move(then);
  asked->unwanted = std::make_shared<std::atomic<bool>>(false);
  const std::lock_guard guard(mutex_);
  if (stopped_) return nullptr;
  try {
    if (!thread_) thread_.emplace(most_waiting, deliver_);
  } catch (const std::system_error&) {
    return nullptr;
  }
  const std::shared_ptr<disk_queue>& queue = thread_->queue();
  return queue->start(turn_of(asked, queue)) ? asked->unwanted : nullptr;
}

void file_hasher::stop(std::chrono::steady_clock::time_point until) noexcept {
  const std::lock_guard guard(mutex_);
  stopped_ = true;
  if (thread_) thread_->stop(until);
}

}  // namespace ucx::detail
