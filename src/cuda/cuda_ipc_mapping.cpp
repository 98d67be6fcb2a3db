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

}  // namespace

cuda_ipc_mapping::cuda_ipc_mapping(std::shared_ptr<const cuda_context> context,
                                   const remote_descriptor& described) noexcept
    : device_mapping(std::move(context)), handle_(described.cuda_ipc), size_(described.size) {}

std::shared_ptr<device_mapping> cuda_ipc_mapping::make(const std::shared_ptr<device_copier>& copier,
                                                       const remote_descriptor& described) {
  return closed_by(
      copier, std::unique_ptr<device_mapping>(new cuda_ipc_mapping(copier->context(), described)));
}

cuda_ipc_mapping::~cuda_ipc_mapping() {
  if (opened_ == 0) return;
  const current_context current(*context());
  if (current.result() == cuda::success) context()->driver().close_shared(opened_);
  closed_mappings::all().add();
}

std::byte* cuda_ipc_mapping::map() noexcept {
  cuda::memory_handle handle;
  handle.bytes = handle_.bytes;
  // Drivers of before CUDA 11 open nothing twice in one context. So this waits for a mapping that
  // another copier's thread closes at this moment. Other code that closes one does not tell: a last
  // try shows it.
  const clock::time_point until = clock::now() + longest_closing;
  for (bool in_time = true; in_time;) {
    const std::uint64_t closed = closed_mappings::all().count();
    in_time = clock::now() < until;
    result_ = context()->driver().open_shared(&opened_, handle, cuda::lazy_peer_access);
    if (result_ != cuda::already_mapped) break;
    if (in_time) closed_mappings::all().await_more_than(closed, until);
  }
  if (result_ != cuda::success) opened_ = 0;
  if (result_ != cuda::success || !holds_region()) return nullptr;
  return reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(opened_ + handle_.offset));
}

/// The descriptor may say what it likes: beyond the allocation is other memory, or a fault that
/// would end the context.
bool cuda_ipc_mapping::holds_region() const noexcept {
  cuda::address begin = 0;
  std::size_t size = 0;
  std::array<int, 2> attributes{cuda::attribute_range_start, cuda::attribute_range_size};
  std::array<void*, 2> values{&begin, &size};
  if (context()->driver().pointer_attributes(2, attributes.data(), values.data(), opened_) !=
      cuda::success) {
    return false;
  }
  return begin == opened_ && handle_.offset <= size && size_ <= size - handle_.offset;
}

std::string cuda_ipc_mapping::refusal() const {
  if (result_ == cuda::success) return "the allocation there is not the one of the descriptor";
  return cuda_words(context()->driver(), "cuIpcOpenMemHandle", result_);
}

}  // namespace ucx::detail
