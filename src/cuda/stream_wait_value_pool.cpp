#include "cuda/stream_wait_value_pool.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <map>
#include <new>
#include <thread>

namespace ucx::detail {
namespace {

/// How long the thread waits for another gate before it ends.
constexpr std::chrono::seconds longest_idle{1};

/// Words begin shortly before they wrap, so that a mistake with wrapping shows at once, and not
/// after a year.
constexpr std::uint32_t first_value = 0xfffffff0;

constexpr std::size_t bytes_of_words = stream_wait_value_pool::most * sizeof(std::uint32_t);

/// Returns pages that a child of fork() shares. Of other pages the parent would get a copy when it
/// writes next, and the device would go on to look at the first.
void* shared_pages() {
  void* const made =
      ::mmap(nullptr, bytes_of_words, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (made == MAP_FAILED) throw std::bad_alloc();
  return made;
}

}  // namespace

stream_wait_value_pool& stream_wait_value_pool::of(cuda::context context) {
  static std::mutex mutex;
  static auto& known =
      *new std::map<cuda::context, stream_wait_value_pool*>;  // threads may outlive statics
  const std::lock_guard guard(mutex);
  stream_wait_value_pool*& found = known[context];
  if (found == nullptr) found = new stream_wait_value_pool;
  return *found;
}

stream_wait_value_pool::stream_wait_value_pool() {
  free_.reserve(most);
  for (std::uint32_t number = most; number > 0; --number) free_.push_back(number - 1);
  words_ = static_cast<word*>(shared_pages());
  for (std::size_t i = 0; i < most; ++i) new (&words_[i]) word(first_value);
}

std::optional<stream_wait_value_pool::gate> stream_wait_value_pool::shut(
    clock::time_point until) noexcept {
  const std::lock_guard guard(mutex_);
  if (free_.empty()) return std::nullopt;
  if (!watched_) {
    try {
      std::thread([this] { watch(); }).detach();
    } catch (...) {  // no thread, or no memory for one
      return std::nullopt;
    }
    watched_ = true;
  }
  const std::uint32_t number = free_.back();
  free_.pop_back();
  entries_[number] = {state::shut, until};
  if (until < next_) {
    next_ = until;
    changed_.notify_all();
  }
  return gate{number, words_[number].load(std::memory_order_relaxed) + 1};
}

void stream_wait_value_pool::open(const gate& shut) noexcept {
  if (process_ != ::getpid()) return;
  const std::lock_guard guard(mutex_);
  words_[shut.number].store(shut.value, std::memory_order_release);
  entries_[shut.number].now = state::open;
  free_.push_back(shut.number);
}

bool stream_wait_value_pool::claim(const gate& shut) noexcept {
  const std::lock_guard guard(mutex_);
  entry& found = entries_[shut.number];
  if (found.now == state::overdue) return false;
  found.now = state::claimed;
  return true;
}

cuda::result stream_wait_value_pool::reach(const cuda_driver& driver, const gate& shut,
                                           cuda::address& seen, const char*& call) {
  const std::lock_guard guard(registering_);
  const auto look = [&] {
    call = "cuMemHostGetDevicePointer";
    const cuda::result result = driver.host_device_pointer(&seen, words_, 0);
    seen += shut.number * sizeof(word);
    return result;
  };
  // The context may be another one by now, with the handle of the first.
  if (registered_ && look() == cuda::success) return cuda::success;
  call = "cuMemHostRegister";
  const cuda::result result =
      driver.host_register(words_, bytes_of_words, cuda::register_device_map);
  if (result != cuda::success && result != cuda::already_registered) return result;
  registered_ = true;
  return look();
}

void stream_wait_value_pool::watch() noexcept {
  std::unique_lock guard(mutex_);
  for (;;) {
    const clock::time_point next = open_overdue(clock::now());
    next_ = next;
    if (next != clock::time_point::max()) {
      changed_.wait_until(guard, next);
    } else if (!changed_.wait_for(guard, longest_idle,
                                  [this] { return next_ != clock::time_point::max(); })) {
      break;
    }
  }
  watched_ = false;
}

/// Returns when the next one will be.
clock::time_point stream_wait_value_pool::open_overdue(clock::time_point now) noexcept {
  clock::time_point next = clock::time_point::max();
  for (std::size_t i = 0; i < most; ++i) {
    if (entries_[i].now != state::shut) continue;
    if (entries_[i].until > now) {
      next = std::min(next, entries_[i].until);
      continue;
    }
    entries_[i].now = state::overdue;
    words_[i].fetch_add(1, std::memory_order_release);
  }
  return next;
}

}  // namespace ucx::detail
