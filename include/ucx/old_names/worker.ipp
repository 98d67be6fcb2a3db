// Of ucx::worker, for one version: the forms whose error code does not come last. Included within
// the class.

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
