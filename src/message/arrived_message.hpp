// A message that has come, or was announced, and that has not been taken yet.
#pragma once

#include <cstddef>
#include <span>
#include <system_error>
#include <vector>

#include "base/intrusive_list.hpp"
#include "wire/parcel.hpp"

namespace ucx::detail {

class endpoint_core;
class receive_operation;

struct arrival_order_tag {};
struct arrival_tag {};
struct equal_tags_tag {};

/// Plain data, which the worker's `message_exchange` interprets. How the owner changes:
///
///     from    | to      | when
///     kept    | matched | a receive has it, or the program, or a handler is called with it
///     matched | taken   | its payload was received, or asked for
///     kept,   | taken   | there is no handler for it, which its sender was told
///     matched |         |
///     matched,| left    | the program let go of it, and a receive that lacks a buffer has it; one
///     taken   |         | that is here may have been received before
///     left    | matched | there is a buffer, and that receive takes it
///     any     | kept    | it was discarded: the object is another message's
struct arrived_message : list_hook<arrival_order_tag>,
                         list_hook<arrival_tag>,
                         list_hook<equal_tags_tag> {
  /// Null once the connection is gone for good.
  endpoint_core* from = nullptr;
  parcel said;
  std::vector<std::byte> header;          ///< The user's.
  std::vector<std::byte> copy;            ///< Of the payload, where UCX's own could not be kept;
                                          ///< of one that is offered, the offer.
  void* lasting = nullptr;                ///< UCX's own, to be given back.
  std::span<const std::byte> bytes = {};  ///< The payload, if it is here.
  std::size_t read = 0;                   ///< How much of it the byte stream's reader has.
  std::size_t units = 0;                  ///< Of the sender's window, not given back yet.
  std::error_code failure = {};           ///< It was announced, and will not come.
  enum class whose {
    kept,     ///< It waits, in its connection or in the worker's list.
    matched,  ///< Somebody has it: it is in no list of what waits.
    taken,    ///< And its sender has nothing to wait for.
    left,     ///< That of `receive` alone.
  };
  whose owner = whose::kept;
  receive_operation* receive = nullptr;  ///< That has no buffer for it yet.

  bool here() const noexcept { return said.code == parcel_code::message; }
  /// Returns whether its sender waits for who takes it.
  bool is_awaited() const noexcept { return !here() && owner != whose::taken; }
  /// Returns where it may be read, if that is offered.
  std::span<const std::byte> offer() const noexcept {
    return said.lends || said.keyed ? std::span<const std::byte>(copy)
                                    : std::span<const std::byte>();
  }
};

}  // namespace ucx::detail
