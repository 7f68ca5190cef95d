# SPDX-License-Identifier: BSD-3-Clause
# Every public header compiles alone, and twice: one generated source per header, never linked.
get_property(public_headers GLOBAL PROPERTY BYWAY_PUBLIC_HEADERS)
foreach(header ${public_headers})
  string(MAKE_C_IDENTIFIER ${header} name)
  set(source ${PROJECT_BINARY_DIR}/header_selftest/${name}.cc)
  file(CONFIGURE OUTPUT ${source} CONTENT "#include \"@header@\"\n#include \"@header@\"\n" @ONLY)
  list(APPEND selftest_sources ${source})
endforeach()
add_library(header_selftest OBJECT ${selftest_sources})
# No library's include directories: a public header needs none but Byway's own.
target_include_directories(header_selftest PRIVATE src)
target_link_libraries(header_selftest PRIVATE byway_warnings)
