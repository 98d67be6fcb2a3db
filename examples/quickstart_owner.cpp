// The owner of quickstart.sh: holds a file in its memory for others to read, and a page for them to
// write a report into.
//   quickstart_owner FILE CARD
// CARD is a folder that it makes, with all that a reader needs. SIGTERM ends it; it then prints
// what was written into its memory.
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <ucx/memory_region.hpp>
#include <ucx/worker.hpp>

namespace {

std::vector<std::byte> read_file(const std::filesystem::path& path) {
  std::vector<std::byte> bytes(std::filesystem::file_size(path));
  std::ifstream file(path, std::ios::binary);
  const auto size = static_cast<std::streamsize>(bytes.size());
  if (!file.read(reinterpret_cast<char*>(bytes.data()), size)) {
    throw std::runtime_error("can not read " + path.string());
  }
  return bytes;
}

void save(const std::filesystem::path& path, const std::vector<std::byte>& bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  if (!file.flush()) throw std::runtime_error("can not write " + path.string());
}

/// Writes what readers need. The folder appears under its name only when it is complete.
void write_card(const std::filesystem::path& card, const ucx::worker& worker,
                const ucx::memory_region& data, const ucx::memory_region& report) {
  const std::filesystem::path draft = card.string() + ".draft";
  std::filesystem::create_directory(draft);
  save(draft / "address", worker.address().encode());
  save(draft / "data", data.descriptor().encode());
  save(draft / "report", report.descriptor().encode());
  std::filesystem::rename(draft, card);
}

int serve(const char* file, const char* card) {
  // Whatever ends the shell that started this process ends it too.
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  const std::vector<std::byte> bytes = read_file(file);
  // Before the worker starts its thread, which inherits the mask.
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);

  // TCP on the loopback interface: nobody outside this machine can connect.
  const ucx::context context({.transports = {"tcp"}, .devices = {"lo"}});
  const ucx::worker worker(context, {.progress = ucx::progress_mode::sleeping_thread});
  const ucx::memory_region data(context, std::as_bytes(std::span(bytes)));
  const auto report = ucx::memory_region::allocate(context, 4096, ucx::access::write);
  write_card(card, worker, data, report);

  int signal = 0;
  sigwait(&ends, &signal);
  // Zeroed when it was allocated, and larger than any report.
  std::cout << "process " << getpid()
            << " found in its memory: " << reinterpret_cast<const char*>(report.bytes().data());
  return std::cout.flush() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: quickstart_owner FILE CARD\n";
    return 2;
  }
  try {
    return serve(argv[1], argv[2]);
  } catch (const std::exception& failure) {
    std::cerr << "quickstart_owner: " << failure.what() << '\n';
    return 1;
  }
}
