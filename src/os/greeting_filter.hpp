// The filter of the system at a port where connections begin. It lets through to UCX what can be
// UCX's greeting.
#pragma once

#include <cstddef>
#include <span>

struct sock_filter;

namespace ucx::detail::greeting_filter {

/// A peer of UCX's begins with this header: the length of what follows, and 0. UCX 1.13.1 ends the
/// process where more comes than the header says, which 100 zero bytes of a port scanner do.
inline constexpr std::size_t header_size = 16;
/// The shortest greeting: behind the header a number of eight bytes, one that says how it goes on,
/// and an address. A header of zeros alone is what a peer sends when it has been answered.
inline constexpr std::size_t least_greeting = header_size + 10;
/// The longest one: UCX has room for the header twice and 2048 bytes (TCP_CM_PRIV_DATA_LEN). It
/// would wait for the rest of a longer one without rest, on all of a processor.
inline constexpr std::size_t longest_greeting = 2 * header_size + 2048;
/// A greeting that needs several segments fills the first one; this is less than any network has.
inline constexpr std::size_t least_full_segment = 500;

/// Returns the filter: classic BPF, for what begins with a TCP header.
std::span<const ::sock_filter> program() noexcept;

/// Has the system filter each segment for `listening`, and for connections that it lets in from now
/// on. The filter comes before TCP: a dropped segment was never received. The filter has no memory,
/// and judges each segment as if it were a connection's first. So the rest of a greeting that needs
/// several is dropped, and comes again, until `detach()`. Returns false where the system can not.
bool attach(int listening) noexcept;

/// Lets everything through, once a connection has begun with a greeting.
void detach(int connection) noexcept;

}  // namespace ucx::detail::greeting_filter
