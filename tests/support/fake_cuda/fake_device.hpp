// The state of the pretended driver: contexts, memory, streams.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "fake_cuda.hpp"

struct CUctx_st {
  int device = 0;
  int users = 0;  // of a primary one
};

struct CUstream_st {
  CUctx_st* context = nullptr;
  int failed = 0;  // what the first copy that failed said
  bool held = false;
  bool captures = false;
};

struct CUevent_st {
  CUctx_st* context = nullptr;
  unsigned recorded = 0;  // how often it was enqueued,
  unsigned reached = 0;   // and how often a stream has come to it
  int failed = 0;         // what the stream's copies before it said
};

namespace ucx::test {

enum class fake_kind { device, managed, pinned, opened, mapped, pooled, imported };

/// What each device may do with memory: CUmemAccess_flags.
using fake_access = std::map<int, unsigned>;

}  // namespace ucx::test

/// A pool of the program's, or one of another process that was imported.
struct CUmemPoolHandle_st {
  int device = 0;
  unsigned handle_types = 0;
  int file = -1;  // what holds the bytes of its allocations
  std::size_t used = 0;
  bool imported = false;
  ucx::test::fake_access access = {};
};

namespace ucx::test {

/// One allocation. A device's has an address without any access, and its bytes elsewhere; one that
/// was opened is such memory of another process. What was registered is the program's own. One that
/// was mapped is a part of a reservation; neither that nor memory of a pool is of a context.
struct fake_memory {
  fake_kind kind = fake_kind::device;
  std::uint64_t address = 0;
  std::size_t size = 0;
  CUctx_st* context = nullptr;
  std::byte* bytes = nullptr;
  bool registered = false;
  int file = -1;             // what holds the bytes, once other processes may open them
  std::uint64_t from = 0;    // of another process: which file's
  std::uint64_t number = 0;  // of the allocation: no other has it
  int device = 0;            // where there is no context
  std::uint64_t handle = 0;  // what is mapped here
  fake_access access = {};
  CUmemPoolHandle_st* pool = nullptr;
  std::uint64_t at = 0;  // in the pool's file
};

/// What cuMemCreate makes: it stays while there are handles of it, or places where it is mapped.
struct fake_allocation {
  int file = -1;
  std::size_t size = 0;
  int device = 0;
  unsigned handle_types = 0;
  unsigned handles = 0;
  unsigned places = 0;
};

struct fake_reservation {
  std::size_t size = 0;
  std::byte* bytes = nullptr;  // where the bytes of what is mapped are
};

struct fake_copy {
  std::uint64_t into = 0;
  std::uint64_t from = 0;
  std::size_t size = 0;
  std::optional<unsigned char> fill = {};  // instead of `from`
  int device = 0;                          // which makes it
};

/// What an adapter wrote, and its device does not see yet.
struct fake_arrival {
  std::uint64_t into = 0;
  std::vector<std::byte> bytes;
};

/// What a stream does next: a copy; or it comes to an event, or waits for one, or for a word.
struct fake_step {
  fake_copy copy = {};
  CUevent_st* reaches = nullptr;
  CUevent_st* awaits = nullptr;
  unsigned count = 0;  // how often `awaits` has to have been reached
  const std::atomic<std::uint32_t>* word = nullptr;
  std::uint32_t value = 0;  // what `word` has to have
};

/// Threads: every function locks. Copies run on a thread, one at a time.
class fake_cuda {
 public:
  /// The one of the process.
  static fake_cuda& instance();
  ~fake_cuda();

  void reset(int devices, std::uint64_t seed);
  void fail(const std::string& function, int after, int times, int result);
  /// Counts a call; returns what it has to fail with, or 0.
  int enter(const std::string& function);
  std::uint64_t calls(const std::string& function);

  int initialise();
  bool is_initialised();
  /// Returns whether another process, of which this is a child, has initialised it. Locks nothing:
  /// who held the lock then is not here.
  bool is_inherited() const;
  int devices();

  int number_of(int ordinal);
  /// Returns the device of a number. One of before the last reset is none any more: who retained
  /// its context then shall not release that of now.
  int ordinal_of(int device);
  int retain(CUctx_st** made, int device);
  int release(int device);
  int create(CUctx_st** made, int device);
  int destroy(CUctx_st* context);
  int push(CUctx_st* context);
  int pop(CUctx_st** context);

  int allocate(fake_kind kind, std::size_t size, std::uint64_t* made);
  int free(std::uint64_t address, bool pinned);
  int enlist(void* memory, std::size_t size);
  int strike_off(void* memory);
  std::optional<fake_memory> find(std::uint64_t address);
  void reallocate(std::uint64_t address);
  void refuse_unknown(bool refuse);
  bool refuses_unknown();

  int share(std::uint64_t address, fake_cuda_handle* made);
  int open_shared(const fake_cuda_handle& shared, std::uint64_t* opened);
  int close_shared(std::uint64_t opened);

  int create_allocation(std::uint64_t* made, std::size_t size, const fake_cuda_properties& wanted);
  int release_allocation(std::uint64_t handle);
  int retain_allocation(std::uint64_t* made, std::uint64_t address);
  int export_allocation(int* made, std::uint64_t handle, unsigned type);
  int import_allocation(std::uint64_t* made, int file, unsigned type);
  int reserve_addresses(std::uint64_t* made, std::size_t size);
  int free_addresses(std::uint64_t address, std::size_t size);
  int map(std::uint64_t address, std::size_t size, std::size_t offset, std::uint64_t handle);
  int unmap(std::uint64_t address, std::size_t size);
  int set_access(std::uint64_t address, std::size_t size, const fake_cuda_access* wanted,
                 std::size_t count);
  int range_of(std::uint64_t* begin, std::size_t* size, std::uint64_t address);
  /// Returns what a pointer's range is: the reservation's, where it is mapped into one.
  std::pair<std::uint64_t, std::size_t> mappable_range(const fake_memory& memory);
  unsigned handle_types_of(const fake_memory& memory);

  int make_pool(CUmemPoolHandle_st** made, unsigned handle_types, int device);
  int end_pool(CUmemPoolHandle_st* pool);
  int allocate_from_pool(std::uint64_t* made, std::size_t size, CUmemPoolHandle_st* pool);
  int export_pool(int* made, CUmemPoolHandle_st* pool, unsigned type);
  int export_pool_pointer(fake_cuda_handle* made, std::uint64_t address);
  int import_pool(CUmemPoolHandle_st** made, int file, unsigned type);
  int import_pool_pointer(std::uint64_t* made, CUmemPoolHandle_st* pool,
                          const fake_cuda_handle& shared);
  int set_pool_access(CUmemPoolHandle_st* pool, const fake_cuda_access* wanted, std::size_t count);
  std::size_t handles();
  std::size_t places();
  std::size_t reservations();
  std::size_t imported_pools();

  void let_adapters_reach(bool reach);
  void order_adapter_writes(int order);
  bool do_adapters_reach(std::uint64_t address, std::size_t size);
  int read_by_adapter(void* into, std::uint64_t from, std::size_t size);
  int write_by_adapter(std::uint64_t into, const void* from, std::size_t size);
  int flush_adapter_writes(int target, int scope);
  int copy_aside(std::uint64_t device, void* host, std::size_t size, bool into_device);

  int start(CUstream_st* stream, const fake_copy& wanted);
  int copy_now(const fake_copy& wanted);
  int make_stream(CUstream_st** made);
  int wait_for(CUstream_st* stream);
  int end_stream(CUstream_st* stream);
  int make_event(CUevent_st** made);
  int record(CUevent_st* event, CUstream_st* stream);
  int await(CUstream_st* stream, CUevent_st* event);
  int look_at(CUevent_st* event);
  int wait_for(CUevent_st* event);
  int end_event(CUevent_st* event);
  int is_active(int device, int* active);
  int context_of(CUstream_st* stream, CUctx_st** context);
  int is_capturing(CUstream_st* stream, int* status);
  int await_word(CUstream_st* stream, std::uint64_t word, std::uint32_t value, unsigned flags);
  int device_of_context(int* device);
  int attribute_of_device(int attribute, int device, int* value);
  /// Returns where devices see pinned memory of the host's: nowhere near where the processor does.
  int seen_by_device(void* memory, std::uint64_t* seen);

  void begin_capture();
  bool end_capture();

  void hold_copies(bool hold);
  void hold_stream(CUstream_st* stream, bool hold);
  void capture_stream(CUstream_st* stream, bool captures);
  void allow_stream_mem_ops(bool allow);
  std::size_t waiting_copies();
  std::uint64_t copies(fake_cuda_direction direction);
  std::uint64_t bytes(fake_cuda_direction direction);
  std::size_t allocated();
  std::size_t streams();
  std::size_t contexts();
  std::size_t events();
  std::size_t registered();
  std::size_t late_uses();
  std::size_t opened();

 private:
  struct plan {
    int after = 0;
    int times = 0;
    int result = 0;
  };
  static constexpr int order_of_owner = 100;
  static constexpr std::uint64_t seen_from = std::uint64_t{1} << 56U;
  CUctx_st* current();
  int end(CUctx_st* context);
  int enter_locked(const std::string& function);
  fake_memory* holder(std::uint64_t address);
  bool is_gone(std::uint64_t address) const;
  fake_memory* in_reach(std::uint64_t address, std::size_t size);
  void store(const fake_arrival& what);
  void retire(const fake_memory& memory);
  int check(const fake_copy& wanted);
  std::byte* reach(std::uint64_t address, std::size_t size, int by, unsigned needed,
                   bool* on_device, int* result);
  bool may_access(std::uint64_t address, std::size_t size, int by, unsigned needed);
  fake_reservation* reservation_of(std::uint64_t address);
  void unmap_one(std::map<std::uint64_t, fake_memory>::iterator found);
  void forget_if_unused(std::uint64_t handle);
  void forget_virtual();
  std::size_t taken_on(int device);
  int run(const fake_copy& wanted);
  void run_step(CUstream_st& stream, const fake_step& next);
  static bool may_run(const CUstream_st& stream, const std::deque<fake_step>& steps);
  void run_copies();
  void forget();

  std::mutex mutex_;
  std::condition_variable changed_;
  bool initialised_ = false;
  std::atomic<int> initialised_in_{0};  // which process, that has not been reset since
  bool refuses_unknown_ = false;
  bool allows_stream_mem_ops_ = false;
  bool in_reach_ = true;  // of adapters
  int adapter_order_ = order_of_owner;
  std::vector<fake_arrival> arrivals_;  // the oldest first
  std::uint64_t last_number_ = 0;
  int devices_ = 0;
  int generation_ = 0;
  std::mt19937_64 random_;
  std::map<std::string, plan> plans_;
  std::map<std::string, std::uint64_t> calls_;
  std::map<int, CUctx_st*> primary_;
  std::set<CUctx_st*> contexts_;
  std::set<CUctx_st*> ended_;                            // since the driver was new
  std::vector<std::shared_ptr<CUctx_st>> all_contexts_;  // so that no address is used again
  CUctx_st* make_context(int device);
  std::map<std::uint64_t, fake_memory> memory_;
  std::map<std::uint64_t, std::size_t> gone_;  // what was freed: no address of anything any more
  std::map<std::uint64_t, fake_allocation> allocations_;
  std::map<std::uint64_t, fake_reservation> reservations_;
  std::set<CUmemPoolHandle_st*> pools_;
  std::vector<std::shared_ptr<CUmemPoolHandle_st>> all_pools_;  // so that no address is used again
  std::map<CUstream_st*, std::deque<fake_step>> streams_;
  std::set<CUevent_st*> events_;
  std::vector<std::shared_ptr<CUevent_st>> all_events_;  // so that no address is used again
  std::size_t late_uses_ = 0;
  bool capturing_ = false;
  bool spoiled_ = false;                                   // the capture
  std::vector<std::shared_ptr<CUstream_st>> all_streams_;  // so that no address is used again
  CUstream_st* running_ = nullptr;
  std::array<std::uint64_t, 4> copies_{};
  std::array<std::uint64_t, 4> bytes_{};
  bool held_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

/// This thread's cuThreadExchangeStreamCaptureMode.
int& capture_mode();

/// The contexts that a thread has made current, the last one on top. Needs no destruction: static
/// objects use the driver when the variables of the main thread are gone.
class current_contexts {
 public:
  bool empty() const noexcept { return count_ == 0; }
  std::size_t size() const noexcept { return count_; }
  CUctx_st* back() const { return all_.at(count_ - 1); }
  void push_back(CUctx_st* context) { all_.at(count_++) = context; }
  void pop_back() noexcept { --count_; }
  void clear() noexcept { count_ = 0; }
  void erase(CUctx_st* context) noexcept {
    const auto end = std::remove(all_.begin(), all_.begin() + count_, context);
    count_ = static_cast<std::size_t>(end - all_.begin());
  }

 private:
  std::array<CUctx_st*, 64> all_{};
  std::size_t count_ = 0;
};

/// Contexts that are pushed on this thread, the current one last.
current_contexts& context_stack();

}  // namespace ucx::test
