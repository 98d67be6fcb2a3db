// Both sides of the tests over RDMA: tests/run-rdma.sh. With public names only, as a user, but for
// key_rights.cpp. Each verb has one argument: the HOST:PORT to serve at, the URL of a server, or
// the device.
//   serve      serves "memory", "constant", "cells", the store "files", pipes and an echo until
//              SIGTERM. On SIGUSR1 it withdraws "memory" and gives it back to the system.
//   check      reads and writes there, by RDMA
//   datagrams  reads and writes there, over `ud` alone
//   names      makes contexts of this device, "rxe0:1", of none, and of RDMA or nothing
//   others     in crossing.cpp, endless.cpp, key_rights.cpp, plain.cpp
#include <signal.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "rdma/peer.hpp"
#include "support/bytes/pattern.hpp"
#include "support/transports/echo_service.hpp"
#include "support/transports/ucx_server.hpp"
#include "ucx/context.hpp"
#include "ucx/error.hpp"
#include "ucx/fstream.hpp"
#include "ucx/memory_region.hpp"
#include "ucx/pipe_broker.hpp"
#include "ucx/server.hpp"
#include "ucx/url.hpp"

namespace ucx::test {
namespace {

constexpr std::size_t constant_size = std::size_t{256} << 10U;
constexpr std::size_t noted_size = 100'000;

bool mentions(const std::vector<std::string>& lines, std::string_view text) {
  return std::any_of(lines.begin(), lines.end(),
                     [&](const std::string& line) { return line.find(text) != line.npos; });
}

/// Returns memory that the process may not write, which RDMA hardware does not take.
std::span<const std::byte> map_constant() {
  void* const mapped =
      ::mmap(nullptr, constant_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  require(mapped != MAP_FAILED, "memory is mapped");
  const std::span<std::byte> bytes(static_cast<std::byte*>(mapped), constant_size);
  for (std::size_t i = 0; i < constant_size; ++i) bytes[i] = byte_at(i);
  require(::mprotect(mapped, constant_size, PROT_READ) == 0, "memory is made read-only");
  return bytes;
}

std::span<std::byte> map_memory() {
  void* const mapped =
      ::mmap(nullptr, memory_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  require(mapped != MAP_FAILED, "memory is mapped");
  const std::span<std::byte> bytes(static_cast<std::byte*>(mapped), memory_size);
  for (std::size_t i = 0; i < half; ++i) bytes[i] = byte_at(i);
  return bytes;
}

/// Takes memory away from its readers, and from this process.
void withdraw(publication& shown, std::span<std::byte> memory) {
  const auto begin = std::chrono::steady_clock::now();
  shown.close();
  const auto took = std::chrono::steady_clock::now() - begin;
  ::munmap(memory.data(), memory.size());
  std::cout << "withdrawn after "
            << std::chrono::duration_cast<std::chrono::milliseconds>(took).count() << " ms"
            << std::endl;
}

void send_all(endpoint to) {
  for (std::size_t i = 0; i < message_sizes.size(); ++i) {
    buffer content(message_sizes[i]);
    fill_pattern(content.bytes(), i);
    std::error_code gone;
    to.post_send(i, std::move(content), 0, {}, gone);
  }
}

void serve(const std::string& bind) {
  ::sigset_t told;
  ::sigemptyset(&told);
  ::sigaddset(&told, SIGTERM);
  ::sigaddset(&told, SIGUSR1);
  ::sigprocmask(SIG_BLOCK, &told, nullptr);
  const std::span<std::byte> memory = map_memory();
  std::array<std::uint64_t, 8> cells{};
  std::vector<std::byte> noted_memory(noted_size);
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("rdma-files-" + bind);
  std::filesystem::create_directory(folder);
  server_options options;
  options.bind = bind;
  options.insecure = true;
  ucx_server served(options);
  publication shown = served.publish("memory", memory, access::read_write);
  const publication constant = served.publish("constant", map_constant());
  const publication counted =
      served.publish("cells", std::as_writable_bytes(std::span(cells)), access::read_write);
  memory_region noted(served.worker().parent(), noted_memory, access::read_write);
  noted.on_notify([&](const notification& came) {
    std::atomic_ref(cells[3]).store(holds_pattern(noted_memory, 6) ? 1 : 0);
    std::atomic_ref(cells[2]).store(came.value);
  });
  const std::vector<std::byte> wire = noted.descriptor().encode();
  const publication descriptor =
      served.publish("descriptor of noted", std::span<const std::byte>(wire));
  store_options written;
  written.prefix = "files";
  written.writable = true;
  const publication files = served.publish_store(folder, written);
  const pipe_broker broker(served);
  const echo_service echo(served.worker());
  served.worker().on_message(ask_for_messages, [](const message& asks) { send_all(asks.peer()); });
  std::cout << served.url() << std::endl;
  int which = 0;
  while (::sigwait(&told, &which) == 0 && which == SIGUSR1) withdraw(shown, memory);
}

void check_region(client& server) {
  remote_region region = open_by(server, "rma", "memory", access::read_write);
  require(region.transfer_method() == transfer_method::rma,
          std::string("the way is rma, it is ").append(to_string(region.transfer_method())));
  std::vector<std::byte> all(memory_size);
  region.read_at(0, all);
  for (std::size_t i = 0; i < half; ++i) require(all[i] == byte_at(i), "what is read");
  std::vector<std::byte> mine(half);
  for (std::size_t i = 0; i < half; ++i) mine[i] = byte_at(i + 7);
  region.write_at(half, mine);
  region.flush();
  std::fill(all.begin(), all.end(), std::byte{});
  region.read_at(half, std::span(all).first(half));
  require(std::equal(mine.begin(), mine.end(), all.begin()), "what is written is read again");
}

/// It goes by message, and by no other method between machines.
void check_by_message(client& server, const char* name) {
  std::error_code ec;
  const remote_region refused = open_by(server, "rma", name, access::read, ec);
  require(ec == errc::not_supported, std::string(name) + " is not RMA's: " + ec.message());
  remote_region region = open_by(server, "message", name);
  std::vector<std::byte> all(constant_size);
  region.read_at(0, all);
  for (std::size_t i = 0; i < constant_size; ++i)
    require(all[i] == byte_at(i), std::string("bytes of ") + name);
}

/// Returns the client that streams by URL use, connected: their connect time is too short for
/// emulated processors that others use, too.
client connected_for_streams(const std::string& server) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  std::error_code ec;
  client shared = client::shared(url(server), ec);
  while (ec == errc::timed_out && std::chrono::steady_clock::now() < deadline) {
    shared = client::shared(url(server), ec);
  }
  require(!ec, "streams have a connection: " + ec.message());
  return shared;
}

void check_streams(const std::string& url) {
  const client shared = connected_for_streams(url);
  ifstream memory(url + "/memory");
  std::vector<char> bytes(half);
  memory.read(bytes.data(), std::ssize(bytes));
  require(memory.good(), "a stream reads memory: " + memory.error_message());
  for (std::size_t i = 0; i < half; ++i) {
    require(static_cast<std::byte>(bytes[i]) == byte_at(i), "what a stream reads");
  }
  const std::string name = url + "/files/notes";
  ofstream out(name);
  for (int i = 0; i < 100'000; ++i) out << "line " << i << '\n';
  out.close();
  require(out.good(), "a stream writes a file");
  ifstream in(name);
  int line = 0;
  for (std::string read; std::getline(in, read); ++line) {
    require(read == "line " + std::to_string(line), "line " + std::to_string(line));
  }
  require(line == 100'000, "all lines are there");
}

void check(const std::string& url) {
  client server = connect(url);
  const std::vector<std::string> lanes = server.transports();
  require(mentions(lanes, "rc_verbs/"), "the connection goes over rc_verbs");
  require(!mentions(server.worker().parent().unused(), "rxe"), "the RDMA device is in use");
  check_region(server);
  check_by_message(server, "constant");
  check_streams(url);
}

/// Hardware that carries messages only.
void check_datagrams(const std::string& url) {
  client server = connect(url);
  require(mentions(server.transports(), "ud_verbs/"), "the connection goes over ud_verbs");
  check_by_message(server, "memory");
}

void check_names(const std::string& device) {
  const context named({.devices = {device}});
  require(mentions(named.transports(), "/" + device), device + " is there");
  std::error_code ec;
  const context other({.devices = {device + "7"}}, ec);
  require(ec == errc::bad_configuration, "another name is refused");
  try {
    const context again({.devices = {device + "7"}});
    require(false, "it is refused again");
  } catch (const error& refused) {
    require(std::string_view(refused.what()).find(", " + device) != std::string_view::npos,
            std::string("the text names what there is: ") + refused.what());
  }
  const context hardware({.require_rdma = true});
  const context without({.transports = {"tcp"}, .require_rdma = true}, ec);
  require(ec == errc::no_rdma, "without the hardware it is no_rdma: " + ec.message());
}

constexpr verb verbs[] = {{"serve", serve},
                          {"check", check},
                          {"datagrams", check_datagrams},
                          {"names", check_names},
                          {"batches", check_batches},
                          {"fences", check_fences},
                          {"atomics", check_atomics},
                          {"notifications", check_notifications},
                          {"messages", check_messages},
                          {"contexts", check_contexts},
                          {"write-pipe", write_pipe},
                          {"read-pipe", read_pipe},
                          {"read-on", read_on},
                          {"write-on", write_on},
                          {"add-on", add_on},
                          {"send-on", send_on},
                          {"pipe-on", pipe_on},
                          {"drain-pipe", drain_pipe},
                          {"key-rights", write_with_readers_key},
                          {"plain", use_plain_memory}};

}  // namespace

remote_region open_by(client& server, const char* way, const char* name, access wanted,
                      std::error_code& ec) {
  ::setenv("UCXIO_TRANSFER_METHOD", way, 1);
  remote_region region = server.open(name, wanted, {}, ec);
  ::unsetenv("UCXIO_TRANSFER_METHOD");
  return region;
}

}  // namespace ucx::test

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() != 2) return 2;
  const auto* const found = std::ranges::find(ucx::test::verbs, words[0], &ucx::test::verb::name);
  if (found == std::end(ucx::test::verbs)) return 2;
  try {
    found->run(words[1]);
    return 0;
  } catch (const std::exception& failed) {
    std::cerr << "ucxio-rdma-peer " << words[0] << ": " << failed.what() << '\n';
    return 1;
  }
}
