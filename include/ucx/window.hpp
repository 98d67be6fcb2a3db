// The caller's memory as an argument of a call: docs/reference/calls.md, "Windows".
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

#include "ucx/access.hpp"
#include "ucx/call_reader.hpp"
#include "ucx/call_types.hpp"
#include "ucx/call_writer.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/error.hpp"
#include "ucx/remote_descriptor.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/version.hpp"

namespace ucx {

namespace detail {

/// A window of any rights.
class UCXIO_EXPORT untyped_window {
 public:
  /// Returns how many bytes the callee may reach. It is the caller's word: compare it with a limit
  /// before you take memory.
  std::uint64_t size() const noexcept { return size_; }
  /// Returns what the caller has told. Empty at the caller.
  const remote_descriptor& descriptor() const noexcept { return there_; }
  /// Makes the caller's memory reachable over `caller`, which is `*call_context::peer`. Sends
  /// nothing.
  /// Errors: those of `remote_region`; no_such_region: it may name memory of others, which a way
  /// of one host would reach. Its accesses fail with `revoked` when the call has ended.
  remote_region open(const endpoint& caller, const remote_region_options& options = {},
                     std::error_code& ec = throws) const;

 protected:
  explicit untyped_window(std::span<std::byte> here) noexcept : here_(here), size_(here.size()) {}
  /// Of bytes that are only read.
  explicit untyped_window(std::span<const std::byte> here) noexcept;
  explicit untyped_window(remote_descriptor there) : there_(std::move(there)), size_(there_.size) {}

  /// Reads a window with these rights.
  static remote_descriptor read(call_reader& from, access wanted);
  std::span<std::byte> here() const noexcept { return here_; }

 private:
  std::span<std::byte> here_;
  remote_descriptor there_;
  std::uint64_t size_ = 0;
};

}  // namespace detail

/// Memory of the caller that the callee may read, or fill, while the call is under way. No byte of
/// it is in the call. The caller makes it of a span, the callee gets it as an argument, and opens
/// it. It is made for one call. By message only the callee's connection reaches it, and no access
/// begins when the call has ended, even if the callee has kept it.
///
///     peer.call<double>("sum", ucx::window<ucx::access::read>(std::as_bytes(std::span(numbers))));
///
/// Its wire type is `window:r`, `window:w` or `window:rw`. A window is an argument alone: no
/// result, and no part of a list or a structure. A call has 8 at most, a posted one none.
/// Lifetime: the memory, until the call is done. A call that is given up is done when nothing uses
/// the memory any more; its destructor waits for that.
template <access Granted>
class window : public detail::untyped_window {
 public:
  /// The caller's memory, of the host. Where it is only read, it may be constant.
  using memory_type =
      std::span<std::conditional_t<Granted == access::read, const std::byte, std::byte>>;

  /// Opens the caller's memory.
  window(memory_type memory) noexcept  // NOLINT(google-explicit-constructor): it is one
      : untyped_window(memory) {}

  static constexpr access granted = Granted;

 private:
  friend struct detail::call_type<window>;
  explicit window(remote_descriptor there) : untyped_window(std::move(there)) {}
};

namespace detail {

template <access Granted>
struct call_type<window<Granted>> {
  static constexpr std::size_t depth = 0;
  static constexpr bool borrows = true;
  static void describe(std::string& text) {
    text += "window:";
    if (includes(Granted, access::read)) text += 'r';
    if (includes(Granted, access::write)) text += 'w';
  }
  static void write(call_writer& to, const window<Granted>& value) {
    to.window(value.here(), Granted);
  }
  static window<Granted> read(call_reader& from) {
    return window<Granted>(window<Granted>::read(from, Granted));
  }
};

}  // namespace detail

}  // namespace ucx
