// Reads the elements of control messages' bodies.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <msgpack.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/name.hpp"
#include "ucx/memory_place.hpp"
#include "wire/control_message.hpp"
#include "wire/ticket_secret.hpp"

namespace ucx::detail {

/// Reads the elements of an array in order. An element that does not fit makes it fail for good, so
/// that a decoder looks once, at the end.
class control_fields {
 public:
  explicit control_fields(const msgpack::object& array) noexcept {
    if (array.type != msgpack::type::ARRAY) return;
    next_ = array.via.array.ptr;
    end_ = next_ + array.via.array.size;
    ok_ = true;
  }

  bool ok() const noexcept { return ok_; }
  /// Returns whether there are more: those that only later versions send.
  bool more() const noexcept { return ok_ && next_ != end_; }

  std::uint64_t number(std::uint64_t most = ~std::uint64_t{0}) noexcept {
    const msgpack::object* element = take(msgpack::type::POSITIVE_INTEGER);
    if (element == nullptr) return 0;
    if (element->via.u64 > most) ok_ = false;
    return element->via.u64;
  }
  std::int64_t integer() noexcept {
    constexpr std::uint64_t most = ~std::uint64_t{0} >> 1U;
    const bool is_negative = ok_ && next_ != end_ && next_->type == msgpack::type::NEGATIVE_INTEGER;
    if (!is_negative) return static_cast<std::int64_t>(number(most));
    return (next_++)->via.i64;
  }
  bool boolean() noexcept {
    const msgpack::object* element = take(msgpack::type::BOOLEAN);
    return element != nullptr && element->via.boolean;
  }
  std::string text() {
    const msgpack::object* element = take(msgpack::type::STR);
    return element == nullptr ? std::string()
                              : std::string(element->via.str.ptr, element->via.str.size);
  }
  std::vector<std::byte> binary() {
    const msgpack::object* element = take(msgpack::type::BIN);
    if (element == nullptr) return {};
    const auto* first = reinterpret_cast<const std::byte*>(element->via.bin.ptr);
    return {first, first + element->via.bin.size};
  }
  ticket_secret secret() noexcept {
    ticket_secret made = {};
    const msgpack::object* element = take(msgpack::type::BIN);
    if (element == nullptr || element->via.bin.size != made.size()) {
      ok_ = false;
      return made;
    }
    std::transform(element->via.bin.ptr, element->via.bin.ptr + made.size(), made.begin(),
                   [](char each) { return static_cast<std::byte>(each); });
    return made;
  }
  /// Reads an array by `read`, which gets its elements; those that it leaves are passed over.
  template <class Read>
  void within(Read&& read) {
    const msgpack::object* element = take(msgpack::type::ARRAY);
    if (element == nullptr) return;
    control_fields elements(*element);
    read(elements);
    ok_ = elements.ok();
  }
  /// As `within()`; calls `read_one` as long as elements are left.
  template <class Read>
  void each(Read&& read_one) {
    within([&](control_fields& elements) {
      while (elements.more()) read_one(elements);
    });
  }

  /// Reads seconds and nanoseconds; or nil, which is none.
  std::optional<file_time> moment() noexcept {
    if (ok_ && next_ != end_ && next_->type == msgpack::type::NIL) {
      ++next_;
      return std::nullopt;
    }
    file_time made;
    within([&](control_fields& fields) {
      made.seconds = fields.integer();
      made.nanoseconds = static_cast<std::uint32_t>(fields.number(999'999'999));
    });
    return made;
  }

  access rights() noexcept {
    const std::uint64_t value = number(3);
    if (value == 0) ok_ = false;
    return ok_ ? static_cast<access>(value) : access::read;
  }
  create_mode creation() noexcept {
    const std::uint64_t value = number(static_cast<std::uint64_t>(create_mode::overwrite));
    if (value == 0) ok_ = false;
    return ok_ ? static_cast<create_mode>(value) : create_mode::replace;
  }
  entry described() {
    entry made;
    within([&](control_fields& fields) {
      made.name = fields.text();
      const bool named = complaint_about_name(made.name).empty();
      const std::uint64_t type = fields.number(3);
      made.size = fields.number();
      made.granted = fields.rights();
      made.kind = kind_of(fields.number());
      made.generation = fields.number();
      if (fields.more()) made.modified = fields.moment();
      if (fields.more()) {
        made.device = static_cast<int>(fields.number(most_devices)) - 1;
      }
      if (!named || type == 0) fields.ok_ = false;
      if (fields.ok_) made.type = static_cast<entry_type>(type);
    });
    return made;
  }

 private:
  static constexpr std::uint64_t most_devices = 0x7fff'ffff;

  /// A kind that only a later version knows is another one here.
  static memory_kind kind_of(std::uint64_t value) noexcept {
    return value <= static_cast<std::uint64_t>(memory_kind::rocm) ? static_cast<memory_kind>(value)
                                                                  : memory_kind::other;
  }
  const msgpack::object* take(msgpack::type::object_type type) noexcept {
    if (!ok_ || next_ == end_ || next_->type != type) {
      ok_ = false;
      return nullptr;
    }
    return next_++;
  }

  const msgpack::object* next_ = nullptr;
  const msgpack::object* end_ = nullptr;
  bool ok_ = false;
};

}  // namespace ucx::detail
