// Streams beside the best loop that can be written by hand against UCX.
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <ios>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "comparison.hpp"
#include "owner_process.hpp"
#include "raw_ucx.hpp"
#include "ucx/stream.hpp"
#include "ucxio_client.hpp"

namespace ucx::benchmarks {
namespace {

using clock = std::chrono::steady_clock;
using party = owner_process::party;

constexpr std::size_t kib = 1024;
constexpr std::size_t mib = 1024 * kib;
constexpr std::size_t tcp_region = 128 * mib;
constexpr std::size_t shared_region = 64 * mib;
/// Far enough apart that no answer to one is an answer to the next.
constexpr std::size_t scattered = mib + 64;

/// Everything that the comparisons over one plane need.
class bench {
 public:
  bench(owner_process& owner, plane where, const owner_process::target& reads,
        const owner_process::target& writes)
      : owner_(owner),
        reads_(owner, where, reads),
        writes_(owner, where, writes),
        raw_reads_(connect_raw(owner, fabric_of(where, reads_.context()), reads)),
        raw_writes_(connect_raw(owner, fabric_of(where, writes_.context()), writes)),
        source_(mib) {
    owner.serve(party::ours);
    in_ = std::make_unique<ucx::istream>(reads_.region());
    out_ = std::make_unique<ucx::ostream>(writes_.region());
  }
  ~bench() {
    owner_.serve(party::ours);
    out_.reset();
    in_.reset();
    owner_.serve(party::raw);
  }
  bench(const bench&) = delete;
  bench& operator=(const bench&) = delete;

  double read(std::size_t call, std::size_t stride = 0);
  double write(std::size_t call);
  double read_raw(const raw_loop& loop) {
    owner_.serve(party::raw);
    return raw_reads_.read(loop, pass_time());
  }
  double write_raw(const raw_loop& loop);

 private:
  static raw_client connect_raw(owner_process& owner, const raw_fabric& fabric,
                                const owner_process::target& target) {
    owner.serve(party::raw);
    return raw_client(fabric, target.raw, target.raw_region);
  }
  void stamp_source();
  void check_written(std::uint64_t offset, std::size_t call);

  owner_process& owner_;
  ucxio_client reads_;
  ucxio_client writes_;
  raw_client raw_reads_;
  raw_client raw_writes_;
  std::unique_ptr<ucx::istream> in_;
  std::unique_ptr<ucx::ostream> out_;
  std::vector<std::byte> into_ = std::vector<std::byte>(mib);
  std::vector<std::byte> source_;
  std::uint64_t stamp_ = 0;
};

/// With a stride: seeks before each read.
double bench::read(std::size_t call, std::size_t stride) {
  owner_.serve(party::ours);
  ucx::istream& in = *in_;
  const std::uint64_t size = reads_.region().size();
  const auto data = reinterpret_cast<char*>(into_.data());
  in.seekg(0);
  std::uint64_t calls = 0;
  const std::uint64_t look = call >= 256 * kib ? 4 : 32;
  const clock::time_point start = clock::now();
  const clock::time_point until = start + pass_time();
  do {
    const std::uint64_t offset = call_offset(calls, call, stride, size);
    if (stride != 0 || offset == 0) in.seekg(static_cast<std::streamoff>(offset));
    in.read(data, static_cast<std::streamsize>(call));
    check_pattern(std::span(into_).first(call), offset);
  } while (++calls % look != 0 || clock::now() < until);
  const double seconds = std::chrono::duration<double>(clock::now() - start).count();
  if (!in) throw std::runtime_error("reading: " + in.error().message());
  // What was read ahead and nobody wants arrives before the next pass, not in it.
  in.sync();
  reads_.region().read_at(0, std::span(into_).first(8));
  return static_cast<double>(calls) / seconds;
}

void bench::stamp_source() {
  ++stamp_;
  for (std::size_t at = 0; at < source_.size(); at += 4 * kib) {
    std::memcpy(source_.data() + at, &stamp_, sizeof stamp_);
  }
}

/// The last call's bytes must be at the owner.
void bench::check_written(std::uint64_t offset, std::size_t call) {
  owner_.serve(party::ours);
  writes_.region().read_at(offset, std::span(into_).first(call));
  if (std::memcmp(into_.data(), source_.data(), call) != 0) {
    throw std::runtime_error("what was written is not there");
  }
}

double bench::write(std::size_t call) {
  owner_.serve(party::ours);
  stamp_source();
  ucx::ostream& out = *out_;
  const std::uint64_t size = writes_.region().size();
  const auto data = reinterpret_cast<const char*>(source_.data());
  std::uint64_t offset = 0;
  std::uint64_t calls = 0;
  const std::uint64_t look = call >= 256 * kib ? 4 : 32;
  const clock::time_point start = clock::now();
  const clock::time_point until = start + pass_time();
  do {
    offset = call_offset(calls, call, 0, size);
    if (offset == 0) out.seekp(0);
    out.write(data, static_cast<std::streamsize>(call));
  } while (++calls % look != 0 || clock::now() < until);
  out.flush();
  const double seconds = std::chrono::duration<double>(clock::now() - start).count();
  if (!out) throw std::runtime_error("writing: " + out.error().message());
  check_written(offset, call);
  return static_cast<double>(calls) / seconds;
}

double bench::write_raw(const raw_loop& loop) {
  owner_.serve(party::raw);
  stamp_source();
  const double rate = raw_writes_.write(loop, source_, pass_time());
  // Shared memory: each party allocated its own.
  if (writes_.region().way() == way::message) check_written(raw_writes_.last_offset(), loop.call);
  return rate;
}

std::string size_name(std::size_t size) {
  if (size >= mib) return std::to_string(size / mib) + "MiB";
  if (size >= kib) return std::to_string(size / kib) + "KiB";
  return std::to_string(size) + "B";
}

std::string loop_name(const raw_loop& loop, const char* rma) {
  std::string name = loop.way == raw_way::rma ? rma : "message";
  if (loop.piece != 0) name += "/" + size_name(loop.piece);
  return name + " w" + std::to_string(loop.window);
}

/// The loops that a reader by hand would try.
std::vector<raw_loop> read_loops(std::size_t call, bool messages) {
  std::vector<raw_loop> loops;
  for (const unsigned window : {1U, 4U, 16U}) loops.push_back({raw_way::rma, window, call});
  if (!messages) return loops;
  for (const unsigned window : {2U, 4U, 16U}) loops.push_back({raw_way::message, window, call});
  if (call > 512 * kib) {
    for (const unsigned window : {1U, 2U, 4U}) {
      loops.push_back({raw_way::message, window, call, 512 * kib});
    }
  }
  return loops;
}

std::vector<raw_loop> write_loops(std::size_t call, bool messages) {
  std::vector<raw_loop> loops;
  for (const unsigned window : {1U, 4U, 16U}) loops.push_back({raw_way::rma, window, call});
  if (!messages) return loops;
  for (const unsigned window : {1U, 4U, 16U}) loops.push_back({raw_way::message, window, call});
  if (call > 512 * kib) loops.push_back({raw_way::message, 4, call, 512 * kib});
  return loops;
}

comparison reading(const std::shared_ptr<bench>& on, const std::string& prefix, std::size_t call,
                   bool messages, double target) {
  comparison made;
  made.name = prefix + "read/" + size_name(call);
  made.ours = {"ucx::istream::read", [on, call] { return on->read(call); }};
  for (const raw_loop& loop : read_loops(call, messages)) {
    made.others.push_back({loop_name(loop, "get"), [on, loop] { return on->read_raw(loop); }});
  }
  made.target = target;
  made.scale = static_cast<double>(call) / 1e9;
  made.unit = "GB/s";
  return made;
}

comparison writing(const std::shared_ptr<bench>& on, const std::string& prefix, std::size_t call,
                   bool messages, double target) {
  comparison made;
  made.name = prefix + "write/" + size_name(call);
  made.ours = {"ucx::ostream::write", [on, call] { return on->write(call); }};
  for (const raw_loop& loop : write_loops(call, messages)) {
    made.others.push_back({loop_name(loop, "put"), [on, loop] { return on->write_raw(loop); }});
  }
  made.target = target;
  made.scale = static_cast<double>(call) / 1e9;
  made.unit = "GB/s";
  return made;
}

comparison seeking(const std::shared_ptr<bench>& on, const std::string& prefix, double target) {
  comparison made;
  made.name = prefix + "seek+read/8B";
  made.ours = {"ucx::istream", [on] { return on->read(8, scattered); }};
  const raw_loop loop{raw_way::rma, 1, 8, 0, scattered};
  made.others.push_back({"get", [on, loop] { return on->read_raw(loop); }});
  made.by = measure::cost;
  made.target = target;
  made.scale = 1e-6;
  made.unit = "M/s";
  return made;
}

void register_all(owner_process& owner) {
  const auto& targets = owner.targets();
  const auto tcp = std::make_shared<bench>(owner, plane::tcp_loopback, targets[0], targets[1]);
  const auto shared = std::make_shared<bench>(owner, plane::shared_memory, targets[2], targets[3]);
  for (const std::size_t call : {mib, 64 * kib, 4 * kib}) {
    register_comparison(reading(tcp, "tcp/", call, true, call == mib ? 0.85 : 0));
  }
  for (const std::size_t call : {mib, 64 * kib, 4 * kib}) {
    register_comparison(writing(tcp, "tcp/", call, true, call == mib ? 0.85 : 0));
  }
  register_comparison(seeking(tcp, "tcp/", 1.3));
  for (const std::size_t call : {mib, 64 * kib, 4 * kib}) {
    register_comparison(reading(shared, "shm/", call, false, 0));
  }
  for (const std::size_t call : {mib, 64 * kib, 4 * kib}) {
    register_comparison(writing(shared, "shm/", call, false, 0));
  }
  register_comparison(seeking(shared, "shm/", 0));
}

}  // namespace
}  // namespace ucx::benchmarks

int main(int argc, char** argv) {
  using namespace ucx::benchmarks;
  owner_process owner({{plane::tcp_loopback, tcp_region, fill_pattern},
                       {plane::tcp_loopback, tcp_region, fill_pattern},
                       {plane::shared_memory, shared_region, fill_pattern},
                       {plane::shared_memory, shared_region, fill_pattern}});
  pin_to_core(reader_core);
  const int status = run_comparisons(argc, argv, [&] { register_all(owner); });
  benchmark::ClearRegisteredBenchmarks();
  return status;
}
