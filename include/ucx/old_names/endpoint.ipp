// Of ucx::endpoint, for one version: the constructor by host and port, and the forms whose error
// code does not come last. Included within the class.

/// A template, so that braces stand for a `peer_address`.
template <std::convertible_to<std::string_view> Host>
[[deprecated("endpoint(worker, {host, port})")]] endpoint(const worker& parent, const Host& host,
                                                          std::uint16_t port,
                                                          endpoint_options options = {},
                                                          std::error_code& ec = throws)
    : endpoint(parent, peer_address(host, port), std::move(options), ec) {}

[[deprecated("the error code comes last")]] void flush(std::error_code& ec,
                                                       const io_options& options = {}) {
  flush(options, ec);
}
[[deprecated("the error code comes last")]] void send(std::uint64_t tag,
                                                      std::span<const std::byte> bytes,
                                                      std::error_code& ec,
                                                      const send_options& options = {}) {
  send(tag, bytes, options, ec);
}
[[deprecated("the error code comes last")]] void send_parts(
    std::uint64_t tag, std::span<const std::span<const std::byte>> parts, std::error_code& ec,
    const send_options& options = {}) {
  send_parts(tag, parts, options, ec);
}
[[deprecated("the error code comes last")]] message_info receive(const tag_match& wanted,
                                                                 std::span<std::byte> into,
                                                                 std::error_code& ec,
                                                                 const io_options& options = {}) {
  return receive(wanted, into, options, ec);
}
[[deprecated("the error code comes last")]] void send_message(std::uint64_t number,
                                                              std::span<const std::byte> header,
                                                              std::span<const std::byte> bytes,
                                                              std::error_code& ec,
                                                              const send_options& options = {}) {
  send_message(number, header, bytes, options, ec);
}
[[deprecated("the error code comes last")]] void stream_send(std::span<const std::byte> bytes,
                                                             std::error_code& ec,
                                                             const send_options& options = {}) {
  stream_send(bytes, options, ec);
}
[[deprecated("the error code comes last")]] std::size_t stream_receive(
    std::span<std::byte> into, stream_amount amount, std::error_code& ec,
    const io_options& options = {}) {
  return stream_receive(into, amount, options, ec);
}
[[deprecated("the error code comes last")]] void post_send(std::uint64_t tag,
                                                           std::span<const std::byte> bytes,
                                                           std::uint64_t key, std::error_code& ec,
                                                           const send_options& options = {}) {
  post_send(tag, bytes, key, options, ec);
}
[[deprecated("the error code comes last")]] void post_send(
    std::uint64_t tag, std::span<const std::span<const std::byte>> bytes, std::uint64_t key,
    std::error_code& ec, const send_options& options = {}) {
  post_send(tag, bytes, key, options, ec);
}
[[deprecated("the error code comes last")]] void post_send(std::uint64_t tag, buffer&& bytes,
                                                           std::uint64_t key, std::error_code& ec,
                                                           const send_options& options = {}) {
  post_send(tag, std::move(bytes), key, options, ec);
}
[[deprecated("the error code comes last")]] void post_send_parts(
    std::uint64_t tag, std::span<const std::span<const std::byte>> parts, std::uint64_t key,
    std::error_code& ec, const send_options& options = {}) {
  post_send_parts(tag, parts, key, options, ec);
}
[[deprecated("the error code comes last")]] void post_send_message(
    std::uint64_t number, std::span<const std::byte> header, std::span<const std::byte> bytes,
    std::uint64_t key, std::error_code& ec, const send_options& options = {}) {
  post_send_message(number, header, bytes, key, options, ec);
}
[[deprecated("the error code comes last")]] void post_send_message(
    std::uint64_t number, std::span<const std::byte> header,
    std::span<const std::span<const std::byte>> bytes, std::uint64_t key, std::error_code& ec,
    const send_options& options = {}) {
  post_send_message(number, header, bytes, key, options, ec);
}
[[deprecated("the error code comes last")]] void post_send_message(
    std::uint64_t number, std::span<const std::byte> header, buffer&& bytes, std::uint64_t key,
    std::error_code& ec, const send_options& options = {}) {
  post_send_message(number, header, std::move(bytes), key, options, ec);
}
