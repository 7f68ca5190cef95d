# SPDX-License-Identifier: BSD-3-Clause
# byway_set_rpath(target): where an installed program finds UCX. Relative to the program when both are
# under one prefix (a virtual environment can be moved), and absolute as well, since another prefix may
# be given to `cmake --install`; none when the loader looks there anyway. The build tree's own path is CMake's affair.
function(byway_set_rpath target)
  if(SKBUILD)
    set_target_properties(${target} PROPERTIES INSTALL_RPATH "${BYWAY_WHEEL_COMMAND_RPATH}")
    return()
  endif()
  cmake_path(IS_PREFIX CMAKE_INSTALL_PREFIX ${BYWAY_UCX_LIBRARY_DIR} NORMALIZE inside)
  if(inside)
    file(RELATIVE_PATH path ${CMAKE_INSTALL_FULL_BINDIR} ${BYWAY_UCX_LIBRARY_DIR})
    set(path "$ORIGIN/${path}" ${BYWAY_UCX_LIBRARY_DIR})
  elseif(NOT BYWAY_UCX_LIBRARY_DIR IN_LIST CMAKE_CXX_IMPLICIT_LINK_DIRECTORIES)
    set(path ${BYWAY_UCX_LIBRARY_DIR})
  endif()
  set_target_properties(${target} PROPERTIES INSTALL_RPATH "${path}")
endfunction()
