# Finds msgpack-cxx's headers, which ucxio compiles in (no library to link, nothing in the interface).
# By header: its own package file changed names, and asks for Boost, which is not needed.
# Target: MsgPack::inline.

find_path(MSGPACK_INCLUDE_DIR msgpack.hpp)
mark_as_advanced(MSGPACK_INCLUDE_DIR)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  MsgPack
  REQUIRED_VARS MSGPACK_INCLUDE_DIR
  REASON_FAILURE_MESSAGE
    "ucxio needs the header msgpack.hpp of msgpack-cxx. On Debian and Ubuntu: apt install libmsgpack-cxx-dev."
)

if(MsgPack_FOUND AND NOT TARGET MsgPack::inline)
  add_library(MsgPack::inline INTERFACE IMPORTED)
  set_target_properties(
    MsgPack::inline PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${MSGPACK_INCLUDE_DIR}"
                               INTERFACE_COMPILE_DEFINITIONS MSGPACK_NO_BOOST)
endif()
