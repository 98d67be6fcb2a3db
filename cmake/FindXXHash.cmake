# Finds xxHash's header, which ucxio compiles in (no library to link, nothing in the interface).
# Target: xxHash::inline.

find_path(XXHASH_INCLUDE_DIR xxhash.h)
mark_as_advanced(XXHASH_INCLUDE_DIR)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  XXHash
  REQUIRED_VARS XXHASH_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "ucxio needs the header xxhash.h. On Debian and Ubuntu: apt install libxxhash-dev.")

if(XXHash_FOUND AND NOT TARGET xxHash::inline)
  add_library(xxHash::inline INTERFACE IMPORTED)
  set_target_properties(
    xxHash::inline PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${XXHASH_INCLUDE_DIR}"
                              INTERFACE_COMPILE_DEFINITIONS XXH_INLINE_ALL)
endif()
