#include "pipes/pipe_places.hpp"

#include <cstdint>
#include <new>
#include <system_error>
#include <utility>

#include "ucx/access.hpp"
#include "ucx/remote_descriptor.hpp"

namespace ucx::detail {
namespace {

/// Before each place, for a byte that is put back; a cache line, so that places begin with one.
constexpr std::size_t margin = 64;

constexpr std::size_t stride_of(std::size_t piece) noexcept {
  return (margin + piece + margin - 1) / margin * margin;
}

/// Returns whether both ends have the same address, or a Unix socket. Those that have not may be on
/// one host, too; their bytes go as messages.
bool seems_local(const endpoint& peer) {
  const socket_address there = peer.peer();
  if (there.is_unix()) return true;
  return !there.empty() && there.with_port(0) == peer.local().with_port(0);
}

/// Returns memory that a process of this host may map; nothing where there is none.
std::optional<memory_region> allocate(worker& driven, std::size_t size) {
  std::error_code ec;
  memory_region made = memory_region::allocate(driven.parent(), size, access::read_write, {}, ec);
  if (ec || made.descriptor().memfd.process == 0) return std::nullopt;
  return made;
}

}  // namespace

std::optional<offered_places> offered_places::make(worker& driven, const endpoint& writer,
                                                   std::size_t piece, std::size_t count) {
  try {
    // A few bytes first: where they can not be mapped, more can not either, and would cost more.
    if (count == 0 || !seems_local(writer) || !allocate(driven, 1)) return std::nullopt;
    std::optional<memory_region> memory = allocate(driven, stride_of(piece) * count);
    if (!memory) return std::nullopt;
    offered_places made(std::move(*memory), piece, count);
    if (made.offer().size() > longest_of_reader) return std::nullopt;
    return made;
  } catch (const std::bad_alloc&) {  // messages take less
    return std::nullopt;
  }
}

std::vector<std::byte> offered_places::offer() const {
  return encode(pipe_ring{.places = static_cast<std::uint32_t>(count_),
                          .stride = static_cast<std::uint32_t>(stride_of(piece_)),
                          .descriptor = memory_.descriptor().encode()});
}

std::span<std::byte> offered_places::bytes(const pipe_place& said) const noexcept {
  if (said.place >= count_ || said.length > piece_) return {};
  const std::size_t stride = stride_of(piece_);
  return memory_.bytes().subspan((said.place + 1) * stride - piece_, said.length);
}

std::optional<mapped_places> mapped_places::open(const endpoint& reader, const pipe_ring& offered,
                                                 std::size_t piece) {
  if (offered.stride < piece || !seems_local(reader)) return std::nullopt;
  std::error_code ec;
  remote_descriptor described = remote_descriptor::decode(offered.descriptor, ec);
  if (ec) return std::nullopt;
  // A reader is not believed more than that: it is mapped, or left.
  described.remote_key.clear();
  described.cma = {};
  remote_region region(reader, described, {}, ec);
  if (ec || region.transfer_method() != transfer_method::mapped) return std::nullopt;
  const std::span<std::byte> all =
      region.writable_view(0, std::size_t{offered.places} * offered.stride, ec);
  if (ec) return std::nullopt;
  return mapped_places(std::move(region), all, offered, piece);
}

}  // namespace ucx::detail
