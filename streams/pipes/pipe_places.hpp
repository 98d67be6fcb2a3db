// Memory of a pipe's reader in which a writer of the same host puts what would else be a message:
// docs/reference/wire-format.md, "Pipes".
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "pipes/pipe_frame.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/memory_region.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/worker.hpp"

namespace ucx::detail {

/// The reader's end.
class offered_places {
 public:
  /// Allocates `count` places of `piece` bytes for a writer. Returns nothing where the connection
  /// is to another host, as far as can be seen, or there is no memory that the writer could map.
  static std::optional<offered_places> make(worker& driven, const endpoint& writer,
                                            std::size_t piece, std::size_t count);

  /// Has the writer map them where it may not look at this process; over a Unix socket.
  void pass_to(const endpoint& writer) const { memory_.pass_to(writer); }
  /// Returns the offer to the writer.
  std::vector<std::byte> offer() const;
  /// Returns what the writer says lies there; nothing where that can not be. Before it is room for
  /// a byte.
  std::span<std::byte> bytes(const pipe_place& said) const noexcept;
  std::size_t count() const noexcept { return count_; }

 private:
  offered_places(memory_region&& memory, std::size_t piece, std::size_t count) noexcept
      : memory_(std::move(memory)), piece_(piece), count_(count) {}

  memory_region memory_;
  std::size_t piece_;
  std::size_t count_;
};

/// The writer's end.
class mapped_places {
 public:
  /// Maps what a reader offers; nothing where that is not to be had here.
  static std::optional<mapped_places> open(const endpoint& reader, const pipe_ring& offered,
                                           std::size_t piece);

  std::size_t count() const noexcept { return offered_.places; }
  /// Returns a place.    REQUIRES: index < count().
  std::span<std::byte> place(std::size_t index) const noexcept {
    return all_.subspan((index + 1) * offered_.stride - piece_, piece_);
  }

 private:
  mapped_places(remote_region&& region, std::span<std::byte> all, const pipe_ring& offered,
                std::size_t piece)
      : region_(std::move(region)), all_(all), offered_(offered), piece_(piece) {}

  remote_region region_;
  std::span<std::byte> all_;
  pipe_ring offered_;
  std::size_t piece_;
};

}  // namespace ucx::detail
