#include "fake_device.hpp"

#include <unistd.h>
#include <cstdlib>
#include <utility>

#include "fake_results.hpp"

namespace ucx::test {
namespace {

constexpr int global_capture = 0;
constexpr int relaxed_capture = 2;
constexpr int most_devices = 1024;

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
                                              "cuEventQuery",
                                              "cuEventSynchronize",
                                              "cuIpcOpenMemHandle",
                                              "cuIpcCloseMemHandle",
                                              "cuMemCreate",
                                              "cuMemMap",
                                              "cuMemUnmap",
                                              "cuMemSetAccess",
                                              "cuMemPoolImportFromShareableHandle",
                                              "cuMemPoolImportPointer",
                                              "cuDevicePrimaryCtxRetain"};

}  // namespace

current_contexts& context_stack() {
  thread_local current_contexts stack;
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
  ++generation_;
  devices_ = devices;
  random_.seed(seed);
  if (!thread_.joinable()) thread_ = std::thread([this] { run_copies(); });
}

void fake_cuda::forget() {
  initialised_ = false;
  initialised_in_ = 0;
  refuses_unknown_ = false;
  allows_stream_mem_ops_ = false;
  in_reach_ = true;
  adapter_order_ = order_of_owner;
  arrivals_.clear();
  plans_.clear();
  calls_.clear();
  primary_.clear();
  contexts_.clear();  // handles of before are no handles any more
  forget_virtual();
  for (const auto& [address, each] : memory_) retire(each);
  memory_.clear();
  streams_.clear();
  events_.clear();
  late_uses_ = 0;
  ended_.clear();
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
  initialised_in_ = ::getpid();
  return success;
}

bool fake_cuda::is_inherited() const {
  const int by = initialised_in_;
  return by != 0 && by != ::getpid();
}

bool fake_cuda::is_initialised() {
  const std::lock_guard guard(mutex_);
  return initialised_;
}

int fake_cuda::devices() {
  const std::lock_guard guard(mutex_);
  return devices_;
}

int fake_cuda::number_of(int ordinal) {
  const std::lock_guard guard(mutex_);
  return generation_ * most_devices + ordinal;
}

/// Programs that know nothing of numbers say the ordinal.
int fake_cuda::ordinal_of(int device) {
  const std::lock_guard guard(mutex_);
  if (device < most_devices || device / most_devices == generation_) return device % most_devices;
  return -1;
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
  ended_.insert(context);
  context_stack().erase(context);
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
    if (ended_.count(context) != 0) ++late_uses_;
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

CUctx_st* fake_cuda::make_context(int device) {
  all_contexts_.push_back(std::make_shared<CUctx_st>(CUctx_st{device, 0}));
  return all_contexts_.back().get();
}

int fake_cuda::is_active(int device, int* active) {
  const std::lock_guard guard(mutex_);
  const auto found = primary_.find(device);
  *active = found != primary_.end() && found->second != nullptr ? 1 : 0;
  return success;
}

int fake_cuda::device_of_context(int* device) {
  const std::lock_guard guard(mutex_);
  if (current() == nullptr) return invalid_context;
  *device = generation_ * most_devices + current()->device;
  return success;
}

int fake_cuda::attribute_of_device(int attribute, int device, int* value) {
  const std::lock_guard guard(mutex_);
  constexpr int can_use_stream_mem_ops = 92;
  if (device / most_devices != generation_ || device % most_devices >= devices_) {
    return invalid_device;
  }
  constexpr int can_use_adapters = 116;
  constexpr int flush_options = 117;
  constexpr int adapter_order = 118;
  constexpr int flushed_by_host = 1;
  switch (attribute) {
    case can_use_stream_mem_ops:
      *value = allows_stream_mem_ops_ ? 1 : 0;
      return success;
    case can_use_adapters:
      *value = in_reach_ ? 1 : 0;
      return success;
    case flush_options:
      *value = in_reach_ ? flushed_by_host : 0;
      return success;
    case adapter_order:
      *value = in_reach_ ? adapter_order_ : 0;
      return success;
    default:
      return invalid_value;
  }
}

void fake_cuda::allow_stream_mem_ops(bool allow) {
  const std::lock_guard guard(mutex_);
  allows_stream_mem_ops_ = allow;
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

std::size_t fake_cuda::late_uses() {
  const std::lock_guard guard(mutex_);
  return late_uses_;
}

std::uint64_t fake_cuda::copies(fake_cuda_direction direction) {
  const std::lock_guard guard(mutex_);
  return copies_[direction];
}

std::uint64_t fake_cuda::bytes(fake_cuda_direction direction) {
  const std::lock_guard guard(mutex_);
  return bytes_[direction];
}

std::size_t fake_cuda::contexts() {
  const std::lock_guard guard(mutex_);
  return contexts_.size();
}

}  // namespace ucx::test
