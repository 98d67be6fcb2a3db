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
#include <stdexcept>
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
#include "ucx/memory_resources.hpp"
#include "ucx/remote_region.hpp"

namespace ucx::benchmarks {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20U;
constexpr std::size_t call = 16 * mib;
constexpr std::size_t long_call = 256 * mib;

/// Four memories: of either kind, here and there.
class bench {
 public:
  /// The longest of its calls has so many bytes.
  explicit bench(std::size_t longest) : longest_(longest) {
    std::vector<std::byte> seen(call);
    const std::span<std::byte> into = on_device_.bytes().first(call);
    for (remote_region* const each : {&host_, &device_, &direct_}) {
      each->read_at(mib, into);
      copy_memory(seen.data(), into.data(), call);
      check_pattern(seen, mib);
    }
    try {
      if (!why_no_ucx_.empty()) return;
      raw_.connect();
      raw_.get(mib, into);
      raw_.put(mib, into);
      driver_.copy(seen.data(), into.data(), call);
      check_pattern(seen, mib);
    } catch (const std::exception& failure) {
      why_no_ucx_ = failure.what();  // the other comparisons are wanted all the same
    }
  }

  double read(remote_region& from, buffer& into, std::size_t size = call) {
    return repeat([&] { from.read_at(next(size), into.bytes().first(size)); });
  }
  double write(remote_region& into, const buffer& from, std::size_t size = call) {
    return repeat([&] {
      into.write_at(next(size), from.bytes().first(size));
      into.flush();
    });
  }
  /// By UCX itself, of the same memory on the other side.
  double get(buffer& into, std::size_t size = call) {
    return repeat([&] { raw_.get(next(size), into.bytes().first(size)); });
  }
  double put(const buffer& from, std::size_t size = call) {
    return repeat([&] { raw_.put(next(size), from.bytes().first(size)); });
  }
  double copy(std::byte* into, const std::byte* from, std::size_t size = call) {
    return repeat([&] { driver_.copy(into, from, size); });
  }
  /// What no staged read can be faster than.
  double slower_part_of_read() {
    return std::min({read(host_, on_host_), copy(on_device_.data(), pinned_.data()),
                     copy(pinned_.data(), on_device_.data())});
  }
  double slower_part_of_write() {
    return std::min({write(host_, on_host_), copy(on_device_.data(), pinned_.data()),
                     copy(pinned_.data(), on_device_.data())});
  }

  /// What no direct read or write can be faster than.
  double copy_within_device(std::size_t size) {
    return repeat(
        [&] { driver_.copy(on_device_.data(), other_on_device_.data() + next(size), size); });
  }
  double copy_into_pinned(std::size_t size) {
    return repeat(
        [&] { driver_.copy(pinned_.data(), other_on_device_.data() + next(size), size); });
  }

  std::size_t longest() const { return longest_; }
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
  const std::size_t longest_;
  const std::size_t owned_ = longest_ + call;
  std::size_t at_ = 0;
  // Before this process uses UCX or CUDA.
  server_process host_owner_{owned_, server_process::memory::callers, access::read_write};
  server_process device_owner_{owned_, server_process::memory::device, access::read_write};
  raw_device raw_{owned_};
  std::string why_no_ucx_ = raw_.why_not();
  driver_copies driver_;
  memory_pool devices_{{memory_kind::cuda, 0}, {.max_size = 3 * longest_}};
  memory_pool pins_{{memory_kind::cuda_pinned, 0}, {.max_size = 2 * longest_}};
  buffer on_host_{call};
  buffer on_device_{devices_, longest_};
  buffer other_on_device_{devices_, owned_};
  buffer pinned_{pins_, longest_};
  client host_client_{host_owner_.url()};
  client device_client_{device_owner_.url()};
  // Memory of the host would be read where it lies.
  remote_region host_ = by_message(host_client_);
  remote_region device_ = by_message(device_client_);
  remote_region direct_ = device_client_.open("matrix", access::read_write);

  /// Returns where the next call begins: not where the processor's cache has the bytes still.
  std::size_t next(std::size_t size) {
    at_ = at_ + call + size <= owned_ ? at_ + call : 0;
    return at_;
  }
  static remote_region by_message(client& asked) {
    ::setenv("UCXIO_TRANSFER_METHOD", "message", 1);
    remote_region opened = asked.open("matrix", access::read_write);
    ::unsetenv("UCXIO_TRANSFER_METHOD");
    return opened;
  }
};

/// Returns the longest call that the first device has memory for; 0 where there is none. Asks in
/// another process: one that has initialised CUDA has no children that may use it.
std::size_t longest_call() {
  enum { has_none, has_little, has_enough };
  const ::pid_t asking = ::fork();
  if (asking == 0) {
    std::error_code ec;
    memory_pool devices({memory_kind::cuda, 0}, {.max_size = 8 * long_call}, ec);
    if (ec) ::_exit(has_none);
    try {
      const buffer all(devices, 8 * long_call);
    } catch (const std::exception&) {
      ::_exit(has_little);
    }
    ::_exit(has_enough);
  }
  int status = 0;
  if (::waitpid(asking, &status, 0) != asking || !WIFEXITED(status)) {
    throw std::runtime_error("who asked for a device has died");
  }
  if (WEXITSTATUS(status) == has_none) return 0;
  return WEXITSTATUS(status) == has_enough ? long_call : call;
}

/// Registers what goes directly, in calls of `size` bytes.
void register_direct(const std::shared_ptr<bench>& on, std::size_t size) {
  const std::string suffix = size == call ? "" : ", " + std::to_string(size / mib) + " MiB";
  const auto compare = [&](const char* name, std::function<double()> ours, contender bound,
                           double target) {
    comparison made;
    made.name = "gpu/direct/" + (name + suffix);
    made.ours = {"ucx::remote_region", std::move(ours)};
    made.others = {std::move(bound)};
    made.target = target;
    made.scale = static_cast<double>(size) / 1e9;
    made.unit = "GB/s";
    register_comparison(std::move(made));
  };
  const auto read = [on, size] { return on->read(on->direct(), on->on_device(), size); };
  const auto write = [on, size] { return on->write(on->direct(), on->on_device(), size); };
  const contender within = {"a copy within the device",
                            [on, size] { return on->copy_within_device(size); }};
  compare("read into device", read, within, 0.9);
  compare("write from device", write, within, 0.9);
  compare(
      "read into pinned memory", [on, size] { return on->read(on->direct(), on->pinned(), size); },
      {"a copy into pinned memory", [on, size] { return on->copy_into_pinned(size); }}, 0.9);
  if (!on->why_no_ucx().empty()) return;
  compare("read into device, UCX", read,
          {"ucp_get_nbx", [on, size] { return on->get(on->on_device(), size); }}, 0.95);
  compare("write from device, UCX", write,
          {"ucp_put_nbx", [on, size] { return on->put(on->on_device(), size); }}, 0.95);
}

void register_all(const std::shared_ptr<bench>& on) {
  const auto staged = [](std::string name, std::function<double()> ours,
                         std::function<double()> bound) {
    comparison made;
    made.name = std::move(name);
    made.ours = {"ucx::remote_region", std::move(ours)};
    made.others = {{"the slowest part", std::move(bound)}};
    made.target = 0.9;
    made.scale = static_cast<double>(call) / 1e9;
    made.unit = "GB/s";
    register_comparison(std::move(made));
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
  if (on->direct().transfer_method() != transfer_method::cuda_ipc) {
    std::fprintf(stderr, "gpu_benchmark: nothing goes directly, because %s\n",
                 on->direct().why_not(transfer_method::cuda_ipc).c_str());
    return;
  }
  if (!on->why_no_ucx().empty()) {
    std::fprintf(stderr, "gpu_benchmark: nothing is compared with UCX itself, because %s\n",
                 on->why_no_ucx().c_str());
  }
  register_direct(on, call);
  if (on->longest() > call) register_direct(on, on->longest());
}

}  // namespace
}  // namespace ucx::benchmarks

/// Ends with 77 where there is no CUDA device.
int main(int argc, char** argv) {
  using namespace ucx::benchmarks;
  const std::size_t longest = longest_call();
  if (longest == 0) {
    std::fprintf(stderr, "gpu_benchmark: there is no CUDA device\n");
    return 77;
  }
  const auto on = std::make_shared<bench>(longest);
  pin_to_half(reader_core);
  const int status = run_comparisons(argc, argv, [&] { register_all(on); });
  benchmark::ClearRegisteredBenchmarks();
  return status;
}
