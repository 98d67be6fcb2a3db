// Of ucx::server, for one version: the forms that had the error code in the place of the place, and
// what publications do. Included within the class.

[[deprecated("a place stands before the error code")]] publication publish(
    std::string_view name, std::span<std::byte> bytes, access granted, std::error_code& ec) {
  return publish(name, bytes, granted, std::nullopt, ec);
}
[[deprecated("write memory_place{kind, device}")]] publication publish(
    std::string_view name, std::span<std::byte> bytes, access granted,
    const detail::braced_place& expected, std::error_code& ec = throws) {
  return publish(name, bytes, granted, std::optional<memory_place>(expected), ec);
}
[[deprecated("a place stands before the error code")]] publication allocate(std::string_view name,
                                                                            std::size_t size,
                                                                            access granted,
                                                                            std::error_code& ec) {
  return allocate(name, size, granted, {}, ec);
}
/// Withdraws `name`, like `publication::close()`.
/// Errors: no_such_name.
[[deprecated("close the publication")]] void unpublish(std::string_view name,
                                                       std::error_code& ec = throws);
