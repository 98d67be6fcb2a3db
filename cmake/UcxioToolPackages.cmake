# Finds what the command line tool is made with, and says in plain words what is missing.

set(missing "")
foreach(package IN ITEMS CLI11:libcli11-dev fmt:libfmt-dev nlohmann_json:nlohmann-json3-dev)
  string(REPLACE ":" ";" package "${package}")
  list(GET package 0 name)
  list(GET package 1 debian)
  find_package(${name} CONFIG QUIET)
  if(NOT ${name}_FOUND)
    string(APPEND missing " ${name} (on Debian and Ubuntu: apt install ${debian}).")
  endif()
endforeach()

if(missing)
  message(FATAL_ERROR "The command line tool `ucxio` needs what is not here:${missing}"
                      " -DUCXIO_BUILD_TOOLS=OFF builds the libraries without it.")
endif()
