// The message of a receive: what was said of it, and how much of it has come.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ucx/memory_place.hpp"
#include "ucx/request.hpp"
#include "wire/parcel.hpp"

namespace ucx::detail {

/// Nothing is known of it until it is found: it came, or was announced.
class expected_message {
 public:
  /// Of a new receive.
  void begin() noexcept {
    info_ = {};
    received_ = 0;
    found_ = false;
  }
  /// It is the one of which that was said.
  void found(const parcel& said) noexcept {
    info_ = {said.tag, said.length, said.memory};
    kind_ = said.kind;
    number_ = said.number;
    found_ = true;
  }
  /// It is a short message, which came whole.
  void found(std::uint64_t tag, std::size_t length) noexcept {
    info_ = {tag, length, memory_kind::host};
    kind_ = message_kind::tagged;
    found_ = true;
  }

  bool is_found() const noexcept { return found_; }
  const message_info& info() const noexcept { return info_; }
  message_kind kind() const noexcept { return kind_; }
  std::uint64_t number() const noexcept { return number_; }
  /// Returns what the announcement said, as far as an answer to it repeats that.
  parcel announced() const noexcept {
    parcel said;
    said.kind = kind_;
    said.number = number_;
    said.tag = info_.tag;
    said.length = info_.length;
    return said;
  }

  /// Returns whether a piece of this size at `offset` can be one of those that are missing.
  bool lacks(std::uint64_t offset, std::size_t size) const noexcept {
    const std::uint64_t total = info_.length;
    return offset <= total && size <= total - offset && size <= total - received_;
  }
  /// So much more of it is here; returns whether that is all.
  bool received(std::size_t size) noexcept {
    received_ += size;
    return received_ == info_.length;
  }

 private:
  message_info info_;
  message_kind kind_ = message_kind::tagged;
  std::uint64_t number_ = 0;  // its sender's, of one that was announced
  std::uint64_t received_ = 0;
  bool found_ = false;
};

}  // namespace ucx::detail
