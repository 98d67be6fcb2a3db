// Three processes compute, and write what they found into the memory of a fourth through
// ucx::ostream. Worker address and descriptor travel in a file.
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <span>
#include <string>

#include <ucx/memory_region.hpp>
#include <ucx/stream.hpp>

constexpr int processes = 3;
constexpr int slot = 64;  // bytes of the owner's buffer for each of them

// TCP on the loopback interface: nobody outside this machine can connect.
ucx::context loopback() { return ucx::context({.transports = {"tcp"}, .devices = {"lo"}}); }

int compute(const char* card, int number) {
  std::ifstream file(card, std::ios::binary);
  std::string address;
  std::getline(file, address);
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  const ucx::context context = loopback();
  const ucx::worker worker(context);
  const ucx::endpoint owner(worker, ucx::parse_worker_address(address));
  const auto descriptor = ucx::remote_descriptor::decode(std::as_bytes(std::span(bytes)));
  const ucx::remote_region remote(owner, descriptor);
  long sum = 0;
  for (long i = number; i < 3'000'000; i += processes) sum += i;
  ucx::ostream out(remote);
  out.seekp(number * slot);
  out << "process " << number << " found " << sum << '\n';
  out.flush();  // from here on the owner sees it
  return out.good() ? 0 : 1;
}

int main(int argc, char** argv) {
  if (argc == 3) return compute(argv[1], std::stoi(argv[2]));
  const ucx::context context = loopback();
  const ucx::worker worker(context, {.progress = ucx::progress_mode::sleeping_thread});
  const auto results = ucx::memory_region::allocate(context, processes * slot, ucx::access::write);
  const std::string card = std::filesystem::temp_directory_path() / std::to_string(getpid());
  const std::vector<std::byte> bytes = results.descriptor().encode();
  std::ofstream(card, std::ios::binary)
      << to_string(worker.address()) << '\n'
      << std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  for (const char* number : {"0", "1", "2"}) {
    if (fork() == 0) _exit(execl("/proc/self/exe", argv[0], card.c_str(), number, nullptr));
  }
  int failures = 0;
  for (int status = 0; wait(&status) > 0;) failures += status != 0 ? 1 : 0;
  std::filesystem::remove(card);
  const char* found = reinterpret_cast<const char*>(results.bytes().data());
  for (int i = 0; i < processes; ++i) std::cout << found + i * slot;
  return failures;
}
