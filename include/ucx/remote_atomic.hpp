#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <system_error>

#include "ucx/access.hpp"
#include "ucx/error.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/request.hpp"
#include "ucx/version.hpp"

namespace ucx {

/// The integers that `remote_atomic` works on: those of 32 and 64 bits.
template <class Integer>
concept remote_integer = std::integral<Integer> && !std::same_as<Integer, bool> &&
                         (sizeof(Integer) == 4 || sizeof(Integer) == 8);

/// A number in a peer's region, used like `std::atomic_ref`. It is sequentially consistent with the
/// owner's own `std::atomic_ref`, and with all other peers' accesses. The owner's processor
/// performs every access. In memory that one host shares, this process's processor does. Names and
/// meaning are those of `std::atomic_ref`. `store_add` and the like change the number without
/// returning the old one, and need only write access.
/// Lifetime: the region handle.
/// Errors: those of `remote_region::start_atomic`. An access that failed was performed once or not
/// at all.
/// Cost: one round trip; nothing on shared memory.
/// Threads: as the region's.
template <remote_integer Integer>
class remote_atomic {
 public:
  using value_type = Integer;

  /// Refers to the number at `offset` of the region. It has to be aligned there.
  remote_atomic(remote_region& region, std::uint64_t offset) noexcept
      : region_(&region), offset_(offset) {}

  Integer load(const io_options& options = {}, std::error_code& ec = throws) {
    return fetched({.operation = atomic_operation::load}, options, ec);
  }
  /// Returns whether the number was `expected` and is now `desired`. If not, `expected` gets the
  /// number.
  bool compare_exchange(Integer& expected, Integer desired, const io_options& options = {},
                        std::error_code& ec = throws) {
    const Integer found = fetched(exchange_if(expected, desired), options, ec);
    return !ec && take(expected, found);
  }
  Integer exchange(Integer value, const io_options& options = {}, std::error_code& ec = throws) {
    return fetched(access(atomic_operation::store, value), options, ec);
  }
  Integer fetch_add(Integer value, const io_options& options = {}, std::error_code& ec = throws) {
    return fetched(access(atomic_operation::add, value), options, ec);
  }
  Integer fetch_and(Integer value, const io_options& options = {}, std::error_code& ec = throws) {
    return fetched(access(atomic_operation::bit_and, value), options, ec);
  }
  Integer fetch_or(Integer value, const io_options& options = {}, std::error_code& ec = throws) {
    return fetched(access(atomic_operation::bit_or, value), options, ec);
  }
  Integer fetch_xor(Integer value, const io_options& options = {}, std::error_code& ec = throws) {
    return fetched(access(atomic_operation::bit_xor, value), options, ec);
  }

  void store(Integer value, const io_options& options = {}, std::error_code& ec = throws) {
    start(atomic_operation::store, value, nullptr, options).wait(ec);
  }
  void store_add(Integer value, const io_options& options = {}, std::error_code& ec = throws) {
    start(atomic_operation::add, value, nullptr, options).wait(ec);
  }
  void store_and(Integer value, const io_options& options = {}, std::error_code& ec = throws) {
    start(atomic_operation::bit_and, value, nullptr, options).wait(ec);
  }
  void store_or(Integer value, const io_options& options = {}, std::error_code& ec = throws) {
    start(atomic_operation::bit_or, value, nullptr, options).wait(ec);
  }
  void store_xor(Integer value, const io_options& options = {}, std::error_code& ec = throws) {
    start(atomic_operation::bit_xor, value, nullptr, options).wait(ec);
  }

  /// Starts any of the operations above but `compare_exchange`. `load` does not look at `operand`.
  /// `previous`, where it is not null, gets the old number.
  /// Lifetime: `previous`, until the request is done.
  /// Errors: also invalid_argument (`compare_exchange`, or a value that is no operation).
  request start(atomic_operation operation, Integer operand, Integer* previous = nullptr,
                const io_options& options = {}) {
    // Nothing is expected here, so a `compare_exchange` is no operation: the region refuses it.
    const bool lacks = operation == atomic_operation::compare_exchange;
    return begin(access(lacks ? atomic_operation() : operation, operand), previous, options);
  }
  /// Starts `compare_exchange`. `previous` gets the old number. The number is `desired` now if
  /// that equals `expected`.
  /// Lifetime: `previous`, until the request is done.
  request start_compare_exchange(Integer expected, Integer desired, Integer& previous,
                                 const io_options& options = {}) {
    return begin(exchange_if(expected, desired), &previous, options);
  }

#if UCXIO_OLD_NAMES
#include "ucx/old_names/remote_atomic.ipp"
#endif

 private:
  static constexpr std::uint64_t bits(Integer value) noexcept {
    return static_cast<std::uint64_t>(value);
  }
  static constexpr atomic_access access(atomic_operation operation, Integer value) noexcept {
    return {.operation = operation, .width = sizeof(Integer), .operand = bits(value)};
  }
  static constexpr atomic_access exchange_if(Integer expected, Integer desired) noexcept {
    atomic_access wanted = access(atomic_operation::compare_exchange, desired);
    wanted.expected = bits(expected);
    return wanted;
  }
  static bool take(Integer& expected, Integer found) noexcept {
    if (found == expected) return true;
    expected = found;
    return false;
  }

  request begin(atomic_access wanted, Integer* previous, const io_options& options) {
    wanted.width = sizeof(Integer);
    const auto into = previous == nullptr
                          ? std::span<std::byte>()
                          : std::as_writable_bytes(std::span<Integer, 1>(previous, 1));
    return region_->start_atomic(offset_, wanted, into, options);
  }
  Integer fetched(const atomic_access& wanted, const io_options& options, std::error_code& ec) {
    Integer previous = 0;
    begin(wanted, &previous, options).wait(ec);
    return previous;
  }

  remote_region* region_;
  std::uint64_t offset_;
};

}  // namespace ucx
