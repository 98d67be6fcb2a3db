// Boost's streams over our devices, beside our own streams, over the same region.
#include <benchmark/benchmark.h>

#include <boost/iostreams/stream.hpp>
#include <chrono>
#include <cstdint>
#include <ios>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "comparison.hpp"
#include "owner_process.hpp"
#include "raw_ucx.hpp"
#include "ucx/boost_device.hpp"
#include "ucx/stream.hpp"
#include "ucxio_client.hpp"

namespace ucx::benchmarks {
namespace {

using clock = std::chrono::steady_clock;
using party = owner_process::party;

constexpr std::size_t mib = std::size_t{1} << 20U;
constexpr std::size_t region_size = 128 * mib;

/// Both streams, each over a region of its own with the same bytes.
class bench {
 public:
  bench(owner_process& owner, plane where, const owner_process::target& first,
        const owner_process::target& second)
      : owner_(owner),
        by_boost_(owner, where, first),
        by_us_(owner, where, second),
        device_(by_boost_.region()),
        boost_(device_),
        ours_(by_us_.region()) {}
  ~bench() { owner_.serve(party::ours); }
  bench(const bench&) = delete;
  bench& operator=(const bench&) = delete;

  double read_by_boost(std::size_t call) { return read(boost_, by_boost_, call); }
  double read_by_us(std::size_t call) { return read(ours_, by_us_, call); }

 private:
  double read(std::istream& in, ucxio_client& through, std::size_t call);

  owner_process& owner_;
  ucxio_client by_boost_;
  ucxio_client by_us_;
  remote_source device_;
  boost::iostreams::stream<remote_source> boost_;
  ucx::istream ours_;
  std::vector<std::byte> into_ = std::vector<std::byte>(mib);
};

double bench::read(std::istream& in, ucxio_client& through, std::size_t call) {
  owner_.serve(party::ours);
  const auto data = reinterpret_cast<char*>(into_.data());
  std::uint64_t calls = 0;
  const clock::time_point start = clock::now();
  const auto until = start + std::chrono::duration<double>(pass_seconds());
  do {
    const std::uint64_t offset = call_offset(calls, call, 0, region_size);
    if (offset == 0) in.seekg(0);
    in.read(data, static_cast<std::streamsize>(call));
    check_pattern(std::span(into_).first(call), offset);
  } while (++calls % 4 != 0 || clock::now() < until);
  const double seconds = std::chrono::duration<double>(clock::now() - start).count();
  if (!in) throw std::runtime_error("reading failed");
  // What was read ahead and nobody wants arrives before the next pass, not in it.
  in.sync();
  through.region().read_at(0, std::span(into_).first(8));
  return static_cast<double>(calls) / seconds;
}

void register_all(owner_process& owner) {
  const auto& targets = owner.targets();
  const auto add = [](const std::shared_ptr<bench>& on, const std::string& name, double target) {
    comparison made;
    made.name = name;
    made.ours = {"boost stream<remote_source>", [on] { return on->read_by_boost(mib); }};
    made.others.push_back({"ucx::istream", [on] { return on->read_by_us(mib); }});
    made.target = target;
    made.scale = static_cast<double>(mib) / 1e9;
    made.unit = "GB/s";
    register_comparison(std::move(made));
  };
  add(std::make_shared<bench>(owner, plane::tcp, targets[0], targets[1]), "tcp/boost read/1MiB",
      0.95);
  add(std::make_shared<bench>(owner, plane::shared_memory, targets[2], targets[3]),
      "shm/boost read/1MiB", 0);
}

}  // namespace
}  // namespace ucx::benchmarks

int main(int argc, char** argv) {
  using namespace ucx::benchmarks;
  owner_process owner({{plane::tcp, region_size, fill_pattern},
                       {plane::tcp, region_size, fill_pattern},
                       {plane::shared_memory, region_size, fill_pattern},
                       {plane::shared_memory, region_size, fill_pattern}});
  pin_to_core(reader_core);
  const int status = run_comparisons(argc, argv, [&] { register_all(owner); });
  benchmark::ClearRegisteredBenchmarks();
  return status;
}
