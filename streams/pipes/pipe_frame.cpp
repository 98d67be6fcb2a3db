#include "pipes/pipe_frame.hpp"

#include <algorithm>

namespace ucx::detail {
namespace {

constexpr std::array magic{std::byte{'U'}, std::byte{'X'}, std::byte{'P'}, std::byte{'I'}};

/// Of a `pipe_ring`; the rest is the descriptor.
constexpr std::size_t ring_header = 8;

}  // namespace

pipe_hello_bytes encode(const pipe_hello& said) noexcept {
  pipe_hello_bytes made{};
  const std::span all(made);
  std::copy(magic.begin(), magic.end(), made.begin());
  put_pipe_number(all.subspan(4, 2), said.version);
  put_pipe_number(all.subspan(6, 2), said.receives);
  put_pipe_number(all.subspan(8, 8), said.piece);
  put_pipe_number(all.subspan(16, 8), said.window);
  return made;
}

pipe_end_bytes encode(const pipe_end& said) noexcept {
  pipe_end_bytes made{};
  const std::span all(made);
  put_pipe_number(all.first(8), said.total);
  put_pipe_number(all.subspan(8, 4), said.status);
  return made;
}

pipe_count_bytes encode_pipe_count(std::uint64_t bytes) noexcept {
  pipe_count_bytes made{};
  put_pipe_number(made, bytes);
  return made;
}

pipe_place_bytes encode(const pipe_place& said) noexcept {
  pipe_place_bytes made{};
  const std::span all(made);
  put_pipe_number(all.first(4), said.place);
  put_pipe_number(all.subspan(4, 4), said.length);
  return made;
}

std::vector<std::byte> encode(const pipe_ring& said) {
  std::vector<std::byte> made(ring_header + said.descriptor.size());
  const std::span all(made);
  put_pipe_number(all.first(4), said.places);
  put_pipe_number(all.subspan(4, 4), said.stride);
  std::copy(said.descriptor.begin(), said.descriptor.end(), made.begin() + ring_header);
  return made;
}

std::optional<pipe_hello> decode_pipe_hello(std::span<const std::byte> said) noexcept {
  if (said.size() < 8 || !std::equal(magic.begin(), magic.end(), said.begin())) return {};
  pipe_hello heard;
  heard.version = static_cast<std::uint16_t>(pipe_number_in(said.subspan(4, 2)));
  if (heard.version == 0) return {};
  if (heard.version != pipe_version) return heard;
  if (said.size() != pipe_hello::size) return {};
  heard.receives = static_cast<std::uint16_t>(pipe_number_in(said.subspan(6, 2)));
  if (heard.receives == 0) return {};
  heard.piece = pipe_number_in(said.subspan(8, 8));
  heard.window = pipe_number_in(said.subspan(16, 8));
  if (heard.piece < least_pipe_piece || heard.window < heard.piece) return {};
  if (heard.window > most_pipe_window) return {};
  return heard;
}

std::optional<pipe_end> decode_pipe_end(std::span<const std::byte> said) noexcept {
  if (said.size() != pipe_end::size || pipe_number_in(said.subspan(12, 4)) != 0) return {};
  return pipe_end{pipe_number_in(said.first(8)),
                  static_cast<std::uint32_t>(pipe_number_in(said.subspan(8, 4)))};
}

std::optional<std::uint64_t> decode_pipe_count(std::span<const std::byte> said) noexcept {
  if (said.size() != sizeof(std::uint64_t)) return {};
  return pipe_number_in(said);
}

std::optional<pipe_place> decode_pipe_place(std::span<const std::byte> said) noexcept {
  if (said.size() != pipe_place::size) return {};
  return pipe_place{static_cast<std::uint32_t>(pipe_number_in(said.first(4))),
                    static_cast<std::uint32_t>(pipe_number_in(said.subspan(4, 4)))};
}

std::optional<pipe_ring> decode_pipe_ring(std::span<const std::byte> said) {
  if (said.size() <= ring_header || said.size() > longest_of_reader) return {};
  pipe_ring heard;
  heard.places = static_cast<std::uint32_t>(pipe_number_in(said.first(4)));
  heard.stride = static_cast<std::uint32_t>(pipe_number_in(said.subspan(4, 4)));
  if (heard.places == 0 || heard.places > pipe_ring::most_places) return {};
  if (heard.stride < least_pipe_piece || heard.stride > pipe_ring::most_stride) return {};
  const std::span<const std::byte> rest = said.subspan(ring_header);
  heard.descriptor.assign(rest.begin(), rest.end());
  return heard;
}

}  // namespace ucx::detail
