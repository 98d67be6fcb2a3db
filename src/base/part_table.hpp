// One object of each type, made when it is first asked for.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <vector>

namespace ucx::detail {

/// The objects that an `Owner` keeps for classes that it does not know: pools, and shared state.
/// REQUIRES: external synchronization.
template <class Owner>
class part_table {
 public:
  part_table() = default;
  part_table(const part_table&) = delete;
  part_table& operator=(const part_table&) = delete;

  /// Returns the one `Part`. The first call makes it, with `owner` where it has such a constructor:
  /// that call may throw what the constructor throws, or std::bad_alloc.
  template <class Part>
  Part& get(Owner& owner) {
    const std::size_t number = number_of<Part>();
    if (number < parts_.size() && parts_[number]) {
      return static_cast<holder<Part>&>(*parts_[number]).part;
    }
    return make<Part>(owner, number);
  }

 private:
  struct any_part {
    any_part() = default;
    any_part(const any_part&) = delete;
    any_part& operator=(const any_part&) = delete;
    virtual ~any_part() = default;
  };
  template <class Part, bool = std::is_constructible_v<Part, Owner&>>
  struct holder : any_part {
    explicit holder(Owner& owner) : part(owner) {}
    Part part;
  };
  template <class Part>
  struct holder<Part, false> : any_part {
    explicit holder(Owner& /*owner*/) {}
    Part part;
  };

  template <class Part>
  Part& make(Owner& owner, std::size_t number) {
    if (number >= parts_.size()) parts_.resize(number + 1);
    parts_[number] = std::make_unique<holder<Part>>(owner);
    return static_cast<holder<Part>&>(*parts_[number]).part;
  }

  /// Numbers the types in the order in which they are asked for first, by any owner.
  template <class Part>
  static std::size_t number_of() noexcept {
    static const std::size_t number = next_number().fetch_add(1, std::memory_order_relaxed);
    return number;
  }
  static std::atomic<std::size_t>& next_number() noexcept {
    static std::atomic<std::size_t> next{0};
    return next;
  }

  std::vector<std::unique_ptr<any_part>> parts_;
};

}  // namespace ucx::detail
