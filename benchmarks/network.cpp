#include "network.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace ucx::benchmarks {
namespace {

network from_environment() {
  network found;
  const char* const told = std::getenv("UCXIO_BENCHMARK_NETWORK");
  if (told == nullptr) return found;
  std::istringstream words(told);
  if (!(words >> found.device >> found.owner_address >> found.owner_namespace)) {
    throw std::runtime_error(std::string("UCXIO_BENCHMARK_NETWORK is no network: ") + told);
  }
  return found;
}

void pin_to_cores(unsigned first, unsigned count) noexcept {
  ::cpu_set_t cores;
  CPU_ZERO(&cores);
  for (unsigned i = 0; i < count; ++i) CPU_SET(first + i, &cores);
  if (::sched_setaffinity(0, sizeof cores, &cores) != 0) {
    std::fprintf(stderr, "not pinned to core %u: expect other figures\n", first);
  }
}

}  // namespace

const network& tested_network() {
  static const network found = from_environment();
  return found;
}

void pin_to_core(unsigned core) noexcept { pin_to_cores(core, 1); }

void pin_to_half(unsigned half) noexcept {
  const unsigned cores = std::max(1U, std::thread::hardware_concurrency() / 2);
  pin_to_cores(half * cores, cores);
}

void become_owner(threads wanted) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  wanted == threads::one ? pin_to_core(owner_core) : pin_to_half(owner_core);
  const std::string& other = tested_network().owner_namespace;
  if (other.empty()) return;
  const int file = ::open(other.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0 || ::setns(file, CLONE_NEWNET) != 0) {
    throw std::runtime_error("can not enter " + other);
  }
  ::close(file);
}

}  // namespace ucx::benchmarks
