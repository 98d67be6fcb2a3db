// Processor time, of both sides together, for a byte that is read or written over TCP. Owners sleep
// while nothing is asked for, as a server does.
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "comparison.hpp"
#include "network.hpp"
#include "owner_process.hpp"
#include "processor_time.hpp"
#include "raw_ucx.hpp"
#include "server_process.hpp"
#include "socket_client.hpp"
#include "socket_owner.hpp"
#include "ucx/fstream.hpp"

namespace ucx::benchmarks {
namespace {

using clock = std::chrono::steady_clock;
using party = owner_process::party;

constexpr std::size_t mib = std::size_t{1} << 20U;
constexpr std::size_t matrix = 128 * mib;

/// The owners of the three kinds.
struct owners {
  socket_owner sockets{matrix};
  owner_process by_hand{{{plane::tcp, matrix, fill_pattern}}};
  server_process server{matrix};
  server_process written{matrix, server_process::memory::callers, access::read_write};
};

class bench {
 public:
  explicit bench(owners& all)
      : all_(all),
        ours_(all.server.url() + "/matrix"),
        out_(all.written.url() + "/matrix"),
        socket_(all.sockets, connect(all)) {
    all_.by_hand.serve(party::raw);
    const owner_process::target& target = all_.by_hand.targets().front();
    raw_ = std::make_unique<raw_client>(fabric_of(plane::tcp, context(options_of(plane::tcp))),
                                        target.raw, target.raw_region);
    all_.by_hand.serve(party::nobody);
  }

  /// The calls of 1 MiB for which a second of processor time is enough.
  double read() {
    return calls_of_a_second([this] { return all_.server.processor_time(); },
                             [this] { return read_stream(); });
  }
  double read_raw(const raw_loop& loop) {
    all_.by_hand.serve(party::raw_asleep);
    const double calls = calls_of_a_second([this] { return all_.by_hand.processor_time(); },
                                           [&] { return raw_->read(loop, pass_time()); });
    all_.by_hand.serve(party::nobody);
    return calls;
  }
  double read_socket() {
    return calls_of_a_second([this] { return all_.sockets.processor_time(); },
                             [this] { return socket_.read(mib, pass_time()); });
  }
  double write() {
    return calls_of_a_second([this] { return all_.written.processor_time(); },
                             [this] { return write_stream(); });
  }
  double write_raw(const raw_loop& loop) {
    all_.by_hand.serve(party::raw_asleep);
    const double calls = calls_of_a_second([this] { return all_.by_hand.processor_time(); },
                                           [&] { return raw_->write(loop, from_, pass_time()); });
    all_.by_hand.serve(party::nobody);
    return calls;
  }
  double write_socket() {
    return calls_of_a_second([this] { return all_.sockets.processor_time(); },
                             [this] { return socket_.write(mib, from_, pass_time()); });
  }

 private:
  static std::unique_ptr<byte_connection> connect(const owners& all) {
    return connect_socket(all.sockets.address());
  }
  /// `pass` returns calls of a second on the clock.
  static double calls_of_a_second(const std::function<std::chrono::nanoseconds()>& owners_time,
                                  const std::function<double()>& pass) {
    const std::chrono::nanoseconds before = owners_time() + own_processor_time();
    const clock::time_point start = clock::now();
    const double rate = pass();
    const double passed = std::chrono::duration<double>(clock::now() - start).count();
    const std::chrono::nanoseconds after = owners_time() + own_processor_time();
    return rate * passed / std::chrono::duration<double>(after - before).count();
  }
  double read_stream() {
    ours_.seekg(0);
    std::size_t at = 0;
    return repeat([&] {
      if (at == matrix) ours_.seekg(static_cast<std::streamoff>(at = 0));
      ours_.read(reinterpret_cast<char*>(into_.data()), static_cast<std::streamsize>(mib));
      if (!ours_) throw std::runtime_error(ours_.error_message());
      check_pattern(into_, at);
      at += mib;
    });
  }

  /// Until it is all visible at the owner.
  double write_stream() {
    std::size_t at = 0;
    std::uint64_t calls = 0;
    ++stamp_;
    std::memcpy(from_.data(), &stamp_, sizeof stamp_);
    out_.seekp(0);
    const clock::time_point start = clock::now();
    do {
      if (at == matrix) out_.seekp(static_cast<std::streamoff>(at = 0));
      out_.write(reinterpret_cast<const char*>(from_.data()), static_cast<std::streamsize>(mib));
      at += mib;
    } while (++calls % 4 != 0 || clock::now() - start < pass_time());
    out_.flush();
    const double seconds = std::chrono::duration<double>(clock::now() - start).count();
    if (!out_) throw std::runtime_error(out_.error_message());
    return static_cast<double>(calls) / seconds;
  }

  owners& all_;
  ifstream ours_;
  ofstream out_;
  std::unique_ptr<raw_client> raw_;
  socket_client socket_;
  std::vector<std::byte> into_ = std::vector<std::byte>(mib);
  std::vector<std::byte> from_ = std::vector<std::byte>(mib);
  std::uint64_t stamp_ = 0;
};

struct named_loop {
  std::string name;
  raw_loop loop;
};

/// Each loop by hand twice: with a side here that sleeps while it waits, and with one that spins.
std::vector<contender> by_hand(const std::vector<named_loop>& loops,
                               const std::function<double(const raw_loop&)>& pass) {
  std::vector<contender> made;
  for (const bool sleeps : {true, false}) {
    for (const named_loop& each : loops) {
      raw_loop loop = each.loop;
      loop.sleeps = sleeps;
      made.push_back(
          {each.name + (sleeps ? ", sleeps" : ", spins"), [pass, loop] { return pass(loop); }});
    }
  }
  return made;
}

void register_all(owners& all) {
  const auto on = std::make_shared<bench>(all);
  comparison made;
  made.name = "cpu/read/1MiB";
  made.ours = {"ucx::ifstream::read", [on] { return on->read(); }};
  made.others = by_hand({{"get w4", {raw_way::rma, 4, mib}},
                         {"message w2", {raw_way::message, 2, mib}},
                         {"message/512KiB w4", {raw_way::message, 4, mib, mib / 2}}},
                        [on](const raw_loop& loop) { return on->read_raw(loop); });
  made.by = measure::cost;
  made.target = 1.05;
  made.scale = static_cast<double>(mib) / 1e9;
  made.unit = "GB for a second of processor time";
  register_comparison(made);
  made.name += ", socket";
  made.others = {{"socket", [on] { return on->read_socket(); }}};
  made.target = 0;
  register_comparison(made);
  comparison writing = made;
  writing.name = "cpu/write/1MiB";
  writing.ours = {"ucx::ofstream::write", [on] { return on->write(); }};
  writing.others = by_hand({{"put w4", {raw_way::rma, 4, mib}},
                            {"message w4", {raw_way::message, 4, mib}},
                            {"message/512KiB w4", {raw_way::message, 4, mib, mib / 2}}},
                           [on](const raw_loop& loop) { return on->write_raw(loop); });
  writing.target = 1.05;
  register_comparison(writing);
  writing.name += ", socket";
  writing.others = {{"socket", [on] { return on->write_socket(); }}};
  writing.target = 0;
  register_comparison(writing);
}

}  // namespace
}  // namespace ucx::benchmarks

int main(int argc, char** argv) {
  using namespace ucx::benchmarks;
  // Over the wire, although the servers are on this host and their memory could be read in place.
  ::setenv("UCXIO_TRANSFER_METHOD", "message", 0);
  owners all;
  pin_to_core(reader_core);
  const int status = run_comparisons(argc, argv, [&] { register_all(all); });
  benchmark::ClearRegisteredBenchmarks();
  return status;
}
