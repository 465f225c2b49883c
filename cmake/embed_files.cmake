# Run by gcompile_embed at build time: writes OUTPUT, a C++ file with the bytes of every file named in LIST
# (one path per line, relative to ROOT).
file(STRINGS ${LIST} PATHS)
set(ARRAYS)
set(ROWS)
set(INDEX 0)
foreach(FILE_PATH IN LISTS PATHS)
  file(SIZE ${ROOT}/${FILE_PATH} SIZE)
  file(READ ${ROOT}/${FILE_PATH} BYTES HEX)
  string(REGEX REPLACE "(................................................................)" "\\1\n" BYTES "${BYTES}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," BYTES "${BYTES}")
  # The closing zero keeps the array of an empty file legal; it is not counted in the size.
  string(APPEND ARRAYS "// ${FILE_PATH}\nconst unsigned char bytes_${INDEX}[] = {\n${BYTES}0};\n")
  string(APPEND ROWS "      {\"${FILE_PATH}\", view(bytes_${INDEX}, ${SIZE})},\n")
  math(EXPR INDEX "${INDEX} + 1")
endforeach()

if(INDEX EQUAL 0)
  set(BODY "  return {};\n")
else()
  set(BODY "  static const EmbeddedFile kFiles[] = {\n${ROWS}  };\n  return kFiles;\n")
endif()
file(WRITE ${OUTPUT} "// Written by cmake/embed_files.cmake.
#include \"codegen/emit/embedded.h\"

namespace gcompile {
namespace {

[[maybe_unused]] std::string_view view(const unsigned char* bytes, std::size_t size) {
  return {reinterpret_cast<const char*>(bytes), size};
}

${ARRAYS}
}  // namespace

std::span<const EmbeddedFile> embedded_files() {
${BODY}}

}  // namespace gcompile
")
