// Memory that a server allocated, used in place by another process of the host: it adds up a table
// without copying it, and counts in a counter that both see.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <iostream>
#include <numeric>
#include <span>
#include <string>

#include <ucx/client.hpp>
#include <ucx/remote_atomic.hpp>
#include <ucx/server.hpp>

constexpr std::size_t length = 1'000'000;

int add_up(const std::string& server) {
  ucx::client client(server);
  ucx::remote_region table = client.open("table");
  ucx::remote_region sums = client.open("sums", ucx::access::read_write);
  // Elsewhere, and where the system forbids it, `view` says why; read_at works everywhere.
  const std::span<const std::byte> bytes = table.view(0, length * sizeof(std::int64_t));
  const auto* const first = reinterpret_cast<const std::int64_t*>(bytes.data());
  ucx::remote_atomic<std::int64_t>(sums, 0).fetch_add(
      std::accumulate(first, first + length, std::int64_t{0}));
  return 0;
}

int main(int argc, char** argv) {
  try {
    if (argc == 2) return add_up(argv[1]);
    ucx::server server;
    const auto table = server.allocate("table", length * sizeof(std::int64_t), ucx::access::read);
    const auto sums = server.allocate("sums", sizeof(std::int64_t), ucx::access::read_write);
    auto* const first = reinterpret_cast<std::int64_t*>(table.bytes().data());
    std::iota(first, first + length, 0);
    for (int i = 0; i < 3; ++i) {
      const std::string url = server.url();
      if (fork() == 0) _exit(execl("/proc/self/exe", *argv, url.c_str(), nullptr));
    }
    int failures = 0;
    for (int status = 0; wait(&status) > 0;) failures += status != 0 ? 1 : 0;
    const std::int64_t sum =
        std::atomic_ref(*reinterpret_cast<std::int64_t*>(sums.bytes().data())).load();
    std::cout << "three processes added up " << sum << ", " << failures << " failures\n";
    return failures != 0 || sum != 3 * std::int64_t{length} * (length - 1) / 2;
  } catch (const std::exception& failure) {
    std::cerr << "in_place: " << failure.what() << '\n';
    return 1;
  }
}
