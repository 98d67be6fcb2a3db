// Messages beside UCX's own, and beside sockets. One process asks and measures, the other answers.
#include <benchmark/benchmark.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "comparison.hpp"
#include "message_halves.hpp"
#include "raw_ucx.hpp"

namespace ucx::benchmarks {
namespace {

using clock = std::chrono::steady_clock;

constexpr std::size_t kib = 1024;
constexpr std::size_t mib = 1024 * kib;
constexpr unsigned most = 64;  // messages of a kind in flight

/// Who speaks; also the number of its half.
enum speaker : std::size_t { ours_tcp, raw_tcp, ours_shared, raw_shared, sleeping, spinning };
constexpr std::size_t speakers = 6;

std::unique_ptr<half> make_half(std::size_t whose) {
  switch (whose) {
    case ours_tcp:
      return make_our_half(plane::tcp);
    case raw_tcp:
      return make_raw_half(plane::tcp);
    case ours_shared:
      return make_our_half(plane::shared_memory);
    case raw_shared:
      return make_raw_half(plane::shared_memory);
    default:
      return make_socket_half(whose == sleeping);
  }
}

/// What one pass does.
struct conversation {
  std::size_t whose = ours_tcp;
  message_way way = message_way::tag;
  std::size_t size = 8;
  unsigned window = 1;  ///< Messages that are sent and not acknowledged.
  unsigned every = 1;   ///< Of so many messages one is acknowledged.
};

/// Shared by both processes.
struct turn {
  conversation now;
  std::atomic<std::uint64_t> wanted{0};
  std::atomic<std::uint64_t> served{0};
  std::atomic<bool> over{false};
};

class halves {
 public:
  /// Meets the other process, which makes the same with the other ends.
  halves(int in, int out, bool asks) {
    for (std::size_t i = 0; i < speakers; ++i) all_[i] = make_half(i);
    for (const auto& each : all_) {
      std::vector<std::byte> mine = each->address();
      const std::uint64_t size = mine.size();
      if (::write(out, &size, sizeof size) != sizeof size ||
          ::write(out, mine.data(), mine.size()) != static_cast<::ssize_t>(mine.size())) {
        throw std::runtime_error("the other process is gone");
      }
      std::uint64_t theirs = 0;
      read_all(in, std::as_writable_bytes(std::span(&theirs, 1)));
      std::vector<std::byte> address(theirs);
      read_all(in, address);
      each->connect(address, asks);
    }
  }
  half& operator[](std::size_t whose) { return *all_[whose]; }

 private:
  static void read_all(int in, std::span<std::byte> into) {
    while (!into.empty()) {
      const ::ssize_t count = ::read(in, into.data(), into.size());
      if (count <= 0) throw std::runtime_error("the other process is gone");
      into = into.subspan(static_cast<std::size_t>(count));
    }
  }
  std::array<std::unique_ptr<half>, speakers> all_;
};

/// The answering process.
void answer(turn& shared, halves& all) {
  std::uint64_t serving = 0;
  std::uint64_t came = 0;
  std::array<std::uint64_t, most> answers = {};
  std::uint64_t answered = 0;
  while (!shared.over) {
    if (shared.wanted != serving) {
      while (all[shared.now.whose].unsent() > 0) all[shared.now.whose].poll();
      all[shared.now.whose].begin(shared.now.way, shared.now.size, most);
      came = answered = 0;
      shared.served = serving = shared.wanted;
    }
    half& with = all[shared.now.whose];
    const unsigned more = with.poll();
    if (more == 0) continue;
    check_pattern(with.last(), 0);
    for (came += more; came / shared.now.every > answered; ++answered) {
      std::uint64_t& said = answers[answered % most];
      said = answered + 1;
      with.send(std::as_bytes(std::span(&said, 1)));
    }
  }
}

/// The asking process, and the life of the other.
class bench {
 public:
  bench() {
    void* const memory =
        ::mmap(nullptr, sizeof(turn), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    std::array<int, 2> there = {};
    std::array<int, 2> back = {};
    if (memory == MAP_FAILED || ::pipe(there.data()) != 0 || ::pipe(back.data()) != 0) {
      throw std::bad_alloc();
    }
    shared_ = new (memory) turn();
    child_ = ::fork();
    if (child_ < 0) throw std::runtime_error("no process to answer");
    if (child_ == 0) be_the_other(there[0], back[1]);
    ::close(there[0]);
    ::close(back[1]);
    pin_to_core(reader_core);
    all_ = std::make_unique<halves>(back[0], there[1], true);
    fill_pattern(source_);
  }
  ~bench() {
    shared_->over = true;
    ::waitpid(child_, nullptr, 0);
  }
  bench(const bench&) = delete;
  bench& operator=(const bench&) = delete;

  /// Returns messages a second, acknowledged.
  double pass(const conversation& wanted) {
    half& with = (*all_)[wanted.whose];
    with.begin(wanted.way, sizeof(std::uint64_t), most);
    shared_->now = wanted;
    const std::uint64_t number = ++shared_->wanted;
    while (shared_->served != number) {
      with.poll();
      if (::waitpid(child_, nullptr, WNOHANG) != 0) throw std::runtime_error("no answers");
    }
    sent_ = acknowledged_ = 0;
    // A size that differs would not be the pattern's end.
    const std::span<const std::byte> bytes = std::span(source_).first(wanted.size);
    const clock::time_point start = clock::now();
    const clock::time_point until =
        start + std::chrono::nanoseconds(static_cast<std::int64_t>(pass_seconds() * 1e9));
    const unsigned look = wanted.size >= 64 * kib ? 4 * wanted.every : 32 * wanted.every;
    do {
      while (sent_ - acknowledged_ * wanted.every >= wanted.window) hear(with);
      with.send(bytes);
    } while (++sent_ % look != 0 || clock::now() < until);
    while (acknowledged_ * wanted.every < sent_ || with.unsent() > 0) hear(with);
    return static_cast<double>(sent_) / std::chrono::duration<double>(clock::now() - start).count();
  }

 private:
  [[noreturn]] void be_the_other(int in, int out) {
    try {
      become_owner();
      halves all(in, out, false);
      answer(*shared_, all);
      ::_exit(0);
    } catch (const std::exception& failure) {
      std::fprintf(stderr, "the answering process: %s\n", failure.what());
      ::_exit(1);
    }
  }
  void hear(half& with) {
    const unsigned came = with.poll();
    if (came == 0) {
      const bool look = ++idle_ % (1U << 20U) == 0;
      if (look && ::waitpid(child_, nullptr, WNOHANG) != 0) throw std::runtime_error("no answers");
      return;
    }
    acknowledged_ += came;
    std::uint64_t said = 0;
    std::memcpy(&said, with.last().data(), sizeof said);
    if (said != acknowledged_) throw std::runtime_error("an acknowledgement is missing");
  }

  turn* shared_ = nullptr;
  ::pid_t child_ = -1;
  std::unique_ptr<halves> all_;
  std::vector<std::byte> source_ = std::vector<std::byte>(mib);
  std::uint64_t sent_ = 0;
  std::uint64_t acknowledged_ = 0;
  std::uint64_t idle_ = 0;
};

std::string size_name(std::size_t size) {
  if (size >= mib) return std::to_string(size / mib) + "MiB";
  if (size >= kib) return std::to_string(size / kib) + "KiB";
  return std::to_string(size) + "B";
}

const char* name_of(message_way way) {
  switch (way) {
    case message_way::tag:
      return "tag";
    case message_way::active:
      return "active";
    case message_way::stream:
      break;
  }
  return "stream";
}

comparison beside_raw(const std::shared_ptr<bench>& on, bool shared, const char* what,
                      conversation said) {
  comparison made;
  made.name = std::string(shared ? "shm/" : "tcp/") + what + "/" + name_of(said.way) + "/" +
              size_name(said.size);
  said.whose = shared ? ours_shared : ours_tcp;
  made.ours = {"ucx::endpoint", [on, said] { return on->pass(said); }};
  said.whose = shared ? raw_shared : raw_tcp;
  made.others.push_back({"ucx by hand", [on, said] { return on->pass(said); }});
  return made;
}

void register_beside_raw(const std::shared_ptr<bench>& on, bool shared) {
  for (const message_way way : {message_way::tag, message_way::active, message_way::stream}) {
    comparison latency = beside_raw(on, shared, "round trip", {.way = way});
    latency.by = measure::cost;
    latency.target = shared ? 1.3 : 1.1;
    latency.scale = 1e-6;
    latency.unit = "M/s";
    register_comparison(latency);
    comparison bandwidth = beside_raw(on, shared, "send", {.way = way, .size = mib, .window = 8});
    bandwidth.target = 0.97;
    bandwidth.scale = static_cast<double>(mib) / 1e9;
    bandwidth.unit = "GB/s";
    register_comparison(bandwidth);
    comparison rate =
        beside_raw(on, shared, "rate", {.way = way, .size = 64, .window = most, .every = 32});
    rate.target = 0.9;
    rate.scale = 1e-6;
    rate.unit = "M/s";
    register_comparison(rate);
  }
}

void register_beside_sockets(const std::shared_ptr<bench>& on) {
  for (const std::size_t size : {std::size_t{8}, kib, 16 * kib, 64 * kib, 256 * kib, mib}) {
    for (const std::size_t other : {sleeping, spinning}) {
      comparison made;
      made.name = std::string("socket/round trip/") + size_name(size) + "/" +
                  (other == sleeping ? "sleeping" : "spinning");
      conversation said{.size = size};
      made.ours = {"ucx::endpoint", [on, said] { return on->pass(said); }};
      said.whose = other;
      said.way = message_way::stream;
      made.others.push_back({"socket", [on, said] { return on->pass(said); }});
      made.by = measure::cost;
      made.target = other == sleeping ? 1.0 : 1.3;
      made.scale = 1e-6;
      made.unit = "M/s";
      register_comparison(made);
      if (other != spinning) continue;
      made.name = "by hand/round trip/" + size_name(size) + "/spinning";
      said.whose = raw_tcp;
      said.way = message_way::tag;
      made.ours = {"ucx by hand", [on, said] { return on->pass(said); }};
      made.target = 0;
      register_comparison(made);
    }
  }
}

}  // namespace
}  // namespace ucx::benchmarks

int main(int argc, char** argv) {
  using namespace ucx::benchmarks;
  const auto on = std::make_shared<bench>();
  const int status = run_comparisons(argc, argv, [&] {
    register_beside_raw(on, false);
    register_beside_raw(on, true);
    register_beside_sockets(on);
  });
  benchmark::ClearRegisteredBenchmarks();
  return status;
}
