# What `cmake --install` puts into a prefix: headers, shared libraries, the Fortran module, a CMake
# package and pkg-config files. The command and its module are a Python package (pyproject.toml).
#
#   find_package(perdure)  →  perdure::perdure, perdure::mpi_NAME for each MPI flavour
#   pkg-config             →  perdure, perdure_mpi_NAME
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

# The prefix is found from where the file stands, so that a tree can be moved.
file(RELATIVE_PATH PERDURE_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
function(perdure_pkg_config name description)
  set(PERDURE_PC_NAME ${name})
  set(PERDURE_PC_DESCRIPTION "${description}")
  configure_file(cmake/perdure.pc.in ${CMAKE_BINARY_DIR}/${name}.pc @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()
perdure_pkg_config(perdure "${PROJECT_DESCRIPTION}")
foreach(mpi IN LISTS PERDURE_MPI_LIBRARIES)
  perdure_pkg_config(perdure_mpi_${mpi} "${PROJECT_DESCRIPTION}; with the mpicc of ${mpi}")
endforeach()

# Benchmark programs, for `perdure bench`.
if(PERDURE_APPS)
  get_property(programs DIRECTORY bench PROPERTY BUILDSYSTEM_TARGETS)
  list(FILTER programs INCLUDE REGEX "^bench_")
  if(programs)
    install(TARGETS ${programs} RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/perdure)
  endif()
endif()
