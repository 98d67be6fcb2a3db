// Of ucx::message, for one version: receives of before `receive_target`. Included within the class.

[[deprecated("the error code comes last")]] void receive(std::span<std::byte> into,
                                                         std::error_code& ec,
                                                         const io_options& options = {}) {
  receive(into, options, ec);
}
[[deprecated("start_receive({made, max_size})")]] request start_receive(
    buffer& made, std::size_t most, const io_options& options = {}) {
  return start_receive({made, most}, options);
}
[[deprecated("start_receive({made, pool})")]] request start_receive(
    buffer& made, buffer_pool& pool, const io_options& options = {}) {
  return start_receive({made, pool}, options);
}
[[deprecated("start_receive({made, max_size})")]] request start_receive(
    message_parts& made, std::size_t most, const io_options& options = {}) {
  return start_receive({made, most}, options);
}
[[deprecated("start_receive({made, from, max_size, missing})")]] request start_receive(
    buffer& made, const memory_resources& from, std::size_t most,
    missing_resource missing = missing_resource::fallback, const io_options& options = {}) {
  return start_receive({made, from, most, missing}, options);
}
