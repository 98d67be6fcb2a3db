# How the libraries of this project are built: the same way for each.

add_library(ucxio-warnings INTERFACE)
target_compile_options(
  ucxio-warnings
  INTERFACE -Wall
            -Wextra
            -Wpedantic
            -Wshadow
            -Wconversion
            -Wsign-conversion
            -Wnon-virtual-dtor
            $<$<BOOL:${UCXIO_WERROR}>:-Werror>
            # Where several sources are compiled as one, a name of one is in sight of the next one.
            $<$<BOOL:$<TARGET_PROPERTY:UNITY_BUILD>>:-Wno-shadow>)

if(UCXIO_UNITY)
  set(CMAKE_UNITY_BUILD ON)
endif()

# Everything of ours, the test programs included, is instrumented alike.
if(UCXIO_SANITIZE)
  add_compile_options(-fsanitize=${UCXIO_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${UCXIO_SANITIZE})
  # What the instrumentation adds makes g++ see overflows that can not be.
  add_compile_options("$<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds;-Wno-stringop-overflow>")
  if(UCXIO_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=undefined)
    # clang's looks at an object through a pipe of its own, and there is none where descriptors ran out.
    add_compile_options("$<$<CXX_COMPILER_ID:Clang>:-fno-sanitize=vptr>")
  endif()
endif()

# Of what it reads from precompiled headers, g++ no longer knows what is the system's, and warns of what
# can not be.
set(ucxio_options_with_precompiled "")
if(UCXIO_PRECOMPILE)
  set(ucxio_options_with_precompiled
      "$<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds;-Wno-stringop-overflow;-Wno-restrict>"
      # Else a compiler's cache never finds what clang makes of them.
      "$<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>")
endif()

# ucxio_precompile(TARGET HEADERS ...)
#
# With UCXIO_PRECOMPILE, compiles the standard headers that most sources include, and HEADERS, once for
# TARGET. A source that lacks an include is then seen only where the option is off.
function(ucxio_precompile target)
  if(NOT UCXIO_PRECOMPILE)
    return()
  endif()
  target_precompile_headers(
    ${target}
    PRIVATE
    <algorithm>
    <array>
    <atomic>
    <cerrno>
    <chrono>
    <condition_variable>
    <cstddef>
    <cstdint>
    <cstdio>
    <cstdlib>
    <cstring>
    <deque>
    <exception>
    <filesystem>
    <fstream>
    <functional>
    <future>
    <iostream>
    <limits>
    <list>
    <map>
    <memory>
    <mutex>
    <new>
    <optional>
    <random>
    <set>
    <span>
    <sstream>
    <stdexcept>
    <stop_token>
    <string>
    <string_view>
    <system_error>
    <thread>
    <unordered_map>
    <utility>
    <vector>
    ${ARGN})
  target_compile_options(${target} PRIVATE ${ucxio_options_with_precompiled})
endfunction()

# ucxio_add_library(NAME SOURCES ... PUBLIC_HEADERS ... OLD_HEADERS ... DEPENDS ... PRECOMPILE ...)
#
# Makes `ucxio-NAME`, exported as `ucxio::NAME`, out of an object library `ucxio-NAME-objects`: the
# unit tests, which see private names, are linked from the same objects, because a shared library
# hides them. DEPENDS are private. PUBLIC_HEADERS are paths below include/. OLD_HEADERS are paths below
# include/compatibility/: users include them for one version more, the library's own sources do not see
# them. PRECOMPILE: headers that most of SOURCES include.
function(ucxio_add_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;PUBLIC_HEADERS;OLD_HEADERS;DEPENDS;PRECOMPILE")
  set(objects ucxio-${name}-objects)
  set(library ucxio-${name})

  add_library(${objects} OBJECT ${arg_SOURCES})
  target_compile_features(${objects} PUBLIC cxx_std_20)
  target_include_directories(${objects} PUBLIC "${PROJECT_SOURCE_DIR}/include")
  target_link_libraries(${objects} PRIVATE ucxio-warnings ${arg_DEPENDS})
  set_target_properties(
    ${objects}
    PROPERTIES POSITION_INDEPENDENT_CODE ON
               CXX_EXTENSIONS OFF
               CXX_VISIBILITY_PRESET hidden
               VISIBILITY_INLINES_HIDDEN ON)
  ucxio_precompile(${objects} ${arg_PRECOMPILE})

  add_library(${library} $<TARGET_OBJECTS:${objects}>)
  add_library(ucxio::${name} ALIAS ${library})
  target_compile_features(${library} PUBLIC cxx_std_20)
  set_target_properties(
    ${library}
    PROPERTIES EXPORT_NAME ${name}
               LINKER_LANGUAGE CXX
               VERSION ${PROJECT_VERSION}
               SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
               # Installed, it finds its neighbour, and a UCX that is outside the system's folders.
               INSTALL_RPATH "$ORIGIN"
               INSTALL_RPATH_USE_LINK_PATH ON)
  ucxio_set_public_headers(${library} PRESENT ${arg_PUBLIC_HEADERS} OLD ${arg_OLD_HEADERS})
  get_target_property(kind ${library} TYPE)
  if(kind STREQUAL "SHARED_LIBRARY" AND NOT UCXIO_SANITIZE)
    target_link_options(${library} PRIVATE LINKER:--no-undefined)
  endif()
endfunction()

# With CMake >= 3.24 each public header is compiled by itself by `all_verify_interface_header_sets`.
# Those of OLD are a set of their own: of one set, no base folder may be within another. Both are
# installed into one folder, so that old paths need no further -I.
function(ucxio_set_public_headers library)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "PRESENT;OLD")
  set(include "${PROJECT_SOURCE_DIR}/include")
  list(TRANSFORM arg_PRESENT PREPEND "${include}/" OUTPUT_VARIABLE headers)
  list(TRANSFORM arg_OLD PREPEND "${include}/compatibility/" OUTPUT_VARIABLE old_headers)
  if(CMAKE_VERSION VERSION_GREATER_EQUAL 3.23)
    target_sources(
      ${library}
      PUBLIC FILE_SET HEADERS BASE_DIRS "${include}" FILES ${headers}
      PUBLIC FILE_SET old_headers TYPE HEADERS BASE_DIRS "${include}/compatibility" FILES ${old_headers})
    set_target_properties(${library} PROPERTIES VERIFY_INTERFACE_HEADER_SETS ON)
  else()
    # Installed into one folder; those of a folder within it, UcxioInstall.cmake installs.
    list(FILTER headers EXCLUDE REGEX "/experimental/")
    target_include_directories(
      ${library} PUBLIC "$<BUILD_INTERFACE:${include};${include}/compatibility>"
                        "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
    set_target_properties(${library} PROPERTIES PUBLIC_HEADER "${headers};${old_headers}")
  endif()
endfunction()
