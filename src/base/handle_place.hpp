// Where the handle of a core is: a close that has waited looks whether it is still there.
#pragma once

#include <atomic>

namespace ucx::detail {

/// The address of a handle, which its core keeps for `close()`. Behind a wait `close()` may not
/// look at its handle: a handler may have destroyed it, or moved it.
class handle_place {
 public:
  void note(const void* handle) noexcept { handle_ = handle; }
  /// Returns whether the handle at this address is there, and has this core.
  bool is(const void* handle) const noexcept { return handle_ == handle; }

 private:
  std::atomic<const void*> handle_{nullptr};
};

/// The constructors and the assignment of such a handle note what they made.
template <class Core>
void note_place(Core& core, const void* handle) noexcept {
  if (core) core->place_of_handle().note(handle);
}

/// Empties `core`, the member of the handle at `handle`, unless that has gone. `kept` is what it
/// had before the wait.
template <class Core>
void let_go_at(const void* handle, Core& core, const Core& kept) noexcept {
  if (!kept->place_of_handle().is(handle)) return;
  kept->place_of_handle().note(nullptr);
  core.reset();
}

}  // namespace ucx::detail
