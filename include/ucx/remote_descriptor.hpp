#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "ucx/access.hpp"
#include "ucx/error.hpp"
#include "ucx/memory_place.hpp"
#include "ucx/to_string.hpp"
#include "ucx/version.hpp"

namespace ucx {

/// The place where processes of the owner's host find its memory, to map it: a file in memory
/// (`memfd_create`) that the owner has open. The numbers are of no use to a process that may not
/// see the owner's files.
struct memfd_handle {
  /// The owner's process number, in its own name space; 0: there is no file.
  std::uint64_t process = 0;
  std::uint64_t descriptor = 0;  ///< The file's descriptor in that process.
  std::uint64_t device = 0;      ///< The file's device and inode, to check it.
  std::uint64_t inode = 0;

  friend bool operator==(const memfd_handle&, const memfd_handle&) = default;
};

/// The place where processes of the owner's host read its memory in place, if the system lets them
/// (`process_vm_readv`). The numbers are of no use to other processes.
struct cma_handle {
  std::uint64_t process = 0;  ///< The owner's process number, in its own name space; 0: no loan.
  /// The address there of the record that tells whether the region still exists.
  std::uint64_t record = 0;
  std::uint64_t token = 0;  ///< The record's token while the region exists; not 0.

  friend bool operator==(const cma_handle&, const cma_handle&) = default;
};

/// The place where processes of the owner's host find its memory of a CUDA device. The driver's
/// `cuIpcGetMemHandle` gives the bytes for the allocation that has the region. The handle is of no
/// use to other processes, nor without the record of a `cma_handle`.
struct cuda_ipc_handle {
  std::array<std::byte, 64> bytes = {};
  std::uint64_t size = 0;    ///< The allocation's size; 0: there is no handle.
  std::uint64_t offset = 0;  ///< The region's beginning in the allocation.
  /// Whether the memory is of a pool or of `cuMemMap`. Without a size it was made for no sharing.
  /// Else the bytes tell where the owner has the table of the descriptors that share it.
  bool by_descriptors = false;

  friend bool operator==(const cuda_ipc_handle&, const cuda_ipc_handle&) = default;
};

/// UCX's key to memory of a CUDA device, for adapters of other hosts (`docs/how-to/gpu.md`). It
/// belongs to a second context of UCX's, which the owner has for such memory.
struct device_rma_handle {
  std::vector<std::byte> worker = {};  ///< The address of that context's worker.
  std::vector<std::byte> key = {};     ///< The packed rkey; empty: there is no handle.
  std::uint64_t address = 0;           ///< The region's beginning, as the device has it.

  friend bool operator==(const device_rma_handle&, const device_rma_handle&) = default;
};

/// Everything that a peer needs to reach a region, but for the connection: a serialisable value
/// (`docs/reference/wire-format.md`). It is a capability: each process that has it may do what it
/// grants.
struct UCXIO_EXPORT remote_descriptor {
  std::uint64_t region = 0;       ///< The region's number at the owner.
  std::uint64_t incarnation = 0;  ///< Differs after the owner was restarted.
  std::uint64_t generation = 0;   ///< Differs after the content was replaced.
  std::uint64_t address = 0;      ///< The region's beginning in the owner's address space.
  std::uint64_t size = 0;         ///< The bytes that were asked for, not UCX's rounded size.
  access granted = access::read;
  memory_kind kind = memory_kind::host;
  /// Exposed by UCX alone (`of_key`): the owner answers nothing.
  bool foreign = false;
  bool shareable = false;  ///< Allocated by this library where peers of the host may write, too.
  std::array<std::byte, 16> host = {};     ///< Equal values mean one host.
  std::vector<std::byte> remote_key = {};  ///< UCX's packed rkey; empty on message-only contexts.
  memfd_handle memfd = {};            ///< The file that holds the region, where peers may map it.
  cma_handle cma = {};                ///< Otherwise the place where they may read it.
  cuda_ipc_handle cuda_ipc = {};      ///< The place where they reach it, if a device has it.
  device_rma_handle device_rma = {};  ///< The way for adapters of other hosts, likewise.
  /// For memory of a device: the device's number there, up to 253. -1: none, or unknown.
  int device = -1;

  /// Describes memory that a process without this library exposes: `size` bytes at `address` of
  /// that process, by the bytes of `ucp_rkey_pack` or `ucp_memh_pack`. Connect with
  /// `endpoint_options::plain_peer`.
  /// The descriptor is `foreign`. Such a region is reached by RMA or by memory that UCX maps, never
  /// by message. Bounds are checked here only. Its `flush()` is that of UCX's endpoint. Atomics,
  /// `notify`, `verify` and `content()` are not supported, and `why_not()` tells of ways.
  /// The bytes of a key have no checksum, and UCX may crash where one is flipped. Carry them in
  /// something with a checksum, such as `encode()`.
  /// Errors: bad_descriptor (a key of no bytes, or of more than 4 KiB); invalid_argument (the end
  /// is beyond the address space; a value that is no access or no kind).
  static remote_descriptor of_key(std::uint64_t address, std::uint64_t size,
                                  std::span<const std::byte> key, access granted,
                                  memory_kind memory = memory_kind::host,
                                  std::error_code& ec = throws);

  /// Returns the wire form.
  /// Errors: invalid_argument if `remote_key`, or the key of `device_rma`, is longer than 4 KiB; if
  /// the worker's address there is longer than 16 KiB.
  std::vector<std::byte> encode() const;

  /// Reads the wire form. Every truncation and every flipped bit is `bad_descriptor`.
  /// Errors: bad_descriptor, version_mismatch (intact, but of another version, or with a property
  /// that this library does not know; the text names it).
  static remote_descriptor decode(std::span<const std::byte> wire, std::error_code& ec = throws);

  friend bool operator==(const remote_descriptor&, const remote_descriptor&) = default;
};

/// Returns a line for people: region, size, access and kind, but never the key.
UCXIO_EXPORT std::string to_string(const remote_descriptor& descriptor);

template <>
inline constexpr bool detail::is_printed<remote_descriptor> = true;

#if UCXIO_OLD_NAMES
using memory_file [[deprecated("memfd_handle")]] = memfd_handle;
using memory_loan [[deprecated("cma_handle")]] = cma_handle;
using memory_handle [[deprecated("cuda_ipc_handle")]] = cuda_ipc_handle;
#endif

}  // namespace ucx
