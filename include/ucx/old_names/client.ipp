// Of ucx::client, for one version: the forms whose error code does not come last, and what has
// another name or form now. Included within the class.

[[deprecated("the error code comes last")]] std::vector<entry> list(
    std::error_code& ec, const io_options& options = {}) {
  return list(options, ec);
}
[[deprecated("the error code comes last")]] entry stat(std::string_view name, std::error_code& ec,
                                                       const io_options& options = {}) {
  return stat(name, options, ec);
}
[[deprecated("the error code comes last")]] remote_region open(std::string_view name, access wanted,
                                                               std::error_code& ec,
                                                               const io_options& options = {}) {
  return open(name, wanted, options, ec);
}
[[deprecated("the error code comes last")]] directory_listing list_directory(
    std::string_view directory, std::error_code& ec, const io_options& options = {}) {
  return list_directory(directory, options, ec);
}
[[deprecated("the error code comes last")]] remote_region create(std::string_view name,
                                                                 const create_options& how,
                                                                 std::error_code& ec,
                                                                 const io_options& options = {}) {
  return create(name, how, options, ec);
}
[[deprecated("the error code comes last")]] entry commit(remote_region& file, bool durable,
                                                         std::error_code& ec,
                                                         const io_options& options = {}) {
  return commit(file, commit_options{.durable = durable}, options, ec);
}
[[deprecated("the error code comes last")]] entry commit(remote_region&& file, bool durable,
                                                         std::error_code& ec,
                                                         const io_options& options = {}) {
  return commit(file, commit_options{.durable = durable, .close = true}, options, ec);
}
[[deprecated("the error code comes last")]] entry measure(remote_region& file, std::uint64_t known,
                                                          std::chrono::nanoseconds wait,
                                                          std::error_code& ec,
                                                          const io_options& options = {}) {
  return refresh_size(file, known, wait, options, ec);
}
[[deprecated("the error code comes last")]] std::vector<content_digest> digest(
    remote_region& file, const digest_range& wanted, std::error_code& ec,
    const io_options& options = {}) {
  return digest(file, wanted, options, ec);
}
[[deprecated("the error code comes last")]] void remove(std::string_view name, std::error_code& ec,
                                                        const io_options& options = {}) {
  remove(name, options, ec);
}
[[deprecated("the error code comes last")]] void rename(std::string_view from, std::string_view to,
                                                        std::error_code& ec,
                                                        const io_options& options = {}) {
  rename(from, to, options, ec);
}
[[deprecated("the error code comes last")]] void resize(std::string_view name, std::uint64_t size,
                                                        std::error_code& ec,
                                                        const io_options& options = {}) {
  resize(name, size, options, ec);
}
[[deprecated("the error code comes last")]] void resize(remote_region& file, std::uint64_t size,
                                                        std::error_code& ec,
                                                        const io_options& options = {}) {
  resize(file, size, options, ec);
}

// A template, so that {} is commit_options.
template <std::same_as<bool> Durable>
[[deprecated("commit(file, {.durable = true})")]] entry commit(remote_region& file, Durable durable,
                                                               const io_options& options = {},
                                                               std::error_code& ec = throws) {
  return commit(file, commit_options{.durable = durable}, options, ec);
}
[[deprecated("commit(file, {.close = true})")]] entry commit(remote_region&& file,
                                                             bool durable = false,
                                                             const io_options& options = {},
                                                             std::error_code& ec = throws) {
  return commit(file, commit_options{.durable = durable, .close = true}, options, ec);
}
[[deprecated("client::shared, or another client")]] client reconnected(
    std::error_code& ec = throws) const {
  return detail::reconnected(*this, ec);
}
[[deprecated("stream_options::connections, or another client")]] client lane(
    std::size_t number, std::error_code& ec = throws) const {
  return detail::further_client(*this, number, ec);
}
[[deprecated("refresh_size()")]] entry measure(
    remote_region& file, std::uint64_t known = 0,
    std::chrono::nanoseconds wait = std::chrono::nanoseconds::zero(),
    const io_options& options = {}, std::error_code& ec = throws) {
  return refresh_size(file, known, wait, options, ec);
}
[[deprecated("set_shared_idle_timeout()")]] static void linger(std::chrono::nanoseconds timeout) {
  set_shared_idle_timeout(timeout);
}
