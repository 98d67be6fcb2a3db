// Memory for payloads that come in parts, which a handler may keep.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <vector>

namespace ucx::detail {

/// The address of the bytes stands for the buffer. Large ones are used again: new pages cost more
/// than the bytes that come into them. REQUIRES: external synchronization.
class payload_buffers {
 public:
  static constexpr std::size_t large = std::size_t{64} << 10U;

  explicit payload_buffers(std::size_t largest) : largest_(largest) {}

  /// Returns room for `size` bytes, `largest` at most.
  std::byte* take(std::size_t size) {
    if (size >= large && !idle_.empty()) {
      std::byte* const start = idle_.back().release();
      idle_.pop_back();
      return start + head_size;
    }
    const bool is_large = size >= large;
    auto* const made =
        static_cast<std::byte*>(::operator new(head_size + (is_large ? largest_ : size)));
    new (made) head{is_large};
    return made + head_size;
  }
  void give_back(void* bytes) noexcept {
    std::byte* const start = static_cast<std::byte*>(bytes) - head_size;
    owned taken(start);
    if (!reinterpret_cast<const head*>(start)->is_large || idle_.size() >= most_idle) return;
    try {
      idle_.push_back(std::move(taken));
    } catch (const std::bad_alloc&) {  // it is freed
    }
  }

 private:
  struct head {
    bool is_large;
  };
  struct release {
    void operator()(std::byte* start) const noexcept { ::operator delete(start); }
  };
  using owned = std::unique_ptr<std::byte, release>;
  static constexpr std::size_t head_size = 64;
  static constexpr std::size_t most_idle = 16;

  std::size_t largest_;
  std::vector<owned> idle_;
};

}  // namespace ucx::detail
