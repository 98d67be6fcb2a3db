// What a careful programmer writes by hand against UCX: the measure for our streams.
#pragma once

#include <ucp/api/ucp.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ucx::benchmarks {

/// UCX's settings, the same on both sides and the same as ucxio's.
struct raw_fabric {
  std::string transports;
  std::string devices;         ///< Empty: UCX's choice.
  std::string segment_size;    ///< Of TCP; empty: UCX's default.
  bool messages = true;        ///< Active messages, and endpoints that watch their peer.
  bool every_message = false;  ///< Messages of every kind.
  bool wakeup = false;         ///< Workers can sleep until something comes.
};

/// A context, and a worker that the calling thread drives.
class raw_worker {
 public:
  explicit raw_worker(const raw_fabric& fabric);
  raw_worker(const raw_worker&) = delete;
  raw_worker& operator=(const raw_worker&) = delete;
  ~raw_worker();

  ucp_context_h context() const noexcept { return context_; }
  ucp_worker_h handle() const noexcept { return worker_; }
  std::vector<std::byte> address() const;
  ucp_ep_h connect(std::span<const std::byte> address) const;
  void handle_messages(unsigned id, ucp_am_recv_callback_t handler, void* argument) const;
  unsigned progress() const noexcept { return ucp_worker_progress(worker_); }
  /// Sleeps until something comes, a millisecond at most. REQUIRES: `raw_fabric::wakeup`.
  void sleep() const noexcept;

 private:
  bool watch_peers_;
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
};

/// What a client needs to reach an owner's memory.
struct raw_target {
  std::vector<std::byte> address;
  std::vector<std::byte> key;
  std::uint64_t base = 0;
  std::uint64_t size = 0;
};

/// What a client asks the owner for; also the header of the answers.
struct raw_header {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  std::uint64_t piece = 0;  ///< Bytes of one answer at most.
  std::uint64_t place = 0;  ///< Of an answer: where in the destination it belongs.
  std::uint64_t region = 0;
  std::uint64_t slot = 0;
  std::uint64_t client = 0;      ///< Whom to answer; the answer to hello tells it.
  std::uint64_t rendezvous = 0;  ///< Whether the answers go by rendezvous, not eagerly.
};

/// Keeps headers alive until UCX has sent them: 1.13 does not copy them.
class raw_sender {
 public:
  void send(ucp_ep_h to, unsigned id, const raw_header& header, std::span<const std::byte> bytes);
  void send_by_rendezvous(ucp_ep_h to, unsigned id, const raw_header& header,
                          std::span<const std::byte> bytes);
  unsigned in_flight() const noexcept { return in_flight_; }

 private:
  struct sent {
    raw_sender* sender = nullptr;
    raw_header header;
  };
  void send(ucp_ep_h to, unsigned id, const raw_header& header, std::span<const std::byte> bytes,
            std::uint32_t flags);
  static void on_sent(void* request, ucs_status_t status, void* argument);
  void give_back(sent& unused);

  unsigned in_flight_ = 0;
  std::vector<std::unique_ptr<sent>> all_;
  std::vector<sent*> free_;
};

/// Exposes memory to UCX's RMA, and answers reads and writes by active messages.
class raw_owner {
 public:
  explicit raw_owner(const raw_fabric& fabric);

  /// Exposes `bytes`. Lifetime: `bytes`, until the process ends.
  raw_target expose(std::span<std::byte> bytes);
  /// Allocates memory as UCX likes it (in shared memory, where the fabric has that), and exposes
  /// it.
  std::span<std::byte> allocate(std::size_t size, raw_target& target);
  ucp_context_h context() const noexcept { return worker_.context(); }
  unsigned progress() const noexcept { return worker_.progress(); }
  void sleep() const noexcept { worker_.sleep(); }

 private:
  raw_target add(ucp_mem_h memory, std::span<std::byte> bytes);
  static ucs_status_t on_hello(void* self, const void* header, std::size_t header_length,
                               void* data, std::size_t length, const ucp_am_recv_param_t*);
  static ucs_status_t on_read(void* self, const void* header, std::size_t header_length, void* data,
                              std::size_t length, const ucp_am_recv_param_t*);
  static ucs_status_t on_write(void* self, const void* header, std::size_t header_length,
                               void* data, std::size_t length, const ucp_am_recv_param_t*);

  raw_worker worker_;
  std::vector<ucp_ep_h> clients_;
  raw_sender sender_;
  std::vector<std::span<std::byte>> regions_;
};

/// How a raw loop moves the bytes: by UCX's get and put, by eager active messages, or (reads) by
/// those that the reader asks for when it knows where they go.
enum class raw_way { rma, message, rendezvous };

/// One way to write the loop.
struct raw_loop {
  raw_way way = raw_way::rma;
  unsigned window = 1;     ///< Calls in flight.
  std::size_t call = 0;    ///< Bytes of one call.
  std::size_t piece = 0;   ///< Bytes of one message at most; 0: those of the call.
  std::size_t stride = 0;  ///< From one call's offset to the next one's; 0: the bytes of the call.
  bool flushes = false;    ///< Each write, before the next one.
  bool sleeps = false;     ///< While a read has not come, or a write not gone; else it spins.
};

/// Where call number `number` of a loop goes in a region of `size` bytes: one after the other, or
/// `stride` apart, and from the beginning again.
constexpr std::uint64_t call_offset(std::uint64_t number, std::size_t call, std::size_t stride,
                                    std::uint64_t size) noexcept {
  if (stride == 0) return number * call % (size - size % call);
  return number * stride % (size - call);
}

/// Reads and writes one of an owner's regions.
class raw_client {
 public:
  /// `region` is the number of the region in the order in which the owner exposed them.
  raw_client(const raw_fabric& fabric, const raw_target& target, std::uint64_t region);
  raw_client(const raw_client&) = delete;
  raw_client& operator=(const raw_client&) = delete;
  ~raw_client();

  /// Reads one call after the other for about `duration`, and returns calls a second. Throws unless
  /// each call's first and last word is what `pattern_word` says.
  double read(const raw_loop& loop, std::chrono::nanoseconds duration);
  /// The same by many, each with a window of its own, in turns by one thread: calls of all a
  /// second.
  static double read_at_once(std::span<raw_client* const> readers, const raw_loop& loop,
                             std::chrono::nanoseconds duration);
  /// Writes `from` again and again, and returns calls a second, until all was visible at the owner.
  double write(const raw_loop& loop, std::span<const std::byte> from,
               std::chrono::nanoseconds duration);
  /// Reads `into.size()` bytes once.
  void read_one(const raw_loop& loop, std::uint64_t offset, std::span<std::byte> into);
  /// Where the last call of `read` or `write` went.
  std::uint64_t last_offset() const noexcept { return last_offset_; }

 private:
  static constexpr unsigned slots = 64;
  struct slot {
    std::byte* into = nullptr;
    std::size_t missing = 0;
  };
  static ucs_status_t on_data(void* self, const void* header, std::size_t header_length, void* data,
                              std::size_t length, const ucp_am_recv_param_t*);
  static ucs_status_t on_confirmation(void* self, const void* header, std::size_t header_length,
                                      void* data, std::size_t length, const ucp_am_recv_param_t*);
  static void on_fetched(void* request, ucs_status_t status, std::size_t length, void* slot);
  static void on_got(void* request, ucs_status_t status, void* slot);
  static void on_put(void* request, ucs_status_t status, void* self);

  void begin_reading(const raw_loop& loop);
  unsigned read_on(const raw_loop& loop, bool stopping);
  void ask(const raw_loop& loop, unsigned number, std::uint64_t offset);
  void put(const raw_loop& loop, std::uint64_t offset, std::span<const std::byte> from);
  void flush(const raw_loop& loop);
  std::byte* buffer(const raw_loop& loop, unsigned number);
  template <class Condition>
  void progress_until(Condition condition);
  template <class Condition>
  void progress_or_sleep_until(const raw_loop& loop, Condition condition);

  raw_worker worker_;
  raw_target target_;
  std::uint64_t region_;
  std::uint64_t number_ = 0;  // of this client, at its owner
  ucp_ep_h owner_ = nullptr;
  ucp_rkey_h key_ = nullptr;
  raw_sender sender_;
  std::vector<std::byte> buffers_;
  std::array<slot, slots> slots_;
  unsigned asked_ = 0;  // reads of this pass
  unsigned taken_ = 0;
  unsigned puts_in_flight_ = 0;
  std::uint64_t confirmations_ = 0;
  std::uint64_t confirmed_bytes_ = 0;
  std::uint64_t last_offset_ = 0;
};

/// The eight bytes at `offset` of memory that is read in a benchmark.
constexpr std::uint64_t pattern_word(std::uint64_t offset) noexcept {
  return offset * 0x9e3779b97f4a7c15U;
}
void fill_pattern(std::span<std::byte> bytes);
/// Throws unless the first and last eight of `bytes` are the pattern at `offset`.
void check_pattern(std::span<const std::byte> bytes, std::uint64_t offset);

}  // namespace ucx::benchmarks
