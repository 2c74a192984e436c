# SPDX-License-Identifier: BSD-3-Clause
#
# Entries of ctest; programs of GoogleTest; the same for each MPI.

# perdure_test_entry(NAME COMMAND word … | PYTHON script word … | VENV script word … [TIMEOUT s]
#                    [SHORT word …] [SOAK | LONG suffix s word …] [LABELS …] [ENVIRONMENT …]
#                    [COST n] [SKIPS] [UNSANITIZED] [RANKS n | PROCESSORS n] [ONLY flavour]
#                    [FORTRAN])
#   ctest's NAME, or with SOAK that of `make soak` only. A script is one of this folder; it needs
#   what .venv has (tools/bootstrap.sh) where that says VENV, and is left out without. SKIPS: the
#   command returns 77 where it does nothing. UNSANITIZED: it is left out with a sanitizer. With
#   LONG, `make soak` has NAME and the suffix, too, with other words at the end than the SHORT ones.
#   @ in NAME: one for each MPI flavour, or ONLY that, or for each that has FORTRAN, which stands
#   for @ everywhere; @MPIEXEC and @MPIRUN are what starts its jobs, bare and with what all of them
#   are to have. RANKS says how many, whose processors are counted.
function(perdure_test_entry name)
  if(name MATCHES "@")
    cmake_parse_arguments(arg "FORTRAN" "ONLY" "" ${ARGN})
    foreach(mpi IN LISTS PERDURE_MPI_NAMES)
      if((NOT arg_ONLY OR arg_ONLY STREQUAL mpi) AND (NOT arg_FORTRAN OR PERDURE_MPIFORT_${mpi}))
        string(REPLACE "@MPIRUN" "${PERDURE_MPIRUN_${mpi}}" words "${arg_UNPARSED_ARGUMENTS}")
        string(REPLACE "@MPIEXEC" "${PERDURE_MPIEXEC_${mpi}}" words "${words}")
        string(REPLACE "@" "${mpi}" words "${name};${words}")
        perdure_test_entry(${words} MPI ${mpi})
      endif()
    endforeach()
    return()
  endif()
  cmake_parse_arguments(arg "SOAK;SKIPS;UNSANITIZED" "TIMEOUT;COST;PROCESSORS;MPI;RANKS"
                        "COMMAND;PYTHON;VENV;SHORT;LONG;LABELS;ENVIRONMENT" ${ARGN})
  perdure_all_known(${name} ${arg_UNPARSED_ARGUMENTS})
  if((arg_UNSANITIZED AND PERDURE_SANITIZER) OR (arg_VENV AND NOT PERDURE_TEST_PYTHON))
    return()
  endif()
  if(arg_PYTHON)
    set(arg_COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/${arg_PYTHON})
  elseif(arg_VENV)
    set(arg_COMMAND ${PERDURE_TEST_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/${arg_VENV})
  endif()
  if(arg_RANKS)
    perdure_mpi_processors(arg_PROCESSORS ${arg_MPI} ${arg_RANKS})
  endif()
  set(soak "")
  set(long "")
  if(arg_SOAK)
    set(soak CONFIGURATIONS soak)
    list(APPEND arg_LABELS soak)
  endif()
  add_test(NAME ${name} ${soak} COMMAND ${arg_COMMAND} ${arg_SHORT})
  if(arg_LONG)
    list(POP_FRONT arg_LONG suffix seconds)
    set(long ${name}${suffix})
    add_test(NAME ${long} CONFIGURATIONS soak COMMAND ${arg_COMMAND} ${arg_LONG})
  endif()
  if(arg_SKIPS)
    set_tests_properties(${name} ${long} PROPERTIES SKIP_RETURN_CODE 77)
  endif()
  if(PERDURE_SANITIZED AND arg_TIMEOUT)  # everything takes longer
    math(EXPR arg_TIMEOUT "10 * ${arg_TIMEOUT}")
  endif()
  # A SIGSEGV that a test expects is left to it by a sanitizer: it comes from a store or load, so
  # that its handler may do what others may not. Ranks that are killed end with threads of theirs.
  if(PERDURE_SANITIZED)
    set(handlers "handle_segv=0:handle_sigbus=0:handle_sigfpe=0")
    set(faults "report_signal_unsafe=0:report_thread_leaks=0")
    string(APPEND faults ":suppressions=${PROJECT_SOURCE_DIR}/tools/tsan.supp")
    set_tests_properties(${name} PROPERTIES ENVIRONMENT_MODIFICATION
      "ASAN_OPTIONS=path_list_append:${handlers};TSAN_OPTIONS=path_list_append:${faults}")
  endif()
  foreach(property TIMEOUT COST PROCESSORS LABELS ENVIRONMENT)
    if(arg_${property})
      set_tests_properties(${name} ${long} PROPERTIES ${property} "${arg_${property}}")
    endif()
  endforeach()
  if(long)
    set_tests_properties(${long} PROPERTIES TIMEOUT ${seconds} LABELS "${arg_LABELS};soak")
  endif()
endfunction()

# perdure_test_program(TARGET [OUTSIDE]): assertions of GoogleTest take a compiler less time with
# -O1. With -O0 it is half of that, but what is instantiated for the libraries under test, too, is
# then taken from the test, and is slow: that is for tests OUTSIDE of them, which know them as
# shared libraries, unless they compute much or run in many variants, as tests/rma/suite does.
# LLVM's linker, where it is there, takes a third of the time of GNU's.
find_program(PERDURE_TEST_LINKER ld.lld HINTS /usr/lib/llvm-19/bin)
function(perdure_test_program target)
  set(level -O1)
  if("OUTSIDE" IN_LIST ARGN)
    set(level -O0)
  endif()
  target_compile_options(${target} PRIVATE $<$<CONFIG:RelWithDebInfo>:${level}>)
  perdure_without_false_overflows(${target})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests/support)
  if(PERDURE_TEST_LINKER AND NOT PERDURE_SANITIZER)
    get_filename_component(folder ${PERDURE_TEST_LINKER} DIRECTORY)
    target_link_options(${target} PRIVATE -B${folder} -fuse-ld=lld)
  endif()
  set(level ${level} PARENT_SCOPE)
endfunction()

function(perdure_outside_program target)
  perdure_test_program(${target} OUTSIDE)
endfunction()

# perdure_gtest_program(TARGET [OUTSIDE]): the same. What tests include of GoogleTest and the
# standard library takes a compiler longer than what they say themselves.
function(perdure_gtest_program target)
  perdure_test_program(${target} ${ARGN})
  perdure_share_headers(${target} test${level} LIBS GTest::gtest_main
    OPTIONS $<$<CONFIG:RelWithDebInfo>:${level}>
    HEADERS <gtest/gtest.h> <algorithm> <array> <cstdint> <cstring> <filesystem> <fstream>
            <functional> <map> <memory> <optional> <random> <string> <thread> <vector>)
endfunction()

# perdure_gtest_entry(NAME …): perdure_test_entry() of 120 s.
function(perdure_gtest_entry name)
  perdure_test_entry(${name} TIMEOUT 120 ${ARGN})
endfunction()

# perdure_tests_of(MODULE): the program MODULE_tests of all tests of a module, which CTest starts
# once for each of its entries (tests/support/test_main.cpp).
function(perdure_tests_of module)
  if(NOT TARGET perdure_test_main)
    add_library(perdure_test_main OBJECT ${PROJECT_SOURCE_DIR}/tests/support/test_main.cpp)
    target_link_libraries(perdure_test_main PRIVATE GTest::gtest perdure_build_flags)
  endif()
  if(NOT TARGET ${module}_tests)
    add_executable(${module}_tests $<TARGET_OBJECTS:perdure_test_main>)
    target_link_libraries(${module}_tests PRIVATE GTest::gtest perdure_build_flags)
    perdure_gtest_program(${module}_tests)
  endif()
endfunction()

# perdure_test(NAME [SOURCES …] [DEPS …] [LIBS …] [IN word | ALONE] [LABELS …] [TIMEOUT s] [LONG s]
#              [COST s] [ENVIRONMENT …]): a test of GoogleTest, ctest name NAME, in the program of
# the first of DEPS, or IN word_tests; in one of its own, NAME, if it is ALONE or knows the shared
# library only. Where no SOURCES are given, MODULE_WORDS_test is WORDS_test.cpp, and without DEPS
# and LIBS, of MODULE.
# With LONG, NAME.long of `make soak` has all cases (slow_tests.hpp). With LONG or COST the test is
# one of the first to begin.
function(perdure_test name)
  cmake_parse_arguments(arg "ALONE" "TIMEOUT;LONG;IN;COST" "SOURCES;DEPS;LIBS;LABELS;ENVIRONMENT"
                        ${ARGN})
  perdure_all_known(${name} ${arg_UNPARSED_ARGUMENTS})
  if(NOT PERDURE_TESTS)
    return()
  endif()
  if(NOT arg_SOURCES)
    string(REGEX MATCH "^([a-z]+)_(.*)$" matched ${name})
    set(arg_SOURCES ${CMAKE_MATCH_2}.cpp)
    if(NOT arg_DEPS AND NOT arg_LIBS)
      set(arg_DEPS ${CMAKE_MATCH_1})
    endif()
  endif()
  list(TRANSFORM arg_DEPS PREPEND perdure_ OUTPUT_VARIABLE deps)
  set(outside "")
  if("${deps};${arg_LIBS}" MATCHES "^;*perdure_shared;*$")
    set(outside OUTSIDE)
  endif()
  if(arg_ALONE OR outside OR NOT arg_DEPS)
    set(command ${name})
    add_executable(${name} ${arg_SOURCES})
    target_link_libraries(${name} PRIVATE ${deps} ${arg_LIBS} GTest::gtest_main perdure_build_flags)
    perdure_gtest_program(${name} ${outside})
  else()
    list(APPEND arg_IN ${arg_DEPS})
    list(GET arg_IN 0 module)
    perdure_tests_of(${module})
    list(TRANSFORM arg_SOURCES REPLACE "^([^/$].*)$" "${CMAKE_CURRENT_SOURCE_DIR}/\\1")
    target_sources(${module}_tests PRIVATE ${arg_SOURCES})
    target_link_libraries(${module}_tests PRIVATE ${deps} ${arg_LIBS})
    list(FILTER arg_SOURCES INCLUDE REGEX "_test\\.cpp$")
    list(TRANSFORM arg_SOURCES REPLACE "^.*/" "")
    list(JOIN arg_SOURCES "," files)
    set(command ${module}_tests --sources=${files})
  endif()
  if(arg_LONG)
    perdure_gtest_entry(${name}.long TIMEOUT ${arg_LONG} COMMAND ${command} SOAK
                        ENVIRONMENT PERDURE_SLOW_TESTS=1)
    list(APPEND arg_COST 30)
    list(GET arg_COST 0 arg_COST)
  endif()
  perdure_gtest_entry(${name} TIMEOUT ${arg_TIMEOUT} LABELS ${arg_LABELS} COMMAND ${command}
                      COST ${arg_COST} ENVIRONMENT ${arg_ENVIRONMENT})
  set(${name}_command ${command} PARENT_SCOPE)  # for more entries
endfunction()

# perdure_tests(MODULE WORDS …): its tests MODULE_WORDS_test, of which no more is to be said.
function(perdure_tests module)
  foreach(words IN LISTS ARGN)
    perdure_test(${module}_${words}_test)
  endforeach()
endfunction()

# perdure_mpi_test(NAME RANKS 1 2 4 [SOURCES …] [LIBS …] [TIMEOUT s] [LABELS …] [VARIANTS …])
#   One program per MPI flavour, which stands for @ in LIBS, run at every rank count; ctest name
#   NAME.FLAVOUR.nRANKS. With VARIANTS it is run with each of these words as its argument:
#   NAME.FLAVOUR.VARIANT.nRANKS. Without SOURCES, FOLDER_WORDS_test is of WORDS_test.cpp.
#   More than two ranks are left to `make soak` with an MPI whose ranks spin while they wait, where
#   there is one whose ranks yield.
function(perdure_mpi_test name)
  cmake_parse_arguments(arg "" "TIMEOUT" "SOURCES;RANKS;LIBS;VARIANTS;LABELS" ${ARGN})
  perdure_all_known(${name} ${arg_UNPARSED_ARGUMENTS})
  if(NOT PERDURE_TESTS)
    return()
  endif()
  if(NOT arg_SOURCES)
    string(REGEX REPLACE "^[a-z]+_(.*)$" "\\1.cpp" arg_SOURCES ${name})
  endif()
  perdure_program(${name}.@ ${arg_SOURCES} INCLUDES ${CMAKE_SOURCE_DIR}/tests
    LIBS ${arg_LIBS} perdure_mpi_shared_@ perdure_mpi_@ GTest::gtest perdure_build_flags)
  set(outside OUTSIDE)
  if(arg_LIBS MATCHES "_layer")
    set(outside "")
  endif()
  set(variants .)
  if(arg_VARIANTS)
    list(TRANSFORM arg_VARIANTS REPLACE "(.+)" ".\\1." OUTPUT_VARIABLE variants)
  endif()
  foreach(mpi IN LISTS PERDURE_MPI_NAMES)
    set(program ${name}.${mpi})
    perdure_gtest_program(${program} ${outside})
    foreach(ranks IN LISTS arg_RANKS)
      set(soak "")
      if(ranks GREATER 2 AND NOT mpi STREQUAL "openmpi" AND "openmpi" IN_LIST PERDURE_MPI_NAMES)
        set(soak SOAK)
      endif()
      foreach(variant IN LISTS variants)
        string(REPLACE "." "" word ${variant})
        perdure_test_entry(${program}${variant}n${ranks} ${soak} MPI ${mpi} RANKS ${ranks}
          LABELS ${arg_LABELS} TIMEOUT 60 TIMEOUT ${arg_TIMEOUT}
          COMMAND ${PERDURE_MPIRUN_${mpi}} ${ranks} $<TARGET_FILE:${program}> ${word})
      endforeach()
    endforeach()
  endforeach()
endfunction()
