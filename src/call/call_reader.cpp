#include "ucx/call_reader.hpp"

#include <bit>

#include "base/name.hpp"
#include "base/result.hpp"

namespace ucx {

enum class call_reader::kind : std::uint8_t {
  none,  ///< No byte is left.
  cut,   ///< The rest ends within the beginning of a value.
  nil,
  boolean,
  natural,
  negative,
  float32,
  float64,
  text,
  bytes,
  list,
  map,
  foreign,  ///< MessagePack's, but of no call.
};

/// The beginning of a value: all of it but what a text, bytes, a list or a map has in it.
struct call_reader::head {
  call_reader::kind what = {};
  std::uint64_t number = 0;  ///< The value, or the length.
  std::size_t size = 1;      ///< Bytes of this beginning.
};

namespace {

std::uint64_t big_endian(std::span<const std::byte> bytes) noexcept {
  std::uint64_t value = 0;
  for (const std::byte each : bytes) value = value << 8U | std::to_integer<std::uint64_t>(each);
  return value;
}

/// Returns the number whose sign is the first of `size` bytes' first bit.
std::uint64_t sign_extended(std::uint64_t value, std::size_t size) noexcept {
  const std::uint64_t sign = std::uint64_t{1} << (8 * size - 1);
  return (value ^ sign) - sign;
}

}  // namespace

call_reader::head call_reader::head_of(std::span<const std::byte> rest) noexcept {
  if (rest.empty()) return {kind::none};
  const auto first = std::to_integer<unsigned>(rest[0]);
  if (first < 0x80) return {kind::natural, first};
  if (first < 0x90) return {kind::map, first & 0x0fU};
  if (first < 0xa0) return {kind::list, first & 0x0fU};
  if (first < 0xc0) return {kind::text, first & 0x1fU};
  if (first >= 0xe0) return {kind::negative, sign_extended(first, 1)};
  struct form {
    kind what;
    std::uint8_t size;  // of the number
  };
  constexpr form forms[]{
      {kind::nil, 0},      {kind::foreign, 0},  {kind::boolean, 0},  {kind::boolean, 0},
      {kind::bytes, 1},    {kind::bytes, 2},    {kind::bytes, 4},    {kind::foreign, 0},
      {kind::foreign, 0},  {kind::foreign, 0},  {kind::float32, 4},  {kind::float64, 8},
      {kind::natural, 1},  {kind::natural, 2},  {kind::natural, 4},  {kind::natural, 8},
      {kind::negative, 1}, {kind::negative, 2}, {kind::negative, 4}, {kind::negative, 8},
      {kind::foreign, 0},  {kind::foreign, 0},  {kind::foreign, 0},  {kind::foreign, 0},
      {kind::foreign, 0},  {kind::text, 1},     {kind::text, 2},     {kind::text, 4},
      {kind::list, 2},     {kind::list, 4},     {kind::map, 2},      {kind::map, 4}};
  const form found = forms[first - 0xc0];
  if (found.what == kind::boolean) return {kind::boolean, first & 1U};
  if (rest.size() <= found.size) return {kind::cut};
  head made{found.what, big_endian(rest.subspan(1, found.size)), std::size_t{1} + found.size};
  if (made.what == kind::negative) {
    made.number = sign_extended(made.number, found.size);
    if (std::bit_cast<std::int64_t>(made.number) >= 0) made.what = kind::natural;
  }
  return made;
}

std::string_view call_reader::name_of(kind value) noexcept {
  switch (value) {
    case kind::none:
      return "the end";
    case kind::cut:
      return "a part of a value";
    case kind::nil:
      return "nil";
    case kind::boolean:
      return "a boolean";
    case kind::natural:
      return "an integer";
    case kind::negative:
      return "a negative integer";
    case kind::float32:
      return "a float of 32 bits";
    case kind::float64:
      return "a float of 64 bits";
    case kind::text:
      return "a text";
    case kind::bytes:
      return "bytes";
    case kind::list:
      return "a list";
    case kind::map:
      return "a map";
    case kind::foreign:
      break;
  }
  return "a value of no call";
}

call_reader::call_reader(std::span<const std::byte> bytes) noexcept : bytes_(bytes) {}

void call_reader::fail(std::string_view why) {
  if (!ok()) return;
  wrong_ = "at byte " + std::to_string(at_) + ": ";
  wrong_ += why;
}

void call_reader::expected(std::string_view wanted, kind there) {
  fail(std::string(wanted) + " is expected, and " + std::string(name_of(there)) + " is there");
}

bool call_reader::claim(std::size_t count, std::size_t size) {
  if (!ok()) return false;
  const std::size_t left = max_memory - memory_;
  if (size != 0 && count > left / size) {
    fail("the values take more than 64 MiB of memory");
    return false;
  }
  memory_ += count * size;
  return true;
}

/// Reads `next`, whose content, if any, has not been looked at.
bool call_reader::take_head(const head& next) {
  at_ += next.size;
  if (depth_ > 0) {
    --missing_[depth_ - 1];
    --all_missing_;
  }
  if (next.what == kind::list || next.what == kind::map) return take_values(next);
  while (depth_ > 0 && missing_[depth_ - 1] == 0) --depth_;
  return true;
}

/// Enters a list or map.
bool call_reader::take_values(const head& next) {
  // Each value has a byte at least, also those of the lists around this one.
  const std::uint64_t values = next.what == kind::map ? 2 * next.number : next.number;
  if (values > bytes_.size() - at_ || all_missing_ > bytes_.size() - at_ - values) {
    fail("a list or map has more values than bytes are left");
    return false;
  }
  if (depth_ == missing_.size()) {
    fail("more than 16 lists and maps are within each other");
    return false;
  }
  missing_[depth_++] = static_cast<std::size_t>(values);
  all_missing_ += static_cast<std::size_t>(values);
  while (depth_ > 0 && missing_[depth_ - 1] == 0) --depth_;
  return true;
}

bool call_reader::take(kind wanted, std::uint64_t& number) {
  if (!ok()) return false;
  const head next = head_of(bytes_.subspan(at_));
  if (next.what != wanted) {
    expected(name_of(wanted), next.what);
    return false;
  }
  number = next.number;
  return take_head(next);
}

/// Reads the content of a text or of bytes.
std::span<const std::byte> call_reader::content(std::uint64_t size) {
  if (size > bytes_.size() - at_) {
    fail("a text or bytes are longer than what is left");
    return {};
  }
  const auto found = bytes_.subspan(at_, static_cast<std::size_t>(size));
  at_ += found.size();
  return found;
}

bool call_reader::nil() {
  std::uint64_t none = 0;
  return ok() && head_of(bytes_.subspan(at_)).what == kind::nil && take(kind::nil, none);
}

bool call_reader::boolean() {
  std::uint64_t value = 0;
  return take(kind::boolean, value) && value != 0;
}

std::int64_t call_reader::integer(std::int64_t least, std::int64_t most) {
  if (!ok()) return 0;
  const head next = head_of(bytes_.subspan(at_));
  const auto value = std::bit_cast<std::int64_t>(next.number);
  if (next.what != kind::natural && next.what != kind::negative) {
    expected("an integer", next.what);
  } else if ((next.what == kind::natural && value < 0) || value < least || value > most) {
    fail("an integer is out of range");
  } else {
    take_head(next);
    return value;
  }
  return 0;
}

std::uint64_t call_reader::unsigned_integer(std::uint64_t most) {
  if (!ok()) return 0;
  const head next = head_of(bytes_.subspan(at_));
  if (next.what != kind::natural) {
    expected("an integer that is not negative", next.what);
  } else if (next.number > most) {
    fail("an integer is out of range");
  } else {
    take_head(next);
    return next.number;
  }
  return 0;
}

float call_reader::float32() {
  std::uint64_t bits = 0;
  if (!take(kind::float32, bits)) return 0;
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
}

double call_reader::float64() {
  std::uint64_t bits = 0;
  return take(kind::float64, bits) ? std::bit_cast<double>(bits) : 0;
}

std::string_view call_reader::text() {
  std::uint64_t size = 0;
  if (!take(kind::text, size)) return {};
  const auto found = content(size);
  const std::string_view made(reinterpret_cast<const char*>(found.data()), found.size());
  if (detail::valid_utf8(made) != made.size()) {
    fail("a text is not UTF-8");
    return {};
  }
  return made;
}

std::span<const std::byte> call_reader::bytes() {
  std::uint64_t size = 0;
  return take(kind::bytes, size) ? content(size) : std::span<const std::byte>();
}

detail::landed_part* call_reader::named_part() {
  const std::uint64_t number = unsigned_integer();
  if (!ok()) return nullptr;
  if (number >= parts_.size()) {
    fail("the memory before is not there");
    return nullptr;
  }
  const std::uint32_t bit = std::uint32_t{1} << number;
  if ((named_ & bit) != 0) {
    fail("the memory before stands twice");
    return nullptr;
  }
  named_ |= bit;
  detail::landed_part& named = parts_[static_cast<std::size_t>(number)];
  if (!named.owner && named.bytes.data() == nullptr) {
    fail("the memory before was taken by another reader");
    return nullptr;
  }
  return &named;
}

std::span<std::byte> call_reader::memory() {
  const detail::landed_part* const named = named_part();
  return named != nullptr ? named->bytes : std::span<std::byte>();
}

std::size_t call_reader::list() {
  std::uint64_t count = 0;
  return take(kind::list, count) ? static_cast<std::size_t>(count) : 0;
}

std::size_t call_reader::map() {
  std::uint64_t pairs = 0;
  return take(kind::map, pairs) ? static_cast<std::size_t>(pairs) : 0;
}

void call_reader::skip() {
  has_skipped_ = true;
  const std::size_t around = all_missing_ > 0 ? all_missing_ - 1 : 0;
  do {
    if (!ok()) return;
    const head next = head_of(bytes_.subspan(at_));
    switch (next.what) {
      case kind::none:
      case kind::cut:
      case kind::foreign:
        expected("a value", next.what);
        break;
      case kind::text:
        text();
        break;
      case kind::bytes:
        bytes();
        break;
      default:
        take_head(next);
    }
  } while (all_missing_ > around);
}

void call_reader::finish(std::error_code& ec) {
  if (at_ != bytes_.size()) fail("more values are there than are expected");
  const std::uint32_t all = (std::uint32_t{1} << parts_.size()) - 1;
  if (!has_skipped_ && named_ != all) fail("memory is there that no value names");
  if (all_missing_ != 0) fail("a list or map has more values than were read");
  const auto outcome = ok() ? std::error_code() : make_error_code(errc::protocol_error);
  detail::end_with(outcome, ec, [&] { return "reading the values of a call: " + wrong_; });
}

}  // namespace ucx
