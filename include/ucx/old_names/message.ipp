// Of ucx::message, for one version: receives of before `receive_target`. Included within the class.

[[deprecated("the error code comes last")]] void receive(std::span<std::byte> into,
                                                         std::error_code& ec,
                                                         const io_options& options = {}) {
  receive(into, options, ec);
}
template <std::integral Count>
[[deprecated("start_receive({made, max_size})")]] request start_receive(
    buffer& made, Count most, const io_options& options = {}) {
  return start_receive({made, static_cast<std::size_t>(most)}, options);
}
[[deprecated("start_receive({made, pool})")]] request start_receive(
    buffer& made, buffer_pool& pool, const io_options& options = {}) {
  return start_receive({made, pool}, options);
}
template <std::integral Count>
[[deprecated("start_receive({made, max_size})")]] request start_receive(
    message_parts& made, Count most, const io_options& options = {}) {
  return start_receive({made, static_cast<std::size_t>(most)}, options);
}
template <std::integral Count>
[[deprecated("start_receive({made, from, max_size, missing})")]] request start_receive(
    buffer& made, const memory_resources& from, Count most,
    missing_resource missing = missing_resource::fallback, const io_options& options = {}) {
  return start_receive({made, from, static_cast<std::size_t>(most), missing}, options);
}
[[deprecated("has_payload()")]] bool is_here() const noexcept { return has_payload(); }
