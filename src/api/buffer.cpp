#include "ucx/buffer.hpp"

#include <cstddef>
#include <functional>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "base/result.hpp"
#include "memory/buffer_home.hpp"
#include "ucx/error.hpp"
#include "worker/worker_core.hpp"

namespace ucx {
namespace {

class heap_home final : public detail::buffer_home {
 public:
  move_only_handler<> take_back(std::span<std::byte> bytes) noexcept override {
    delete[] bytes.data();
    return {};
  }
  bool let_go() noexcept override { return true; }
  /// `fork()` copies the heap: a child may free inherited memory.
  bool is_inherited() const noexcept override { return false; }

  static heap_home& instance() noexcept {
    // Without state, and never destroyed: buffers may outlive every static object.
    static heap_home* const home = new heap_home;
    return *home;
  }
};

/// Calls users' code from where nothing may be thrown.
template <class Call>
void call_at_end(Call call) noexcept {
  try {
    call();
  } catch (...) {
    detail::worker_core::report_thrown();
  }
}

/// Of memory that was taken over; dies with it.
class adopted_home final : public detail::buffer_home {
 public:
  explicit adopted_home(move_only_handler<std::span<std::byte>> free) noexcept
      : free_(std::move(free)) {}
  /// Frees what was taken back and never freed: a call that was queued may go with its queue.
  ~adopted_home() {
    if (owed_) call_at_end([this] { free(); });
  }
  adopted_home(const adopted_home&) = delete;
  adopted_home& operator=(const adopted_home&) = delete;

  move_only_handler<> take_back(std::span<std::byte> bytes) noexcept override {
    std::unique_ptr<adopted_home> last(this);
    if (!free_) return {};
    owed_ = bytes;
    return [last = std::move(last)] { last->free(); };
  }
  bool let_go() noexcept override {
    const std::unique_ptr<adopted_home> last(this);
    return true;
  }

 private:
  void free() { free_(*std::exchange(owed_, std::nullopt)); }

  move_only_handler<std::span<std::byte>> free_;
  std::optional<std::span<std::byte>> owed_;
};

/// Of a size that a peer may have said: what no allocator could give is not asked for.
std::span<std::byte> allocate(std::size_t size) {
  constexpr std::size_t most = std::numeric_limits<std::ptrdiff_t>::max();
  if (size > most) throw std::bad_alloc();
  return {new std::byte[size], size};
}

}  // namespace

buffer::buffer(std::size_t size, std::error_code& ec) {
  if (&ec != &throws) ec.clear();
  try {
    heap_home& home = heap_home::instance();
    bytes_ = allocate(size);
    size_ = size;
    home_ = &home;
  } catch (const std::bad_alloc&) {
    if (&ec == &throws) throw;
    ec = errc::no_memory;
  }
}

buffer::buffer(std::pmr::memory_resource& from, std::size_t size) {
  auto home = std::make_unique<adopted_home>(
      [&from](std::span<std::byte> bytes) { from.deallocate(bytes.data(), bytes.size()); });
  bytes_ = {static_cast<std::byte*>(from.allocate(size)), size};
  size_ = size;
  home_ = home.release();
}

buffer::buffer(std::span<std::byte> bytes, move_only_handler<std::span<std::byte>> free)
    : bytes_(bytes), size_(bytes.size()), home_(new adopted_home(std::move(free))) {}

buffer::~buffer() {
  if (home_ == nullptr || home_->is_inherited()) return;
  if (move_only_handler<> due = home_->take_back(bytes_)) call_at_end(std::ref(due));
}

void buffer::resize(std::size_t size, std::error_code& ec) {
  const bool fits = size <= bytes_.size();
  if (fits) size_ = size;
  detail::end_with(fits ? std::error_code() : make_error_code(errc::buffer_too_small), ec, [&] {
    return "resizing a buffer of " + std::to_string(bytes_.size()) + " bytes to " +
           std::to_string(size);
  });
}

std::span<std::byte> buffer::release(std::error_code& ec) {
  const bool pooled = home_ != nullptr && !home_->let_go();
  detail::end_with(pooled ? make_error_code(errc::pooled_buffer) : std::error_code(), ec,
                   [] { return "releasing a buffer of a pool"; });
  if (pooled) return {};
  home_ = nullptr;
  size_ = 0;
  return std::exchange(bytes_, {});
}

}  // namespace ucx
