// The files of memory that go over a connection, from a region's owner to a peer that maps it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/owned_descriptor.hpp"
#include "ucx/access.hpp"

namespace ucx::detail {

class endpoint_core;
struct frame;

/// Over a Unix socket an owner passes a file that grants no more than the peer may do. The peer
/// needs no right to look at the owner's process. A part of the connection; everything happens
/// under the worker's lock.
class passed_files {
 public:
  /// So many wait for a region to be opened here; of more the oldest go. A client asks for as many
  /// names at once.
  static constexpr std::size_t most_of_initiator = 128;
  static constexpr std::size_t most_of_acceptor = 8;
  /// So many wait here for a peer to take them: each is a descriptor of this process.
  static constexpr unsigned most_under_way = 16;

  explicit passed_files(endpoint_core& connection) noexcept : connection_(connection) {}
  passed_files(const passed_files&) = delete;
  passed_files& operator=(const passed_files&) = delete;

  /// Begins to take files, where there may be some for this side; a server of names has none to
  /// expect. Returns whether it does, for the introduction.
  bool begin() noexcept;

  /// Passes the file of a region of this side's, before all that is sent from here on. Returns
  /// whether there is one, and the peer takes it.
  bool pass(std::uint64_t region, access rights);
  /// One is on its way.
  void passed() noexcept { --under_way_; }

  /// The peer has said that it passes `file`, which was lost on its way, maybe.
  void arrived(const frame& said, owned_descriptor file);
  /// Takes a file of the region that grants that much; nothing where none has come.
  owned_descriptor take(std::uint64_t region, access wanted) noexcept;
  void drop() noexcept { waiting_.clear(); }

 private:
  struct arrival {
    std::uint64_t region;
    access rights;
    owned_descriptor file;
  };

  endpoint_core& connection_;
  bool takes_ = false;
  unsigned under_way_ = 0;
  std::vector<arrival> waiting_;  // the oldest first
};

}  // namespace ucx::detail
