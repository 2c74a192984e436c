# SPDX-License-Identifier: BSD-3-Clause
#
# MPI is used in several flavours at once, so each is an imported target of its own:
#   perdure_mpi_NAME with NAME one of PERDURE_MPI_NAMES, made from its compiler wrapper, and
#   perdure_mpi_NAME_headers, without its libraries, for what works with whichever is loaded.
# The first flavour is the default one. Add others (for example from a Python wheel) with
#   -DPERDURE_MPI_WRAPPERS="mpich=/usr/bin/mpicc.mpich;ompi5=/opt/ompi5/bin/mpicc"
#
# A path without a name gives its flavour the name of its binary interface, mpich, openmpi or abi,
# as libperdure_preload.so looks for a library of that name; so does a single mpicc that is found.
function(perdure_mpi_interface wrapper)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/mpi_header.c CONTENT "#include <mpi.h>\n")
  execute_process(COMMAND ${wrapper} -E -dM ${CMAKE_BINARY_DIR}/mpi_header.c
                  OUTPUT_VARIABLE macros ERROR_QUIET)
  set(interface mpi)
  foreach(macro "MPICH_VERSION mpich" "OPEN_MPI openmpi" "MPI_ABI_VERSION abi")
    separate_arguments(macro)
    list(POP_FRONT macro defined name)
    if(macros MATCHES "#define ${defined} ")
      set(interface ${name})
    endif()
  endforeach()
  set(interface ${interface} PARENT_SCOPE)
endfunction()

# What was found is looked for again at each configuration: an MPI may be installed later.
if(NOT PERDURE_MPI_WRAPPERS)
  find_program(PERDURE_MPICC_MPICH mpicc.mpich)
  find_program(PERDURE_MPICC_OPENMPI mpicc.openmpi)
  find_program(PERDURE_MPICC_ANY mpicc)
  set(PERDURE_MPI_WRAPPERS mpich=${PERDURE_MPICC_MPICH} openmpi=${PERDURE_MPICC_OPENMPI})
  list(FILTER PERDURE_MPI_WRAPPERS INCLUDE REGEX "=/")
  if(NOT PERDURE_MPI_WRAPPERS AND PERDURE_MPICC_ANY)
    set(PERDURE_MPI_WRAPPERS ${PERDURE_MPICC_ANY})
  endif()
endif()

# Splits what the wrapper would run into an interface target.
function(perdure_add_mpi name wrapper)
  execute_process(COMMAND ${wrapper} -show OUTPUT_VARIABLE shown RESULT_VARIABLE failed
                  OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(failed)
    message(FATAL_ERROR "${wrapper} -show failed; is it an MPI compiler wrapper?")
  endif()
  separate_arguments(words UNIX_COMMAND "${shown}")
  list(POP_FRONT words)
  add_library(perdure_mpi_${name}_headers INTERFACE IMPORTED GLOBAL)
  add_library(perdure_mpi_${name} INTERFACE IMPORTED GLOBAL)
  target_link_libraries(perdure_mpi_${name} INTERFACE perdure_mpi_${name}_headers)
  # The C++ bindings that MPI-3 removed: without this their headers ask for another library.
  target_compile_definitions(perdure_mpi_${name}_headers INTERFACE OMPI_SKIP_MPICXX
                                                                   MPICH_SKIP_MPICXX)
  foreach(word IN LISTS words)
    if(word MATCHES "^-I(.+)")
      target_include_directories(perdure_mpi_${name}_headers SYSTEM INTERFACE ${CMAKE_MATCH_1})
    elseif(word MATCHES "^-D(.+)")
      target_compile_definitions(perdure_mpi_${name}_headers INTERFACE ${CMAKE_MATCH_1})
    elseif(word MATCHES "^-L(.+)")
      target_link_options(perdure_mpi_${name} INTERFACE ${word})
    elseif(word MATCHES "^-(l|Wl,)")
      target_link_libraries(perdure_mpi_${name} INTERFACE ${word})
    elseif(word STREQUAL "-pthread")
      target_link_libraries(perdure_mpi_${name} INTERFACE Threads::Threads)
    endif()
  endforeach()
  get_filename_component(folder ${wrapper} DIRECTORY)
  get_filename_component(launcher ${wrapper} NAME)
  string(REPLACE "mpicc" "mpiexec" launcher ${launcher})
  find_program(PERDURE_MPIEXEC_${name} NAMES ${launcher} mpiexec HINTS ${folder} NO_DEFAULT_PATH)
  set(mpiexec ${PERDURE_MPIEXEC_${name}})
  execute_process(COMMAND ${mpiexec} --version OUTPUT_VARIABLE about ERROR_QUIET)
  string(REGEX MATCH "[0-9]+\\.[0-9]+(\\.[0-9]+)?" version "${about}")
  set(PERDURE_MPI_VERSION_${name} "${version}" CACHE INTERNAL "")
  message(STATUS "MPI flavour ${name} ${version}: ${wrapper}, ${mpiexec}")
  # From here on PERDURE_MPIEXEC_NAME, which tests start their jobs with, is a script that makes
  # ranks yield while they wait, where the MPI polls with UCX and does not do so itself. In the
  # cache, for commands, it is the MPI's own.
  if(PERDURE_TESTS AND NOT PERDURE_SANITIZER AND about MATCHES "--with-device=ch4:ucx")
    set(library ${CMAKE_BINARY_DIR}/tests/mpi_yield/libperdure_mpi_yield.so)
    set(PERDURE_MPIEXEC_${name} ${CMAKE_BINARY_DIR}/mpi_yield/mpiexec.${name})
    configure_file(${CMAKE_SOURCE_DIR}/tests/mpi_yield/mpiexec.in ${PERDURE_MPIEXEC_${name}} @ONLY
                   FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
  endif()
  set(PERDURE_MPIEXEC_${name} ${PERDURE_MPIEXEC_${name}} PARENT_SCOPE)
  set(PERDURE_MPIRUN_${name} ${CMAKE_SOURCE_DIR}/tools/mpirun.sh ${PERDURE_MPIEXEC_${name}}
      PARENT_SCOPE)  # and a number of ranks
endfunction()

# perdure_mpi_processors(OUT MPI RANKS): how many of ctest's tests at once a job counts for. There
# are two more than processors, because many wait for disks, signals and other processes. Ranks
# that spin while they wait want a processor each, and nobody to take turns with; those of Open MPI
# yield (tools/mpirun.sh). Those that are started by tests/mpi_yield take turns, with more work.
function(perdure_mpi_processors out mpi ranks)
  set(${out} 1 PARENT_SCOPE)
  if(ranks GREATER 1 AND PERDURE_MPIEXEC_${mpi} MATCHES "/mpi_yield/")
    set(${out} 2 PARENT_SCOPE)
  elseif(ranks GREATER 1 AND NOT mpi STREQUAL "openmpi")
    set(${out} 4 PARENT_SCOPE)
  endif()
endfunction()

set(PERDURE_MPI_NAMES "")
set(named "")
foreach(entry IN LISTS PERDURE_MPI_WRAPPERS)
  string(REGEX MATCH "^(([a-z0-9_]+)=)?(/.+)$" matched "${entry}")
  if(NOT matched)
    message(FATAL_ERROR "PERDURE_MPI_WRAPPERS: '${entry}' is neither NAME=/path nor /path")
  endif()
  set(name "${CMAKE_MATCH_2}")
  set(wrapper "${CMAKE_MATCH_3}")
  perdure_mpi_interface(${wrapper})
  if("${name};${interface}" MATCHES "^(mpich;openmpi|openmpi;mpich)$")
    message(FATAL_ERROR "PERDURE_MPI_WRAPPERS: ${wrapper} is not ${name}, it is ${interface}: a "
                        "library of a wrong name would be loaded into programs that it crashes")
  elseif(name STREQUAL "")
    set(name ${interface})
  endif()
  perdure_add_mpi(${name} ${wrapper})
  list(APPEND PERDURE_MPI_NAMES ${name})
  list(APPEND named "${name}=${wrapper}")
endforeach()
set(PERDURE_MPI_WRAPPERS "${named}")
set(PERDURE_MPI_USED "${named}" CACHE INTERNAL "NAME=path of mpicc of each flavour")
if(NOT PERDURE_MPI_NAMES)
  message(STATUS "No MPI found: building the single-process library only")
endif()

# The flavours that a library is built for: these, and the standard binary interface of MPI 5, for
# which its header is enough (tools/bootstrap.sh brings it). Programs of that one are tested where
# its MPI library is.
set(PERDURE_MPI_ABI_HEADER "${CMAKE_SOURCE_DIR}/.venv/mpi_abi/mpi.h"
    CACHE FILEPATH "mpi.h of the standard binary interface of MPI 5")
set(PERDURE_MPI_LIBRARIES ${PERDURE_MPI_NAMES})
if(PERDURE_MPI_NAMES AND NOT "abi" IN_LIST PERDURE_MPI_NAMES)
  if(EXISTS "${PERDURE_MPI_ABI_HEADER}")
    get_filename_component(abi_include "${PERDURE_MPI_ABI_HEADER}" DIRECTORY)
    add_library(perdure_mpi_abi_headers INTERFACE IMPORTED GLOBAL)
    target_include_directories(perdure_mpi_abi_headers SYSTEM INTERFACE ${abi_include})
    list(APPEND PERDURE_MPI_LIBRARIES abi)
  else()
    message(STATUS "No library for the standard binary interface of MPI 5: "
                   "${PERDURE_MPI_ABI_HEADER} is missing (tools/bootstrap.sh brings it)")
  endif()
endif()
