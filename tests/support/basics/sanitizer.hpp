// Which sanitizer this is built with: g++ says it by macros, clang by features.
#pragma once

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define UCXIO_WITH_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define UCXIO_WITH_TSAN 1
#endif
#endif

#if defined(__SANITIZE_ADDRESS__) && !defined(UCXIO_WITH_ASAN)
#define UCXIO_WITH_ASAN 1
#endif
#if defined(__SANITIZE_THREAD__) && !defined(UCXIO_WITH_TSAN)
#define UCXIO_WITH_TSAN 1
#endif
