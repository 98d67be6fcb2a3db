// Of ucx::remote_atomic, for one version: the forms whose error code does not come last, and a name
// for each operation that `start` starts. Included within the class.

[[deprecated("the error code comes last")]] Integer load(std::error_code& ec,
                                                         const io_options& options = {}) {
  return load(options, ec);
}
[[deprecated("the error code comes last")]] bool compare_exchange(Integer& expected,
                                                                  Integer desired,
                                                                  std::error_code& ec,
                                                                  const io_options& options = {}) {
  return compare_exchange(expected, desired, options, ec);
}
[[deprecated("the error code comes last")]] Integer exchange(Integer value, std::error_code& ec,
                                                             const io_options& options = {}) {
  return exchange(value, options, ec);
}
[[deprecated("the error code comes last")]] Integer fetch_add(Integer value, std::error_code& ec,
                                                              const io_options& options = {}) {
  return fetch_add(value, options, ec);
}
[[deprecated("the error code comes last")]] Integer fetch_and(Integer value, std::error_code& ec,
                                                              const io_options& options = {}) {
  return fetch_and(value, options, ec);
}
[[deprecated("the error code comes last")]] Integer fetch_or(Integer value, std::error_code& ec,
                                                             const io_options& options = {}) {
  return fetch_or(value, options, ec);
}
[[deprecated("the error code comes last")]] Integer fetch_xor(Integer value, std::error_code& ec,
                                                              const io_options& options = {}) {
  return fetch_xor(value, options, ec);
}
[[deprecated("the error code comes last")]] void store(Integer value, std::error_code& ec,
                                                       const io_options& options = {}) {
  store(value, options, ec);
}
[[deprecated("the error code comes last")]] void store_add(Integer value, std::error_code& ec,
                                                           const io_options& options = {}) {
  store_add(value, options, ec);
}
[[deprecated("the error code comes last")]] void store_and(Integer value, std::error_code& ec,
                                                           const io_options& options = {}) {
  store_and(value, options, ec);
}
[[deprecated("the error code comes last")]] void store_or(Integer value, std::error_code& ec,
                                                          const io_options& options = {}) {
  store_or(value, options, ec);
}
[[deprecated("the error code comes last")]] void store_xor(Integer value, std::error_code& ec,
                                                           const io_options& options = {}) {
  store_xor(value, options, ec);
}
[[deprecated("use start")]] request start_load(Integer& value, const io_options& options = {}) {
  return start(atomic_operation::load, 0, &value, options);
}
[[deprecated("use start")]] request start_exchange(Integer value, Integer& previous,
                                                   const io_options& options = {}) {
  return start(atomic_operation::store, value, &previous, options);
}
[[deprecated("use start")]] request start_fetch_add(Integer value, Integer& previous,
                                                    const io_options& options = {}) {
  return start(atomic_operation::add, value, &previous, options);
}
[[deprecated("use start")]] request start_fetch_and(Integer value, Integer& previous,
                                                    const io_options& options = {}) {
  return start(atomic_operation::bit_and, value, &previous, options);
}
[[deprecated("use start")]] request start_fetch_or(Integer value, Integer& previous,
                                                   const io_options& options = {}) {
  return start(atomic_operation::bit_or, value, &previous, options);
}
[[deprecated("use start")]] request start_fetch_xor(Integer value, Integer& previous,
                                                    const io_options& options = {}) {
  return start(atomic_operation::bit_xor, value, &previous, options);
}
[[deprecated("use start")]] request start_store(Integer value, const io_options& options = {}) {
  return start(atomic_operation::store, value, nullptr, options);
}
[[deprecated("use start")]] request start_store_add(Integer value, const io_options& options = {}) {
  return start(atomic_operation::add, value, nullptr, options);
}
[[deprecated("use start")]] request start_store_and(Integer value, const io_options& options = {}) {
  return start(atomic_operation::bit_and, value, nullptr, options);
}
[[deprecated("use start")]] request start_store_or(Integer value, const io_options& options = {}) {
  return start(atomic_operation::bit_or, value, nullptr, options);
}
[[deprecated("use start")]] request start_store_xor(Integer value, const io_options& options = {}) {
  return start(atomic_operation::bit_xor, value, nullptr, options);
}
