// Memory beside the values of a call: docs/reference/calls.md, "Memory beside a call".
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "ucx/buffer.hpp"
#include "ucx/call_reader.hpp"
#include "ucx/call_types.hpp"
#include "ucx/call_writer.hpp"
#include "ucx/memory_place.hpp"
#include "ucx/memory_resources.hpp"

namespace ucx {

/// The memory in which bytes beside a call, or beside its result, land before they are used.
struct call_memory {
  /// The resource for each kind. Null: all of it is from the heap.
  /// Lifetime: the resources in it, until what they made is freed.
  std::shared_ptr<const memory_resources> resources = nullptr;
  /// Each part lands in memory of this kind.
  memory_kind kind = memory_kind::host;
  /// Each part lands in memory of the sender's kind instead, where there is a resource for it. The
  /// peer chooses then: set it where the bytes are touched only after a look at where they lie.
  bool as_sent = false;

  /// Returns whether there is a resource for `kind`, and the library can copy to it.
  bool has_resource() const noexcept {
    if (kind == memory_kind::host) return true;
    if (kind == memory_kind::rocm || kind == memory_kind::other) return false;
    return resources && resources->find(kind) != nullptr;
  }
};

namespace detail {

/// Bytes of the caller's, or of the call.
template <class Byte>
struct call_span_type {
  static constexpr std::size_t depth = 0;
  static constexpr bool borrows = true;
  static void describe(std::string& text) { text += "buffer"; }
  static void write(call_writer& to, std::span<Byte> value) { to.memory(value); }
  static std::span<Byte> read(call_reader& from) { return from.memory(); }
};

template <>
struct call_type<std::span<const std::byte>> : call_span_type<const std::byte> {};
template <>
struct call_type<std::span<std::byte>> : call_span_type<std::byte> {};

template <>
struct call_type<buffer> {
  static constexpr std::size_t depth = 0;
  static constexpr bool borrows = false;
  static constexpr bool has_memory = true;
  static void describe(std::string& text) { text += "buffer"; }
  static void write(call_writer& to, const buffer& value) { to.memory(value.bytes()); }
  /// A result owns its memory.
  static void give(call_writer& to, buffer&& value) { to.memory(std::move(value)); }
  static buffer read(call_reader& from) { return from.take_memory(); }
};

}  // namespace detail

}  // namespace ucx
