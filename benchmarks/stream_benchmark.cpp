// Streams beside the best loop that can be written by hand against UCX.
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <ios>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "comparison.hpp"
#include "owner_process.hpp"
#include "raw_ucx.hpp"
#include "socket_client.hpp"
#include "socket_owner.hpp"
#include "ucx/stream.hpp"
#include "ucx/version.hpp"
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
        const owner_process::target& writes, const socket_owner* sockets)
      : owner_(owner),
        reads_(owner, where, reads),
        writes_(owner, where, writes),
        raw_reads_(connect_raw(owner, fabric_of(where, reads_.context()), reads)),
        raw_writes_(connect_raw(owner, fabric_of(where, writes_.context()), writes)),
        source_(mib) {
    owner.serve(party::ours);
    in_ = std::make_unique<ucx::istream>(reads_.region());
    verified_ = std::make_unique<ucx::istream>(reads_.region(), stream_options{.verify = true});
    out_ = std::make_unique<ucx::ostream>(writes_.region());
    if (sockets == nullptr) return;
    socket_.emplace(*sockets, connect_socket(sockets->address()));
    if (auto asio = connect_asio(sockets->address())) asio_.emplace(*sockets, std::move(asio));
  }
  ~bench() {
    owner_.serve(party::ours);
    out_.reset();
    verified_.reset();
    in_.reset();
    owner_.serve(party::raw);
  }
  bench(const bench&) = delete;
  bench& operator=(const bench&) = delete;

  double read(std::size_t call, std::size_t stride = 0) { return read(*in_, call, stride); }
  /// Compares checksums of the owner's.
  double read_verified(std::size_t call) { return read(*verified_, call, 0); }
  double write(std::size_t call);
  /// Writes and flushes, now here, now there.
  double write_and_flush(std::size_t call);
  double read_raw(const raw_loop& loop) {
    owner_.serve(party::raw);
    return raw_reads_.read(loop, pass_time());
  }
  double write_raw(const raw_loop& loop);
  double read_socket(std::size_t call) { return idly()->read(call, pass_time()); }
  double write_socket(std::size_t call) {
    stamp_source();
    return idly()->write(call, source_, pass_time());
  }
  bool has_asio() const noexcept { return asio_.has_value(); }
  double read_asio(std::size_t call) { return idly(), asio_->read(call, pass_time()); }
  double write_asio(std::size_t call) {
    stamp_source();
    return idly(), asio_->write(call, source_, pass_time());
  }

 private:
  double read(ucx::istream& in, std::size_t call, std::size_t stride);
  /// Lets the owner's process leave its core to that of the sockets.
  std::optional<socket_client>& idly() {
    owner_.serve(party::nobody);
    return socket_;
  }
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
  std::unique_ptr<ucx::istream> verified_;
  std::unique_ptr<ucx::ostream> out_;
  std::vector<std::byte> into_ = std::vector<std::byte>(mib);
  std::vector<std::byte> source_;
  std::uint64_t stamp_ = 0;
  std::optional<socket_client> socket_;
  std::optional<socket_client> asio_;
};

/// With a stride: seeks before each read.
double bench::read(ucx::istream& in, std::size_t call, std::size_t stride) {
  owner_.serve(party::ours);
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

double bench::write_and_flush(std::size_t call) {
  owner_.serve(party::ours);
  stamp_source();
  ucx::ostream& out = *out_;
  const std::uint64_t size = writes_.region().size();
  std::uint64_t offset = 0;
  std::uint64_t calls = 0;
  const double rate = repeat([&] {
    offset = call_offset(calls++, call, scattered, size);
    out.seekp(static_cast<std::streamoff>(offset));
    out.write(reinterpret_cast<const char*>(source_.data()), static_cast<std::streamsize>(call));
    out.flush();
  });
  if (!out) throw std::runtime_error("writing: " + out.error().message());
  check_written(offset, call);
  return rate;
}

double bench::write_raw(const raw_loop& loop) {
  owner_.serve(party::raw);
  stamp_source();
  const double rate = raw_writes_.write(loop, source_, pass_time());
  // Shared memory: each party allocated its own.
  if (writes_.region().transfer_method() == transfer_method::message)
    check_written(raw_writes_.last_offset(), loop.call);
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

comparison seeking(const std::shared_ptr<bench>& on, const std::string& prefix, std::size_t call,
                   bool messages, double target) {
  comparison made;
  made.name = prefix + "seek+read/" + size_name(call);
  made.ours = {"ucx::istream", [on, call] { return on->read(call, scattered); }};
  std::vector<raw_loop> loops{{raw_way::rma, 1, call, 0, scattered}};
  if (messages) loops.push_back({raw_way::message, 1, call, 0, scattered});
  for (const raw_loop& loop : loops) {
    made.others.push_back({loop_name(loop, "get"), [on, loop] { return on->read_raw(loop); }});
  }
  made.by = measure::cost;
  made.target = target;
  made.scale = 1e-6;
  made.unit = "M/s";
  return made;
}

comparison flushing(const std::shared_ptr<bench>& on, const std::string& prefix, bool messages,
                    double target) {
  constexpr std::size_t call = 8;
  comparison made;
  made.name = prefix + "write+flush/8B";
  made.ours = {"ucx::ostream", [on] { return on->write_and_flush(call); }};
  std::vector<raw_loop> loops{{raw_way::rma, 1, call, 0, scattered, true}};
  if (messages) loops.push_back({raw_way::message, 1, call, 0, scattered, true});
  for (const raw_loop& loop : loops) {
    made.others.push_back({loop_name(loop, "put"), [on, loop] { return on->write_raw(loop); }});
  }
  made.by = measure::cost;
  made.target = target;
  made.scale = 1e-6;
  made.unit = "M/s";
  return made;
}

/// Small calls of ours beside 1 MiB calls by hand: what the buffer has to make up for.
comparison beside_large(comparison small, const comparison& large, std::size_t call,
                        double target) {
  small.name += ", 1MiB by hand";
  small.others.clear();
  const double small_calls = static_cast<double>(mib) / static_cast<double>(call);
  for (const contender& each : large.others) {
    small.others.push_back(
        {each.name, [pass = each.pass, small_calls] { return pass() * small_calls; }});
  }
  small.target = target;
  return small;
}

void register_beside_sockets(const std::shared_ptr<bench>& on, comparison made, std::size_t call,
                             bool reads) {
  const std::string name = made.name;
  made.name = name + ", socket";
  made.others = {
      {"socket", [=] { return reads ? on->read_socket(call) : on->write_socket(call); }}};
  made.target = call == mib ? 1.0 : 0;
  register_comparison(made);
  if (!on->has_asio()) return;
  made.name = name + ", Asio";
  made.others = {
      {"tcp::iostream", [=] { return reads ? on->read_asio(call) : on->write_asio(call); }}};
  made.target = 5;
  register_comparison(made);
}

/// What checksums cost.
void register_verified(const std::shared_ptr<bench>& on) {
  comparison made;
  made.name = "tcp/read verified/" + size_name(mib);
  made.ours = {"ucx::istream, verified", [on] { return on->read_verified(mib); }};
  made.others = {{"ucx::istream", [on] { return on->read(mib); }}};
  made.target = 0.8;
  made.scale = static_cast<double>(mib) / 1e9;
  made.unit = "GB/s";
  register_comparison(made);
}

void register_tcp(const std::shared_ptr<bench>& on) {
  for (const bool reads : {true, false}) {
    const auto make = reads ? &reading : &writing;
    const comparison large = make(on, "tcp/", mib, true, 0.97);
    register_comparison(large);
    register_beside_sockets(on, large, mib, reads);
    for (const auto& [call, target] : {std::pair(256 * kib, 0.0), std::pair(64 * kib, 0.95),
                                       std::pair(16 * kib, 0.0), std::pair(4 * kib, 0.9)}) {
      const comparison small = make(on, "tcp/", call, true, 0);
      register_comparison(small);
      if (target == 0) continue;
      register_comparison(beside_large(small, large, call, target));
      register_beside_sockets(on, small, call, reads);
    }
  }
  register_comparison(seeking(on, "tcp/", 8, true, 1.08));
  register_comparison(seeking(on, "tcp/", 4 * kib, true, 1.08));
  register_comparison(flushing(on, "tcp/", true, 1.1));
  register_verified(on);
}

void register_shared(const std::shared_ptr<bench>& on) {
  for (const bool reads : {true, false}) {
    const auto make = reads ? &reading : &writing;
    for (const std::size_t call : {mib, 64 * kib, 4 * kib}) {
      register_comparison(make(on, "shm/", call, false, 0));
    }
  }
  register_comparison(seeking(on, "shm/", 8, false, 0));
  register_comparison(flushing(on, "shm/", false, 0));
}

/// Memory of the owner's program, within one host. UCX reads it by CMA from 1.22 on; an older one
/// lets the owner copy it through shared memory, for as long as that makes progress, so that there
/// messages over TCP are the measure.
void register_one_host(const std::shared_ptr<bench>& on, const std::shared_ptr<bench>& over_tcp) {
  const version_number ucx = ucx_version();
  const bool by_cma = std::pair(ucx.major, ucx.minor) >= std::pair(1U, 22U);
  for (const std::size_t call : {mib, 64 * kib}) {
    comparison by_get = reading(on, "host/", call, false, by_cma && call == mib ? 0.97 : 0);
    comparison by_message =
        reading(over_tcp, "host/", call, true, !by_cma && call == mib ? 0.97 : 0);
    by_message.ours = by_get.ours;
    by_message.name += ", TCP";
    std::erase_if(by_message.others,
                  [](const contender& each) { return !each.name.starts_with("message"); });
    register_comparison(by_get);
    register_comparison(by_message);
  }
  register_comparison(seeking(on, "host/", 8, false, 0));
}

void register_all(owner_process& owner, const socket_owner& sockets) {
  const auto& targets = owner.targets();
  const auto over_tcp =
      std::make_shared<bench>(owner, plane::tcp, targets[0], targets[1], &sockets);
  register_tcp(over_tcp);
  register_one_host(
      std::make_shared<bench>(owner, plane::one_host, targets[4], targets[5], nullptr), over_tcp);
  register_shared(
      std::make_shared<bench>(owner, plane::shared_memory, targets[2], targets[3], nullptr));
}

}  // namespace
}  // namespace ucx::benchmarks

int main(int argc, char** argv) {
  using namespace ucx::benchmarks;
  const socket_owner sockets(tcp_region);
  owner_process owner({{plane::tcp, tcp_region, fill_pattern},
                       {plane::tcp, tcp_region, fill_pattern},
                       {plane::shared_memory, shared_region, fill_pattern},
                       {plane::shared_memory, shared_region, fill_pattern},
                       {plane::one_host, tcp_region, fill_pattern},
                       {plane::one_host, tcp_region, fill_pattern}});
  pin_to_core(reader_core);
  const int status = run_comparisons(argc, argv, [&] { register_all(owner, sockets); });
  benchmark::ClearRegisteredBenchmarks();
  return status;
}
