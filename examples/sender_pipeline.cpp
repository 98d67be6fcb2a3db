// Reads a region, changes the bytes, and writes them to another one: a pipeline of senders.
#include <cctype>
#include <cstddef>
#include <iostream>
#include <span>
#include <string>
#include <utility>

#include <stdexec/execution.hpp>

#include <ucx/buffer.hpp>
#include <ucx/execution.hpp>
#include <ucx/memory_region.hpp>
#include <ucx/remote_region.hpp>

// TCP on the loopback interface: nobody outside this machine can connect.
ucx::context loopback() { return ucx::context({.transports = {"tcp"}, .devices = {"lo"}}); }

ucx::buffer in_capitals(ucx::buffer text) noexcept {
  for (std::byte& each : text.bytes()) {
    each = static_cast<std::byte>(std::toupper(std::to_integer<unsigned char>(each)));
  }
  return text;
}

// The buffer goes from step to step: each operation owns it until it completes.
auto copy_in_capitals(ucx::remote_region& from, ucx::remote_region& to) {
  return ucx::async_read_at(from, 0, ucx::buffer(from.size())) | stdexec::then(in_capitals) |
         stdexec::let_value(
             [&to](ucx::buffer& text) { return ucx::async_write_at(to, 0, std::move(text)); }) |
         stdexec::let_value([&to](ucx::buffer&) { return ucx::async_flush(to); });
}

int main() {
  std::string source = "a pipeline of senders";
  std::string target(source.size(), ' ');
  const ucx::context owner_context = loopback();
  const ucx::worker owner(owner_context, {.progress = ucx::progress_mode::sleeping_thread});
  const ucx::memory_region read(owner_context, std::as_bytes(std::span(source)));
  const ucx::memory_region written(owner_context, std::as_writable_bytes(std::span(target)),
                                   ucx::access::read_write);

  const ucx::context context = loopback();
  ucx::worker worker(context);
  const ucx::endpoint peer(worker, owner.address());
  ucx::remote_region from(peer, read.descriptor());
  ucx::remote_region to(peer, written.descriptor());
  // No thread drives this worker: the wait does, which stdexec's own would not.
  ucx::sync_wait(worker, copy_in_capitals(from, to));
  std::cout << target << '\n';
  return target == "A PIPELINE OF SENDERS" ? 0 : 1;
}
