#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "ucx/access.hpp"
#include "ucx/export.hpp"
#include "ucx/memory_kind.hpp"

namespace ucx {

/// Where processes of an owner's host find its memory, to map it: a file in memory (`memfd_create`)
/// that the owner has open. Numbers, of no use to whom the system does not let see the owner's
/// files.
struct memory_file {
  std::uint64_t process = 0;  ///< The owner's number, in its own name space; 0: there is no file.
  std::uint64_t descriptor = 0;  ///< Of the file, there.
  std::uint64_t device = 0;      ///< What the file has to be, with the next one.
  std::uint64_t inode = 0;

  friend bool operator==(const memory_file&, const memory_file&) = default;
};

/// Where processes of an owner's host read its memory where it lies, if the system lets them
/// (`process_vm_readv`). Numbers, of no use to anybody else.
struct memory_loan {
  std::uint64_t process = 0;  ///< The owner's number, in its own name space; 0: nobody does.
  std::uint64_t record = 0;   ///< Address of what tells there that the region still exists,
  std::uint64_t token = 0;    ///< and what it has to say; not 0.

  friend bool operator==(const memory_loan&, const memory_loan&) = default;
};

/// Where processes of an owner's host find its memory of a CUDA device: what the driver says of the
/// allocation that the region is in (`cuIpcGetMemHandle`). Of no use to anybody else, and of none
/// without the record of a `memory_loan`.
struct memory_handle {
  std::array<std::byte, 64> bytes = {};
  std::uint64_t size = 0;    ///< Of the allocation; 0: there is no handle.
  std::uint64_t offset = 0;  ///< Where the region begins in it.

  friend bool operator==(const memory_handle&, const memory_handle&) = default;
};

/// Everything a peer needs to reach a region, but for the connection: a value, serialisable
/// (`docs/reference/wire-format.md`). It is a capability: whoever has it may do what it grants.
struct UCXIO_EXPORT remote_descriptor {
  std::uint64_t region = 0;       ///< What the owner's region service looks up.
  std::uint64_t incarnation = 0;  ///< Tells a restarted owner from the old one.
  std::uint64_t generation = 0;   ///< Tells a replaced content from its predecessor.
  std::uint64_t address = 0;      ///< Where the region begins in the owner's address space.
  std::uint64_t size = 0;         ///< Bytes that were asked for, not what UCX rounded up to.
  access granted = access::read;
  memory_kind kind = memory_kind::host;
  bool shareable = false;               ///< Allocated by us where peers of the host may write, too.
  std::array<std::byte, 16> host = {};  ///< Same value: same host.
  std::vector<std::byte> remote_key = {};  ///< UCX's packed rkey; empty on message-only contexts.
  memory_file file = {};                   ///< What holds the region, where peers may map it.
  memory_loan loan = {};                   ///< Where they may read it, else.
  memory_handle handle = {};               ///< Where they reach it, if a device has it.
  int device = -1;  ///< Of memory of a device: its number there, to 253; -1: none, or unknown.

  /// Returns the wire form. Errors: invalid_argument if `remote_key` is longer than 4 KiB.
  std::vector<std::byte> encode() const;

  /// Reads the wire form. Every truncation and every flipped bit is `bad_descriptor`.
  /// Errors: bad_descriptor, version_mismatch (intact, but of another version; the text names
  /// both).
  static remote_descriptor decode(std::span<const std::byte> wire);
  static remote_descriptor decode(std::span<const std::byte> wire, std::error_code& ec);

  friend bool operator==(const remote_descriptor&, const remote_descriptor&) = default;
};

/// Returns a line for people: region, size, access, kind; never the key.
UCXIO_EXPORT std::string to_string(const remote_descriptor& descriptor);

}  // namespace ucx
