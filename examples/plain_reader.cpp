// A process that has UCX alone reads and writes a region of another that uses ucxio.
#include <sys/socket.h>
#include <sys/wait.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <ucx/error.hpp>
#include <ucx/memory_region.hpp>
#include <ucx/worker.hpp>

namespace {

constexpr const char* text = "read by UCX";
constexpr const char* answer = "written by UCX";
constexpr std::size_t size = 4096;

void send(int to, std::span<const std::byte> bytes) {
  const std::uint64_t said = bytes.size();
  if (::write(to, &said, sizeof said) < 0 || ::write(to, bytes.data(), bytes.size()) < 0)
    throw std::runtime_error("the reader is gone");
}

std::vector<char> receive(int from) {
  std::uint64_t said = 0;
  if (::read(from, &said, sizeof said) != sizeof said) std::_Exit(1);
  std::vector<char> bytes(said);
  if (::read(from, bytes.data(), said) != static_cast<ssize_t>(said)) std::_Exit(1);
  return bytes;
}

/// Drives UCX until `started` has ended.
void wait(ucp_worker_h worker, ucs_status_ptr_t started) {
  if (started == nullptr) return;
  if (UCS_PTR_IS_ERR(started)) std::_Exit(2);
  while (ucp_request_check_status(started) == UCS_INPROGRESS) ucp_worker_progress(worker);
  const ucs_status_t ended = ucp_request_check_status(started);
  ucp_request_free(started);
  if (ended != UCS_OK) std::_Exit(3);
}

/// UCX's own calls, and no ucxio.
[[noreturn]] void use(int owner) {
  const std::vector<char> address = receive(owner);
  const std::vector<char> key = receive(owner);
  std::uint64_t base = 0;
  std::memcpy(&base, receive(owner).data(), sizeof base);

  ucp_params_t params = {};
  params.field_mask = UCP_PARAM_FIELD_FEATURES;
  params.features = UCP_FEATURE_RMA;
  ucp_context_h context = nullptr;
  ucp_worker_params_t mode = {};
  ucp_worker_h worker = nullptr;
  ucp_ep_params_t to = {};
  to.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
  to.address = reinterpret_cast<const ucp_address_t*>(address.data());
  ucp_ep_h endpoint = nullptr;
  ucp_rkey_h region = nullptr;
  if (ucp_init(&params, nullptr, &context) != UCS_OK ||
      ucp_worker_create(context, &mode, &worker) != UCS_OK ||
      ucp_ep_create(worker, &to, &endpoint) != UCS_OK ||
      ucp_ep_rkey_unpack(endpoint, key.data(), &region) != UCS_OK) {
    std::_Exit(4);
  }
  ucp_request_param_t plain = {};
  std::vector<char> found(size);
  wait(worker, ucp_get_nbx(endpoint, found.data(), size, base, region, &plain));
  std::cout << "UCX reads: " << found.data() << std::endl;
  wait(worker, ucp_put_nbx(endpoint, answer, std::strlen(answer) + 1, base, region, &plain));
  wait(worker, ucp_ep_flush_nbx(endpoint, &plain));
  std::_Exit(std::strcmp(found.data(), text) == 0 ? 0 : 5);
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

}  // namespace

int main() {
  int ends[2];
  ::setenv("UCX_TLS", "posix,cma,self", 1);  // of the reader: one host
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return 1;
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    use(ends[1]);
  }
  ::unsetenv("UCX_TLS");
  ::close(ends[1]);
  int result = 0;
  try {
    own(ends[0]);
  } catch (const std::exception& failed) {
    std::cerr << failed.what() << '\n';
    result = 1;
  }
  ::close(ends[0]);
  int ended = 0;
  ::waitpid(child, &ended, 0);
  if (result == 0 && ended != 0) {
    std::cerr << "the reader ended with " << WEXITSTATUS(ended) << '\n';
    result = 1;
  }
  return result;
}
