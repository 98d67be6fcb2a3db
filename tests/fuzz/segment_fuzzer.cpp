#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <utility>

#include "base/owned_descriptor.hpp"
#include "carrier/carrier_endpoint.hpp"
#include "carrier/carrier_listener.hpp"
#include "carrier/carrier_worker.hpp"
#include "carrier/passed_descriptor.hpp"

namespace {

using namespace ucx::detail;

/// Sends what a peer says, with a file beside the first byte: none, sealed memory, or a device.
bool say(int socket, std::span<const std::byte> said, unsigned what) {
  owned_descriptor file;
  if (what == 1) {
    file = owned_descriptor(::memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) std::abort();
  } else if (what == 2) {
    file = owned_descriptor(::open("/dev/null", O_RDWR | O_CLOEXEC));
  }
  ::iovec part{const_cast<std::byte*>(said.data()), said.size()};
  ::msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  passed_descriptor beside;
  if (file) beside.attach(message, file.get());
  return ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) ==
         static_cast<::ssize_t>(said.size());
}

ucs_status_t heard(void*, const void* header, std::size_t header_size, void* payload,
                   std::size_t size, const ucp_am_recv_param_t* params) {
  if (header_size > segment_head::longest_header || size > segment_head::longest_payload) {
    std::abort();
  }
  if ((params->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) return UCS_OK;
  unsigned sum = 0;  // every byte is there
  for (std::size_t i = 0; i < header_size; ++i) sum += static_cast<const unsigned char*>(header)[i];
  for (std::size_t i = 0; i < size; ++i) sum += static_cast<const unsigned char*>(payload)[i];
  const owned_descriptor file =
      reinterpret_cast<carrier_endpoint*>(params->reply_ep)->passed_file();
  if (file && !is_sealed_memory(file.get())) std::abort();
  return sum == 0 ? UCS_OK : UCS_ERR_NO_ELEM;
}

}  // namespace

/// The bytes of a Unix socket, in parts, with files beside them. What came is delivered, or the
/// connection ends, and no descriptor is left open.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const owned_descriptor first(::dup(0));
  {
    carrier_worker worker("fuzz", nullptr);
    if (worker.open() != UCS_OK) return 0;
    ucp_am_handler_param_t handler = {};
    handler.id = 255;
    handler.cb = &heard;
    worker.set_handler(handler);
    int ends[2] = {};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0) return 0;
    const owned_descriptor peer(ends[0]);
    carrier_caller caller;
    caller.socket = owned_descriptor(ends[1]);
    caller.address.ss_family = AF_UNIX;
    carrier_endpoint* endpoint = nullptr;
    if (carrier_endpoint::accept(worker, caller, ucp_ep_params_t{}, endpoint) != UCS_OK) return 0;
    endpoint->take_files();
    std::span<const std::byte> left(reinterpret_cast<const std::byte*>(data), size);
    while (left.size() > 1) {
      const auto head = std::to_integer<unsigned>(left.front());
      left = left.subspan(1);
      const auto part = left.first(std::min<std::size_t>(left.size(), 1 + (head >> 2U)));
      left = left.subspan(part.size());
      if (!say(peer.get(), part, head & 3U)) break;
      for (int rounds = 0; rounds < 4; ++rounds) worker.progress();
    }
  }
  // The lowest number that is free: none of those above was left open. Hostile ones are closed
  // soon, by another thread.
  for (int tries = 0; tries < 10'000; ++tries) {
    const owned_descriptor last(::dup(0));
    if (last.get() == first.get() + 1) return 0;
    ::usleep(100);
  }
  std::abort();
}
