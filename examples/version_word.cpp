// An owner changes a table, and a reader reads whole versions of it: a version word (seqlock) that
// is odd while the owner writes.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <new>
#include <optional>
#include <span>
#include <thread>

#include <ucx/client.hpp>
#include <ucx/remote_atomic.hpp>
#include <ucx/server.hpp>

using namespace std::chrono_literals;

struct table {
  std::uint64_t version = 0;
  std::array<double, 1000> values = {};
};

/// The owner: changes the values by `change(values)`.
template <class Change>
void update(table& owned, Change change) {
  const std::atomic_ref version(owned.version);
  const std::uint64_t before = version.load(std::memory_order_relaxed);
  version.store(before + 1, std::memory_order_relaxed);  // odd: do not use the values
  std::atomic_thread_fence(std::memory_order_release);
  change(std::span(owned.values));
  version.store(before + 2, std::memory_order_release);
}

/// A reader: fills `into` with one version, and returns its number; nothing when there was none in
/// time.
std::optional<std::uint64_t> read_version(ucx::remote_region& region, std::span<double> into,
                                          std::chrono::nanoseconds limit) {
  ucx::remote_atomic<std::uint64_t> version(region, 0);
  const auto end = std::chrono::steady_clock::now() + limit;
  do {
    const std::uint64_t before = version.load();
    if (before % 2 == 0) {
      region.read_at(sizeof before, std::as_writable_bytes(into));
      std::atomic_thread_fence(std::memory_order_acquire);
      if (version.load() == before) return before;
    }
  } while (std::chrono::steady_clock::now() < end);
  return std::nullopt;
}

int main() {
  ucx::server server;
  const ucx::publication shared = server.allocate("table", sizeof(table), ucx::access::read);
  table& owned = *new (shared.bytes().data()) table;

  std::jthread owner([&](const std::stop_token& stop) {
    for (double number = 1; !stop.stop_requested(); ++number) {
      update(owned, [&](std::span<double> values) { std::ranges::fill(values, number); });
      std::this_thread::sleep_for(1ms);
    }
  });

  ucx::client client(server.url());  // elsewhere as a rule
  ucx::remote_region region = client.open("table");
  std::array<double, 1000> values = {};
  for (int i = 0; i < 100; ++i) {
    if (!read_version(region, values, 10s)) return 1;
    if (std::ranges::count(values, values[0]) != 1000) return 1;  // of two versions
  }
  std::cout << "the last version read has " << values[0] << '\n';
}
