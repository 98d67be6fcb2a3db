// Memory of a process that has UCX alone, process/plain_peer.cpp, on another machine.
#include <cstdint>
#include <fstream>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "rdma/peer.hpp"
#include "support/bytes/hex.hpp"
#include "ucx/context.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/socket_address.hpp"
#include "ucx/stream.hpp"
#include "ucx/worker.hpp"

namespace ucx::test {
namespace {

constexpr std::size_t plain_memory_size = 1'000'000;

/// What the owner printed: "ready ADDRESS KEY BASE", with "HOST:PORT" or a worker's address.
struct plain_memory {
  std::string address;
  std::vector<std::byte> key;
  std::uint64_t base = 0;
};

plain_memory told_in(const std::string& file) {
  std::ifstream told(file);
  plain_memory memory;
  std::string ready;
  std::string key;
  told >> ready >> memory.address >> key >> std::hex >> memory.base;
  require(ready == "ready" && told, "the owner is ready");
  memory.key = from_hex(key);
  return memory;
}

endpoint connect_to(worker& from, const std::string& address) {
  if (address.find(':') != std::string::npos)
    return endpoint(from, socket_address(address), {.plain_peer = true});
  endpoint made(from, worker_address::from_native(from_hex(address)), {.plain_peer = true});
  made.wait_connected();
  return made;
}

void require_letters(std::span<const std::byte> bytes, std::size_t from, const char* what) {
  for (std::size_t i = 0; i < bytes.size(); ++i)
    require(bytes[i] == static_cast<std::byte>('a' + (from + i) % 26), what);
}

}  // namespace

/// Reads the letters there; leaves the byte 1 everywhere, but 3 in one place.
void use_plain_memory(const std::string& file) {
  const plain_memory memory = told_in(file);
  const context verbs(
      {.transports = {"rc", "ud", "self"}, .configuration = {{"SOCKADDR_TLS_PRIORITY", "rdmacm"}}});
  worker driven(verbs, {.connect_timeout = std::chrono::seconds(60)});
  const endpoint connection = connect_to(driven, memory.address);
  const remote_descriptor descriptor =
      remote_descriptor::of_key(memory.base, plain_memory_size, memory.key, access::read_write);
  remote_region region(connection, descriptor);  // trusted by nobody
  require(region.transfer_method() == transfer_method::rma, "RMA moves the bytes");
  require(connection.report().native_rma, "the adapter does");
  std::vector<std::byte> into(plain_memory_size);
  region.read_at(0, into);
  require_letters(into, 0, "what is read");
  region.read_at(77, std::span(into).first(8));
  require_letters(std::span(into).first(8), 77, "what is read in the middle");
  const std::vector<std::byte> ones(plain_memory_size, std::byte{1});
  region.write_at(0, ones);
  region.flush();
  ucx::iostream stream{remote_region(connection, descriptor)};
  require(stream.get() == 1, "a stream reads what is written");
  stream.seekp(100);
  require(stream.put(3) && stream.flush(), "a stream writes");
}

}  // namespace ucx::test
