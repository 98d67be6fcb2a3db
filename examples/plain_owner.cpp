// A process that has UCX alone exposes memory; another opens it as a stream.
#include <sys/socket.h>
#include <sys/wait.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include <ucx/endpoint.hpp>
#include <ucx/error.hpp>
#include <ucx/remote_region.hpp>
#include <ucx/stream.hpp>
#include <ucx/worker.hpp>

namespace {

constexpr const char* text = "the first line\nthe second line\n";
constexpr std::size_t size = 4096;

void send(int to, const void* bytes, std::size_t length) {
  const std::uint64_t said = length;
  if (::write(to, &said, sizeof said) < 0 || ::write(to, bytes, length) < 0) std::_Exit(1);
}

std::vector<std::byte> receive(int from) {
  std::uint64_t said = 0;
  if (::read(from, &said, sizeof said) != sizeof said) throw std::runtime_error("no owner");
  std::vector<std::byte> bytes(said);
  if (::read(from, bytes.data(), said) != static_cast<ssize_t>(said))
    throw std::runtime_error("half an owner");
  return bytes;
}

/// The owner: UCX's own calls, and no ucxio. Serves until the reader closes its end.
[[noreturn]] void own(int reader) {
  ucp_params_t params = {};
  params.field_mask = UCP_PARAM_FIELD_FEATURES;
  params.features = UCP_FEATURE_RMA;
  ucp_context_h context = nullptr;
  ucp_worker_params_t mode = {};
  ucp_worker_h worker = nullptr;
  ucp_mem_map_params_t wanted = {};
  wanted.field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS;
  wanted.length = size;
  wanted.flags = UCP_MEM_MAP_ALLOCATE;
  ucp_mem_h memory = nullptr;
  if (ucp_init(&params, nullptr, &context) != UCS_OK ||
      ucp_worker_create(context, &mode, &worker) != UCS_OK ||
      ucp_mem_map(context, &wanted, &memory) != UCS_OK) {
    std::_Exit(1);
  }
  ucp_mem_attr_t where = {};
  where.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS;
  ucp_address_t* address = nullptr;
  std::size_t address_length = 0;
  void* key = nullptr;
  std::size_t key_length = 0;
  if (ucp_mem_query(memory, &where) != UCS_OK ||
      ucp_worker_get_address(worker, &address, &address_length) != UCS_OK ||
      ucp_rkey_pack(context, memory, &key, &key_length) != UCS_OK) {
    std::_Exit(1);
  }
  std::memset(where.address, 0, size);
  std::memcpy(where.address, text, std::strlen(text));
  send(reader, address, address_length);
  send(reader, key, key_length);
  send(reader, &where.address, sizeof where.address);
  char over = 0;
  while (::recv(reader, &over, 1, MSG_DONTWAIT) != 0) ucp_worker_progress(worker);
  std::_Exit(0);
}

/// The reader: the bytes that the owner gave become a stream.
void read(int owner) {
  const ucx::worker_address address = ucx::worker_address::from_native(receive(owner));
  const std::vector<std::byte> key = receive(owner);
  std::uint64_t base = 0;
  std::memcpy(&base, receive(owner).data(), sizeof base);

  const ucx::context context({.transports = {"posix", "cma", "self"}});
  ucx::worker worker(context);
  ucx::endpoint connection(worker, address, {.plain_peer = true});
  connection.wait_connected();
  const auto descriptor = ucx::remote_descriptor::of_key(base, size, key, ucx::access::read_write);
  ucx::iostream peer{ucx::remote_region(connection, descriptor)};
  std::string line;
  std::getline(peer, line);
  std::cout << line << '\n';
  peer.seekp(0);
  peer << "THE" << std::flush;
  peer.seekg(0);
  std::getline(peer, line);
  std::cout << line << '\n';
  if (line != "THE first line") throw std::runtime_error("the owner has something else");
}

}  // namespace

int main() {
  int ends[2];
  ::setenv("UCX_TLS", "posix,cma,self", 1);  // of the owner: one host
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return 1;
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    own(ends[1]);
  }
  ::unsetenv("UCX_TLS");
  ::close(ends[1]);
  int result = 0;
  try {
    read(ends[0]);
  } catch (const std::exception& failed) {
    std::cerr << failed.what() << '\n';
    result = 1;
  }
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  return result;
}
