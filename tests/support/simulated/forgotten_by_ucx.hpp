// For tests in which UCX's worker goes without calling back what it was asked for.
#pragma once

#include "support/basics/sanitizer.hpp"

#if defined(UCXIO_WITH_ASAN)
#include <sanitizer/lsan_interface.h>
#endif

namespace ucx::test {

/// While it lives, LeakSanitizer does not count what is allocated: an operation that UCX never ends
/// is never freed, because UCX might still touch it.
class forgotten_by_ucx {
 public:
  forgotten_by_ucx() noexcept {
#if defined(UCXIO_WITH_ASAN)
    __lsan_disable();
#endif
  }
  ~forgotten_by_ucx() {
#if defined(UCXIO_WITH_ASAN)
    __lsan_enable();
#endif
  }
  forgotten_by_ucx(const forgotten_by_ucx&) = delete;
  forgotten_by_ucx& operator=(const forgotten_by_ucx&) = delete;
};

}  // namespace ucx::test
