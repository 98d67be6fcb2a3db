// Publishes a vector and reads it from another process. A reader needs two small byte strings, the
// worker's address and the region's descriptor; the caller carries them, here through a pipe.
#include <sys/wait.h>
#include <unistd.h>

#include <iostream>
#include <numeric>
#include <span>
#include <vector>

#include <ucx/memory_region.hpp>
#include <ucx/remote_region.hpp>

using bytes = std::vector<std::byte>;

// TCP on the loopback interface: nobody outside this machine can connect.
ucx::context loopback() { return ucx::context({.transports = {"tcp"}, .devices = {"lo"}}); }

void send(int pipe, const bytes& sent) {
  const std::size_t size = sent.size();
  if (write(pipe, &size, sizeof size) < 0 || write(pipe, sent.data(), size) < 0) _exit(1);
}

bytes receive(int pipe) {
  std::size_t size = 0;
  if (read(pipe, &size, sizeof size) <= 0) _exit(1);
  bytes received(size);
  if (read(pipe, received.data(), size) <= 0) _exit(1);
  return received;
}

int read_from(int pipe) {
  const auto address = ucx::worker_address::decode(receive(pipe));
  const auto descriptor = ucx::remote_descriptor::decode(receive(pipe));
  const ucx::context context = loopback();
  const ucx::worker worker(context);
  const ucx::endpoint owner(worker, address);
  ucx::remote_region remote(owner, descriptor);
  std::vector<long> values(remote.size() / sizeof(long));
  remote.read_at(0, std::as_writable_bytes(std::span(values)));
  const long sum = std::accumulate(values.begin(), values.end(), 0L);
  std::cout << "read " << values.size() << " values, their sum is " << sum << '\n';
  return sum == 499'999'500'000 ? 0 : 1;
}

int main() {
  int ends[2];
  if (pipe(ends) != 0) return 1;
  // Before any context is made: UCX does not survive a fork.
  if (fork() == 0) return close(ends[1]) == 0 ? read_from(ends[0]) : 1;
  std::vector<long> values(1'000'000);
  std::iota(values.begin(), values.end(), 0L);
  const ucx::context context = loopback();
  const ucx::worker worker(context, {.progress = ucx::progress_mode::sleeping_thread});
  const ucx::memory_region region(context, std::as_bytes(std::span(values)));
  send(ends[1], worker.address().encode());
  send(ends[1], region.descriptor().encode());
  int status = 1;
  return wait(&status) > 0 && status == 0 ? 0 : 1;
}
