# `cmake --install` writes nothing where something that it installs was not built: a part of an
# installation looks like a whole one. The folders name what they install by ucxio_installs().
function(ucxio_installs)
  set_property(GLOBAL APPEND PROPERTY UCXIO_INSTALLED ${ARGN})
endfunction()

# Once everything is named; the rule below is the first one nevertheless.
function(_ucxio_write_install_guard)
  get_property(files GLOBAL PROPERTY UCXIO_INSTALLED)
  string(REPLACE ";" "\n" files "${files}")
  file(GENERATE OUTPUT "${PROJECT_BINARY_DIR}/installed-files-$<CONFIG>.txt" CONTENT "${files}\n")
endfunction()
cmake_language(DEFER DIRECTORY "${PROJECT_SOURCE_DIR}" CALL _ucxio_write_install_guard)

install(CODE "
  file(STRINGS \"${PROJECT_BINARY_DIR}/installed-files-$<CONFIG>.txt\" wanted ENCODING UTF-8)
  set(missing)
  foreach(file IN LISTS wanted)
    if(NOT EXISTS \"\${file}\")
      list(APPEND missing \"\${file}\")
    endif()
  endforeach()
  if(missing)
    string(REPLACE \";\" \"\\n  \" missing \"\${missing}\")
    message(FATAL_ERROR \"ucxio is not installed: these files were not built:\\n  \${missing}\\n\"
                        \"Build everything first: cmake --build ${CMAKE_BINARY_DIR}\")
  endif()")
