# Boost.Iostreams, for what tests and shows <ucx/boost_device.hpp>. The libraries do without, and the
# header is installed in any case: whoever includes it has Boost.
# Target, where it is found: Boost::iostreams, for the filters; the header itself needs headers only.

if(UCXIO_WITH_BOOST)
  set(required QUIET)
  if(NOT UCXIO_WITH_BOOST STREQUAL "AUTO")
    set(required REQUIRED)
  endif()
  find_package(Boost 1.70 CONFIG COMPONENTS iostreams ${required})
  if(TARGET Boost::iostreams)
    message(STATUS "Boost.Iostreams ${Boost_VERSION_STRING}: ucx/boost_device.hpp is tested")
  else()
    message(STATUS "Boost.Iostreams >= 1.70 was not found: ucx/boost_device.hpp is installed, but not "
                   "tested. On Debian and Ubuntu: apt install libboost-iostreams-dev.")
  endif()
else()
  message(STATUS "UCXIO_WITH_BOOST is OFF: ucx/boost_device.hpp is installed, but not tested")
endif()
