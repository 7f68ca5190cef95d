# SPDX-License-Identifier: BSD-3-Clause
# Where things lie in a wheel, relative to site-packages: the command in the environment's bin, the C++
# library (headers, archives, CMake package) and the shared libraries of Debian that the binaries need
# under byway/. A no-op elsewhere. UCX and torch are wheels of their own, beside this one.
if(SKBUILD)
  find_package(Python COMPONENTS Interpreter REQUIRED)
  set(CMAKE_INSTALL_LIBDIR byway/lib)
  set(CMAKE_INSTALL_INCLUDEDIR byway/include)
  set(CMAKE_INSTALL_DOCDIR byway)
  # As RPATH, which holds for the libraries that a bundled library needs too; RUNPATH does not.
  add_link_options(-Wl,--disable-new-dtags)
  cmake_path(GET Python_EXECUTABLE PARENT_PATH python_folder)
  cmake_path(GET python_folder PARENT_PATH BYWAY_WHEEL_PREFIX)  # of the environment that builds
  set(site "$ORIGIN/../lib/python${Python_VERSION_MAJOR}.${Python_VERSION_MINOR}/site-packages")
  set(BYWAY_WHEEL_COMMAND_RPATH "${site}/libucx/lib;${site}/byway/lib")
endif()

# What the command and the extension need that a bare Debian lacks. Called once, after both.
function(byway_bundle_libraries)
  install(RUNTIME_DEPENDENCY_SET byway_bundled
          PRE_EXCLUDE_REGEXES "^ld-linux" "^lib(c|m|dl|rt|pthread|stdc\\+\\+|gcc_s|z)\\.so"
                              "^lib(ucp|ucs|uct|ucm|torch|torch_cpu|torch_python|c10)\\.so"
          LIBRARY DESTINATION byway/lib COMPONENT python)
endfunction()
