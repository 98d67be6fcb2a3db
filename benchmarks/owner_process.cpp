#include "owner_process.hpp"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "pipe_end.hpp"
#include "processor_time.hpp"
#include "ucx/memory_region.hpp"
#include "ucx/worker.hpp"

namespace ucx::benchmarks {
namespace {

constexpr std::array planes{plane::tcp, plane::shared_memory, plane::one_host};

/// Both parties' owners on one plane.
struct owners {
  explicit owners(plane where)
      : context(options_of(where)),
        worker(context, {.progress = progress_mode::external}),
        raw(fabric_of(where, context)) {}

  ucx::context context;
  ucx::worker worker;
  raw_owner raw;
  std::uint64_t raw_regions = 0;
  std::vector<memory_region> regions;
};

void expose(owners& by, const exposed_memory& wanted, pipe_end& to_reader) {
  raw_target raw;
  if (wanted.where == plane::shared_memory) {
    by.regions.push_back(memory_region::allocate(by.context, wanted.size, access::read_write));
    wanted.fill(by.regions.back().bytes());
    wanted.fill(by.raw.allocate(wanted.size, raw));
  } else {
    // Freed by the end of the process.
    auto* bytes =
        static_cast<std::byte*>(std::aligned_alloc(4096, (wanted.size + 4095) / 4096 * 4096));
    if (bytes == nullptr) throw std::bad_alloc();
    const std::span memory(bytes, wanted.size);
    wanted.fill(memory);
    by.regions.emplace_back(by.context, memory, access::read_write);
    raw = by.raw.expose(memory);
  }
  to_reader.write(by.worker.address().encode());
  to_reader.write(by.regions.back().descriptor().encode());
  to_reader.write(raw.address);
  to_reader.write(raw.key);
  to_reader.write_number(raw.base);
  to_reader.write_number(raw.size);
  to_reader.write_number(by.raw_regions++);
}

}  // namespace

/// Shared by both processes.
struct owner_process::turn {
  std::atomic<party> wanted{party::nobody};
  std::atomic<party> served{party::nobody};
};

namespace {

using party = owner_process::party;

template <class Turn>
void serve_turns(Turn& turn, std::array<std::optional<owners>, planes.size()>& all) {
  for (;;) {
    const party now = turn.wanted.load(std::memory_order_relaxed);
    turn.served.store(now, std::memory_order_relaxed);
    if (now == party::quit) return;
    if (now == party::nobody) std::this_thread::sleep_for(std::chrono::microseconds(500));
    for (auto& by : all) {
      if (!by) continue;
      if (now == party::ours) by->worker.progress();
      if (now == party::raw) by->raw.progress();
      if (now == party::raw_asleep && by->raw.progress() == 0) by->raw.sleep();
    }
  }
}

}  // namespace

ucx::context_options options_of(plane where) {
  context_options options;
  if (where == plane::shared_memory) {
    options.transports = {"posix", "cma", "self"};
    options.features = feature::rma | feature::wakeup;
  } else {
    options.transports = {"tcp"};
    if (where == plane::one_host) options.transports.emplace_back("cma");
    options.devices = {tested_network().device};
  }
  return options;
}

raw_fabric fabric_of(plane where, const ucx::context& ours) {
  raw_fabric fabric;
  if (where != plane::tcp) {
    fabric.transports = "posix,cma,self";
    fabric.messages = false;
    return fabric;
  }
  fabric.transports = "tcp";
  fabric.wakeup = true;
  fabric.devices = tested_network().device;
  for (const auto& [key, value] : ours.configuration()) {
    if (key == "TX_SEG_SIZE" || key == "TCP_TX_SEG_SIZE") fabric.segment_size = value;
  }
  return fabric;
}

owner_process::owner_process(const std::vector<exposed_memory>& memories) {
  void* shared =
      ::mmap(nullptr, sizeof(turn), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  std::array<int, 2> ends = {};
  if (shared == MAP_FAILED || ::pipe(ends.data()) != 0) throw std::bad_alloc();
  turn_ = new (shared) turn();
  child_ = ::fork();
  if (child_ < 0) throw std::runtime_error("no process for the owner");
  if (child_ == 0) {
    ::close(ends[0]);
    try {
      become_owner();
      std::array<std::optional<owners>, planes.size()> all;
      {
        pipe_end to_reader(ends[1]);
        for (const exposed_memory& memory : memories) {
          auto& by = all[static_cast<std::size_t>(memory.where)];
          if (!by) by.emplace(memory.where);
          expose(*by, memory, to_reader);
        }
      }
      serve_turns(*turn_, all);
      ::_exit(0);
    } catch (const std::exception& failure) {
      std::fprintf(stderr, "owner: %s\n", failure.what());
      ::_exit(1);
    }
  }
  ::close(ends[1]);
  pipe_end from_owner(ends[0]);
  for (std::size_t i = 0; i < memories.size(); ++i) {
    target reached;
    reached.address = worker_address::decode(from_owner.read());
    reached.descriptor = remote_descriptor::decode(from_owner.read());
    reached.raw.address = from_owner.read();
    reached.raw.key = from_owner.read();
    reached.raw.base = from_owner.read_number();
    reached.raw.size = from_owner.read_number();
    reached.raw_region = from_owner.read_number();
    targets_.push_back(std::move(reached));
  }
}

owner_process::~owner_process() {
  turn_->wanted.store(party::quit);
  ::waitpid(child_, nullptr, 0);
  ::munmap(turn_, sizeof(turn));
}

void owner_process::serve(party whom) {
  turn_->wanted.store(whom);
  while (turn_->served.load() != whom) {
    if (::waitpid(child_, nullptr, WNOHANG) != 0) throw std::runtime_error("the owner has died");
    std::this_thread::yield();
  }
}

std::chrono::nanoseconds owner_process::processor_time() const { return processor_time_of(child_); }

}  // namespace ucx::benchmarks
