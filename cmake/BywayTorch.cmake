# SPDX-License-Identifier: BSD-3-Clause
# The target Byway::torch (headers and libraries of an installed torch, and Python's headers), if the
# interpreter has one. BYWAY_TORCH: AUTO takes it where it is found, ON demands it, OFF leaves it out.
#   -DBYWAY_PYTHON=<interpreter>   default: .venv's, else python3
set(BYWAY_TORCH AUTO CACHE STRING "Build the PyTorch backend: AUTO, ON, OFF")
set(BYWAY_PYTHON "" CACHE FILEPATH "The Python interpreter whose torch the backend is built for")
set(BYWAY_TORCH_FOUND OFF)

function(byway_find_torch)
  set(python ${BYWAY_PYTHON})
  if(NOT python AND SKBUILD)
    set(python ${Python_EXECUTABLE})
  elseif(NOT python AND EXISTS ${PROJECT_SOURCE_DIR}/.venv/bin/python)
    set(python ${PROJECT_SOURCE_DIR}/.venv/bin/python)
  elseif(NOT python)
    find_program(python3 python3 NO_CACHE)
    set(python ${python3})
  endif()
  # Found without importing it, which would take seconds.
  execute_process(
    COMMAND ${python} -c "import importlib.util as u, os, sysconfig as s
torch = u.find_spec('torch')
folder = os.path.dirname(torch.origin) if torch and torch.origin else ''
version = {}
if folder: exec(open(os.path.join(folder, 'version.py')).read(), version)
print(folder, version.get('__version__', ''), s.get_paths()['include'], s.get_config_var('EXT_SUFFIX'),
      s.get_paths()['platlib'], sep=';')"
    OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE status ERROR_VARIABLE why)
  set(folder "")
  if(status EQUAL 0)
    list(GET found 0 folder)
  endif()
  if(NOT folder)
    set(why "${python} has no torch")
  else()
    list(GET found 1 version)
    list(GET found 2 python_include)
    list(GET found 3 suffix)
    list(GET found 4 platlib)
    if(version VERSION_LESS 2.11 OR version VERSION_GREATER_EQUAL 2.15)
      set(why "torch ${version} in ${folder} is not one of 2.11 to 2.14")
      set(folder "")
    elseif(NOT EXISTS ${python_include}/Python.h)
      set(why "${python} has no headers (python3-dev)")
      set(folder "")
    endif()
  endif()
  if(NOT folder)
    if(BYWAY_TORCH STREQUAL AUTO)
      message(STATUS "PyTorch backend: left out (${why})")
      return()
    endif()
    message(FATAL_ERROR "BYWAY_TORCH=${BYWAY_TORCH}, but ${why}.\n"
            "Run scripts/setup.sh test, or name an interpreter that has torch with -DBYWAY_PYTHON=.")
  endif()
  add_library(Byway::torch INTERFACE IMPORTED)
  target_include_directories(Byway::torch SYSTEM INTERFACE ${folder}/include
                             ${folder}/include/torch/csrc/api/include ${python_include})
  target_compile_definitions(Byway::torch INTERFACE USE_DISTRIBUTED USE_C10D_GLOO)
  foreach(library torch_python torch_cpu c10)
    target_link_libraries(Byway::torch INTERFACE ${folder}/lib/lib${library}.so)
  endforeach()
  message(STATUS "PyTorch backend: torch ${version} in ${folder}")
  set(BYWAY_TORCH_FOUND ON PARENT_SCOPE)
  set(BYWAY_TORCH_VERSION ${version} PARENT_SCOPE)
  set(BYWAY_PYTHON_SUFFIX ${suffix} PARENT_SCOPE)
  set(BYWAY_PYTHON_PLATLIB ${platlib} PARENT_SCOPE)
endfunction()

if(NOT BYWAY_TORCH STREQUAL OFF)
  byway_find_torch()
endif()

# The extension `byway.torch._C`, from the folder that calls this. In the build tree it lies alone
# (BYWAY_TORCH_EXTENSION names it to the package); installed, beside the package's Python files,
# from where UCX and torch are found at their places in the same site-packages.
function(byway_torch_extension)
  add_library(byway_torch_extension MODULE module.cc)
  target_link_libraries(byway_torch_extension PRIVATE byway_torch byway_warnings Byway::torch)
  target_compile_definitions(byway_torch_extension PRIVATE BYWAY_VERSION="${PROJECT_VERSION}")
  target_link_options(byway_torch_extension PRIVATE -Wl,--exclude-libs,ALL)
  set_target_properties(byway_torch_extension PROPERTIES
    PREFIX "" OUTPUT_NAME _C SUFFIX ${BYWAY_PYTHON_SUFFIX} CXX_VISIBILITY_PRESET hidden
    INSTALL_RPATH "$ORIGIN/../../libucx/lib;$ORIGIN/../../torch/lib")
  # Read before the extension is loaded, to say in words what would not load.
  file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/_C.json
       "{\"byway\": \"${PROJECT_VERSION}\", \"torch\": \"${BYWAY_TORCH_VERSION}\"}\n")
  # A wheel's paths are relative to site-packages.
  set(folder ${BYWAY_PYTHON_PLATLIB}/byway/torch)
  if(SKBUILD)
    set(folder byway/torch)
    set(bundle RUNTIME_DEPENDENCY_SET byway_bundled)
    set_property(TARGET byway_torch_extension APPEND PROPERTY INSTALL_RPATH "$ORIGIN/../lib")
  endif()
  install(TARGETS byway_torch_extension ${bundle} LIBRARY DESTINATION ${folder} COMPONENT python)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/_C.json DESTINATION ${folder} COMPONENT python)
endfunction()

# Lazy mode (src/byway/torch/lazy): a library of its own, since it is bound to parts of torch that
# change most. Loaded by byway.lazy.init() from beside the extension. Another torch than the one it is
# written for loses lazy mode and nothing else.
function(byway_torch_lazy_library)
  if(BYWAY_TORCH_VERSION VERSION_LESS 2.13 OR BYWAY_TORCH_VERSION VERSION_GREATER_EQUAL 2.14)
    message(STATUS "Lazy mode: left out (written for torch 2.13, this is ${BYWAY_TORCH_VERSION})")
    return()
  endif()
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/lazy/*.cc)
  add_library(byway_torch_lazy MODULE ${sources} ${CMAKE_CURRENT_SOURCE_DIR}/gil.cc)
  target_include_directories(byway_torch_lazy PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(byway_torch_lazy PRIVATE byway_warnings Byway::torch)
  set_target_properties(byway_torch_lazy PROPERTIES
    PREFIX "" OUTPUT_NAME _lazy SUFFIX ${BYWAY_PYTHON_SUFFIX} CXX_VISIBILITY_PRESET hidden
    UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0  # torch's headers are most of the work
    INSTALL_RPATH "$ORIGIN/../../torch/lib")
  install(TARGETS byway_torch_lazy LIBRARY DESTINATION ${BYWAY_PYTHON_PLATLIB}/byway/torch)
endfunction()
