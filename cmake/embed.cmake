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

  set(LIST_FILE ${CMAKE_CURRENT_BINARY_DIR}/${TARGET}.list)
  set(OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/${TARGET}.cc)
  list(JOIN FILES "\n" LISTING)
  file(CONFIGURE OUTPUT ${LIST_FILE} CONTENT "${LISTING}\n" @ONLY)
  list(TRANSFORM FILES PREPEND ${CMAKE_SOURCE_DIR}/ OUTPUT_VARIABLE DEPENDENCIES)

  add_custom_command(
    OUTPUT ${OUTPUT}
    COMMAND ${CMAKE_COMMAND} -DROOT=${CMAKE_SOURCE_DIR} -DLIST=${LIST_FILE} -DOUTPUT=${OUTPUT}
            -P ${CMAKE_SOURCE_DIR}/cmake/embed_files.cmake
    DEPENDS ${DEPENDENCIES} ${LIST_FILE} ${CMAKE_SOURCE_DIR}/cmake/embed_files.cmake
    COMMENT "Embedding templates and runtime files"
    VERBATIM)
  add_library(${TARGET} STATIC ${OUTPUT})
  target_link_libraries(${TARGET} PUBLIC gcompile_flags)
endfunction()
