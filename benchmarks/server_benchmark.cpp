// Names beside the same bytes by hand: what reading by URL, opening, many clients and idling cost.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <istream>
#include <latch>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "comparison.hpp"
#include "owner_process.hpp"
#include "raw_ucx.hpp"
#include "seconds_since.hpp"
#include "server_process.hpp"
#include "ucx/client.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/fstream.hpp"
#include "ucx/stream.hpp"
#include "ucx/worker.hpp"

namespace ucx::benchmarks {
namespace {

using clock = std::chrono::steady_clock;
using party = owner_process::party;

constexpr std::size_t mib = std::size_t{1} << 20U;
constexpr std::size_t matrix = 128 * mib;
constexpr std::size_t many = 64;
constexpr std::size_t busy = 100;
constexpr std::size_t most_streams = 16;
constexpr std::uint64_t least_calls = 32;
constexpr std::size_t idle = 100;
/// As many files as some program opens one after the other, when no other stream is open.
constexpr std::size_t in_a_row = 8200;
constexpr std::chrono::seconds usual_linger{10};

/// The processes that serve. What is idle has servers of its own.
struct servers {
  // The owner first: it has no threads, and the others have.
  owner_process by_hand{{{plane::tcp, mib, fill_pattern}, {plane::tcp, matrix, fill_pattern}}};
  server_process matrix_server{matrix};
  server_process crowded{mib};
  server_process alone{mib};
  server_process remembering{matrix};
};

/// Makes something when it is first used: what is open must not disturb what runs before.
template <class Made>
class lazy {
 public:
  explicit lazy(std::function<std::unique_ptr<Made>()> make) : make_(std::move(make)) {}
  Made& operator*() {
    if (!made_) made_ = make_();
    return *made_;
  }
  Made* operator->() { return &**this; }

 private:
  std::function<std::unique_ptr<Made>()> make_;
  std::unique_ptr<Made> made_;
};

/// Reads the matrix from one stream, 1 MiB a call, round and round.
class reader {
 public:
  reader(std::istream& from, std::size_t begin) : in_(from), at_(begin), into_(mib) {}

  /// Returns the number of calls: so many at least that what is read ahead for nobody, at the end,
  /// hardly counts.
  std::uint64_t read_until(clock::time_point until) {
    std::uint64_t calls = 0;
    in_.seekg(static_cast<std::streamoff>(at_));
    do {
      if (at_ + mib > matrix) in_.seekg(static_cast<std::streamoff>(at_ = 0));
      in_.read(reinterpret_cast<char*>(into_.data()), static_cast<std::streamsize>(mib));
      if (!in_) throw std::runtime_error("a stream has failed");
      check_pattern(into_, at_);
      at_ += mib;
      ++calls;
    } while (calls < least_calls || clock::now() < until);
    return calls;
  }
  /// What was read ahead and nobody wants arrives before the next pass, not in it.
  void settle() {
    in_.sync();
    in_.seekg(0).get();
  }

 private:
  std::istream& in_;
  std::size_t at_;
  std::vector<std::byte> into_;
};

/// Lets all of them read at the same time, each on a thread of its own, and returns the calls of
/// all in a second.
double read_at_once(std::span<reader> readers) {
  std::latch ready(static_cast<std::ptrdiff_t>(readers.size()) + 1);
  std::vector<std::uint64_t> calls(readers.size());
  std::vector<std::exception_ptr> failures(readers.size());
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < readers.size(); ++i) {
    threads.emplace_back([&, i] {
      ready.arrive_and_wait();
      try {
        calls[i] = readers[i].read_until(clock::now() + pass_time());
      } catch (...) {
        failures[i] = std::current_exception();
      }
    });
  }
  const clock::time_point start = clock::now();
  ready.arrive_and_wait();
  for (std::jthread& each : threads) each.join();
  const double seconds = seconds_since(start);
  for (const std::exception_ptr& each : failures) {
    if (each) std::rethrow_exception(each);
  }
  std::uint64_t all = 0;
  for (const std::uint64_t each : calls) all += each;
  for (reader& each : readers) each.settle();
  return static_cast<double>(all) / seconds;
}

/// Everything that is open while the rates are compared.
struct bench {
  explicit bench(server_process& server)
      : named(server.url() + "/matrix"),
        laned(server.url() + "/matrix", std::ios::in, stream_options{.connections = 2}),
        parent(options_of(plane::tcp)),
        driver(parent),
        connection(driver, server.by_hand()),
        handed(remote_region(connection, server.descriptor())) {
    by_url.emplace_back(named, 0);
    by_lanes.emplace_back(laned, 0);
    by_hand.emplace_back(handed, 0);
    for (std::size_t i = 0; i < most_streams; ++i) {
      // One connection, that of `named`, for all of them.
      streams_by_url.push_back(std::make_unique<ifstream>(server.url() + "/matrix"));
      streams_of_one.emplace_back(*streams_by_url.back(), i * (matrix / most_streams));
    }
    for (std::size_t i = 0; i < many; ++i) {
      clients.emplace_back(server.url());
      streams.push_back(std::make_unique<istream>(clients.back().open("matrix")));
      crowd.emplace_back(*streams.back(), i * (matrix / many));
    }
  }

  ifstream named;
  ifstream laned;
  context parent;
  worker driver;
  endpoint connection;
  istream handed;
  std::vector<client> clients;
  std::vector<std::unique_ptr<istream>> streams;
  std::vector<std::unique_ptr<ifstream>> streams_by_url;
  std::vector<reader> streams_of_one;
  std::vector<reader> by_url;
  std::vector<reader> by_lanes;
  std::vector<reader> by_hand;
  std::vector<reader> crowd;
};

/// The matrix read by hand, by one client or by many, each with a worker and a connection.
class raw_crowd {
 public:
  raw_crowd(owner_process& owner, std::size_t count) : owner_(owner) {
    const owner_process::target& matrix_there = owner.targets().back();
    const raw_fabric fabric = fabric_of(plane::tcp, context(options_of(plane::tcp)));
    owner_.serve(party::raw);
    for (std::size_t i = 0; i < count; ++i) {
      clients_.push_back(
          std::make_unique<raw_client>(fabric, matrix_there.raw, matrix_there.raw_region));
      all_.push_back(clients_.back().get());
    }
    owner_.serve(party::nobody);
  }

  double read(std::size_t clients, const raw_loop& loop = eager) {
    owner_.serve(party::raw);
    const double rate = raw_client::read_at_once(std::span(all_).first(clients), loop, pass_time());
    owner_.serve(party::nobody);
    return rate;
  }

  // The best of `stream_benchmark` over TCP, and the same where the reader asks for each piece.
  static constexpr raw_loop eager{raw_way::message, 4, mib, mib / 2};
  static constexpr raw_loop by_rendezvous{raw_way::rendezvous, 4, mib};

 private:
  owner_process& owner_;
  std::vector<std::unique_ptr<raw_client>> clients_;
  std::vector<raw_client*> all_;
};

void register_rates(servers& all) {
  server_process& server = all.matrix_server;
  const auto on = std::make_shared<lazy<bench>>([&] { return std::make_unique<bench>(server); });
  comparison named;
  named.name = "server/read by URL";
  named.ours = {"ucx::ifstream", [on] { return read_at_once((*on)->by_url); }};
  named.others.push_back({"by descriptor", [on] { return read_at_once((*on)->by_hand); }});
  named.target = 0.97;
  named.scale = static_cast<double>(mib) / 1e9;
  named.unit = "GB/s";
  register_comparison(named);
  // Without a target: where there are two cores, reader and server have both of them already.
  comparison laned = named;
  laned.name = "tcp/read/1MiB, 2 lanes";
  laned.ours = {"2 lanes", [on] { return read_at_once((*on)->by_lanes); }};
  laned.others = {{"one lane", [on] { return read_at_once((*on)->by_url); }}};
  laned.target = 0;
  register_comparison(laned);
  comparison crowd = named;
  for (const auto& [count, target] : {std::pair<std::size_t, double>(4, 0), {16, 0.95}}) {
    crowd.name = "server/" + std::to_string(count) + " streams at once";
    crowd.ours = {"streams", [on, count = count] {
                    return read_at_once(std::span((*on)->streams_of_one).first(count));
                  }};
    crowd.others = {{"one stream", [on] { return read_at_once((*on)->by_url); }}};
    crowd.target = target;
    register_comparison(crowd);
  }
  for (const auto& [count, target] : {std::pair<std::size_t, double>(4, 0), {16, 0}, {64, 0.9}}) {
    crowd.name = "server/" + std::to_string(count) + " clients at once";
    crowd.ours = {"clients", [on, count = count] {
                    return read_at_once(std::span((*on)->crowd).first(count));
                  }};
    crowd.others = {{"one client", [on] { return read_at_once((*on)->by_url); }}};
    crowd.target = target;
    register_comparison(crowd);
  }
  const auto raw = std::make_shared<lazy<raw_crowd>>(
      [&] { return std::make_unique<raw_crowd>(all.by_hand, many); });
  const contender raw_many = {"64 by hand", [raw] { return (*raw)->read(many); }};
  crowd.name = std::string("server/64 clients, 64 by hand");
  crowd.target = 0;
  crowd.others = {raw_many};
  register_comparison(crowd);
  crowd.name = std::string("server/64 by hand at once");
  crowd.ours = raw_many;
  crowd.others = {{"one by hand", [raw] { return (*raw)->read(1); }}};
  register_comparison(crowd);
}

/// What a rendezvous brings by hand beside eager messages: one connection, and a hundred at once.
void register_rendezvous(servers& all) {
  const auto raw = std::make_shared<lazy<raw_crowd>>(
      [&] { return std::make_unique<raw_crowd>(all.by_hand, busy); });
  for (const std::size_t count : {std::size_t{1}, busy}) {
    comparison each;
    each.name = "server/" + std::to_string(count) + " by hand, rendezvous";
    each.ours = {"rendezvous",
                 [raw, count] { return (*raw)->read(count, raw_crowd::by_rendezvous); }};
    each.others = {{"eager", [raw, count] { return (*raw)->read(count); }}};
    each.scale = static_cast<double>(mib) / 1e9;
    each.unit = "GB/s";
    register_comparison(each);
  }
}

/// One stream by URL: opened, its first byte read, closed.
void open_and_read(const std::string& url) {
  ifstream in(url);
  if (in.get() == EOF) throw std::runtime_error(in.error_message());
}

/// The same 8 bytes by hand, over TCP as our defaults have it.
class raw_side {
 public:
  explicit raw_side(owner_process& owner)
      : owner_(owner),
        target_(owner.targets().front()),
        fabric_(fabric_of(plane::tcp, context(options_of(plane::tcp)))),
        kept_([this] { return connect(); }) {}

  /// Context, worker, endpoint, key, and one read.
  double first() {
    owner_.serve(party::raw);
    const double rate = repeat([this] { connect()->read(one_read, std::chrono::nanoseconds(1)); });
    owner_.serve(party::nobody);
    return rate;
  }
  /// One read over a connection that is there.
  double next() {
    owner_.serve(party::raw);
    const double rate = kept_->read(one_read, pass_time());
    owner_.serve(party::nobody);
    return rate;
  }

 private:
  // Far enough apart that no answer to one is an answer to the next.
  static constexpr raw_loop one_read{raw_way::rma, 1, 8, 0, 4096 + 64};

  std::unique_ptr<raw_client> connect() {
    return std::make_unique<raw_client>(fabric_, target_.raw, target_.raw_region);
  }

  owner_process& owner_;
  owner_process::target target_;
  raw_fabric fabric_;
  lazy<raw_client> kept_;
};

void register_opening(servers& all) {
  const auto raw =
      std::make_shared<lazy<raw_side>>([&] { return std::make_unique<raw_side>(all.by_hand); });
  const std::string name = all.matrix_server.url() + "/matrix";
  comparison first;
  first.name = "server/first stream";
  first.ours = {
      "ucx::ifstream", [name] {
        client::set_shared_idle_timeout(std::chrono::nanoseconds(0));  // each is the first again
        const double rate = repeat([&] { open_and_read(name); });
        client::set_shared_idle_timeout(usual_linger);
        return rate;
      }};
  first.others.push_back({"connection and get", [raw] { return (*raw)->first(); }});
  first.by = measure::excess;
  first.target = 10;
  register_comparison(first);
  comparison second;
  second.name = "server/second stream";
  second.ours = {"ucx::ifstream", [name] {
                   const client kept = client::shared(url(name));
                   return repeat([&] { open_and_read(name); });
                 }};
  second.others.push_back({"get", [raw] { return (*raw)->next(); }});
  second.by = measure::time;
  second.target = 0.3;
  register_comparison(second);
  comparison row;
  row.name = "server/" + std::to_string(in_a_row) + " streams in a row";
  row.ours = {"ucx::ifstream", [name] {
                return repeat([&] {
                  for (std::size_t i = 0; i < in_a_row; ++i) open_and_read(name);
                });
              }};
  row.others.push_back({"get", [raw] { return (*raw)->next() / static_cast<double>(in_a_row); }});
  row.by = measure::time;
  row.target = 3000;
  register_comparison(row);
}

/// Returns how many minutes of idling a second of the server's processor time is enough for.
double idle_minutes(const server_process& server) {
  const auto length = std::max<std::chrono::nanoseconds>(pass_time(), std::chrono::seconds(1));
  const clock::time_point start = clock::now();
  const std::chrono::nanoseconds before = server.processor_time();
  std::this_thread::sleep_for(length);
  const double used = std::chrono::duration<double>(server.processor_time() - before).count();
  return used > 0 ? seconds_since(start) / 60 / used : std::numeric_limits<double>::infinity();
}

/// What 1, 10 and 100 connections cost a server, each of which has read 1 MiB: kB of resident
/// memory.
void register_memory(servers& all) {
  const auto clients = std::make_shared<std::vector<client>>();
  const auto before = std::make_shared<double>(0);
  for (const std::size_t count : {1U, 10U, 100U}) {
    benchmark::RegisterBenchmark(
        ("ratio/server/memory of a connection, " + std::to_string(count) + " connections").c_str(),
        [clients, before, count, &all](benchmark::State& state) {
          for ([[maybe_unused]] auto once : state) {
            if (*before == 0) *before = all.remembering.resident_kilobytes();
            std::vector<std::byte> into(mib);
            while (clients->size() < count) {
              clients->emplace_back(all.remembering.url());
              clients->back().open("matrix").read_at(0, into);
            }
            const double more = all.remembering.resident_kilobytes() - *before;
            state.counters["rate"] = more / static_cast<double>(count);
            state.counters["connections"] = static_cast<double>(count);
            state.SetLabel("kB at the server");
            state.SetIterationTime(1);
          }
        })
        ->Iterations(1)
        ->UseManualTime();
  }
  // Then all of them at the same time: what they move together, and what the server has for each.
  benchmark::RegisterBenchmark(
      "ratio/server/100 busy connections",
      [clients, before, &all](benchmark::State& state) {
        std::vector<std::unique_ptr<istream>> streams;
        std::vector<reader> crowd;
        for (client& each : *clients) {
          streams.push_back(std::make_unique<istream>(each.open("matrix")));
          crowd.emplace_back(*streams.back(), crowd.size() * mib);
        }
        for ([[maybe_unused]] auto once : state) {
          const double rate = read_at_once(crowd);
          const double more = all.remembering.resident_kilobytes() - *before;
          state.counters["rate"] = more / static_cast<double>(crowd.size());
          state.counters["together"] = rate * static_cast<double>(mib) / 1e9;
          state.SetLabel("kB at the server for each, " + std::to_string(rate * mib / 1e9) +
                         " GB/s together");
          state.SetIterationTime(1);
        }
      })
      ->Iterations(1)
      ->UseManualTime();
}

void register_idling(servers& all) {
  const auto clients = std::make_shared<lazy<std::vector<client>>>([&all] {
    auto made = std::make_unique<std::vector<client>>();
    for (std::size_t i = 0; i < idle; ++i) made->emplace_back(all.crowded.url());
    return made;
  });
  comparison idling;
  idling.name = "server/idle, a minute";
  idling.ours = {"100 clients", [clients, &all] {
                   static_cast<void>(**clients);  // connected in the pass that only warms up
                   return idle_minutes(all.crowded);
                 }};
  idling.others.push_back({"no client", [&all] { return idle_minutes(all.alone); }});
  idling.by = measure::time;
  idling.target = 10;
  register_comparison(idling);
}

}  // namespace
}  // namespace ucx::benchmarks

int main(int argc, char** argv) {
  using namespace ucx::benchmarks;
  // Over the wire, although the servers are on this host and their memory could be read in place.
  ::setenv("UCXIO_TRANSFER_METHOD", "message", 0);
  servers all;
  pin_to_core(reader_core);
  // In this order: the first stream of all needs that nothing else is open.
  const int status = run_comparisons(argc, argv, [&] {
    register_opening(all);
    register_rates(all);
    register_rendezvous(all);
    register_idling(all);
    register_memory(all);
  });
  benchmark::ClearRegisteredBenchmarks();
  return status;
}
