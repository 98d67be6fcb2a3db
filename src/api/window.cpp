#include "ucx/window.hpp"

#include "base/without_const.hpp"

namespace ucx::detail {
namespace {

/// Bytes of a descriptor at most: its key has 4 KiB, and the rest less than one.
constexpr std::size_t longest_descriptor = std::size_t{5} << 10U;

}  // namespace

untyped_window::untyped_window(std::span<const std::byte> here) noexcept
    : untyped_window(without_const(here)) {}

remote_descriptor untyped_window::read(call_reader& from, access wanted) {
  const std::span<const std::byte> bytes = from.bytes();
  remote_descriptor made;
  if (!from.ok()) return made;
  if (bytes.size() > longest_descriptor) {
    from.fail("the window before is too long");
    return made;
  }
  std::error_code ec;
  made = remote_descriptor::decode(bytes, ec);
  if (ec) {
    from.fail("the window before is none: " + ec.message());
  } else if (made.foreign || !includes(made.granted, wanted)) {
    from.fail("the window before grants other rights");
  }
  return made;
}

remote_region untyped_window::open(const endpoint& caller, const remote_region_options& options,
                                   std::error_code& ec) const {
  return {caller, there_, options, ec};
}

}  // namespace ucx::detail
