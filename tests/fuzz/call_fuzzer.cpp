#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory_resource>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <vector>

#include "call/call_memory.hpp"
#include "call/call_message.hpp"
#include "ucx/memory_resources.hpp"
#include "ucx/rpc.hpp"

/// Functions here have memory of the host alone: the library's has the driver behind it.
std::pmr::memory_resource* ucx::memory_resources::find(memory_kind) const noexcept {
  return nullptr;
}

namespace {

struct point {
  double x = 0;
  double y = 0;
};
struct shape {
  std::string name;
  std::vector<point> corners;
  std::optional<std::int8_t> fill;
};

}  // namespace

template <>
struct ucx::call_fields<point> {
  static constexpr std::string_view name = "point";
  static constexpr std::tuple fields{ucx::call_field("x", &point::x),
                                     ucx::call_field("y", &point::y)};
};
template <>
struct ucx::call_fields<shape> {
  static constexpr std::string_view name = "shape";
  static constexpr std::tuple fields{ucx::call_field("name", &shape::name),
                                     ucx::call_field("corners", &shape::corners),
                                     ucx::call_field("fill", &shape::fill)};
};

namespace {

using large = std::optional<std::array<std::uint64_t, 1000>>;
using table = std::map<std::string, std::vector<std::optional<std::uint16_t>>>;

constexpr std::string_view dynamic_signature = "(list<map<text,bytes>>)->u64";

ucx::call_table made_table() {
  ucx::call_table calls;
  calls.add("add", [](int a, int b) { return std::int64_t{a} + b; });
  calls.add("shape", [](shape value, std::string_view name) {
    value.name = name;
    return value;
  });
  calls.add("table", [](const table& value, std::vector<bool> bits) {
    if (bits.size() > 3) throw std::runtime_error(std::string(2000, '\xff'));
    return value;
  });
  calls.add("large", [](const std::vector<large>& values) { return values.size(); });
  calls.add_dynamic("dynamic", dynamic_signature,
                    [](ucx::call_context&, ucx::call_reader& from, ucx::call_writer& to) {
                      std::uint64_t size = 0;
                      for (std::size_t left = from.list(); left > 0 && from.ok(); --left) {
                        for (std::size_t pairs = from.map(); pairs > 0; --pairs) {
                          size += from.text().size() + from.bytes().size();
                        }
                      }
                      to.unsigned_integer(size);
                    });
  return calls;
}

/// The functions of the table, so that hashes fit.
std::array<ucx::call_function, 5> functions() {
  using namespace ucx;
  return {remote_procedure<std::int64_t(int, int)>("add").untyped(),
          remote_procedure<shape(shape, std::string)>("shape").untyped(),
          remote_procedure<table(table, std::vector<bool>)>("table").untyped(),
          remote_procedure<std::size_t(std::vector<large>)>("large").untyped(),
          call_function("dynamic", dynamic_signature)};
}

/// An answer that this library made is read by it.
void check(const ucx::call_function& called, const std::vector<std::byte>& answer) {
  std::error_code ec;
  ucx::call_reader result = called.decode(answer, ec);
  if (ec) return;
  result.skip();
  result.finish(ec);
  if (ec) std::abort();
}

/// The number by which a table knows a function, as the answer to a binding tells it.
std::uint64_t number_of(const ucx::call_table& calls, const ucx::call_function& bound) {
  std::vector<std::byte> binding = bound.encode(ucx::call_writer());
  binding[1] = std::byte{4};
  ucx::call_context context;
  const std::vector<std::byte> answer = calls.dispatch(binding, context);
  return bound.decode(answer).unsigned_integer();
}

/// The head of a call by number.
std::vector<std::byte> bound_head(std::uint64_t function) {
  std::vector<std::byte> head(40);
  head[0] = std::byte{1};
  head[1] = std::byte{3};
  head[2] = std::byte{40};
  for (std::size_t i = 0; i < 8; ++i) head[24 + i] = static_cast<std::byte>(function >> (8 * i));
  return head;
}

/// The signature of the function that each table has.
std::string listing_signature() {
  std::string text = "(text)->";
  ucx::detail::call_type<ucx::call_listing>::describe(text);
  return text;
}

/// The result of a call that tells of functions is one.
void check_listing(const ucx::call_table& calls, std::span<const std::byte> arguments) {
  static const ucx::call_function listing(".signatures", listing_signature());
  std::vector<std::byte> call = listing.encode(ucx::call_writer());
  call.insert(call.end(), arguments.begin(), arguments.end());
  ucx::call_context context;
  const std::vector<std::byte> answer = calls.dispatch(call, context);
  std::error_code ec;
  ucx::call_reader result = listing.decode(answer, ec);
  if (ec) return;
  ucx::detail::call_type<ucx::call_listing>::read(result);
  result.finish(ec);
  if (ec) std::abort();
}

/// A clock never goes back, whatever stamps come.
void check_clock(std::span<const std::byte> wire) {
  static ucx::hybrid_clock clock;
  const ucx::clock_stamp before = clock.now();
  if (const auto parts = ucx::detail::split_message(wire)) {
    const auto merged = clock.merge(ucx::detail::clock_of(parts->head));
    if (merged && *merged <= before) std::abort();
  }
  if (clock.now() <= before) std::abort();
}

/// The table of parts: what it tells adds up, and each part is named once.
void check_parts(std::span<const std::byte> wire) {
  const auto split = ucx::detail::split_message(wire);
  const auto told = split ? ucx::detail::decode_parts(split->head)
                          : ucx::detail::result<ucx::detail::call_parts>(ucx::detail::call_parts());
  if (!told) return;
  std::uint64_t sum = 0;
  for (const auto& each : told->all()) sum += each.size;
  if (sum != told->total || (told->count > 0 && told->end > split->head.size())) std::abort();
  std::array<std::byte, 8> memory{};
  std::vector<ucx::detail::landed_part> parts;
  for (std::size_t i = 0; i < told->count; ++i) {
    parts.push_back({.bytes = std::span(memory).subspan(i, 1)});
  }
  if (!split) return;
  auto values = ucx::detail::call_memory_access::reader(split->body, parts);
  std::size_t named = 0;
  while (values.ok() && named < 9) named += values.memory().size();
  if (named > told->count) std::abort();
}

/// Functions that are read are written as they were.
void check_functions(std::span<const std::byte> values) {
  using type = ucx::detail::call_type<ucx::call_listing>;
  ucx::call_reader from(values);
  const ucx::call_listing read = type::read(from);
  if (!from.ok()) return;
  ucx::call_writer written;
  type::write(written, read);
  std::error_code ec;
  const std::span<const std::byte> bytes = written.written(ec);
  if (ec) return;  // lengths that are written shorter or longer
  ucx::call_reader again(bytes);
  if (type::read(again).functions.size() != read.functions.size() || !again.ok()) std::abort();
}

/// A text that is read is the signature.
void check_signature(std::string_view text) {
  std::error_code ec;
  const ucx::call_signature read(text, ec);
  if (!ec && read.text() != text) std::abort();
}

}  // namespace

/// The first byte chooses what the rest is: a call, the arguments of a function by name or by
/// number, an answer, the text of a signature, or what a peer tells of its functions.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const ucx::call_table calls = made_table();
  static const std::array<ucx::call_function, 5> known = functions();
  if (size == 0) return 0;
  const std::size_t choice = data[0] % (2 * known.size() + 5);
  const auto rest = std::as_bytes(std::span(data, size)).subspan(1);
  ucx::call_context context;
  if (choice < known.size()) {
    // The head of the call is intact.
    std::vector<std::byte> call = known[choice].encode(ucx::call_writer());
    call.insert(call.end(), rest.begin(), rest.end());
    check(known[choice], calls.dispatch(call, context));
  } else if (choice == 2 * known.size() + 3) {
    check_listing(calls, rest);
  } else if (choice == 2 * known.size() + 4) {
    check_functions(rest);
  } else if (choice >= known.size() + 3) {
    const ucx::call_function& called = known[choice - known.size() - 3];
    std::vector<std::byte> call = bound_head(number_of(calls, called));
    call.insert(call.end(), rest.begin(), rest.end());
    check(called, calls.dispatch(call, context));
  } else if (choice == known.size()) {
    check_clock(rest);
    check_parts(rest);
    check(known[0], calls.dispatch(rest, context));
  } else if (choice == known.size() + 1) {
    std::error_code ec;
    ucx::call_reader result = known[0].decode(rest, ec);
    if (!ec) result.skip();
  } else {
    check_signature({reinterpret_cast<const char*>(rest.data()), rest.size()});
  }
  return 0;
}
