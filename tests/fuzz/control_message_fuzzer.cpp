#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "wire/control_message.hpp"

/// Every decoder reads every message; a message is of one type at most.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ucx::detail;
  const std::span<const std::byte> wire(reinterpret_cast<const std::byte*>(data), size);
  const int accepted = decode_hello(wire).has_value() + decode_welcome(wire).has_value() +
                       decode_open(wire).has_value() + decode_opened(wire).has_value() +
                       decode_stat(wire).has_value() + decode_described(wire).has_value() +
                       decode_list(wire).has_value() + decode_listed(wire).has_value() +
                       decode_revoke(wire).has_value() + decode_create(wire).has_value() +
                       decode_commit(wire).has_value() + decode_release(wire).has_value() +
                       decode_remove(wire).has_value() + decode_rename(wire).has_value() +
                       decode_resize(wire).has_value() + decode_measure(wire).has_value() +
                       decode_digest(wire).has_value() + decode_digested(wire).has_value() +
                       decode_put(wire).has_value() + decode_stored(wire).has_value() +
                       decode_fetch(wire).has_value() + decode_fetched(wire).has_value() +
                       decode_make_directory(wire).has_value() + decode_lend(wire).has_value();
  if (refuse_unknown(wire) && decode_control(wire)) std::abort();
  if (accepted > 1 || (accepted == 1 && !decode_control(wire))) std::abort();
  if (const auto listed = decode_listed(wire)) {
    control_header header;
    header.type = control_type::listed;
    const auto again = decode_listed(encode_control(header, *listed));
    if (!again || again->entries != listed->entries) std::abort();
  }
  return 0;
}
