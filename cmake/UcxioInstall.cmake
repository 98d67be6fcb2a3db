# Installs the libraries, their headers, the CMake package `ucxio` and the pkg-config file.

include(CMakePackageConfigHelpers)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/ucxio")
set(header_sets "")
if(CMAKE_VERSION VERSION_GREATER_EQUAL 3.23)
  set(header_sets FILE_SET HEADERS DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
                  FILE_SET old_headers DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
else()
  install(DIRECTORY include/ucx/experimental DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/ucx")
endif()

ucxio_installs("$<TARGET_FILE:ucxio-core>" "$<TARGET_FILE:ucxio-streams>")
install(
  TARGETS ucxio-core ucxio-streams ucxio
  EXPORT ucxioTargets
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
  PUBLIC_HEADER DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/ucx"
  ${header_sets})
# Parts of headers, which are not compiled by themselves.
install(DIRECTORY include/ucx/old_names DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/ucx")
install(
  EXPORT ucxioTargets
  NAMESPACE ucxio::
  DESTINATION "${package_dir}")

configure_package_config_file(cmake/ucxioConfig.cmake.in ucxioConfig.cmake
                              INSTALL_DESTINATION "${package_dir}")
# While the version is 0.x, another minor version is another interface.
write_basic_package_version_file(ucxioConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/ucxioConfig.cmake"
              "${PROJECT_BINARY_DIR}/ucxioConfigVersion.cmake" DESTINATION "${package_dir}")
if(NOT BUILD_SHARED_LIBS)
  install(FILES cmake/FindUCX.cmake DESTINATION "${package_dir}")
endif()

# Relative to the file itself, so that the installed tree can be moved. A distribution may give
# absolute folders, which stay as they are.
file(RELATIVE_PATH pc_prefix "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" "${CMAKE_INSTALL_PREFIX}")
foreach(kind IN ITEMS LIBDIR INCLUDEDIR)
  if(IS_ABSOLUTE "${CMAKE_INSTALL_${kind}}")
    set(pc_${kind} "${CMAKE_INSTALL_${kind}}")
  else()
    set(pc_${kind} "\${prefix}/${CMAKE_INSTALL_${kind}}")
  endif()
endforeach()
set(pc_tls "")
if(UCXIO_HAS_TLS)
  set(pc_tls ", libssl >= 3.0, libcrypto >= 3.0")
endif()
configure_file(cmake/ucxio.pc.in ucxio.pc @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/ucxio.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
