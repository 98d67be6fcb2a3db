#include "support/fake_ucp/fake_network.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "support/fake_ucp/fake_fabric.hpp"
#include "support/fake_ucp/fake_ucp.hpp"

namespace ucx::test {

using guard = std::lock_guard<sim::simulation_lock>;

fake_process::fake_process(sim::fabric& network, sim::process_state& state)
    : network_(network), state_(state), api_(std::make_unique<fake_ucp>(network, state)) {}

fake_process::~fake_process() = default;

const std::string& fake_process::name() const noexcept { return state_.name; }

void fake_process::on_pump(std::function<void()> pump) {
  const guard lock(network_.mutex);
  state_.pump = std::move(pump);
}

void fake_process::stop() {
  const guard lock(network_.mutex);
  state_.stopped = true;
}

void fake_process::resume() {
  const guard lock(network_.mutex);
  state_.stopped = false;
  network_.workers.each([&](sim::worker_object& worker) {
    if (worker.process != &state_) return;
    worker.wants_push = true;
    network_.notify(worker);
  });
}

void fake_process::kill() {
  const guard lock(network_.mutex);
  network_.kill(state_);
}

void install(fake_process& member, std::shared_ptr<fake_devices> devices) {
  static_cast<fake_ucp&>(member.api()).install(std::move(devices));
}

void fake_process::share_memory() noexcept { static_cast<fake_ucp&>(*api_).share_memory(); }

void fake_process::let_cheap_clock_lag(std::chrono::nanoseconds by) noexcept {
  static_cast<fake_ucp&>(*api_).lag_by(by);
}

void fake_process::let_sources_change() {
  const guard lock(network_.mutex);
  state_.sources_may_change = true;
}

bool fake_process::stopped() const {
  const guard lock(network_.mutex);
  return state_.stopped;
}

bool fake_process::killed() const {
  const guard lock(network_.mutex);
  return state_.killed;
}

std::uint64_t fake_process::calls_after_death() const {
  const guard lock(network_.mutex);
  return state_.calls_after_death;
}

fault_plan& fake_process::faults() noexcept { return state_.faults; }

std::uint64_t fake_process::count(call which) const {
  const guard lock(network_.mutex);
  return state_.calls[static_cast<std::size_t>(which)];
}

fake_network::fake_network(const link_options& link, std::uint64_t seed)
    : fabric_(std::make_unique<sim::fabric>(link, seed)) {}

fake_network::~fake_network() = default;

fake_process& fake_network::add_process(std::string name, std::function<void()> pump) {
  sim::process_state* state = nullptr;
  {
    const guard lock(fabric_->mutex);
    const auto seed = fabric_->seed + fabric_->processes.size() + 1;
    state = &fabric_->processes.emplace_back(std::move(name), seed);
    state->pump = std::move(pump);
  }
  return *processes_.emplace_back(std::make_unique<fake_process>(*fabric_, *state));
}

link_options& fake_network::link() noexcept { return fabric_->link; }

fault_plan& fake_network::faults() noexcept { return fabric_->faults; }

detail::clock::time_point fake_network::now() const { return fabric_->now(); }

void fake_network::advance(std::chrono::nanoseconds duration) {
  const auto end = now() + duration;
  run_until([&] { return now() >= end; }, duration);
}

bool fake_network::run_until(const std::function<bool()>& done, std::chrono::nanoseconds limit) {
  const auto end = now() + limit;
  while (!done()) {
    const std::chrono::nanoseconds left = end - now();
    if (left <= left.zero()) return false;
    sim::lock_type lock(fabric_->mutex);
    fabric_->idle(lock, nullptr, std::min(left, fabric_->link.idle_step));
  }
  return true;
}

void fake_network::watch(std::function<void(const sighting&)> watcher) {
  const guard lock(fabric_->mutex);
  fabric_->watcher = std::move(watcher);
}

void fake_network::watch_border(void (*watcher)(bool inside)) { fabric_->mutex.watch(watcher); }

std::uint64_t fake_network::count(call which) const {
  const guard lock(fabric_->mutex);
  std::uint64_t total = 0;
  for (const auto& process : fabric_->processes) {
    total += process.calls[static_cast<std::size_t>(which)];
  }
  return total;
}

std::uint64_t fake_network::bytes(call which) const {
  const guard lock(fabric_->mutex);
  return fabric_->bytes[static_cast<std::size_t>(which)];
}

live_objects fake_network::live() const {
  const guard lock(fabric_->mutex);
  live_objects result;
  result.configurations = fabric_->configurations.size();
  result.contexts = fabric_->contexts.size();
  result.workers = fabric_->workers.size();
  result.addresses = fabric_->addresses.size();
  result.listeners = fabric_->listeners.size();
  result.connection_requests = fabric_->conn_requests.size();
  fabric_->endpoints.each([&](const sim::endpoint_object& each) {
    if (each.created) ++result.endpoints;
  });
  result.memories = fabric_->memories.size();
  result.rkey_buffers = fabric_->rkey_buffers.size();
  result.rkeys = fabric_->rkeys.size();
  result.requests = fabric_->requests.size();
  fabric_->workers.each([&](const sim::worker_object& each) {
    result.messages += each.kept.size() + each.offers.size();
  });
  return result;
}

std::vector<std::string> fake_network::violations() const {
  const guard lock(fabric_->mutex);
  return fabric_->violations;
}

void fake_network::forget_violations() {
  const guard lock(fabric_->mutex);
  fabric_->violations.clear();
}

void fake_network::expect_requests_freed() const {
  const guard lock(fabric_->mutex);
  for (const auto& [handle, request] : fabric_->requests) {
    ADD_FAILURE() << request->worker->process->name << ": a request of " << to_string(request->kind)
                  << (request->completed ? " completed, and was not freed" : " never completed");
  }
}

void fake_network::expect_clean() const {
  for (const auto& what : violations()) ADD_FAILURE() << what;
  expect_requests_freed();
  const auto left = live();
  EXPECT_EQ(left.configurations, 0U);
  EXPECT_EQ(left.contexts, 0U);
  EXPECT_EQ(left.workers, 0U);
  EXPECT_EQ(left.addresses, 0U);
  EXPECT_EQ(left.listeners, 0U);
  EXPECT_EQ(left.connection_requests, 0U);
  EXPECT_EQ(left.endpoints, 0U);
  EXPECT_EQ(left.memories, 0U);
  EXPECT_EQ(left.rkey_buffers, 0U);
  EXPECT_EQ(left.rkeys, 0U);
  EXPECT_EQ(left.messages, 0U);
}

}  // namespace ucx::test
