// The engine of the fake: time and its events, connections and what travels on them.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "support/fake_ucp/fake_devices.hpp"
#include "support/fake_ucp/fake_network.hpp"
#include "support/fake_ucp/fake_objects.hpp"
#include "support/fake_ucp/simulation_lock.hpp"

namespace ucx::test::sim {

using lock_type = std::unique_lock<simulation_lock>;

/// Objects behind handles of one type. What was removed keeps its memory until the network goes, so
/// that a call with a stale handle is noticed instead of undefined.
template <class Object>
class registry {
 public:
  Object* add(std::unique_ptr<Object> object) {
    Object* const raw = object.get();
    live_.insert(raw);
    all_.push_back(std::move(object));
    return raw;
  }
  bool remove(const void* handle) { return live_.erase(handle) != 0; }
  Object* find(const void* handle) const {
    const auto found = live_.find(handle);
    return found == live_.end() ? nullptr : static_cast<Object*>(const_cast<void*>(*found));
  }
  template <class Function>
  void each(Function&& function) const {
    for (const auto& object : all_) {
      if (live_.count(object.get()) != 0) function(*object);
    }
  }
  std::size_t size() const noexcept { return live_.size(); }

 private:
  std::unordered_set<const void*> live_;
  std::vector<std::unique_ptr<Object>> all_;
};

/// Everything is guarded by `mutex`, which is free while a callback of the user runs.
class fabric {
 public:
  fabric(const link_options& options, std::uint64_t seed);

  // Time.
  clock::time_point now() const;
  void at(clock::time_point when, std::function<void()> what);
  void after(nanoseconds delay, std::function<void()> what) { at(now() + delay, std::move(what)); }
  void run_due();
  /// Pumps the other processes, and lets time pass, by `step` at most, if none of them did
  /// anything.
  void idle(lock_type& lock, process_state* caller, nanoseconds step);
  void pass(nanoseconds duration);
  bool in_pump() const noexcept { return pump_depth_ > 0; }

  void see(call kind, bool begins, std::size_t size, std::span<const std::byte> header = {}) {
    if (watcher) watcher({kind, begins, header, size});
  }

  // Complaints.
  void violate(std::string what) { violations.push_back(std::move(what)); }

  // Workers.
  void notify(worker_object& worker);
  bool is_ready(const worker_object& worker) const;
  unsigned dispatch(worker_object& worker, lock_type& lock);
  void put(worker_object& worker, item what);
  /// Calls back for the completions among a worker's items, from `first` on.
  void call_back_from(worker_object& worker, std::size_t first, lock_type& lock);
  void kill(process_state& process);

  // Connections.
  connection_ptr connect(worker_object& from, worker_object* to);
  connection_ptr find_implicit(worker_object& worker, std::uint64_t peer, std::uint64_t number);
  endpoint_object* ensure_endpoint(const connection_ptr& link, int index);
  /// Completes what is outstanding on one side with `status`, and forgets what it had to send.
  void cancel_operations(const connection_ptr& link, int index, ucs_status_t status);
  /// Lets one side notice that the connection is gone.
  void fail_side(const connection_ptr& link, int index, ucs_status_t status);
  /// Lets it notice `in` some time.
  void announce_death(const connection_ptr& link, int index, ucs_status_t status, nanoseconds in);
  /// Ends one side from within: nothing more arrives or leaves, and the peer notices.
  void shut(const connection_ptr& link, int index, ucs_status_t status);
  void dial(const connection_ptr& link, const sockaddr_storage& to, nanoseconds delay);
  listener_object* find_listener(const sockaddr_storage& address) const;

  // Operations.
  operation_ptr begin(const connection_ptr& link, int index, call kind);
  void finish(const connection_ptr& link, int index, const operation_ptr& done, ucs_status_t status,
              std::size_t length = 0);
  void finish(const connection_ptr& link, int index, std::uint64_t id, ucs_status_t status);
  void complete(request_ptr request, ucs_status_t status, std::size_t length = 0);
  void settle_flushes(const connection_ptr& link, int index);
  std::vector<std::uint64_t> sums(const std::byte* bytes, std::size_t size) const;
  bool is_on_device(const void* address) const {
    return devices != nullptr && devices->has(address);
  }
  /// Copies from, or to, memory of a process: a device's, too. Returns whether it was possible.
  bool load(std::vector<std::byte>& into, const std::byte* from, std::size_t size,
            bool hardware) const;
  bool store(std::byte* into, std::span<const std::byte> from, bool hardware) const;

  // The wire.
  void post(const connection_ptr& link, int index, transmission what, bool hardware = false);
  void push(const connection_ptr& link, int index, bool by_process);
  bool has_room(const side& from, std::size_t size) const;
  nanoseconds duration(std::size_t bytes) const;
  /// Sends a frame that carries its own bytes.
  void post(const connection_ptr& link, int index, frame what, bool hardware = false);
  memory_object* memory(std::uint64_t id) const;
  void drop_offer(const offered_message& offer, ucs_status_t status);

  mutable simulation_lock mutex;
  link_options link;
  std::shared_ptr<fake_devices> devices;
  const std::uint64_t seed;
  fault_plan faults;
  std::function<void(const sighting&)> watcher;
  std::vector<std::byte> nothing;  // what weightless messages bring
  std::list<process_state> processes;
  std::vector<std::string> violations;
  std::array<std::uint64_t, call_count> bytes{};

  registry<config_object> configurations;
  registry<context_object> contexts;
  registry<worker_object> workers;
  registry<endpoint_object> endpoints;
  registry<listener_object> listeners;
  registry<conn_request_object> conn_requests;
  registry<memory_object> memories;
  std::unordered_map<std::uint64_t, memory_object*> memory_by_id;
  registry<rkey_object> rkeys;
  std::unordered_map<const void*, request_ptr> requests;
  std::unordered_set<const void*> addresses;
  std::unordered_set<const void*> rkey_buffers;
  std::uint64_t next_id = 1;
  std::uint16_t next_port = 40000;

 private:
  void pump(lock_type& lock, process_state* caller);
  void push_wire(const connection_ptr& link, int index, wire& through, bool by_process);
  void take_piece(const connection_ptr& link, int index, bool hardware, std::uint64_t id,
                  std::size_t length);
  void sent_last(const connection_ptr& link, int index, const transmission& done);
  bool read_source(transmission& from, std::size_t length, bool hardware, frame& into);
  void arrive(frame what, bool hardware);
  void release_room(const frame& what);
  item next_item(worker_object& worker);

  void run(worker_object& worker, frame what, lock_type& lock);
  void run(worker_object& worker, completion what, lock_type& lock);
  void run(worker_object& worker, endpoint_error what, lock_type& lock);
  void take_message(worker_object& worker, frame& what, lock_type& lock);
  void take_offer(worker_object& worker, frame& what, lock_type& lock);
  void take_fetch(const frame& what);
  void take_data(frame& what);
  void take_get(frame& what, bool hardware);
  void take_put(frame& what, bool hardware);
  void take_connect(worker_object& worker, const frame& what, lock_type& lock);
  void take_closed(const frame& what);
  bool is_exposed(const frame& what) const;

  std::multimap<clock::time_point, std::function<void()>> events_;  // equal times: first in, first
  std::atomic<clock::rep> now_;
  std::uint64_t activity_ = 0;  // items that were queued or taken
  std::uint64_t seen_activity_ = 0;
  unsigned quiet_rounds_ = 0;
  int pump_depth_ = 0;
};

/// Returns a number that changes when the bytes do.
std::uint64_t checksum(const std::byte* bytes, std::size_t size) noexcept;

std::uint16_t port_of(const sockaddr_storage& address);
void set_port(sockaddr_storage& address, std::uint16_t port);
/// Returns whether a listener of the simulated machine can be bound to it.
bool is_own_address(const sockaddr_storage& address);

}  // namespace ucx::test::sim
