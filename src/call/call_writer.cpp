#include "ucx/call_writer.hpp"

#include <bit>
#include <msgpack.hpp>
#include <string>
#include <utility>

#include "base/name.hpp"
#include "base/result.hpp"

namespace ucx {

/// The packer writes to it.
struct call_writer::sink {
  std::vector<std::byte>& into;

  void write(const char* data, std::size_t size) {
    const auto raw = std::as_bytes(std::span(data, size));
    into.insert(into.end(), raw.begin(), raw.end());
  }
};

namespace {

// The bytes of a value's beginning, as the packer writes it: the shortest form.
std::size_t size_of_unsigned(std::uint64_t value) noexcept {
  if (value < 0x80) return 1;
  if (value <= 0xff) return 2;
  if (value <= 0xffff) return 3;
  return value <= 0xffff'ffff ? 5 : 9;
}
std::size_t size_of_negative(std::int64_t value) noexcept {
  if (value >= -0x20) return 1;
  if (value >= -0x80) return 2;
  if (value >= -0x8000) return 3;
  return value >= -0x8000'0000LL ? 5 : 9;
}
std::size_t size_of_length(std::size_t length, std::size_t shortest, std::size_t with_u8) noexcept {
  if (length < shortest) return 1;
  if (length < with_u8) return 2;
  return length <= 0xffff ? 3 : 5;
}

/// Returns the sum, or more than any writer has room for.
std::size_t with_content(std::size_t head, std::size_t content) noexcept {
  return content > call_writer::max_size ? content : head + content;
}

/// Writes a float. The packer would write one without a fraction as an integer.
template <class Bits>
void put_float(std::vector<std::byte>& to, unsigned head, Bits bits) {
  to.push_back(static_cast<std::byte>(head));
  for (std::size_t left = sizeof bits; left-- > 0;) {
    to.push_back(static_cast<std::byte>(bits >> (8 * left)));
  }
}

}  // namespace

/// Returns whether there is room for a value of `size` bytes at most.
bool call_writer::begin(std::size_t size) {
  if (wrong_ != nullptr) return false;
  if (size > max_size - bytes_.size()) {
    code_ = errc::no_space;
    wrong_ = "the values have more than 1 MiB";
    return false;
  }
  if (depth_ == 0) {
    ++count_;
  } else {
    --missing_[depth_ - 1];
  }
  return true;
}

/// Appends what another writer wrote.
void call_writer::append(std::span<const std::byte> values) {
  if (!begin(values.size())) return;
  bytes_.insert(bytes_.end(), values.begin(), values.end());
}

/// Leaves the lists and maps that are full now.
call_writer& call_writer::end() {
  while (depth_ > 0 && missing_[depth_ - 1] == 0) --depth_;
  return *this;
}

void call_writer::nest(std::size_t values) {
  if (depth_ == max_depth) {
    code_ = errc::invalid_argument;
    wrong_ = "more than 16 lists and maps are within each other";
    return;
  }
  missing_[depth_++] = values;
  end();
}

call_writer& call_writer::nil() {
  if (!begin(1)) return *this;
  sink to{bytes_};
  msgpack::packer<sink>(to).pack_nil();
  return end();
}

call_writer& call_writer::boolean(bool value) {
  if (!begin(1)) return *this;
  sink to{bytes_};
  msgpack::packer<sink> packer(to);
  value ? packer.pack_true() : packer.pack_false();
  return end();
}

call_writer& call_writer::integer(std::int64_t value) {
  if (value >= 0) return unsigned_integer(static_cast<std::uint64_t>(value));
  if (!begin(size_of_negative(value))) return *this;
  sink to{bytes_};
  msgpack::packer<sink>(to).pack_int64(value);
  return end();
}

call_writer& call_writer::unsigned_integer(std::uint64_t value) {
  if (!begin(size_of_unsigned(value))) return *this;
  sink to{bytes_};
  msgpack::packer<sink>(to).pack_uint64(value);
  return end();
}

call_writer& call_writer::float32(float value) {
  if (!begin(5)) return *this;
  put_float(bytes_, 0xca, std::bit_cast<std::uint32_t>(value));
  return end();
}

call_writer& call_writer::float64(double value) {
  if (!begin(9)) return *this;
  put_float(bytes_, 0xcb, std::bit_cast<std::uint64_t>(value));
  return end();
}

call_writer& call_writer::text(std::string_view value) {
  const std::size_t size = value.size();
  if (!begin(with_content(size_of_length(size, 32, 256), size))) return *this;
  if (detail::valid_utf8(value) != size) {
    code_ = errc::invalid_argument;
    wrong_ = "a text is not UTF-8";
    return *this;
  }
  sink to{bytes_};
  msgpack::packer<sink> packer(to);
  packer.pack_str(static_cast<std::uint32_t>(size));
  packer.pack_str_body(value.data(), static_cast<std::uint32_t>(size));
  return end();
}

call_writer& call_writer::bytes(std::span<const std::byte> value) {
  const std::size_t size = value.size();
  if (!begin(with_content(size_of_length(size, 0, 256), size))) return *this;
  sink to{bytes_};
  msgpack::packer<sink> packer(to);
  packer.pack_bin(static_cast<std::uint32_t>(size));
  packer.pack_bin_body(reinterpret_cast<const char*>(value.data()),
                       static_cast<std::uint32_t>(size));
  return end();
}

call_writer& call_writer::list(std::size_t count) {
  // An element has one byte at least.
  if (!begin(with_content(size_of_length(count, 16, 16), count))) return *this;
  sink to{bytes_};
  msgpack::packer<sink>(to).pack_array(static_cast<std::uint32_t>(count));
  nest(count);
  return *this;
}

call_writer& call_writer::map(std::size_t pairs) {
  const std::size_t values = pairs > max_size ? pairs : 2 * pairs;
  if (!begin(with_content(size_of_length(pairs, 16, 16), values))) return *this;
  sink to{bytes_};
  msgpack::packer<sink>(to).pack_map(static_cast<std::uint32_t>(pairs));
  nest(values);
  return *this;
}

call_writer& call_writer::window(std::span<std::byte> memory, access granted) {
  if (!begin(1)) return *this;
  if (windows_.size() == max_windows || depth_ != 0) {
    code_ = errc::invalid_argument;
    wrong_ = depth_ != 0 ? "a window is within a list or map" : "a call has more than 8 windows";
    return *this;
  }
  windows_.push_back({bytes_.size(), memory, granted});
  return end();
}

/// The value is the number of the part.
call_writer& call_writer::add_part(detail::sent_part next) {
  if (wrong_ != nullptr) return *this;
  if (parts_.size() == max_parts) {
    code_ = errc::invalid_argument;
    wrong_ = "a call has memory beside it in more than 8 parts";
    return *this;
  }
  parts_.push_back(std::move(next));
  return unsigned_integer(parts_.size() - 1);
}

call_writer& call_writer::memory(std::span<const std::byte> bytes) {
  return add_part({.bytes = bytes});
}

std::span<const std::byte> call_writer::written(std::error_code& ec) const& {
  const char* why = wrong_;
  if (why == nullptr && depth_ != 0) why = "a list or map has fewer values than it was begun with";
  if (why == nullptr && !windows_.empty()) {
    why = "a window is the argument of a call over a connection that is answered";
  }
  std::error_code outcome;
  if (why != nullptr) outcome = wrong_ != nullptr ? code_ : errc::invalid_argument;
  detail::end_with(outcome, ec,
                   [&] { return std::string("writing the values of a call: ") + why; });
  return outcome ? std::span<const std::byte>() : std::span<const std::byte>(bytes_);
}

}  // namespace ucx
