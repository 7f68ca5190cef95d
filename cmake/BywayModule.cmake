# SPDX-License-Identifier: BSD-3-Clause
# byway_module(name DEPENDS modules... [LIBS libraries...] [TEST_LIBS libraries-or-modules...]
#              [PUBLIC headers...] [EXCLUDE subfolder] [INTERNAL])
# One source folder = one static library `byway_<name>`; every *_test.cc in it (also one level down)
# becomes part of the test program `<name>_test`, registered test by test:
#   suites named Timed...  measure time: each runs alone, with the label `timed` (not under sanitizers)
#   suites named Full...   belong to `make test-full` only, with the label `full`
# PUBLIC headers are installed and must compile alone. An INTERNAL module is not installed.

add_library(byway_warnings INTERFACE)
target_compile_options(byway_warnings INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wold-style-cast
                       -Wimplicit-fallthrough -Wswitch-enum
                       # g++ 12 sees overlaps in string concatenation that are not there (GCC PR105651).
                       $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
if(BYWAY_WERROR)
  target_compile_options(byway_warnings INTERFACE -Werror)
endif()

function(byway_module name)
  cmake_parse_arguments(ARG "INTERNAL" "EXCLUDE" "DEPENDS;LIBS;TEST_LIBS;PUBLIC" ${ARGN})
  foreach(header ${ARG_PUBLIC})
    set_property(GLOBAL APPEND PROPERTY BYWAY_PUBLIC_HEADERS byway/${name}/${header})
    install(FILES ${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/byway/${name})
  endforeach()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  if(ARG_EXCLUDE)
    list(FILTER sources EXCLUDE REGEX "^${CMAKE_CURRENT_SOURCE_DIR}/${ARG_EXCLUDE}/")
  endif()
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER sources EXCLUDE REGEX "(^|/)(.*_(test|main)|module)\\.cc$")
  if(NOT sources)
    return()
  endif()
  add_library(byway_${name} STATIC ${sources})
  target_compile_features(byway_${name} PUBLIC cxx_std_20)
  target_include_directories(byway_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>
                                                  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(byway_${name} PRIVATE $<BUILD_INTERFACE:byway_warnings> ${ARG_LIBS})
  foreach(dep ${ARG_DEPENDS})
    target_link_libraries(byway_${name} PUBLIC byway_${dep})
  endforeach()
  if(NOT ARG_INTERNAL)
    set_target_properties(byway_${name} PROPERTIES EXPORT_NAME ${name})
    install(TARGETS byway_${name} EXPORT byway)
  endif()
  if(BYWAY_TESTS AND tests)
    add_executable(${name}_test ${tests})
    target_link_libraries(${name}_test PRIVATE byway_${name} byway_warnings GTest::gmock GTest::gtest_main
                          ${ARG_TEST_LIBS})
    set(discover ${name}_test DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60)
    gtest_discover_tests(${discover} TEST_FILTER "-Timed*:*/Timed*:Full*:*/Full*" PROPERTIES TIMEOUT 300)
    gtest_discover_tests(${discover} TEST_FILTER "Timed*:*/Timed*"
                         PROPERTIES TIMEOUT 300 RUN_SERIAL TRUE LABELS timed)
    gtest_discover_tests(${discover} TEST_FILTER "Full*:*/Full*"
                         PROPERTIES TIMEOUT 3600 RUN_SERIAL TRUE LABELS full)
  endif()
endfunction()
