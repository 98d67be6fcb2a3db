// The place of a receive, as its caller says it.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <variant>

#include "base/result.hpp"
#include "ucx/buffer.hpp"
#include "ucx/receive_target.hpp"

namespace ucx::detail {

class buffer_pool_core;

struct receive_place {
  std::span<const std::span<std::byte>> runs = {};
  std::span<std::byte> only = {};               ///< Where there are no `runs`.
  buffer* made = nullptr;                       ///< Or memory that is allocated for it,
  message_parts* parts = nullptr;               ///< or for its parts,
  std::size_t most = 0;                         ///< up to so much;
  std::shared_ptr<buffer_pool_core> pool = {};  ///< or, for `made`, one of these buffers.

  /// Returns the memory of one that is a single run, as most are; null of any other.
  static const std::span<std::byte>* run_of(const receive_target& into) noexcept {
    return std::get_if<receive_target::run>(&into.form_);
  }
  /// Empties a buffer that is to be a pool's: what was in it may be what the receive would wait
  /// for. Under no lock. Errors: closed (a pool that was moved from), not_supported (memory by
  /// kind, of which only a message that the program holds says something).
  static result<receive_place> of(const receive_target& into);
};

}  // namespace ucx::detail
