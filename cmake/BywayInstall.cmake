# SPDX-License-Identifier: BSD-3-Clause
# The installed package: `find_package(byway)` gives byway::byway, the whole library.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/byway)

# The top module brings all those below it. Until comm/ has sources, the highest that exists.
add_library(byway_all INTERFACE)
set_target_properties(byway_all PROPERTIES EXPORT_NAME byway)
foreach(module comm executor planner transport kernels schedule base)
  if(TARGET byway_${module})
    target_link_libraries(byway_all INTERFACE byway_${module})
    break()
  endif()
endforeach()
add_library(byway::byway ALIAS byway_all)

install(TARGETS byway_all EXPORT byway)
install(EXPORT byway NAMESPACE byway:: FILE bywayTargets.cmake DESTINATION ${package_dir})
configure_package_config_file(cmake/bywayConfig.cmake.in ${PROJECT_BINARY_DIR}/bywayConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/bywayConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/bywayConfig.cmake ${PROJECT_BINARY_DIR}/bywayConfigVersion.cmake
              cmake/BywayUcx.cmake
        DESTINATION ${package_dir})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
