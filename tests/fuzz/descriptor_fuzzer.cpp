#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <system_error>
#include <vector>

#include "ucp/packed_key.hpp"
#include "ucx/peer_address.hpp"
#include "ucx/remote_descriptor.hpp"
#include "wire/cuda_fd_table.hpp"
#include "wire/wire.hpp"

namespace {

void decode(std::span<const std::byte> wire) {
  std::error_code ec;
  const ucx::remote_descriptor descriptor = ucx::remote_descriptor::decode(wire, ec);
  if (!ec && ucx::remote_descriptor::decode(descriptor.encode()) != descriptor) std::abort();
  const ucx::detail::padded_key padded(descriptor.remote_key);
  if (ucx::detail::is_packed_key(descriptor.remote_key) != (padded.data() != nullptr)) std::abort();
  const auto table = ucx::detail::decode_cuda_fd_table(wire);
  if (table && ucx::detail::decode_cuda_fd_table(table->encode()) != table) std::abort();
  const ucx::worker_address address = ucx::worker_address::decode(wire, ec);
  if (!ec && ucx::worker_address::decode(address.encode()) != address) std::abort();
}

}  // namespace

/// The bytes as they are, and with an intact checksum, which no fuzzer would find by itself.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> raw(reinterpret_cast<const std::byte*>(data), size);
  decode(raw);
  if (size < ucx::detail::envelope::overhead) return 0;
  std::vector<std::byte> sealed(raw.begin(), raw.end());
  const std::size_t body = size - sizeof(std::uint64_t);
  const std::uint64_t sum = ucx::detail::checksum(std::span(sealed).first(body));
  for (std::size_t i = 0; i < sizeof sum; ++i) {
    sealed[body + i] = static_cast<std::byte>(sum >> (8 * i));
  }
  decode(sealed);
  return 0;
}
