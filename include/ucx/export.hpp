// Tells how a symbol leaves the shared library, and whether old names are there.
#pragma once

/// Marks what the shared libraries export; everything else is hidden.
#if defined(__GNUC__)
#define UCXIO_EXPORT [[gnu::visibility("default")]]
#else
#define UCXIO_EXPORT
#endif

/// With 1, names and orders of parameters that have gone stay for one version, deprecated. A
/// program that defines it as 0 does not see them.
#ifndef UCXIO_OLD_NAMES
#define UCXIO_OLD_NAMES 1
#endif
