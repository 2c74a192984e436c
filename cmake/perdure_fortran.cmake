# SPDX-License-Identifier: BSD-3-Clause
#
# Programs in Fortran. The compilers are run as commands, so that CMake itself needs no Fortran.

# perdure_fortran_program(NAME SOURCES … [MODULES …] [LIBS target …] [FLAGS …] [COMPILER …]): NAME
# in this build folder, of MODULES of fortran/ and SOURCES; made again after these, but not whenever
# a library is. By gfortran, unless COMPILER is another; with @ in NAME, by the wrapper of each MPI,
# which stands for @.
function(perdure_fortran_program name)
  cmake_parse_arguments(arg "" "" "COMPILER;SOURCES;FLAGS;MODULES;LIBS" ${ARGN})
  if(name MATCHES "@")
    foreach(mpi IN LISTS PERDURE_MPI_NAMES)
      if(PERDURE_MPIFORT_${mpi})
        string(REPLACE "@" "${mpi}" words "${name};${ARGN}")
        perdure_fortran_program(${words} COMPILER ${PERDURE_MPIFORT_${mpi}})
      endif()
    endforeach()
    return()
  elseif(NOT arg_COMPILER)
    set(arg_COMPILER ${PERDURE_GFORTRAN})
  endif()
  list(TRANSFORM arg_MODULES REPLACE "(.+)" "${CMAKE_SOURCE_DIR}/fortran/\\1.f90")
  list(TRANSFORM arg_SOURCES PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  list(TRANSFORM arg_LIBS REPLACE "(.+)" "$<TARGET_FILE:\\1>")
  set(program ${CMAKE_CURRENT_BINARY_DIR}/${name})
  file(MAKE_DIRECTORY ${program}.mod)
  add_custom_command(OUTPUT ${program} WORKING_DIRECTORY ${program}.mod VERBATIM
    COMMAND ${arg_COMPILER} -cpp -g -O1 -Wall ${arg_FLAGS} ${arg_MODULES} ${arg_SOURCES} ${arg_LIBS}
            -o ${program}
    DEPENDS ${arg_MODULES} ${arg_SOURCES} ${CMAKE_SOURCE_DIR}/fortran/perdure_memory.inc)
  add_custom_target(${name}.program ALL DEPENDS ${program})
endfunction()

# PERDURE_MPIFORT_NAME: the wrapper of each MPI, where it is there and finds its compiler; with an
# option where it needs one. Debian's mpifort.openmpi looks for libmpi.so where the machine's own
# MPI has it, which may be MPICH: the program then has both. mpicc.openmpi knows the folder.
foreach(entry IN LISTS PERDURE_MPI_WRAPPERS)
  string(REGEX MATCH "^([a-z0-9_]+)=(.+)$" matched "${entry}")
  set(mpi ${CMAKE_MATCH_1})
  set(PERDURE_MPICC_${mpi} ${CMAKE_MATCH_2})
  if(PERDURE_SANITIZER)
    continue()
  endif()
  get_filename_component(folder ${PERDURE_MPICC_${mpi}} DIRECTORY)
  get_filename_component(wrapper ${PERDURE_MPICC_${mpi}} NAME)
  string(REPLACE "mpicc" "mpifort" wrapper ${wrapper})
  set(command ${folder}/${wrapper})
  execute_process(COMMAND ${PERDURE_MPICC_${mpi}} --showme:libdirs OUTPUT_VARIABLE libraries
                  ERROR_QUIET RESULT_VARIABLE unknown OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT unknown)
    separate_arguments(libraries)
    list(TRANSFORM libraries PREPEND -L)
    list(APPEND command ${libraries})
  endif()
  set(probe ${CMAKE_BINARY_DIR}/probe_mpifort_${mpi})
  file(WRITE ${probe}.f90 "program probe\n  use mpi_f08\n  call MPI_Init()\nend program\n")
  execute_process(COMMAND ${command} ${probe}.f90 -o ${probe} RESULT_VARIABLE failed
                  WORKING_DIRECTORY ${CMAKE_BINARY_DIR} OUTPUT_QUIET ERROR_QUIET)
  if(failed)
    message(STATUS "MPI flavour ${mpi}: no working ${wrapper}, its Fortran tests are left out")
  else()
    set(PERDURE_MPIFORT_${mpi} ${command})
  endif()
endforeach()
