// Both sides of the RDMA smoke test, which tests/run-rdma.sh runs. It uses public names only.
//
// Commands of ucxio-rdma-peer:
// - `serve HOST:PORT` serves "memory", "constant" and the store "files" until SIGTERM.
// - `check URL` reads and writes there, by RDMA.
// - `datagrams URL` reads and writes there, over `ud` alone.
// - `read URL` prints "reading", then reads until it is killed.
// - `names DEVICE` makes contexts of this device ("rxe0:1"), of none, and of RDMA or nothing.
#include <signal.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <ucx/client.hpp>
#include <ucx/context.hpp>
#include <ucx/error.hpp>
#include <ucx/fstream.hpp>
#include <ucx/server.hpp>

namespace {

constexpr std::size_t memory_size = std::size_t{4} << 20U;
constexpr std::size_t half = memory_size / 2;  // the first is read, the second written
constexpr std::size_t constant_size = std::size_t{256} << 10U;

std::byte pattern(std::size_t place) { return static_cast<std::byte>(place * 31 + place / 256); }

void require(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error("not so: " + what);
}

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
  for (std::size_t i = 0; i < constant_size; ++i) bytes[i] = pattern(i);
  require(::mprotect(mapped, constant_size, PROT_READ) == 0, "memory is made read-only");
  return bytes;
}

void serve(const std::string& bind) {
  ::sigset_t ends;
  ::sigemptyset(&ends);
  ::sigaddset(&ends, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &ends, nullptr);
  std::vector<std::byte> memory(memory_size);
  for (std::size_t i = 0; i < half; ++i) memory[i] = pattern(i);
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("rdma-files-" + bind);
  std::filesystem::create_directory(folder);
  ucx::server_options options;
  options.bind = bind;
  options.insecure = true;
  ucx::server server(options);
  const ucx::publication shown = server.publish("memory", memory, ucx::access::read_write);
  const ucx::publication constant = server.publish("constant", map_constant());
  ucx::store_options written;
  written.prefix = "files";
  written.writable = true;
  const ucx::publication files = server.publish_store(folder, written);
  std::cout << server.url() << std::endl;
  int which = 0;
  ::sigwait(&ends, &which);
}

void check_region(ucx::client& server) {
  ::setenv("UCXIO_TRANSFER_METHOD", "rma", 1);  // within one host another way is better
  ucx::remote_region region = server.open("memory", ucx::access::read_write);
  ::unsetenv("UCXIO_TRANSFER_METHOD");
  require(region.transfer_method() == ucx::transfer_method::rma,
          std::string("the way is rma, it is ").append(ucx::to_string(region.transfer_method())));
  std::vector<std::byte> all(memory_size);
  region.read_at(0, all);
  for (std::size_t i = 0; i < half; ++i) require(all[i] == pattern(i), "what is read");
  std::vector<std::byte> mine(half);
  for (std::size_t i = 0; i < half; ++i) mine[i] = pattern(i + 7);
  region.write_at(half, mine);
  region.flush();
  std::fill(all.begin(), all.end(), std::byte{});
  region.read_at(half, std::span(all).first(half));
  require(std::equal(mine.begin(), mine.end(), all.begin()), "what is written is read again");
}

/// Opens a region by this method, whatever would be better.
ucx::remote_region open_by(ucx::client& server, const char* method, const char* name,
                           std::error_code& ec = ucx::throws) {
  ::setenv("UCXIO_TRANSFER_METHOD", method, 1);
  ucx::remote_region region = server.open(name, ucx::access::read, {}, ec);
  ::unsetenv("UCXIO_TRANSFER_METHOD");
  return region;
}

/// It goes by message, and by no other method between machines.
void check_by_message(ucx::client& server, const char* name) {
  std::error_code ec;
  const ucx::remote_region refused = open_by(server, "rma", name, ec);
  require(ec == ucx::errc::not_supported, std::string(name) + " is not RMA's: " + ec.message());
  ucx::remote_region region = open_by(server, "message", name);
  std::vector<std::byte> all(constant_size);
  region.read_at(0, all);
  for (std::size_t i = 0; i < constant_size; ++i)
    require(all[i] == pattern(i), std::string("bytes of ") + name);
}

void check_streams(const std::string& url) {
  ucx::ifstream memory(url + "/memory");
  std::vector<char> bytes(half);
  require(static_cast<bool>(memory.read(bytes.data(), std::ssize(bytes))), "a stream reads memory");
  for (std::size_t i = 0; i < half; ++i) {
    require(static_cast<std::byte>(bytes[i]) == pattern(i), "what a stream reads");
  }
  const std::string name = url + "/files/notes";
  ucx::ofstream out(name);
  for (int i = 0; i < 100'000; ++i) out << "line " << i << '\n';
  out.close();
  require(out.good(), "a stream writes a file");
  ucx::ifstream in(name);
  int line = 0;
  for (std::string read; std::getline(in, read); ++line) {
    require(read == "line " + std::to_string(line), "line " + std::to_string(line));
  }
  require(line == 100'000, "all lines are there");
}

/// Connects with patience: the processor may be emulated, on a busy machine.
ucx::client connect(const std::string& url) {
  ucx::client_options options;
  options.worker.connect_timeout = std::chrono::seconds(30);
  return ucx::client(url, options);
}

void check(const std::string& url) {
  ucx::client server = connect(url);
  const std::vector<std::string> lanes = server.transports();
  require(mentions(lanes, "rc_verbs/"), "the connection goes over rc_verbs");
  require(!mentions(server.worker().parent().unused(), "rxe"), "the RDMA device is in use");
  check_region(server);
  check_by_message(server, "constant");
  check_streams(url);
}

/// Hardware that carries messages only.
void check_datagrams(const std::string& url) {
  ucx::client server = connect(url);
  require(mentions(server.transports(), "ud_verbs/"), "the connection goes over ud_verbs");
  check_by_message(server, "memory");
}

void read_until_killed(const std::string& url) {
  ucx::client server = connect(url);
  ucx::remote_region region = server.open("memory");
  std::vector<std::byte> all(memory_size);
  region.read_at(0, all);
  std::cout << "reading" << std::endl;
  while (true) region.read_at(0, all);
}

void check_names(const std::string& device) {
  const ucx::context named({.devices = {device}});
  require(mentions(named.transports(), "/" + device), device + " is there");
  std::error_code ec;
  const ucx::context other({.devices = {device + "7"}}, ec);
  require(ec == ucx::errc::bad_configuration, "another name is refused");
  try {
    const ucx::context again({.devices = {device + "7"}});
    require(false, "it is refused again");
  } catch (const ucx::error& refused) {
    require(std::string_view(refused.what()).find(", " + device) != std::string_view::npos,
            std::string("the text names what there is: ") + refused.what());
  }
  const ucx::context hardware({.require_rdma = true});
  const ucx::context without({.transports = {"tcp"}, .require_rdma = true}, ec);
  require(ec == ucx::errc::no_rdma, "without the hardware it is no_rdma: " + ec.message());
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() != 2) return 2;
  try {
    if (words[0] == "serve")
      serve(words[1]);
    else if (words[0] == "check")
      check(words[1]);
    else if (words[0] == "datagrams")
      check_datagrams(words[1]);
    else if (words[0] == "read")
      read_until_killed(words[1]);
    else if (words[0] == "names")
      check_names(words[1]);
    else
      return 2;
    return 0;
  } catch (const std::exception& failed) {
    std::cerr << "ucxio-rdma-peer " << words[0] << ": " << failed.what() << '\n';
    return 1;
  }
}
