// Of ucx::remote_region, for one version: the forms whose error code does not come last, a count
// that is not needed, and the two questions that `why_not` answers. Included within the class.

[[deprecated("the error code comes last")]] void read_at(std::uint64_t offset,
                                                         std::span<std::byte> into,
                                                         std::error_code& ec,
                                                         const io_options& options = {}) {
  read_at(offset, into, options, ec);
}
[[deprecated("the error code comes last")]] void write_at(std::uint64_t offset,
                                                          std::span<const std::byte> from,
                                                          std::error_code& ec,
                                                          const io_options& options = {}) {
  write_at(offset, from, options, ec);
}
[[deprecated("the error code comes last")]] void post_read_at(std::uint64_t offset,
                                                              std::span<std::byte> into,
                                                              std::error_code& ec,
                                                              const io_options& options = {}) {
  post_read_at(offset, into, options, ec);
}
[[deprecated("the error code comes last")]] void post_write_at(std::uint64_t offset,
                                                               std::span<const std::byte> from,
                                                               std::error_code& ec,
                                                               const io_options& options = {}) {
  post_write_at(offset, from, options, ec);
}
[[deprecated("the error code comes last")]] void read_batch(std::span<const read_piece> pieces,
                                                            std::error_code& ec,
                                                            const io_options& options = {}) {
  read_batch(pieces, options, ec);
}
[[deprecated("the error code comes last")]] void write_batch(std::span<const write_piece> pieces,
                                                             std::error_code& ec,
                                                             const io_options& options = {}) {
  write_batch(pieces, options, ec);
}
[[deprecated("the error code comes last")]] void notify(std::uint64_t value, std::error_code& ec,
                                                        const io_options& options = {}) {
  notify(value, options, ec);
}
[[deprecated("the error code comes last")]] void flush(std::error_code& ec,
                                                       const io_options& options = {}) {
  flush(options, ec);
}
/// Returns how many bytes written through this handle the owner has not confirmed yet.
[[deprecated("use first_unconfirmed")]] std::uint64_t unconfirmed() const;
[[deprecated("why_not(transfer_method::mapped)")]] std::string why_not_mapped() const {
  return why_not(ucx::transfer_method::mapped);
}
[[deprecated("why_not(transfer_method::cma), or cuda_ipc")]] std::string why_not_read() const {
  if (transfer_method() == ucx::transfer_method::mapped) return {};
  const bool by_driver = kind() == memory_kind::cuda || kind() == memory_kind::cuda_managed;
  return why_not(by_driver ? ucx::transfer_method::cuda_ipc : ucx::transfer_method::cma);
}
[[deprecated("transfer_method()")]] ucx::transfer_method way() const noexcept {
  return transfer_method();
}
[[deprecated("max_size()")]] std::uint64_t limit() const noexcept { return max_size(); }
[[deprecated("can_refresh_size()")]] bool measurable() const noexcept { return can_refresh_size(); }
