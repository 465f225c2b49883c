# What `cmake --install` puts where, beside the tool: the package for find_package(gcompile), the manual page, the
# completion of shells, and what Debian wants to see of a package.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS gcompile EXPORT gcompileTargets COMPONENT tool)

set(PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/gcompile)
install(EXPORT gcompileTargets NAMESPACE gcompile:: DESTINATION ${PACKAGE_DIR} COMPONENT tool)
configure_package_config_file(cmake/gcompileConfig.cmake.in ${CMAKE_BINARY_DIR}/package/gcompileConfig.cmake
  INSTALL_DESTINATION ${PACKAGE_DIR})
# The tool runs where the build runs, whatever that builds for.
write_basic_package_version_file(${CMAKE_BINARY_DIR}/package/gcompileConfigVersion.cmake
  COMPATIBILITY SameMajorVersion ARCH_INDEPENDENT)
install(FILES ${CMAKE_BINARY_DIR}/package/gcompileConfig.cmake ${CMAKE_BINARY_DIR}/package/gcompileConfigVersion.cmake
  ${CMAKE_SOURCE_DIR}/cmake/GcompileAddModel.cmake DESTINATION ${PACKAGE_DIR} COMPONENT tool)

# Written by the tool itself, from its table of options, whenever it is linked: so that the target gcompile alone is
# enough for installing and packing.
find_program(GZIP_PROGRAM gzip REQUIRED)
set(WRITTEN ${CMAKE_BINARY_DIR}/package)
add_custom_command(
  TARGET gcompile POST_BUILD
  COMMAND gcompile completion bash > gcompile.bash
  COMMAND gcompile completion zsh > _gcompile
  COMMAND gcompile completion fish > gcompile.fish
  COMMAND gcompile manual > gcompile.1
  COMMAND ${GZIP_PROGRAM} -9nc gcompile.1 > gcompile.1.gz
  WORKING_DIRECTORY ${WRITTEN}
  COMMENT "Writing the manual page and the completion of shells"
  VERBATIM)
install(FILES ${WRITTEN}/gcompile.1.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT tool)
install(FILES ${WRITTEN}/gcompile.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
  RENAME gcompile COMPONENT tool)
install(FILES ${WRITTEN}/_gcompile DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions COMPONENT tool)
install(FILES ${WRITTEN}/gcompile.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT tool)

# Debian's names of the lists of changes, ours and the package's, and of the licence. The newest version that
# CHANGELOG.md tells of, but for one that is not released yet, is the one that project() names.
file(STRINGS ${CMAKE_SOURCE_DIR}/CHANGELOG.md HEADINGS REGEX "^## ")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/CHANGELOG.md)
list(FILTER HEADINGS EXCLUDE REGEX "[(]unreleased[)]$")
list(GET HEADINGS 0 NEWEST)
if(NOT NEWEST MATCHES "^## ([0-9.]+), (.*)$" OR NOT CMAKE_MATCH_1 STREQUAL PROJECT_VERSION)
  message(FATAL_ERROR "CHANGELOG.md begins with '${NEWEST}', project() names version ${PROJECT_VERSION}")
endif()
set(RELEASED ${CMAKE_MATCH_2})
set(CPACK_PACKAGE_CONTACT "the gcompile project <gcompile@users.noreply.github.com>")
file(CONFIGURE OUTPUT ${WRITTEN}/changelog.Debian.in CONTENT "gcompile (@PROJECT_VERSION@-1) unstable; urgency=low

  * Version @PROJECT_VERSION@; changelog.gz says what is new.

 -- @CPACK_PACKAGE_CONTACT@  @RELEASED@
" @ONLY)
execute_process(COMMAND ${GZIP_PROGRAM} -9nc ${CMAKE_SOURCE_DIR}/CHANGELOG.md OUTPUT_FILE ${WRITTEN}/changelog.gz
  COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${GZIP_PROGRAM} -9nc ${WRITTEN}/changelog.Debian.in OUTPUT_FILE ${WRITTEN}/changelog.Debian.gz
  COMMAND_ERROR_IS_FATAL ANY)
install(FILES ${WRITTEN}/changelog.gz ${WRITTEN}/changelog.Debian.gz DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT tool)
install(FILES ${CMAKE_SOURCE_DIR}/cmake/debian_copyright DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright
  COMPONENT tool)
# All of them, for they point to each other.
install(DIRECTORY ${CMAKE_SOURCE_DIR}/docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT tool
  FILES_MATCHING PATTERN "*.md" PATTERN "*.schema.json" PATTERN "*.svg")

# cpack -G DEB
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME gcompile)
set(CPACK_PACKAGE_VENDOR "the gcompile project")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "compiler from ONNX models to C++ and CUDA projects")
set(CPACK_PACKAGE_DESCRIPTION "gcompile reads a trained ONNX model, optimises its graph, plans all memory when
the model is compiled, and writes a C++17 or CUDA project that a person can
read, and that needs a compiler and nothing else.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
  WORLD_READ WORLD_EXECUTE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "g++ | clang, make, cmake")
include(CPack)
