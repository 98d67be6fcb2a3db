#include "echo_process.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <system_error>

#include "owner_process.hpp"
#include "process_memory.hpp"
#include "support/transports/echo_service.hpp"
#include "ucx/listener.hpp"
#include "ucx/worker.hpp"

namespace ucx::benchmarks {
namespace {

/// Answers until the process is ended.
void serve(const std::string& segment, int tell) {
  const context parent(options_with_segments(segment));
  worker driver(parent, {.progress = progress_mode::sleeping_thread});
  const test::echo_service echo(driver);
  const listener door(driver, socket_address(tested_network().owner_address + ":0"));
  const std::string line = to_string(door.address()) + "\n";
  if (::write(tell, line.data(), line.size()) != static_cast<::ssize_t>(line.size())) return;
  for (;;) ::pause();
}

}  // namespace

context_options options_with_segments(const std::string& segment) {
  context_options options = options_of(plane::tcp);
  options.features = feature::am | feature::wakeup;
  if (segment.empty()) return options;
  options.configuration["TCP_TX_SEG_SIZE"] = segment;
  options.configuration["TCP_RX_SEG_SIZE"] = segment;
  return options;
}

echo_process::echo_process(const std::string& segment) {
  std::array<int, 2> told = {};
  if (::pipe(told.data()) != 0) throw std::runtime_error("no pipe");
  child_ = ::fork();
  if (child_ < 0) throw std::runtime_error("no process for the server");
  if (child_ == 0) {
    ::close(told[0]);
    try {
      become_owner();
      serve(segment, told[1]);
      ::_exit(1);
    } catch (const std::exception& failure) {
      std::fprintf(stderr, "server: %s\n", failure.what());
      ::_exit(1);
    }
  }
  ::close(told[1]);
  std::string line;
  for (char c = 0; ::read(told[0], &c, 1) == 1 && c != '\n';) line += c;
  ::close(told[0]);
  std::error_code ec;
  address_ = socket_address(line, ec);
  if (ec) throw std::runtime_error("the server has died");
}

echo_process::~echo_process() {
  ::kill(child_, SIGTERM);
  ::waitpid(child_, nullptr, 0);
}

double echo_process::resident_kilobytes() const { return resident_kilobytes_of(child_); }

}  // namespace ucx::benchmarks
