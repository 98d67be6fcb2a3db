// Every allocation of a program's C++ goes past a function of its own, which may count or refuse
// it.
#pragma once

namespace ucx::test {

/// Returns whether an allocation may be made; else it fails as if there were no memory. Defined by
/// at most one source of a program that has replaced_new.cpp among its own; else all may. UCX
/// allocates by malloc, which does not come past here.
bool may_allocate() noexcept;

}  // namespace ucx::test
