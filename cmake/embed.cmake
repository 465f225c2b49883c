# gcompile_embed(TARGET PATH...): a static library that carries the given files, and every file below the given
# directories, so that the installed tool is one executable. The files come back through codegen/emit/embedded.h, sorted by
# path, relative to the top of the source tree ("templates/interface/model.h.j2"). Hidden files and editor backups stay out.
#
# The library is rebuilt when a file changes, appears or disappears.
function(gcompile_embed TARGET)
  set(FILES)
  foreach(DIRECTORY IN LISTS ARGN)
    if(IS_DIRECTORY ${DIRECTORY})
      file(GLOB_RECURSE FOUND RELATIVE ${CMAKE_SOURCE_DIR} CONFIGURE_DEPENDS ${DIRECTORY}/*)
    else()
      file(RELATIVE_PATH FOUND ${CMAKE_SOURCE_DIR} ${DIRECTORY})
    endif()
    list(APPEND FILES ${FOUND})
  endforeach()
  list(FILTER FILES EXCLUDE REGEX "(^|/)[.][^/]*$|~$|/__pycache__/")
  # Byte order, as std::string compares: the lookup is a binary search.
  list(SORT FILES COMPARE STRING)

  set(LIST ${CMAKE_CURRENT_BINARY_DIR}/${TARGET}.list)
  set(OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/${TARGET}.S)
  list(JOIN FILES "\n" LISTING)
  file(CONFIGURE OUTPUT ${LIST} CONTENT "${LISTING}\n" @ONLY)
  include(${CMAKE_SOURCE_DIR}/cmake/embed_files.cmake)

  list(TRANSFORM FILES PREPEND ${CMAKE_SOURCE_DIR}/ OUTPUT_VARIABLE DEPENDENCIES)
  set_source_files_properties(${OUTPUT} PROPERTIES OBJECT_DEPENDS "${DEPENDENCIES}")
  add_library(${TARGET} STATIC ${OUTPUT})
  target_include_directories(${TARGET} PRIVATE ${CMAKE_SOURCE_DIR})  # where the assembler finds them
endfunction()
