// Of ucx::worker, for one version: the forms whose error code does not come last, receives of
// before `receive_target`, and an adoption that takes. Included within the class.

[[deprecated("the error code comes last")]] void flush(std::error_code& ec,
                                                       const io_options& options = {}) {
  flush(options, ec);
}
[[deprecated("the error code comes last")]] message_info receive(const tag_match& wanted,
                                                                 std::span<std::byte> into,
                                                                 std::error_code& ec,
                                                                 const io_options& options = {}) {
  return receive(wanted, into, options, ec);
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
[[deprecated("next_timeout()")]] std::chrono::nanoseconds next_deadline() const {
  return next_timeout();
}
[[deprecated("adopt(parent, made, ownership::take)")]] static worker adopt(
    const context& parent, ucp_worker* made, const worker_options& options = {},
    std::error_code& ec = throws) {
  return adopt(parent, made, ownership::take, options, ec);
}
