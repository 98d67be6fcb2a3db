// Of ucx::endpoint, for one version: the constructor by host and port, the forms whose error code
// does not come last, and messages of before `message_destination`, `payload` and `receive_target`.
// Included within the class.

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
[[deprecated("the error code comes last")]] void send(std::uint64_t tag, const payload& what,
                                                      std::error_code& ec,
                                                      const send_options& options = {}) {
  send(tag, what, options, ec);
}
[[deprecated("the error code comes last")]] message_info receive(const tag_match& wanted,
                                                                 std::span<std::byte> into,
                                                                 std::error_code& ec,
                                                                 const io_options& options = {}) {
  return receive(wanted, into, options, ec);
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
[[deprecated("the error code comes last")]] void post_send(std::uint64_t tag, const payload& what,
                                                           std::uint64_t key, std::error_code& ec,
                                                           const send_options& options = {}) {
  post_send(tag, what, key, options, ec);
}
template <std::integral Count>
[[deprecated("start_receive(wanted, {made, max_size})")]] request start_receive(
    const tag_match& wanted, buffer& made, Count most, const io_options& options = {}) {
  return start_receive(wanted, {made, static_cast<std::size_t>(most)}, options);
}
[[deprecated("start_receive(wanted, {made, pool})")]] request start_receive(
    const tag_match& wanted, buffer& made, buffer_pool& pool, const io_options& options = {}) {
  return start_receive(wanted, {made, pool}, options);
}
template <std::integral Count>
[[deprecated("start_receive(wanted, {made, max_size})")]] request start_receive(
    const tag_match& wanted, message_parts& made, Count most, const io_options& options = {}) {
  return start_receive(wanted, {made, static_cast<std::size_t>(most)}, options);
}
[[deprecated("start_send(tag, payload::parts(parts))")]] request start_send_parts(
    std::uint64_t tag, std::span<const std::span<const std::byte>> parts,
    const send_options& options = {}) {
  return start_send(tag, payload::parts(parts), options);
}
[[deprecated("send(tag, payload::parts(parts))")]] void send_parts(
    std::uint64_t tag, std::span<const std::span<const std::byte>> parts,
    const send_options& options = {}, std::error_code& ec = throws) {
  send(tag, payload::parts(parts), options, ec);
}
[[deprecated("send(tag, payload::parts(parts), options, ec)")]] void send_parts(
    std::uint64_t tag, std::span<const std::span<const std::byte>> parts, std::error_code& ec,
    const send_options& options = {}) {
  send(tag, payload::parts(parts), options, ec);
}
[[deprecated("post_send(tag, payload::parts(parts), key)")]] void post_send_parts(
    std::uint64_t tag, std::span<const std::span<const std::byte>> parts, std::uint64_t key,
    const send_options& options = {}, std::error_code& ec = throws) {
  post_send(tag, payload::parts(parts), key, options, ec);
}
[[deprecated("post_send(tag, payload::parts(parts), key, options, ec)")]] void post_send_parts(
    std::uint64_t tag, std::span<const std::span<const std::byte>> parts, std::uint64_t key,
    std::error_code& ec, const send_options& options = {}) {
  post_send(tag, payload::parts(parts), key, options, ec);
}
[[deprecated("start_send(active_message{number, header}, what)")]] request start_send_message(
    std::uint64_t number, std::span<const std::byte> header, const payload& what,
    const send_options& options = {}) {
  return start_send(active_message{number, header}, what, options);
}
[[deprecated("send(active_message{number, header}, what)")]] void send_message(
    std::uint64_t number, std::span<const std::byte> header, const payload& what,
    const send_options& options = {}, std::error_code& ec = throws) {
  send(active_message{number, header}, what, options, ec);
}
[[deprecated("send(active_message{number, header}, what, options, ec)")]] void send_message(
    std::uint64_t number, std::span<const std::byte> header, const payload& what,
    std::error_code& ec, const send_options& options = {}) {
  send(active_message{number, header}, what, options, ec);
}
[[deprecated("post_send(active_message{number, header}, what, key)")]] void post_send_message(
    std::uint64_t number, std::span<const std::byte> header, const payload& what, std::uint64_t key,
    const send_options& options = {}, std::error_code& ec = throws) {
  post_send(active_message{number, header}, what, key, options, ec);
}
[[deprecated("post_send(active_message{number, header}, what, key, options, ec)")]] void
post_send_message(std::uint64_t number, std::span<const std::byte> header, const payload& what,
                  std::uint64_t key, std::error_code& ec, const send_options& options = {}) {
  post_send(active_message{number, header}, what, key, options, ec);
}
[[deprecated("max_header_size()")]] std::size_t longest_header() const noexcept {
  return max_header_size();
}
