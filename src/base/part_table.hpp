// One object of each type, made when it is first asked for.
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>
#include <vector>

namespace ucx::detail {

/// What an `Owner` keeps for classes that it does not know: their pools, and what they share.
/// REQUIRES: external synchronization.
template <class Owner>
class part_table {
 public:
  part_table() : parts_(count()) {}
  part_table(const part_table&) = delete;
  part_table& operator=(const part_table&) = delete;

  /// Returns the one `Part`. The first call makes it, with `owner` where it has such a constructor:
  /// that call may throw what the constructor throws, or std::bad_alloc.
  template <class Part>
  Part& get(Owner& owner) {
    std::unique_ptr<any_part>& found = parts_[number_of<Part>];
    if (!found) found = std::make_unique<holder<Part>>(owner);
    return static_cast<holder<Part>&>(*found).part;
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

  /// How many types are asked for anywhere in the program: known before main() begins.
  static std::size_t& count() noexcept {
    static std::size_t types = 0;
    return types;
  }
  template <class Part>
  inline static const std::size_t number_of = count()++;

  std::vector<std::unique_ptr<any_part>> parts_;
};

}  // namespace ucx::detail
