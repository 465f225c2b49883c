# Writes OUTPUT, an assembly file that carries every file named in LIST (one path a line, relative to ROOT, sorted as bytes
# are): the assembler reads them, which takes a tenth of a second where a compiler reads arrays of numbers for seconds. The
# table has, for each file, where its path, its contents and the end of them lie. codegen/emit/embedded.cc reads it.
#
# Included by gcompile_embed; also a script: cmake -DLIST=... -DOUTPUT=... -P embed_files.cmake.
file(STRINGS ${LIST} PATHS)
set(ROWS)
set(BYTES)
set(INDEX 0)
foreach(FILE_PATH IN LISTS PATHS)
  string(APPEND ROWS "    .long LABEL(path_${INDEX}) - bytes, LABEL(file_${INDEX}) - bytes, LABEL(end_${INDEX}) - bytes\n")
  string(APPEND BYTES "LABEL(path_${INDEX}):\n    .ascii \"${FILE_PATH}\"\nLABEL(file_${INDEX}):\n    .incbin \"${FILE_PATH}\"\nLABEL(end_${INDEX}):\n")
  math(EXPR INDEX "${INDEX} + 1")
endforeach()

file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT "/* Written by cmake/embed_files.cmake. */
#if defined(__APPLE__)
#define bytes _gcompile_embedded_bytes
#define table _gcompile_embedded_table
#define count _gcompile_embedded_count
#define LABEL(name) L##name
    .const
#else
#define bytes gcompile_embedded_bytes
#define table gcompile_embedded_table
#define count gcompile_embedded_count
#define LABEL(name) .L##name
    .section .rodata
#endif
    .globl bytes
    .globl table
    .globl count
    .p2align 2
count:
    .long ${INDEX}
table:
${ROWS}
bytes:
${BYTES}
#if defined(__ELF__)
    .section .note.GNU-stack, \"\", %progbits
#endif
")
