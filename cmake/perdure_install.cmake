# SPDX-License-Identifier: BSD-3-Clause
#
# What `cmake --install` puts into a prefix: headers, shared libraries, the Fortran module, a CMake
# package, pkg-config files, documents, examples, a module file, and the command with its Python
# package (perdure_command.cmake, where that is built). The target `uninstall` removes it.
#
#   find_package(perdure)  →  perdure::perdure, perdure::mpi_NAME for each MPI flavour
#   pkg-config             →  perdure, perdure_mpi_NAME, perdure_veloc
include(CMakePackageConfigHelpers)

install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY include/perdure DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")

# Source, because a compiled module belongs to one compiler.
install(FILES fortran/perdure.f90 fortran/perdure_memory.inc fortran/perdure_mpi.f90
              fortran/perdure_ipv.f90 fortran/perdure_trace.f90
        DESTINATION ${CMAKE_INSTALL_DATADIR}/perdure)

set_target_properties(perdure_shared PROPERTIES EXPORT_NAME perdure)
set(installed_libraries perdure_shared)
foreach(mpi IN LISTS PERDURE_MPI_LIBRARIES)
  set_target_properties(perdure_mpi_shared_${mpi} PROPERTIES EXPORT_NAME mpi_${mpi})
  list(APPEND installed_libraries perdure_mpi_shared_${mpi})
endforeach()
# VELOC's client interface (docs/veloc.md): perdure::veloc, and what it loads.
if(PERDURE_MPI_LIBRARIES)
  set_target_properties(perdure_veloc PROPERTIES EXPORT_NAME veloc)
  list(APPEND installed_libraries perdure_veloc)
  foreach(mpi IN LISTS PERDURE_MPI_LIBRARIES)
    set_target_properties(perdure_veloc_${mpi} PROPERTIES EXPORT_NAME veloc_${mpi})
    list(APPEND installed_libraries perdure_veloc_${mpi})
  endforeach()
  install(TARGETS perdure_preload LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
install(TARGETS ${installed_libraries} EXPORT perdure_targets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})

set(package_directory ${CMAKE_INSTALL_LIBDIR}/cmake/perdure)
install(EXPORT perdure_targets NAMESPACE perdure:: FILE perdure-config.cmake
        DESTINATION ${package_directory})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/perdure-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/perdure-config-version.cmake
        DESTINATION ${package_directory})

# The prefix is found from where the file is, so that a tree can be moved.
file(RELATIVE_PATH PERDURE_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
function(perdure_pkg_config name description folder)
  set(PERDURE_PC_NAME ${name})
  set(PERDURE_PC_FOLDER "${folder}")
  set(PERDURE_PC_DESCRIPTION "${description}")
  configure_file(cmake/perdure.pc.in ${CMAKE_BINARY_DIR}/${name}.pc @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()
perdure_pkg_config(perdure "${PROJECT_DESCRIPTION}" "")
foreach(mpi IN LISTS PERDURE_MPI_LIBRARIES)
  perdure_pkg_config(perdure_mpi_${mpi} "${PROJECT_DESCRIPTION}; with the mpicc of ${mpi}" "")
endforeach()
if(PERDURE_MPI_LIBRARIES)
  perdure_pkg_config(perdure_veloc "VELOC's client interface on Perdure's pools" /perdure/veloc)
endif()

install(FILES README.md CHANGELOG.md SECURITY.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs)
install(DIRECTORY examples DESTINATION ${CMAKE_INSTALL_DATADIR}/perdure
        PATTERN CMakeLists.txt EXCLUDE)

# Lmod and Environment Modules 4.3 and newer read it, from wherever the prefix is.
configure_file(cmake/module.lua.in ${CMAKE_BINARY_DIR}/${PROJECT_VERSION}.lua @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/${PROJECT_VERSION}.lua
        DESTINATION ${CMAKE_INSTALL_DATADIR}/modulefiles/perdure)

add_custom_target(uninstall COMMENT "Removing what the last installation has put into its prefix"
  COMMAND ${CMAKE_COMMAND} -D MANIFEST=${CMAKE_BINARY_DIR}/install_manifest.txt
          -P ${CMAKE_SOURCE_DIR}/cmake/uninstall.cmake)

# What `perdure cache predict` measures an MPI with.
foreach(mpi IN LISTS PERDURE_MPI_NAMES)
  if(TARGET bench_file_accesses_${mpi})
    install(TARGETS bench_file_accesses_${mpi}
            RUNTIME DESTINATION ${CMAKE_INSTALL_LIBDIR}/perdure/programs)
  endif()
endforeach()
