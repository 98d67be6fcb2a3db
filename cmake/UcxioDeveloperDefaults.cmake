# What a developer of ucxio gets without asking, and what a project that embeds ucxio must not have
# imposed on it.

get_property(is_multi_config GLOBAL PROPERTY GENERATOR_IS_MULTI_CONFIG)
if(NOT is_multi_config AND NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release, RelWithDebInfo or Debug" FORCE)
endif()

# Programs and libraries side by side, whatever directory describes them.
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")

set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

find_program(UCXIO_CCACHE ccache)
mark_as_advanced(UCXIO_CCACHE)
if(UCXIO_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # ccache keeps precompiled headers only when it need not mind their times and macros.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      "${CMAKE_COMMAND};-E;env;CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime;${UCXIO_CCACHE}")
endif()

# A source is named by its path below this folder, in messages of tests and asserts: a compiler's cache then serves
# every checkout.
add_compile_options("-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=")
