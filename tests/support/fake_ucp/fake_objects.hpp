// What the fake's handles point to. Plain data: `sim::fabric` and `fake_ucp` give it its meaning.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "support/fake_ucp/fault_plan.hpp"
#include "support/fake_ucp/seam_call.hpp"
#include "ucp/ucp_api.hpp"

namespace ucx::test::sim {

using clock = detail::clock;
using std::chrono::nanoseconds;

struct worker_object;
struct endpoint_object;
struct connection;

struct process_state {
  process_state(std::string given_name, std::uint64_t seed)
      : name(std::move(given_name)), faults(seed) {}

  std::string name;
  std::function<void()> pump;
  fault_plan faults;
  std::array<std::uint64_t, call_count> calls{};
  std::uint64_t calls_after_death = 0;
  bool stopped = false;
  bool killed = false;
  bool running = false;  // on the stack: must not be pumped again
  bool sources_may_change = false;
};

struct config_object {
  std::map<std::string, std::string> values;
};

/// "tcp/lo" taken apart.
struct lane {
  std::string transport;
  std::string device;
};

struct context_object {
  process_state* process = nullptr;
  std::uint64_t features = 0;
  std::vector<lane> lanes;
  bool knows_devices = false;
  bool emulates = true;
  std::size_t workers = 0;
  std::size_t memories = 0;
};

struct memory_object {
  memory_object() noexcept = default;
  memory_object(const memory_object&) = delete;
  memory_object& operator=(const memory_object&) = delete;
  ~memory_object() { std::free(allocated); }

  context_object* context = nullptr;
  std::uint64_t id = 0;
  std::byte* base = nullptr;
  std::size_t length = 0;
  void* allocated = nullptr;
  ucs_memory_type_t type = UCS_MEMORY_TYPE_HOST;
  bool in_reach = true;  // of adapters, when it was mapped
};

struct rkey_object {
  endpoint_object* endpoint = nullptr;
  std::uint64_t memory_id = 0;
  ucs_memory_type_t type = UCS_MEMORY_TYPE_HOST;
};

/// What the user holds while an operation is in flight.
struct request_object {
  worker_object* worker = nullptr;
  call kind = call::am_send;
  bool has_callback = false;
  ucp_send_nbx_callback_t on_sent = nullptr;
  ucp_am_recv_data_nbx_callback_t on_received = nullptr;
  void* user_data = nullptr;
  bool completed = false;
  bool released = false;
  nanoseconds delay = nanoseconds::zero();
};
using request_ptr = std::shared_ptr<request_object>;

/// An operation of one side of a connection, from its call until the peer can not touch it either.
struct operation {
  std::uint64_t id = 0;
  call kind = call::am_send;
  request_ptr request;  // none once it completed, or when it completed inline
  const std::byte* header = nullptr;
  std::size_t header_size = 0;
  std::uint64_t header_sum = 0;
  const std::byte* source = nullptr;
  std::byte* target = nullptr;
  std::size_t size = 0;
  std::size_t received = 0;
  std::vector<std::uint64_t> sums;  // of the source, one a segment, as they were at the call
};
using operation_ptr = std::shared_ptr<operation>;

enum class frame_kind {
  message,     // a piece of an eager active message
  offer,       // rendezvous: a message that the receiver may fetch
  fetch,       // rendezvous: send it
  fetched,     // rendezvous: a piece of it
  fetch_done,  // rendezvous: it arrived, or was dropped
  get_request,
  get_data,
  put_data,
  put_done,
  connect,
  accepted,
  closed,
};

/// What travels: one piece of an operation of the side that `operation` counts for.
struct frame {
  frame_kind kind = frame_kind::message;
  std::shared_ptr<connection> link;
  int to = 0;
  std::uint64_t operation = 0;
  std::uint64_t peer_operation = 0;
  std::size_t offset = 0;
  std::size_t total = 0;
  std::size_t charged = 0;  // bytes of the socket buffer that it occupies
  unsigned am_id = 0;
  bool reply = false;
  bool by_adapter = false;
  std::uint64_t address = 0;
  std::uint64_t memory_id = 0;
  ucs_status_t status = UCS_OK;
  std::vector<std::byte> header;
  std::vector<std::byte> bytes;
  std::size_t missing = 0;  // bytes that a weightless message does not carry
};

/// A frame, or a row of them, on its way into the wire.
struct transmission {
  std::uint64_t id = 0;
  frame prototype;
  operation_ptr source_operation;     // whose memory is read when the wire takes a piece
  const std::byte* source = nullptr;  // null: the prototype carries its own bytes
  std::size_t size = 0;
  std::size_t sent = 0;
  bool damaged = false;  // each piece arrives with another last bit
};

/// One direction of a connection, in order. `hardware` needs no process.
struct wire {
  std::deque<transmission> queue;
  bool busy = false;
  bool hardware = false;
  std::size_t in_flight = 0;
};

struct assembly {
  std::vector<std::byte> header;
  std::vector<std::byte> bytes;
  std::size_t received = 0;
  bool weightless = false;
};

struct side {
  worker_object* worker = nullptr;
  endpoint_object* endpoint = nullptr;
  bool open = false;     // may put frames on the wire
  bool leaving = false;  // its endpoint is being closed in order
  bool closed = false;   // takes no more frames
  bool left = false;     // by its peer: nothing of that is to be waited for
  sockaddr_storage address{};
  wire software;
  wire hardware;
  std::map<std::uint64_t, operation_ptr> operations;
  std::map<std::uint64_t, assembly> incoming;
};

struct connection {
  std::array<side, 2> sides;
  bool by_socket = false;
  bool detects_failure = false;
  std::uint64_t number = 0;  // of the connections between two workers by address
};
using connection_ptr = std::shared_ptr<connection>;

inline side& side_of(const connection_ptr& link, int index) {
  return link->sides[static_cast<std::size_t>(index)];
}

struct endpoint_object {
  worker_object* worker = nullptr;
  connection_ptr link;
  int index = 0;
  bool created = false;  // by a call, not by the peer's first message
  bool detects_failure = false;
  ucp_err_handler_t on_error{};
  ucs_status_t failure = UCS_OK;
  std::size_t rkeys = 0;
};

struct listener_object {
  worker_object* worker = nullptr;
  std::uint16_t port = 0;
  ucp_listener_conn_handler_t on_connect{};
  sockaddr_storage address{};
};

struct conn_request_object {
  worker_object* worker = nullptr;
  connection_ptr link;
};

struct completion {
  request_ptr request;
  ucs_status_t status = UCS_OK;
  std::size_t length = 0;
};

struct endpoint_error {
  endpoint_object* endpoint = nullptr;
  ucs_status_t status = UCS_OK;
};

using item = std::variant<frame, completion, endpoint_error>;

/// A message of which the receiver was told, and that it may fetch.
struct offered_message {
  connection_ptr link;
  int index = 0;  // the receiver's side
  std::uint64_t peer_operation = 0;
  std::size_t size = 0;
};

struct am_handler {
  ucp_am_recv_callback_t call = nullptr;
  void* argument = nullptr;
  std::uint32_t flags = 0;
};

struct worker_object {
  process_state* process = nullptr;
  context_object* context = nullptr;
  std::uint64_t id = 0;
  ucs_thread_mode_t threads = UCS_THREAD_MODE_SINGLE;
  std::atomic<std::thread::id> user{};  // the thread that is inside a call
  bool progressing = false;
  int event_fd = -1;
  bool armed = false;
  bool signalled = false;
  bool wants_push = false;  // a wire is free for the next piece
  std::deque<item> items;
  std::map<unsigned, am_handler> handlers;
  std::vector<connection_ptr> links;
  std::map<std::uint64_t, std::uint64_t> connections_to;  // by worker id: how many
  std::map<void*, std::vector<std::byte>> kept;           // data that a handler kept
  std::map<void*, std::unique_ptr<offered_message>> offers;
};

}  // namespace ucx::test::sim
