// Memory of a GPU, this side's and the other's, beside what bounds it: the driver's copy from and
// to pinned memory, and the same transfer between memory of the host; and where the driver copies
// from one process to the other, its copy within the device, and UCX's own get and put where that
// knows of CUDA.
#include <benchmark/benchmark.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "comparison.hpp"
#include "driver_copies.hpp"
#include "network.hpp"
#include "raw_device.hpp"
#include "raw_ucx.hpp"
#include "server_process.hpp"
#include "ucx/buffer.hpp"
#include "ucx/client.hpp"
#include "ucx/memory_copy.hpp"
#include "ucx/memory_pool.hpp"
#include "ucx/remote_region.hpp"

namespace ucx::benchmarks {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20U;
constexpr std::size_t size = 64 * mib;
constexpr std::size_t call = 16 * mib;

/// Four memories: of either kind, here and there.
class bench {
 public:
  bench() {
    std::vector<std::byte> seen(call);
    for (remote_region* const each : {&host_, &device_, &direct_}) {
      each->read_at(mib, on_device_.bytes());
      copy_memory(seen.data(), on_device_.data(), call);
      check_pattern(seen, mib);
    }
    try {
      if (!why_no_ucx_.empty()) return;
      raw_.connect();
      raw_.get(mib, on_device_.bytes());
      raw_.put(mib, on_device_.bytes());
      driver_.copy(seen.data(), on_device_.data(), call);
      check_pattern(seen, mib);
    } catch (const std::exception& failure) {
      why_no_ucx_ = failure.what();  // the other comparisons are wanted all the same
    }
  }

  double read(remote_region& from, buffer& into) {
    return repeat([&] { from.read_at(0, into.bytes()); });
  }
  double write(remote_region& into, const buffer& from) {
    return repeat([&] {
      into.write_at(0, from.bytes());
      into.flush();
    });
  }
  /// By UCX itself, of the same memory on the other side.
  double get(buffer& into) {
    return repeat([&] { raw_.get(0, into.bytes()); });
  }
  double put(const buffer& from) {
    return repeat([&] { raw_.put(0, from.bytes()); });
  }
  double copy(buffer& into, const buffer& from) {
    return repeat([&] { driver_.copy(into.data(), from.data(), call); });
  }
  /// What no staged read can be faster than.
  double slower_part_of_read() {
    return std::min({read(host_, on_host_), copy(on_device_, pinned_), copy(pinned_, on_device_)});
  }
  double slower_part_of_write() {
    return std::min({write(host_, on_host_), copy(on_device_, pinned_), copy(pinned_, on_device_)});
  }

  /// What no direct read or write can be faster than.
  double copy_within_device() { return copy(other_on_device_, on_device_); }
  double copy_into_pinned() { return copy(pinned_, on_device_); }

  remote_region& host() { return host_; }
  remote_region& device() { return device_; }
  /// Returns the device's memory, where the driver shares it: else `device()` again.
  remote_region& direct() { return direct_; }
  /// Why there is no UCX to compare with; empty: there is.
  const std::string& why_no_ucx() const { return why_no_ucx_; }
  buffer& on_host() { return on_host_; }
  buffer& on_device() { return on_device_; }
  buffer& pinned() { return pinned_; }

 private:
  // Before this process uses UCX or CUDA.
  server_process host_owner_{size, server_process::memory::callers, access::read_write};
  server_process device_owner_{size, server_process::memory::device, access::read_write};
  raw_device raw_{size};
  std::string why_no_ucx_ = raw_.why_not();
  driver_copies driver_;
  memory_pool devices_{{memory_kind::cuda, 0}};
  memory_pool pins_{{memory_kind::cuda_pinned, 0}};
  buffer on_host_{call};
  buffer on_device_{devices_, call};
  buffer other_on_device_{devices_, call};
  buffer pinned_{pins_, call};
  client host_client_{host_owner_.url()};
  client device_client_{device_owner_.url()};
  // Memory of the host would be read where it lies.
  remote_region host_ = by_message(host_client_);
  remote_region device_ = by_message(device_client_);
  remote_region direct_ = device_client_.open("matrix", access::read_write);

  static remote_region by_message(client& asked) {
    ::setenv("UCXIO_WAY", "message", 1);
    remote_region opened = asked.open("matrix", access::read_write);
    ::unsetenv("UCXIO_WAY");
    return opened;
  }
};

/// Asks in another process: one that has initialised CUDA has no children that may use it.
bool has_device() {
  const ::pid_t asking = ::fork();
  if (asking == 0) {
    std::error_code ec;
    const memory_pool devices({memory_kind::cuda, 0}, {}, ec);
    ::_exit(ec ? 1 : 0);
  }
  int status = 1;
  return ::waitpid(asking, &status, 0) == asking && status == 0;
}

void register_all(const std::shared_ptr<bench>& on) {
  const auto compare = [](std::string name, std::function<double()> ours,
                          std::function<double()> bound, const char* bound_name, double target) {
    comparison made;
    made.name = std::move(name);
    made.ours = {"ucx::remote_region", std::move(ours)};
    made.others = {{bound_name, std::move(bound)}};
    made.target = target;
    made.scale = static_cast<double>(call) / 1e9;
    made.unit = "GB/s";
    register_comparison(std::move(made));
  };
  const auto staged = [&](std::string name, std::function<double()> ours,
                          std::function<double()> bound) {
    compare(std::move(name), std::move(ours), std::move(bound), "the slowest part", 0.9);
  };
  const auto read_bound = [on] { return on->slower_part_of_read(); };
  const auto write_bound = [on] { return on->slower_part_of_write(); };
  staged(
      "gpu/read/device to host", [on] { return on->read(on->device(), on->on_host()); },
      read_bound);
  staged(
      "gpu/read/host to device", [on] { return on->read(on->host(), on->on_device()); },
      read_bound);
  staged(
      "gpu/read/device to device", [on] { return on->read(on->device(), on->on_device()); },
      read_bound);
  staged(
      "gpu/write/device to host", [on] { return on->write(on->host(), on->on_device()); },
      write_bound);
  staged(
      "gpu/write/host to device", [on] { return on->write(on->device(), on->on_host()); },
      write_bound);
  staged(
      "gpu/write/device to device", [on] { return on->write(on->device(), on->on_device()); },
      write_bound);
  if (on->direct().way() != way::rma) {
    std::fprintf(stderr, "gpu_benchmark: nothing goes directly, because %s\n",
                 on->direct().why_not_read().c_str());
    return;
  }
  const auto within = [on] { return on->copy_within_device(); };
  compare(
      "gpu/direct/read into device", [on] { return on->read(on->direct(), on->on_device()); },
      within, "a copy within the device", 0.9);
  compare(
      "gpu/direct/write from device", [on] { return on->write(on->direct(), on->on_device()); },
      within, "a copy within the device", 0.9);
  compare(
      "gpu/direct/read into pinned memory", [on] { return on->read(on->direct(), on->pinned()); },
      [on] { return on->copy_into_pinned(); }, "a copy into pinned memory", 0.9);
  if (!on->why_no_ucx().empty()) {
    std::fprintf(stderr, "gpu_benchmark: nothing is compared with UCX itself, because %s\n",
                 on->why_no_ucx().c_str());
    return;
  }
  compare(
      "gpu/direct/read into device, UCX", [on] { return on->read(on->direct(), on->on_device()); },
      [on] { return on->get(on->on_device()); }, "ucp_get_nbx", 0.95);
  compare(
      "gpu/direct/write from device, UCX",
      [on] { return on->write(on->direct(), on->on_device()); },
      [on] { return on->put(on->on_device()); }, "ucp_put_nbx", 0.95);
}

}  // namespace
}  // namespace ucx::benchmarks

/// Ends with 77 where there is no CUDA device.
int main(int argc, char** argv) {
  using namespace ucx::benchmarks;
  if (!has_device()) {
    std::fprintf(stderr, "gpu_benchmark: there is no CUDA device\n");
    return 77;
  }
  const auto on = std::make_shared<bench>();
  pin_to_core(reader_core);
  const int status = run_comparisons(argc, argv, [&] { register_all(on); });
  benchmark::ClearRegisteredBenchmarks();
  return status;
}
