#include "fake_device.hpp"

#include <sys/mman.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <utility>

namespace ucx::test {
namespace {

// cuda.h's numbers.
constexpr int success = 0;
constexpr int invalid_value = 1;
constexpr int out_of_memory = 2;
constexpr int not_initialized = 3;
constexpr int invalid_device = 101;
constexpr int invalid_context = 201;
constexpr int invalid_handle = 400;
constexpr int illegal_address = 700;
constexpr int context_is_destroyed = 709;
constexpr int already_registered = 712;
constexpr int capture_unsupported = 900;

constexpr int global_capture = 0;
constexpr int relaxed_capture = 2;

/// What may wait for, or change, what a capture has yet to see.
const std::set<std::string> unsafe_in_capture{"cuMemAlloc",
                                              "cuMemAllocManaged",
                                              "cuMemFree",
                                              "cuMemHostAlloc",
                                              "cuMemFreeHost",
                                              "cuMemHostRegister",
                                              "cuMemcpy",
                                              "cuMemHostUnregister",
                                              "cuStreamCreate",
                                              "cuStreamSynchronize",
                                              "cuEventCreate",
                                              "cuEventSynchronize",
                                              "cuDevicePrimaryCtxRetain"};

constexpr std::size_t page = 4096;

std::size_t whole_pages(std::size_t size) { return (size + page - 1) / page * page; }

/// Addresses that nobody can touch, and that nothing else gets.
std::uint64_t reserve(std::size_t size) {
  void* const made = ::mmap(nullptr, whole_pages(size), PROT_NONE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return made == MAP_FAILED ? 0 : reinterpret_cast<std::uintptr_t>(made);
}

bool includes(const fake_memory& memory, std::uint64_t address, std::size_t size) {
  return address >= memory.address && size <= memory.size &&
         address - memory.address <= memory.size - size;
}

}  // namespace

std::vector<CUctx_st*>& context_stack() {
  thread_local std::vector<CUctx_st*> stack;
  return stack;
}

int& capture_mode() {
  thread_local int mode = global_capture;
  return mode;
}

fake_cuda& fake_cuda::instance() {
  static fake_cuda* const made = new fake_cuda;  // outlives every static object that uses it
  return *made;
}

fake_cuda::~fake_cuda() = default;

void fake_cuda::reset(int devices, std::uint64_t seed) {
  const std::lock_guard guard(mutex_);
  forget();
  devices_ = devices;
  random_.seed(seed);
  if (!thread_.joinable()) thread_ = std::thread([this] { run_copies(); });
}

void fake_cuda::forget() {
  initialised_ = false;
  plans_.clear();
  calls_.clear();
  primary_.clear();
  contexts_.clear();  // handles of before are no handles any more
  for (const auto& [address, each] : memory_) retire(each);
  memory_.clear();
  streams_.clear();
  events_.clear();
  late_uses_ = 0;
  capturing_ = false;
  copies_ = {};
  bytes_ = {};
  held_ = false;
  context_stack().clear();
}

void fake_cuda::fail(const std::string& function, int after, int times, int result) {
  const std::lock_guard guard(mutex_);
  plans_[function] = {after, times, result};
}

int fake_cuda::enter(const std::string& function) {
  const std::lock_guard guard(mutex_);
  return enter_locked(function);
}

int fake_cuda::enter_locked(const std::string& function) {
  ++calls_[function];
  if (capturing_ && capture_mode() != relaxed_capture && unsafe_in_capture.count(function) > 0) {
    spoiled_ = true;
    return capture_unsupported;
  }
  const auto found = plans_.find(function);
  if (found == plans_.end() || found->second.times == 0) return success;
  if (found->second.after > 0) {
    --found->second.after;
    return success;
  }
  --found->second.times;
  return found->second.result;
}

std::uint64_t fake_cuda::calls(const std::string& function) {
  const std::lock_guard guard(mutex_);
  return calls_[function];
}

int fake_cuda::initialise() {
  const std::lock_guard guard(mutex_);
  initialised_ = true;
  return success;
}

bool fake_cuda::is_initialised() {
  const std::lock_guard guard(mutex_);
  return initialised_;
}

int fake_cuda::devices() {
  const std::lock_guard guard(mutex_);
  return devices_;
}

int fake_cuda::retain(CUctx_st** made, int device) {
  const std::lock_guard guard(mutex_);
  if (!initialised_) return not_initialized;
  if (device < 0 || device >= devices_) return invalid_device;
  CUctx_st*& primary = primary_[device];
  if (primary == nullptr) {
    primary = make_context(device);
    contexts_.insert(primary);
  }
  ++primary->users;
  *made = primary;
  return success;
}

int fake_cuda::release(int device) {
  const std::lock_guard guard(mutex_);
  const auto found = primary_.find(device);
  if (found == primary_.end() || found->second == nullptr) return invalid_context;
  if (--found->second->users > 0) return success;
  return end(std::exchange(found->second, nullptr));
}

int fake_cuda::create(CUctx_st** made, int device) {
  const std::lock_guard guard(mutex_);
  if (!initialised_) return not_initialized;
  if (device < 0 || device >= devices_) return invalid_device;
  *made = make_context(device);
  contexts_.insert(*made);
  context_stack().push_back(*made);
  return success;
}

int fake_cuda::destroy(CUctx_st* context) {
  const std::lock_guard guard(mutex_);
  return end(context);
}

int fake_cuda::end(CUctx_st* context) {
  if (contexts_.erase(context) == 0) return invalid_context;
  std::erase(context_stack(), context);
  // What was made in it goes with it.
  std::erase_if(streams_, [&](const auto& each) { return each.first->context == context; });
  std::erase_if(events_, [&](const auto& each) { return each->context == context; });
  changed_.notify_all();
  std::erase_if(memory_, [&](const auto& each) {
    if (each.second.context != context) return false;
    retire(each.second);
    return true;
  });
  return success;
}

int fake_cuda::push(CUctx_st* context) {
  const std::lock_guard guard(mutex_);
  if (!initialised_) return not_initialized;
  if (contexts_.count(context) == 0) {
    ++late_uses_;
    return invalid_context;
  }
  context_stack().push_back(context);
  return success;
}

int fake_cuda::pop(CUctx_st** context) {
  if (context_stack().empty()) return invalid_context;
  *context = context_stack().back();
  context_stack().pop_back();
  return success;
}

CUctx_st* fake_cuda::current() {
  CUctx_st* const top = context_stack().empty() ? nullptr : context_stack().back();
  return contexts_.count(top) > 0 ? top : nullptr;
}

int fake_cuda::allocate(fake_kind kind, std::size_t size, std::uint64_t* made) {
  const std::lock_guard guard(mutex_);
  CUctx_st* const owner = current();
  if (owner == nullptr) return initialised_ ? invalid_context : not_initialized;
  if (size == 0) return invalid_value;
  std::size_t taken = 0;
  for (const auto& [address, each] : memory_) {
    if (each.kind != fake_kind::pinned && each.context->device == owner->device) {
      taken += each.size;
    }
  }
  if (size > fake_cuda_device_size - taken) return out_of_memory;
  fake_memory memory{kind, 0, size, owner, nullptr};
  // From the system, and never given back: bytes that are freed too early are seen as such.
  void* const bytes = ::mmap(nullptr, whole_pages(size), PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (bytes == MAP_FAILED) return out_of_memory;
  memory.bytes = static_cast<std::byte*>(bytes);
  memory.address =
      kind == fake_kind::device ? reserve(size) : reinterpret_cast<std::uintptr_t>(bytes);
  if (memory.address == 0) return out_of_memory;
  // What nobody wrote is not zero.
  if (kind == fake_kind::device) std::memset(memory.bytes, 0xA5, size);
  memory_[memory.address] = memory;
  *made = memory.address;
  return success;
}

int fake_cuda::free(std::uint64_t address, bool pinned) {
  const std::lock_guard guard(mutex_);
  if (current() == nullptr) return invalid_context;
  const auto found = memory_.find(address);
  if (found == memory_.end()) return invalid_value;
  if ((found->second.kind == fake_kind::pinned) != pinned) return invalid_value;
  if (found->second.registered) return invalid_value;
  retire(found->second);
  memory_.erase(found);
  return success;
}

int fake_cuda::enlist(void* memory, std::size_t size) {
  const std::lock_guard guard(mutex_);
  CUctx_st* const owner = current();
  if (owner == nullptr) return invalid_context;
  const std::uint64_t address = reinterpret_cast<std::uintptr_t>(memory);
  if (holder(address) != nullptr || holder(address + size - 1) != nullptr) {
    return already_registered;
  }
  memory_[address] = {
      fake_kind::pinned, address, size, owner, static_cast<std::byte*>(memory), true};
  return success;
}

int fake_cuda::strike_off(void* memory) {
  const std::lock_guard guard(mutex_);
  if (current() == nullptr) return invalid_context;
  const auto found = memory_.find(reinterpret_cast<std::uintptr_t>(memory));
  if (found == memory_.end() || !found->second.registered) return invalid_value;
  memory_.erase(found);
  return success;
}

/// The pages of the system go, the addresses stay taken.
void fake_cuda::retire(const fake_memory& memory) {
  if (memory.registered) return;
  ::madvise(memory.bytes, whole_pages(memory.size), MADV_DONTNEED);
  ::mprotect(memory.bytes, whole_pages(memory.size), PROT_NONE);
  gone_[memory.address] = memory.size;
}

bool fake_cuda::is_gone(std::uint64_t address) const {
  const auto after = gone_.upper_bound(address);
  return after != gone_.begin() && address - std::prev(after)->first < std::prev(after)->second;
}

fake_memory* fake_cuda::holder(std::uint64_t address) {
  auto after = memory_.upper_bound(address);
  if (after == memory_.begin()) return nullptr;
  fake_memory& before = std::prev(after)->second;
  return includes(before, address, 1) ? &before : nullptr;
}

std::optional<fake_memory> fake_cuda::find(std::uint64_t address) {
  const std::lock_guard guard(mutex_);
  const fake_memory* const found = holder(address);
  return found != nullptr ? std::optional(*found) : std::nullopt;
}

/// Returns the bytes at `address`: of the host, if no allocation has them.
std::byte* fake_cuda::reach(std::uint64_t address, std::size_t size, bool* on_device, int* result) {
  *on_device = false;
  const fake_memory* const found = holder(address);
  if (found == nullptr) {
    if (is_gone(address)) *result = invalid_value;
    return reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(address));
  }
  if (!includes(*found, address, size)) *result = invalid_value;
  *on_device = found->kind != fake_kind::pinned;
  return found->bytes + (address - found->address);
}

int fake_cuda::check(const fake_copy& wanted) {
  int result = success;
  bool on_device = false;
  reach(wanted.into, wanted.size, &on_device, &result);
  if (!wanted.fill) reach(wanted.from, wanted.size, &on_device, &result);
  return result;
}

int fake_cuda::run(const fake_copy& wanted) {
  if (const int failure = enter_locked("copy")) return failure;
  int result = success;
  bool into_device = false;
  bool from_device = false;
  std::byte* const into = reach(wanted.into, wanted.size, &into_device, &result);
  if (result != success) return illegal_address;
  if (wanted.fill) {
    std::memset(into, *wanted.fill, wanted.size);
    return success;
  }
  const std::byte* const from = reach(wanted.from, wanted.size, &from_device, &result);
  if (result != success) return illegal_address;
  std::memcpy(into, from, wanted.size);
  const auto direction = into_device
                             ? (from_device ? fake_cuda_within_devices : fake_cuda_to_device)
                             : (from_device ? fake_cuda_from_device : fake_cuda_within_host);
  ++copies_[direction];
  bytes_[direction] += wanted.size;
  return success;
}

int fake_cuda::start(CUstream_st* stream, const fake_copy& wanted) {
  const std::lock_guard guard(mutex_);
  const auto found = streams_.find(stream);
  if (current() == nullptr) return invalid_context;
  if (found == streams_.end()) return invalid_handle;
  if (stream->context != current()) return invalid_handle;
  if (const int failure = check(wanted)) return failure;
  found->second.push_back({wanted});
  changed_.notify_all();
  return success;
}

int fake_cuda::copy_now(const fake_copy& wanted) {
  const std::lock_guard guard(mutex_);
  if (current() == nullptr) return invalid_context;
  const int failure = check(wanted);
  return failure != success ? failure : run(wanted);
}

CUctx_st* fake_cuda::make_context(int device) {
  all_contexts_.push_back(std::make_shared<CUctx_st>(CUctx_st{device, 0}));
  return all_contexts_.back().get();
}

int fake_cuda::make_stream(CUstream_st** made) {
  const std::lock_guard guard(mutex_);
  if (current() == nullptr) return initialised_ ? invalid_context : not_initialized;
  all_streams_.push_back(std::make_shared<CUstream_st>(CUstream_st{current(), success}));
  *made = all_streams_.back().get();
  streams_[*made];
  return success;
}

int fake_cuda::wait_for(CUstream_st* stream) {
  std::unique_lock guard(mutex_);
  if (current() == nullptr) return invalid_context;
  if (streams_.count(stream) == 0) return invalid_handle;
  changed_.wait(guard, [&] {
    const auto found = streams_.find(stream);
    return found == streams_.end() || (found->second.empty() && running_ != stream);
  });
  if (streams_.count(stream) == 0) return invalid_handle;
  if (contexts_.count(stream->context) == 0) return context_is_destroyed;
  return std::exchange(stream->failed, success);
}

int fake_cuda::end_stream(CUstream_st* stream) {
  const std::lock_guard guard(mutex_);
  return streams_.erase(stream) > 0 ? success : invalid_handle;
}

int fake_cuda::make_event(CUevent_st** made) {
  const std::lock_guard guard(mutex_);
  if (current() == nullptr) return initialised_ ? invalid_context : not_initialized;
  all_events_.push_back(std::make_shared<CUevent_st>(CUevent_st{current()}));
  *made = all_events_.back().get();
  events_.insert(*made);
  return success;
}

int fake_cuda::record(CUevent_st* event, CUstream_st* stream) {
  const std::lock_guard guard(mutex_);
  if (current() == nullptr) return invalid_context;
  const auto found = streams_.find(stream);
  if (found == streams_.end() || events_.count(event) == 0) return invalid_handle;
  if (event->context != stream->context) return invalid_handle;
  ++event->recorded;
  found->second.push_back({.reaches = event});
  changed_.notify_all();
  return success;
}

int fake_cuda::await(CUstream_st* stream, CUevent_st* event) {
  const std::lock_guard guard(mutex_);
  if (current() == nullptr) return invalid_context;
  const auto found = streams_.find(stream);
  if (found == streams_.end() || events_.count(event) == 0) return invalid_handle;
  found->second.push_back({.awaits = event, .count = event->recorded});
  changed_.notify_all();
  return success;
}

int fake_cuda::wait_for(CUevent_st* event) {
  std::unique_lock guard(mutex_);
  if (current() == nullptr) return invalid_context;
  if (events_.count(event) == 0) return invalid_handle;
  const unsigned count = event->recorded;
  changed_.wait(guard, [&] { return events_.count(event) == 0 || event->reached >= count; });
  if (events_.count(event) == 0) return context_is_destroyed;
  return std::exchange(event->failed, success);
}

int fake_cuda::end_event(CUevent_st* event) {
  const std::lock_guard guard(mutex_);
  return events_.erase(event) > 0 ? success : invalid_handle;
}

int fake_cuda::is_active(int device, int* active) {
  const std::lock_guard guard(mutex_);
  const auto found = primary_.find(device);
  *active = found != primary_.end() && found->second != nullptr ? 1 : 0;
  return success;
}

void fake_cuda::begin_capture() {
  const std::lock_guard guard(mutex_);
  capturing_ = true;
  spoiled_ = false;
}

bool fake_cuda::end_capture() {
  const std::lock_guard guard(mutex_);
  return std::exchange(capturing_, false) && !spoiled_;
}

bool fake_cuda::may_run(const CUstream_st& stream, const std::deque<fake_step>& steps) {
  if (stream.held || steps.empty()) return false;
  const fake_step& next = steps.front();
  return next.awaits == nullptr || next.awaits->reached >= next.count;
}

void fake_cuda::run_step(CUstream_st& stream, const fake_step& next) {
  if (next.awaits != nullptr) return;
  if (next.reaches != nullptr) {
    ++next.reaches->reached;
    next.reaches->failed = std::exchange(stream.failed, success);
    return;
  }
  const int failed = run(next.copy);
  if (stream.failed == success) stream.failed = failed;
}

/// Takes a stream by chance, and does its next step; in between others may come.
void fake_cuda::run_copies() {
  std::unique_lock guard(mutex_);
  for (;;) {
    std::vector<CUstream_st*> ready;
    for (auto& [stream, steps] : streams_) {
      if (may_run(*stream, steps)) ready.push_back(stream);
    }
    if (held_ || ready.empty()) {
      changed_.wait(guard);
      continue;
    }
    CUstream_st* const chosen = ready[random_() % ready.size()];
    const std::chrono::microseconds late(random_() % 50);
    running_ = chosen;
    guard.unlock();
    std::this_thread::sleep_for(late);
    guard.lock();
    running_ = nullptr;
    const auto found = streams_.find(chosen);
    if (found != streams_.end() && may_run(*chosen, found->second)) {
      const fake_step next = found->second.front();
      found->second.pop_front();
      run_step(*chosen, next);
    }
    changed_.notify_all();
  }
}

void fake_cuda::hold_stream(CUstream_st* stream, bool hold) {
  const std::lock_guard guard(mutex_);
  stream->held = hold;
  changed_.notify_all();
}

std::size_t fake_cuda::events() {
  const std::lock_guard guard(mutex_);
  return events_.size();
}

std::size_t fake_cuda::registered() {
  const std::lock_guard guard(mutex_);
  std::size_t sum = 0;
  for (const auto& [address, each] : memory_) sum += each.registered ? each.size : 0;
  return sum;
}

std::size_t fake_cuda::late_uses() {
  const std::lock_guard guard(mutex_);
  return late_uses_;
}

void fake_cuda::hold_copies(bool hold) {
  const std::lock_guard guard(mutex_);
  held_ = hold;
  changed_.notify_all();
}

std::size_t fake_cuda::waiting_copies() {
  const std::lock_guard guard(mutex_);
  std::size_t count = 0;
  for (const auto& [stream, steps] : streams_) {
    for (const fake_step& each : steps) count += each.copy.size > 0 ? 1 : 0;
  }
  return count;
}

std::uint64_t fake_cuda::copies(fake_cuda_direction direction) {
  const std::lock_guard guard(mutex_);
  return copies_[direction];
}

std::uint64_t fake_cuda::bytes(fake_cuda_direction direction) {
  const std::lock_guard guard(mutex_);
  return bytes_[direction];
}

std::size_t fake_cuda::allocated() {
  const std::lock_guard guard(mutex_);
  std::size_t sum = 0;
  for (const auto& [address, each] : memory_) sum += each.registered ? 0 : each.size;
  return sum;
}

std::size_t fake_cuda::streams() {
  const std::lock_guard guard(mutex_);
  return streams_.size();
}

std::size_t fake_cuda::contexts() {
  const std::lock_guard guard(mutex_);
  return contexts_.size();
}

}  // namespace ucx::test
