// Tells how a symbol leaves the shared library.
#pragma once

/// Marks what the shared libraries export; everything else is hidden.
#if defined(__GNUC__)
#define UCXIO_EXPORT [[gnu::visibility("default")]]
#else
#define UCXIO_EXPORT
#endif
