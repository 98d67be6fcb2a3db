#include "server_process.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <memory>
#include <new>
#include <sstream>
#include <stdexcept>
#include <vector>

#include "owner_process.hpp"
#include "process_memory.hpp"
#include "processor_time.hpp"
#include "raw_ucx.hpp"
#include "ucx/listener.hpp"
#include "ucx/memory_place.hpp"
#include "ucx/memory_region.hpp"
#include "ucx/memory_resources.hpp"
#include "ucx/server.hpp"
#include "ucx/worker.hpp"

namespace ucx::benchmarks {
namespace {

std::string to_text(const std::vector<std::byte>& bytes) {
  std::string text;
  std::array<char, 3> digits = {};
  for (const std::byte byte : bytes) {
    std::snprintf(digits.data(), digits.size(), "%02x", std::to_integer<unsigned>(byte));
    text += digits.data();
  }
  return text;
}

std::vector<std::byte> from_text(const std::string& text) {
  std::vector<std::byte> bytes;
  for (std::size_t at = 0; at + 1 < text.size(); at += 2) {
    bytes.push_back(static_cast<std::byte>(std::stoul(text.substr(at, 2), nullptr, 16)));
  }
  return bytes;
}

/// Serves until the other end of `quit` is closed.
void serve(std::size_t size, server_process::memory whose, access granted,
           const std::filesystem::path& store, int tell, int quit) {
  const std::string anywhere = tested_network().owner_address + ":0";
  server_options by_ucx;
  by_ucx.bind = anywhere;
  by_ucx.insecure = !socket_address(anywhere).is_loopback();
  by_ucx.context.transports = {"ucx"};
  server named(by_ucx);
  std::unique_ptr<std::byte, decltype(&std::free)> own(nullptr, &std::free);
  publication matrix;
  const bool huge = whose == server_process::memory::callers_huge;
  if (huge || whose == server_process::memory::callers) {
    constexpr std::size_t huge_page = std::size_t{2} << 20U;
    const std::size_t whole = (size + huge_page - 1) / huge_page * huge_page;
    own.reset(static_cast<std::byte*>(std::aligned_alloc(huge_page, whole)));
    if (!own) throw std::bad_alloc();
    // Of both kinds, whatever the system gives to those who say nothing.
    use_huge_pages({own.get(), whole}, huge ? huge_pages::advise : huge_pages::none);
    matrix = named.publish("matrix", std::span<std::byte>(own.get(), size), granted);
  } else if (whose == server_process::memory::allocated) {
    matrix = named.allocate("matrix", size, granted);
  } else {
    matrix = named.allocate("matrix", size, granted, {memory_kind::cuda, 0});
  }
  publication directory;
  if (!store.empty()) {
    directory = named.publish_store(store, {.prefix = "store", .writable = true});
  }
  const std::span<std::byte> memory = matrix.bytes();
  std::vector<std::byte> content(size);
  fill_pattern(content);
  copy_memory(memory.data(), content.data(), size);
  const context parent(options_of(plane::tcp));
  worker driver(parent, {.progress = progress_mode::sleeping_thread});
  const memory_region exposed(parent, memory, access::read);
  // Not by worker address: UCX 1.13 ends an owner whose peers leave before all lanes are connected.
  const listener door(driver, socket_address(anywhere));
  const std::string line = named.url() + " " + to_string(door.address()) + " " +
                           to_text(exposed.descriptor().encode()) + "\n";
  if (::write(tell, line.data(), line.size()) != static_cast<::ssize_t>(line.size())) return;
  char nothing = 0;
  while (::read(quit, &nothing, 1) > 0) {
  }
}

}  // namespace

server_process::server_process(std::size_t size, memory whose, access granted,
                               const std::filesystem::path& store) {
  std::array<int, 2> told = {};
  std::array<int, 2> quit = {};
  if (::pipe(told.data()) != 0 || ::pipe(quit.data()) != 0) throw std::runtime_error("no pipe");
  child_ = ::fork();
  if (child_ < 0) throw std::runtime_error("no process for the server");
  if (child_ == 0) {
    ::close(told[0]);
    ::close(quit[1]);
    try {
      // The driver is waited for by a thread of its own.
      become_owner(whose == memory::device ? threads::several : threads::one);
      serve(size, whose, granted, store, told[1], quit[0]);
      ::_exit(0);
    } catch (const std::exception& failure) {
      std::fprintf(stderr, "server: %s\n", failure.what());
      ::_exit(1);
    }
  }
  ::close(told[1]);
  ::close(quit[0]);
  quit_ = quit[1];
  std::string line;
  for (char c = 0; ::read(told[0], &c, 1) == 1 && c != '\n';) line += c;
  ::close(told[0]);
  std::istringstream words(line);
  std::string address;
  std::string descriptor;
  if (!(words >> url_ >> address >> descriptor)) throw std::runtime_error("the server has died");
  address_ = socket_address(address);
  descriptor_ = remote_descriptor::decode(from_text(descriptor));
}

server_process::~server_process() {
  ::close(quit_);
  ::waitpid(child_, nullptr, 0);
}

std::chrono::nanoseconds server_process::processor_time() const {
  return processor_time_of(child_);
}

double server_process::resident_kilobytes() const { return resident_kilobytes_of(child_); }

}  // namespace ucx::benchmarks
