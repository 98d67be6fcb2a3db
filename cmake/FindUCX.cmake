# Finds OpenUCX by its CMake package, else by pkg-config; CMAKE_PREFIX_PATH comes first in both.
# Targets: ucx::ucp, ucx::ucs. Variables: UCX_FOUND, UCX_VERSION, UCX_INCLUDE_DIR.
# It is installed beside ucxio's package file, which needs it when the libraries are static.

# In a function, because UCX's own file sets variables named `prefix` and the like. Not when the
# targets exist: the file of UCX 1.13 cannot be read twice.
function(_ucx_find_by_package)
  if(NOT TARGET ucx::ucp)
    find_package(ucx CONFIG QUIET)
  endif()
  if(NOT TARGET ucx::ucp OR NOT TARGET ucx::ucs)
    return()
  endif()
  get_target_property(include_dir ucx::ucp INTERFACE_INCLUDE_DIRECTORIES)
  # Debian 13's package file takes /usr/lib for the prefix, and finds neither headers nor libraries.
  if(NOT EXISTS "${include_dir}/ucp/api/ucp_version.h")
    find_path(UCX_MOVED_INCLUDE_DIR ucp/api/ucp_version.h)
    find_library(UCX_MOVED_UCP_LIBRARY ucp)
    find_library(UCX_MOVED_UCS_LIBRARY ucs)
    mark_as_advanced(UCX_MOVED_INCLUDE_DIR UCX_MOVED_UCP_LIBRARY UCX_MOVED_UCS_LIBRARY)
    if(UCX_MOVED_INCLUDE_DIR AND UCX_MOVED_UCP_LIBRARY AND UCX_MOVED_UCS_LIBRARY)
      set(include_dir "${UCX_MOVED_INCLUDE_DIR}")
      set_target_properties(ucx::ucp PROPERTIES IMPORTED_LOCATION "${UCX_MOVED_UCP_LIBRARY}")
      set_target_properties(ucx::ucs PROPERTIES IMPORTED_LOCATION "${UCX_MOVED_UCS_LIBRARY}")
      set_target_properties(ucx::ucp ucx::ucs PROPERTIES INTERFACE_INCLUDE_DIRECTORIES
                                                         "${include_dir}")
    endif()
  endif()
  set(UCX_INCLUDE_DIR "${include_dir}" PARENT_SCOPE)
endfunction()

function(_ucx_find_by_pkg_config)
  find_package(PkgConfig QUIET)
  if(NOT PkgConfig_FOUND)
    return()
  endif()
  pkg_check_modules(UCX_PC QUIET IMPORTED_TARGET ucx)
  if(NOT TARGET PkgConfig::UCX_PC)
    return()
  endif()
  foreach(target IN ITEMS ucx::ucp ucx::ucs)
    add_library(${target} INTERFACE IMPORTED)
    set_target_properties(${target} PROPERTIES INTERFACE_LINK_LIBRARIES PkgConfig::UCX_PC)
  endforeach()
  pkg_get_variable(include_dir ucx includedir)
  set(UCX_INCLUDE_DIR "${include_dir}" PARENT_SCOPE)
endfunction()

unset(UCX_INCLUDE_DIR)
unset(UCX_VERSION)
_ucx_find_by_package()
if(NOT UCX_INCLUDE_DIR)
  _ucx_find_by_pkg_config()
endif()

# The header is what counts: a package file may have been moved without knowing it.
set(UCX_ADVICE "")
if(EXISTS "${UCX_INCLUDE_DIR}/ucp/api/ucp_version.h")
  file(STRINGS "${UCX_INCLUDE_DIR}/ucp/api/ucp_version.h" UCX_VERSION
       REGEX "^#define UCP_API_(MAJOR|MINOR) +[0-9]+")
  list(TRANSFORM UCX_VERSION REPLACE "[^0-9]+" "")
  list(JOIN UCX_VERSION "." UCX_VERSION)
elseif(UCX_INCLUDE_DIR)
  set(UCX_ADVICE "Its package file names ${UCX_INCLUDE_DIR}, which has no ucp/api/ucp.h. ")
  unset(UCX_INCLUDE_DIR)
endif()
string(APPEND UCX_ADVICE "ucxio needs OpenUCX >= ${UCX_FIND_VERSION}, headers and libraries. "
       "Debian and Ubuntu: `apt install libucx-dev`. "
       "Anywhere: `pip install libucx-cu13`, then -DCMAKE_PREFIX_PATH=SITE_PACKAGES/libucx. "
       "Installed elsewhere: -DCMAKE_PREFIX_PATH=ITS_PREFIX.")

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  UCX
  REQUIRED_VARS UCX_INCLUDE_DIR
  VERSION_VAR UCX_VERSION
  REASON_FAILURE_MESSAGE "${UCX_ADVICE}")
