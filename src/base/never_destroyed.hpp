// Objects of the process that outlive every static object, and that no memory is asked for.
#pragma once

#include <cstddef>
#include <new>

namespace ucx::detail {

/// For static variables of functions that may throw nothing: the first call may be made because
/// there is no memory.
template <class Object>
class never_destroyed {
 public:
  never_destroyed() noexcept(noexcept(Object())) : object_(new (place_) Object()) {}
  never_destroyed(const never_destroyed&) = delete;
  never_destroyed& operator=(const never_destroyed&) = delete;

  Object& operator*() const noexcept { return *object_; }

 private:
  alignas(Object) std::byte place_[sizeof(Object)];
  Object* object_;
};

}  // namespace ucx::detail
