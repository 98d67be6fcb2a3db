# OpenSSL, for TLS over sockets (ucxs://). Without it the libraries are built all the same, and such a
# URL is an error that says so.
# Target, where it is found and wanted: OpenSSL::SSL. Variable: UCXIO_HAS_TLS.

set(UCXIO_HAS_TLS OFF)
if(UCXIO_WITH_TLS)
  set(required QUIET)
  if(NOT UCXIO_WITH_TLS STREQUAL "AUTO")
    set(required REQUIRED)
  endif()
  find_package(OpenSSL 3.0 COMPONENTS SSL Crypto ${required})
  if(TARGET OpenSSL::SSL)
    set(UCXIO_HAS_TLS ON)
    message(STATUS "OpenSSL ${OPENSSL_VERSION}: there is TLS (ucxs://)")
  else()
    message(STATUS "OpenSSL >= 3.0 was not found: there is no TLS (ucxs://). On Debian and Ubuntu: apt "
                   "install libssl-dev.")
  endif()
else()
  message(STATUS "UCXIO_WITH_TLS is OFF: there is no TLS (ucxs://)")
endif()
