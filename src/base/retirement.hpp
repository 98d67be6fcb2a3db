// How objects go whose end has to wait: docs/architecture.md, "Destruction that has to
// wait".
#pragma once

namespace ucx::detail {

/// The deleter of shared objects that the thread with the last reference can not destroy. That
/// thread may be inside UCX's callback, inside a handler, or the one that the object would have to
/// join. So the deleter begins the object's end, by the class's private `retire()`. That function
/// throws nothing, never waits while it holds a lock, and does nothing in a child of `fork()`. The
/// object is destroyed when its end is over, by itself or by the owner that it was left to.
struct retirement {
  template <class Object>
  void operator()(Object* last) const noexcept {
    last->retire();
  }
};

}  // namespace ucx::detail
