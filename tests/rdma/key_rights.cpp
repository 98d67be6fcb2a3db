// A write of raw UCX's with the key of memory that was mapped for reading only:
// docs/how-to/security.md says that it goes through.
#include <ucp/api/ucp.h>

#include <array>
#include <cstdint>
#include <iostream>
#include <vector>

#include "rdma/peer.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/listener.hpp"
#include "ucx/socket_address.hpp"

namespace ucx::test {
namespace {

void check(ucs_status_t status, const char* what) {
  require(status == UCS_OK, std::string(what) + ": " + ucs_status_string(status));
}

/// Waits for one of UCX's requests, while both workers make progress.
ucs_status_t outcome(ucs_status_ptr_t started, worker& reader, worker& owner) {
  if (!UCS_PTR_IS_PTR(started)) return UCS_PTR_RAW_STATUS(started);
  ucs_status_t status = UCS_INPROGRESS;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while ((status = ucp_request_check_status(started)) == UCS_INPROGRESS) {
    require(std::chrono::steady_clock::now() < end, "UCX's request ends");
    reader.progress();
    owner.progress();
  }
  ucp_request_free(started);
  return status;
}

}  // namespace

void write_with_readers_key(const std::string& where) {
  const context_options verbs{.transports = {"rc", "self"},
                              .configuration = {{"SOCKADDR_TLS_PRIORITY", "rdmacm"}},
                              .share_memory = false};
  const context owners(verbs);
  const context readers(verbs);
  worker owner(owners, {.progress = progress_mode::caller, .thread_mode = thread_mode::multi});
  worker reader(readers, {.connect_timeout = std::chrono::seconds(60)});
  const listener door(owner, socket_address(where));
  const endpoint connection(reader, door.address(), {.wait = connect_wait::none});
  while (connection.state() == connection_state::connecting) {
    reader.progress();
    owner.progress();
  }
  alignas(4096) static std::array<std::uint64_t, 512> memory{};
  ucp_mem_map_params_t params = {};
  params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH |
                      UCP_MEM_MAP_PARAM_FIELD_PROT;
  params.address = memory.data();
  params.length = sizeof memory;
  params.prot = UCP_MEM_MAP_PROT_LOCAL_READ | UCP_MEM_MAP_PROT_REMOTE_READ;
  ucp_mem_h mapped = nullptr;
  check(ucp_mem_map(owners.native_handle(), &params, &mapped), "mapping for reading");
  void* packed = nullptr;
  std::size_t length = 0;
  check(ucp_rkey_pack(owners.native_handle(), mapped, &packed, &length), "packing the key");
  ucp_rkey_h key = nullptr;
  check(ucp_ep_rkey_unpack(connection.native_handle(), packed, &key), "unpacking the key");
  ucp_rkey_buffer_release(packed);
  const std::uint64_t mine = 0x1234;
  ucp_request_param_t none = {};
  const auto place = reinterpret_cast<std::uint64_t>(memory.data());
  const ucs_status_t written =
      outcome(ucp_put_nbx(connection.native_handle(), &mine, sizeof mine, place, key, &none),
              reader, owner);
  ucs_status_t flushed = written;
  if (written == UCS_OK)
    flushed = outcome(ucp_ep_flush_nbx(connection.native_handle(), &none), reader, owner);
  const bool is_written = memory[0] == mine;
  std::cout << "measured: " << ucs_status_string(flushed) << ", the memory is "
            << (is_written ? "written" : "as it was") << std::endl;
  ucp_rkey_destroy(key);
  check(ucp_mem_unmap(owners.native_handle(), mapped), "unmapping");
  check(flushed, "the write, which docs/how-to/security.md tells of");
  require(is_written, "the memory is written: docs/how-to/security.md says that it is");
}

}  // namespace ucx::test
