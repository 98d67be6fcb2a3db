// A process that uses UCXX reads and writes a region of another that uses ucxio.
#include <sys/socket.h>
#include <sys/wait.h>
#include <ucp/api/ucp.h>
#include <ucxx/api.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>

#include <ucx/error.hpp>
#include <ucx/memory_region.hpp>
#include <ucx/worker.hpp>

namespace {

constexpr const char* text = "read by UCXX";
constexpr const char* answer = "written by UCXX";
constexpr std::size_t size = 4096;

void send(int to, std::span<const std::byte> bytes) {
  const std::uint64_t said = bytes.size();
  if (::write(to, &said, sizeof said) < 0 || ::write(to, bytes.data(), bytes.size()) < 0)
    throw std::runtime_error("the reader is gone");
}

std::string receive(int from) {
  std::uint64_t said = 0;
  if (::read(from, &said, sizeof said) != sizeof said) throw std::runtime_error("no owner");
  std::string bytes(said, '\0');
  if (::read(from, bytes.data(), said) != static_cast<ssize_t>(said))
    throw std::runtime_error("no owner");
  return bytes;
}

/// UCXX's own calls, and no ucxio. UCXX packs keys into a form of its own: a bare key is UCX's to
/// unpack, and UCXX's calls take its handle.
void use(int owner) {
  const std::string address = receive(owner);
  const std::string key = receive(owner);
  std::uint64_t base = 0;
  std::memcpy(&base, receive(owner).data(), sizeof base);

  const auto context = ucxx::contextBuilder(UCP_FEATURE_RMA | UCP_FEATURE_WAKEUP).build();
  const auto worker = context->workerBuilder().build();
  const auto endpoint = worker->endpointBuilder(ucxx::AddressBuilder(address).build())
                            .endpointErrorHandling(false)
                            .build();
  const auto wait = [&](const std::shared_ptr<ucxx::Request>& started) {
    while (!started->isCompleted()) worker->progress();
    started->checkError();
  };
  ucp_rkey_h region = nullptr;
  if (ucp_ep_rkey_unpack(endpoint->getHandle(), key.data(), &region) != UCS_OK)
    throw std::runtime_error("UCX does not take the key");
  std::string found(size, '\0');
  wait(endpoint->memGetBuilder(found.data(), size, base, region).build());
  std::cout << "UCXX reads: " << found.c_str() << std::endl;
  wait(endpoint->memPutBuilder(answer, std::strlen(answer) + 1, base, region).build());
  wait(endpoint->flushBuilder().build());
  ucp_rkey_destroy(region);
  if (std::strcmp(found.c_str(), text) != 0) throw std::runtime_error("these are other bytes");
}

/// The owner: what UCX needs is in the descriptor.
void own(int reader) {
  const ucx::context context({.transports = {"posix", "cma", "self"}});
  ucx::worker worker(context, {.progress = ucx::progress_mode::sleeping_thread});
  ucx::memory_region memory = ucx::memory_region::allocate(context, size, ucx::access::read_write);
  std::memcpy(memory.bytes().data(), text, std::strlen(text) + 1);
  const ucx::remote_descriptor descriptor = memory.descriptor();
  send(reader, worker.address().native());
  send(reader, descriptor.remote_key);
  send(reader, std::as_bytes(std::span(&descriptor.address, 1)));
  char over = 0;
  if (::read(reader, &over, 1) != 0) throw std::runtime_error("the reader said something");
  std::cout << "the owner has: " << reinterpret_cast<const char*>(memory.bytes().data()) << '\n';
  if (std::strcmp(reinterpret_cast<const char*>(memory.bytes().data()), answer) != 0)
    throw std::runtime_error("it was not written");
}

template <class Task>
int outcome_of(const Task& task) {
  try {
    task();
    return 0;
  } catch (const std::exception& failed) {
    std::cerr << failed.what() << std::endl;
    return 1;
  }
}

}  // namespace

int main() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return 1;
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    ::setenv("UCX_TLS", "posix,cma,self", 1);  // one host
    std::_Exit(outcome_of([&] { use(ends[1]); }));
  }
  ::close(ends[1]);
  const int result = outcome_of([&] { own(ends[0]); });
  ::close(ends[0]);
  int ended = 0;
  ::waitpid(child, &ended, 0);
  return result == 0 && ended == 0 ? 0 : 1;
}
