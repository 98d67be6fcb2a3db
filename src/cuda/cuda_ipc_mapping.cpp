#include "cuda/cuda_ipc_mapping.hpp"

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <utility>

namespace ucx::detail {
namespace {

/// How long a thread that opens a mapping waits for one that is being closed.
constexpr std::chrono::milliseconds longest_closing{200};

/// Counts the mappings that this process has closed.
class closed_mappings {
 public:
  /// Those of all copiers. Is never destroyed: their threads may outlive `main()`.
  static closed_mappings& all() noexcept {
    alignas(closed_mappings) static std::array<std::byte, sizeof(closed_mappings)> place;
    static closed_mappings* const made = ::new (place.data()) closed_mappings;
    return *made;
  }

  std::uint64_t count() noexcept {
    const std::lock_guard guard(mutex_);
    return count_;
  }
  void add() noexcept {
    const std::lock_guard guard(mutex_);
    ++count_;
    changed_.notify_all();
  }
  /// Returns, until `until`, when there are more than `known`.
  void await_more_than(std::uint64_t known, clock::time_point until) noexcept {
    std::unique_lock guard(mutex_);
    changed_.wait_until(guard, until, [&] { return count_ > known; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t count_ = 0;
};

/// Lets go of a mapping on the copier's thread: closing one may take as long as what is copied.
class mapping_end final : public device_copy {
 public:
  explicit mapping_end(std::unique_ptr<cuda_ipc_mapping> over) noexcept : over_(std::move(over)) {}
  bool wanted() const noexcept override { return false; }
  void done() noexcept override { over_.reset(); }

 private:
  std::unique_ptr<cuda_ipc_mapping> over_;
};

}  // namespace

cuda_ipc_mapping::cuda_ipc_mapping(std::shared_ptr<const cuda_context> context,
                                   const remote_descriptor& described) noexcept
    : context_(std::move(context)), handle_(described.cuda_ipc), size_(described.size) {}

std::shared_ptr<cuda_ipc_mapping> cuda_ipc_mapping::make(
    const std::shared_ptr<device_copier>& copier, const remote_descriptor& described) {
  std::unique_ptr<cuda_ipc_mapping> made(new cuda_ipc_mapping(copier->context(), described));
  return {made.release(), [copier](cuda_ipc_mapping* ended) {
            std::unique_ptr<cuda_ipc_mapping> over(ended);
            try {
              // Where that can not be, it goes here and now.
              copier->start(std::make_shared<mapping_end>(std::move(over)));
            } catch (const std::bad_alloc&) {
            }
          }};
}

cuda_ipc_mapping::~cuda_ipc_mapping() {
  if (opened_ == 0) return;
  const current_context current(*context_);
  if (current.result() == cuda::success) context_->driver().close_shared(opened_);
  closed_mappings::all().add();
}

std::byte* cuda_ipc_mapping::open() noexcept {
  std::call_once(asked_, [this] { map(); });
  if (is_refused()) return nullptr;
  return reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(opened_ + handle_.offset));
}

void cuda_ipc_mapping::map() noexcept {
  cuda::memory_handle handle;
  handle.bytes = handle_.bytes;
  // Drivers of before CUDA 11 open nothing twice in one context. So this waits for a mapping that
  // another copier's thread closes at this moment. Other code that closes one does not tell: a last
  // try shows it.
  const clock::time_point until = clock::now() + longest_closing;
  for (bool in_time = true; in_time;) {
    const std::uint64_t closed = closed_mappings::all().count();
    in_time = clock::now() < until;
    result_ = context_->driver().open_shared(&opened_, handle, cuda::lazy_peer_access);
    if (result_ != cuda::already_mapped) break;
    if (in_time) closed_mappings::all().await_more_than(closed, until);
  }
  if (result_ != cuda::success) opened_ = 0;
  if (result_ != cuda::success || !holds_region()) refused_.store(true, std::memory_order_release);
}

/// The descriptor may say what it likes: beyond the allocation is other memory, or a fault that
/// would end the context.
bool cuda_ipc_mapping::holds_region() const noexcept {
  cuda::address begin = 0;
  std::size_t size = 0;
  std::array<int, 2> attributes{cuda::attribute_range_start, cuda::attribute_range_size};
  std::array<void*, 2> values{&begin, &size};
  if (context_->driver().pointer_attributes(2, attributes.data(), values.data(), opened_) !=
      cuda::success) {
    return false;
  }
  return begin == opened_ && handle_.offset <= size && size_ <= size - handle_.offset;
}

std::string cuda_ipc_mapping::refusal() const {
  if (result_ == cuda::success) return "the allocation there is not the one of the descriptor";
  return cuda_words(context_->driver(), "cuIpcOpenMemHandle", result_);
}

}  // namespace ucx::detail
