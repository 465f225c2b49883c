# gcompile_add_model(TARGET NAME MODEL FILE [OPTIONS WORD...])
#
# Makes a library of a model: the target NAME, also called NAME::NAME, with the header <NAME/NAME.h>, and NAME::threads, a
# thread pool. NAME is the prefix of all symbols too, so that models of one file name go into one program. OPTIONS are
# those of `gcompile compile`: --target cuda, --dim batch=4, ...
#
# The project lies in the build folder. It is written when CMake runs, for only gcompile knows which files it has, and
# written anew before the next build when the model, its external data or gcompile has changed; files that stay the
# same keep their times, so that only what changed is compiled.
# A cross build takes the gcompile of the machine that builds.
function(gcompile_add_model)
  cmake_parse_arguments(PARSE_ARGV 0 GIVEN "" "TARGET;MODEL" "OPTIONS")
  if(GIVEN_UNPARSED_ARGUMENTS OR NOT GIVEN_TARGET OR NOT GIVEN_MODEL)
    message(FATAL_ERROR "usage: gcompile_add_model(TARGET NAME MODEL FILE [OPTIONS WORD...])")
  endif()
  get_filename_component(MODEL ${GIVEN_MODEL} ABSOLUTE BASE_DIR ${CMAKE_CURRENT_SOURCE_DIR})
  set(PROJECT_DIR ${CMAKE_CURRENT_BINARY_DIR}/gcompile/${GIVEN_TARGET})
  if(NOT GCOMPILE_EXECUTABLE)
    get_target_property(GCOMPILE_EXECUTABLE gcompile::gcompile LOCATION)
  endif()
  set(COMMAND ${GCOMPILE_EXECUTABLE} compile ${MODEL} -o ${PROJECT_DIR} --name ${GIVEN_TARGET} ${GIVEN_OPTIONS})
  # Also where gcompile refuses the model, so that one that is mended is compiled again.
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${MODEL} ${GCOMPILE_EXECUTABLE})

  # What was asked last time, in the first line, and the files that the answer was made of.
  set(MEMORY ${PROJECT_DIR}.made_of)
  set(FILES)
  if(EXISTS ${MEMORY})
    file(STRINGS ${MEMORY} FILES)
    list(POP_FRONT FILES ASKED)
  endif()
  set(IS_CURRENT ${FILES})
  foreach(FILE IN LISTS FILES)
    if(NOT EXISTS ${FILE} OR ${FILE} IS_NEWER_THAN ${MEMORY})
      set(IS_CURRENT)
    endif()
  endforeach()
  string(JOIN " " ASKS ${COMMAND})
  if(NOT IS_CURRENT OR NOT ASKED STREQUAL ASKS)
    execute_process(COMMAND ${COMMAND} --json -q OUTPUT_VARIABLE ANSWER ERROR_VARIABLE SAID RESULT_VARIABLE STATUS)
    if(NOT STATUS EQUAL 0)
      message(FATAL_ERROR "gcompile cannot compile ${MODEL} (exit code ${STATUS}):\n${SAID}")
    endif()
    if(SAID)
      message(WARNING "gcompile, of ${MODEL}:\n${SAID}")
    endif()
    set(FILES ${GCOMPILE_EXECUTABLE})
    string(JSON COUNT LENGTH "${ANSWER}" model_files)
    math(EXPR LAST "${COUNT} - 1")
    foreach(INDEX RANGE ${LAST})
      string(JSON FILE GET "${ANSWER}" model_files ${INDEX})
      list(APPEND FILES ${FILE})
    endforeach()
    list(JOIN FILES "\n" LINES)
    file(WRITE ${MEMORY} "${ASKS}\n${LINES}\n")
  endif()

  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${FILES})
  add_subdirectory(${PROJECT_DIR} ${PROJECT_DIR}/build)
endfunction()
