// Objects that are used again instead of freed: no allocation per operation after warm-up.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace ucx::detail {

/// Keeps up to `kept` idle objects of `Element`: `Element::most_idle`, where it has that.
/// REQUIRES: external synchronization.
template <class Element>
class pool {
 public:
  pool() = default;
  explicit pool(std::size_t kept) : kept_(kept) {}
  pool(const pool&) = delete;
  pool& operator=(const pool&) = delete;

  /// Returns an idle object, or a new one; the caller owns it until `give_back`.
  Element* take() {
    if (idle_.empty()) return new Element;
    Element* taken = idle_.back().release();
    idle_.pop_back();
    return taken;
  }
  void give_back(Element* element) noexcept {
    std::unique_ptr<Element> owned(element);
    if (idle_.size() >= kept_) return;
    try {
      idle_.push_back(std::move(owned));
    } catch (...) {  // out of memory for the list itself: the object is simply freed
    }
  }

 private:
  static constexpr std::size_t usual() noexcept {
    if constexpr (requires { Element::most_idle; }) return Element::most_idle;
    return 1024;
  }
  std::size_t kept_ = usual();
  std::vector<std::unique_ptr<Element>> idle_;
};

}  // namespace ucx::detail
