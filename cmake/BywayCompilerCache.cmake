# SPDX-License-Identifier: BSD-3-Clause
# ccache where it is installed, unless the user chose a launcher.
find_program(BYWAY_CCACHE ccache)
if(BYWAY_CCACHE AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${BYWAY_CCACHE})
endif()
