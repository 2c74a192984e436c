# SPDX-License-Identifier: BSD-3-Clause
#
# What `cmake --install` puts into a prefix: headers, shared libraries, the Fortran modules, a CMake
# package, pkg-config files, documents, examples, a module file, and the command with its Python
# package (perdure_command.cmake, where that is built). The target `uninstall` removes it.
#
#   find_package(perdure)  →  perdure::perdure, perdure::mpi_NAME for each MPI flavour
#   pkg-config             →  perdure, perdure_mpi_NAME, perdure_veloc
#
# Programs are built against a wheel (perdure_wheel.cmake) and a build tree by the same two, whose
# files `perdure config` reads.
include(CMakePackageConfigHelpers)

# VELOC's client interface (docs/veloc.md) is perdure::veloc, and what it loads.
list(TRANSFORM PERDURE_MPI_LIBRARIES PREPEND perdure_mpi_shared_ OUTPUT_VARIABLE mpi_libraries)
set(installed_libraries perdure_shared ${mpi_libraries})
list(TRANSFORM PERDURE_MPI_LIBRARIES PREPEND perdure_mpi_ OUTPUT_VARIABLE packages)
list(PREPEND packages perdure)
list(TRANSFORM PERDURE_MPI_LIBRARIES PREPEND perdure_veloc_ OUTPUT_VARIABLE veloc_libraries)
if(PERDURE_MPI_LIBRARIES)
  list(PREPEND veloc_libraries perdure_veloc)
  list(APPEND packages perdure_veloc)
endif()

set(package_version ${CMAKE_BINARY_DIR}/cmake/perdure-config-version.cmake)
write_basic_package_version_file(${package_version} COMPATIBILITY SameMinorVersion)

# perdure_install_interface(EXPORT LIBDIR INCLUDEDIR FORTRANDIR [COMPONENT …] [LIBRARIES …]): what
# programs are built with, by one rule for all that is installed. The last words are install()'s,
# for all and for libraries.
function(perdure_install_interface export libdir includedir fortrandir)
  cmake_parse_arguments(arg "" "" "LIBRARIES" ${ARGN})
  set(how ${arg_UNPARSED_ARGUMENTS})
  set(how_library ${how} ${arg_LIBRARIES})
  install(DIRECTORY include/perdure DESTINATION ${includedir} ${how}
          FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
  # Source, because a compiled module belongs to one compiler.
  install(FILES fortran/perdure.f90 fortran/perdure_memory.inc fortran/perdure_mpi.f90
                fortran/perdure_ipv.f90 fortran/perdure_trace.f90
          DESTINATION ${fortrandir} ${how})
  install(TARGETS ${installed_libraries} EXPORT ${export} INCLUDES DESTINATION ${includedir}
          LIBRARY DESTINATION ${libdir} ${how_library})
  if(veloc_libraries)
    install(TARGETS ${veloc_libraries} EXPORT ${export}
            INCLUDES DESTINATION ${includedir}/perdure/veloc
            LIBRARY DESTINATION ${libdir} ${how_library})
    install(TARGETS perdure_preload LIBRARY DESTINATION ${libdir} ${how})
  endif()
  install(EXPORT ${export} NAMESPACE perdure:: FILE perdure-config.cmake
          DESTINATION ${libdir}/cmake/perdure ${how})
  install(FILES ${package_version} DESTINATION ${libdir}/cmake/perdure ${how})
endfunction()

# perdure_pkg_config(FOLDER PREFIX LIBDIR INCLUDEDIR BINDIR FORTRANDIR CMAKEDIR [VELOC_LIBDIR]):
# writes the pkg-config files to FOLDER, and sets `written` to their names. PREFIX is seen from
# where they will be, so that all of it can be moved; the other folders are seen from PREFIX.
function(perdure_pkg_config folder prefix libdir includedir bindir fortrandir cmakedir)
  set(folders ${libdir} ${ARGN})
  list(POP_BACK folders libdir_of_veloc)
  set(files "")
  set(libdir_of_others ${libdir})
  foreach(name IN LISTS packages)
    set(libdir ${libdir_of_others})
    set(description "${PROJECT_DESCRIPTION}")
    set(headers "")
    if(name STREQUAL "perdure_veloc")
      set(description "VELOC's client interface on Perdure's pools")
      set(headers /perdure/veloc)
      set(libdir ${libdir_of_veloc})
    elseif(NOT name STREQUAL "perdure")
      string(REPLACE "perdure_mpi_" "" mpi ${name})
      string(APPEND description "; with the mpicc of ${mpi}")
    endif()
    configure_file(cmake/perdure.pc.in ${folder}/${name}.pc @ONLY)
    list(APPEND files ${folder}/${name}.pc)
  endforeach()
  set(written ${files} PARENT_SCOPE)
endfunction()

install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
perdure_install_interface(perdure_targets ${CMAKE_INSTALL_LIBDIR} ${CMAKE_INSTALL_INCLUDEDIR}
                          ${CMAKE_INSTALL_DATADIR}/perdure)
file(RELATIVE_PATH prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
perdure_pkg_config(${CMAKE_BINARY_DIR}/pkgconfig_installed ${prefix} ${CMAKE_INSTALL_LIBDIR}
                   ${CMAKE_INSTALL_INCLUDEDIR} ${CMAKE_INSTALL_BINDIR}
                   ${CMAKE_INSTALL_DATADIR}/perdure ${CMAKE_INSTALL_LIBDIR}/cmake/perdure)
install(FILES ${written} DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# The build tree itself.
export(EXPORT perdure_targets NAMESPACE perdure::
       FILE ${CMAKE_BINARY_DIR}/cmake/perdure-config.cmake)
file(RELATIVE_PATH source ${CMAKE_BINARY_DIR} ${CMAKE_SOURCE_DIR}/include)
cmake_path(GET source PARENT_PATH source)
perdure_pkg_config(${CMAKE_BINARY_DIR}/pkgconfig .. src/capi ${source}/include trace/bin
                   ${source}/fortran cmake src/veloc)

install(FILES README.md CHANGELOG.md SECURITY.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs)
install(DIRECTORY examples DESTINATION ${CMAKE_INSTALL_DATADIR}/perdure)

# Lmod and Environment Modules 4.3 and newer read it, from wherever the prefix is.
configure_file(cmake/module.lua.in ${CMAKE_BINARY_DIR}/${PROJECT_VERSION}.lua @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/${PROJECT_VERSION}.lua
        DESTINATION ${CMAKE_INSTALL_DATADIR}/modulefiles/perdure)

add_custom_target(uninstall COMMENT "Removing what the last installation has put into its prefix"
  COMMAND ${CMAKE_COMMAND} -D MANIFEST=${CMAKE_BINARY_DIR}/install_manifest.txt
          -P ${CMAKE_SOURCE_DIR}/cmake/uninstall.cmake)

# What `perdure cache predict` measures an MPI with.
if(TARGET bench_words AND PERDURE_MPI_NAMES)
  list(TRANSFORM PERDURE_MPI_NAMES PREPEND bench_file_accesses_ OUTPUT_VARIABLE programs)
  install(TARGETS ${programs} RUNTIME DESTINATION ${CMAKE_INSTALL_LIBDIR}/perdure/programs)
endif()
