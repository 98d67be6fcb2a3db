// The bytes of a send and where they go, as its caller says it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <variant>

#include "ucx/buffer.hpp"
#include "ucx/payload.hpp"
#include "wire/parcel.hpp"
#include "wire/parts_table.hpp"

namespace ucx::detail {

/// Refers to what it is made of.
class send_source {
 public:
  send_source(const message_destination& to, const payload& what) noexcept
      : kind_(to.is_active_ ? message_kind::active : message_kind::tagged),
        tag_(to.number_),
        header_(to.header_),
        what_(what.form_) {}
  /// Of several runs, which live as long as `owner`, which the send takes over.
  send_source(const message_destination& to, const payload& what, buffer& owner) noexcept
      : send_source(to, what) {
    owner_ = &owner;
  }
  /// Of the byte stream.
  explicit send_source(const payload& what) noexcept
      : kind_(message_kind::stream), what_(what.form_) {}

  message_kind kind() const noexcept { return kind_; }
  std::uint64_t tag() const noexcept { return tag_; }
  std::span<const std::byte> header() const noexcept { return header_; }

  /// Returns whether it is one run of the caller's bytes.
  bool is_run() const noexcept { return std::holds_alternative<payload::run>(what_); }
  /// Returns the bytes where they are in one run, also those of `owned()`.
  std::span<const std::byte> bytes() const noexcept {
    if (const buffer* const taken = owner_ == nullptr ? owned() : nullptr) return taken->bytes();
    const auto* const only = std::get_if<payload::run>(&what_);
    return only != nullptr ? *only : std::span<const std::byte>();
  }
  /// Returns the runs where there may be several.
  std::span<const std::span<const std::byte>> runs() const noexcept {
    if (const auto* const parts = std::get_if<payload::part_list>(&what_)) return parts->each;
    const auto* const several = std::get_if<payload::run_list>(&what_);
    return several != nullptr ? *several : std::span<const std::span<const std::byte>>();
  }
  /// Returns whether the peer gets the runs one by one.
  bool as_parts() const noexcept { return std::holds_alternative<payload::part_list>(what_); }
  /// Returns the buffer that is to be taken over, which is the bytes, or keeps them; null where
  /// there is none.
  buffer* owned() const noexcept {
    if (owner_ != nullptr) return owner_;
    const auto* const taken = std::get_if<buffer*>(&what_);
    return taken != nullptr ? *taken : nullptr;
  }

  /// Returns how many bytes go, with the table of parts.
  std::size_t length() const noexcept {
    std::size_t length = bytes().size();
    if (as_parts()) length += parts_table_size(runs().size());
    for (const std::span<const std::byte>& each : runs()) length += each.size();
    return length;
  }
  /// Returns whether bytes of this form can go that way: the byte stream has no parts, and gives
  /// no buffer back.
  bool has_a_way() const noexcept {
    return kind_ != message_kind::stream || !(as_parts() || owned() != nullptr);
  }

 private:
  message_kind kind_;
  std::uint64_t tag_ = 0;
  std::span<const std::byte> header_ = {};
  const decltype(payload::form_)& what_;
  buffer* owner_ = nullptr;
};

}  // namespace ucx::detail
