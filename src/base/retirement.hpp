// How objects go whose end has to wait: docs/architecture.md, "Destruction that has to
// wait".
#pragma once

namespace ucx::detail {

/// The deleter of a shared object that can not be destroyed by whoever lets go of it last: that
/// thread may be inside UCX's callback, inside a handler, or the one that the object would have to
/// join. Instead of a destruction it begins the end, by `retire()`, which the class keeps private
/// and which throws nothing, waits for nobody on behalf of a lock's holder, and does nothing in a
/// child of `fork()`. The object is destroyed when its end is over, by itself or by the owner that
/// it was left to.
struct retirement {
  template <class Object>
  void operator()(Object* last) const noexcept {
    last->retire();
  }
};

}  // namespace ucx::detail
