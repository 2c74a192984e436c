# SPDX-License-Identifier: BSD-3-Clause
#
# Entries of ctest; programs of GoogleTest; the same for each MPI.

# perdure_test_entry(NAME COMMAND word … | PYTHON script word … | VENV script word … [TIMEOUT s]
#                    [SHORT word …] [SOAK | LONG suffix s word …] [LABELS …] [ENVIRONMENT …]
#                    [COST n] [SERIAL | OWN_SHM] [SKIPS] [UNSANITIZED] [RANKS n | PROCESSORS n]
#                    [ONLY flavour] [FORTRAN] [FIRST])
#   ctest's NAME, or with SOAK that of `make soak` only. A script is one of this folder; it needs
#   what .venv has (tools/bootstrap.sh) where that says VENV, and is left out without. SKIPS: the
#   command returns 77 where it does nothing. UNSANITIZED: it is left out with a sanitizer. OWN_SHM:
#   it looks at what is left in /dev/shm, or leaves something there. With LONG, `make soak` has NAME
#   and the suffix, too, with other words at the end than the SHORT ones.
#   @ in NAME: one for each MPI flavour, or ONLY that, or for each that has FORTRAN, which stands
#   for @ everywhere; @MPIEXEC and @MPIRUN are what starts its jobs, bare and with what all of them
#   are to have. FIRST: those of all flavours but the first are of `make soak`. RANKS says how many,
#   whose processors are counted.
function(perdure_test_entry name)
  if(name MATCHES "@")
    cmake_parse_arguments(arg "FORTRAN;FIRST" "ONLY" "" ${ARGN})
    set(soak "")
    foreach(mpi IN LISTS PERDURE_MPI_NAMES)
      if((NOT arg_ONLY OR arg_ONLY STREQUAL mpi) AND (NOT arg_FORTRAN OR PERDURE_MPIFORT_${mpi}))
        string(REPLACE "@MPIRUN" "${PERDURE_MPIRUN_${mpi}}" words "${arg_UNPARSED_ARGUMENTS}")
        string(REPLACE "@MPIEXEC" "${PERDURE_MPIEXEC_${mpi}}" words "${words}")
        string(REPLACE "@" "${mpi}" words "${name};${words}")
        perdure_test_entry(${words} MPI ${mpi} ${soak})
        perdure_choose(soak SOAK IF arg_FIRST)
      endif()
    endforeach()
    return()
  endif()
  cmake_parse_arguments(arg "SOAK;SERIAL;OWN_SHM;SKIPS;UNSANITIZED"
                        "TIMEOUT;COST;PROCESSORS;MPI;RANKS"
                        "COMMAND;PYTHON;VENV;SHORT;LONG;LABELS;ENVIRONMENT" ${ARGN})
  perdure_all_known(${name} ${arg_UNPARSED_ARGUMENTS})
  if((arg_UNSANITIZED AND PERDURE_SANITIZER) OR (arg_VENV AND NOT PERDURE_TEST_PYTHON))
    return()
  elseif(arg_PYTHON)
    set(arg_COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/${arg_PYTHON})
  elseif(arg_VENV)
    set(arg_COMMAND ${PERDURE_TEST_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/${arg_VENV})
  endif()
  if(arg_OWN_SHM)
    list(PREPEND arg_COMMAND ${PERDURE_OWN_SHM})
    perdure_choose(arg_SERIAL ON IF NOT PERDURE_OWN_SHM)  # /dev/shm is that of others, too
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
  if(PERDURE_SANITIZED AND arg_TIMEOUT)  # everything takes longer
    math(EXPR arg_TIMEOUT "10 * ${arg_TIMEOUT}")
  endif()
  if(arg_RANKS)
    perdure_mpi_processors(arg_PROCESSORS ${arg_MPI} ${arg_RANKS})
  endif()
  if(arg_SKIPS)
    set(arg_SKIP_RETURN_CODE 77)
  endif()
  set(arg_RUN_SERIAL ${arg_SERIAL})
  set(arg_ENVIRONMENT_MODIFICATION ${PERDURE_SANITIZER_OPTIONS})
  foreach(property TIMEOUT COST PROCESSORS LABELS ENVIRONMENT ENVIRONMENT_MODIFICATION RUN_SERIAL
                   SKIP_RETURN_CODE)
    if(arg_${property})
      set_tests_properties(${name} ${long} PROPERTIES ${property} "${arg_${property}}")
    endif()
  endforeach()
  if(long)
    set_tests_properties(${long} PROPERTIES TIMEOUT ${seconds} LABELS "${arg_LABELS};soak")
  endif()
endfunction()

# A SIGSEGV that a test expects is left to it by a sanitizer: it comes from a store or load, so that
# its handler may do what others may not. Ranks that are killed end with threads of theirs. An
# allocation that is too large fails, as it does without a sanitizer.
set(PERDURE_SANITIZER_OPTIONS "")
if(PERDURE_SANITIZED)
  set(faults "report_signal_unsafe=0:report_thread_leaks=0")
  set(PERDURE_SANITIZER_OPTIONS
      "ASAN_OPTIONS=path_list_append:handle_segv=0:handle_sigbus=0:handle_sigfpe=0"
      "ASAN_OPTIONS=path_list_append:allocator_may_return_null=1"
      "TSAN_OPTIONS=path_list_append:${faults}:suppressions=${CMAKE_SOURCE_DIR}/tools/tsan.supp")
endif()

# perdure_test_program(TARGET): assertions of GoogleTest take a compiler a fifth less time with -Og
# than with -O1, and as long with -O0, with which what is instantiated for the libraries under
# test, too, is slow: it is taken from the test. LLVM's linker, where it is there, takes a third of
# the time of GNU's.
find_program(PERDURE_TEST_LINKER ld.lld HINTS /usr/lib/llvm-19/bin)
function(perdure_test_program target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:RelWithDebInfo>:-Og>)
  perdure_without_false_overflows(${target})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests/support)
  if(PERDURE_TEST_LINKER AND NOT PERDURE_SANITIZER)
    get_filename_component(folder ${PERDURE_TEST_LINKER} DIRECTORY)
    target_link_options(${target} PRIVATE -B${folder} -fuse-ld=lld)
  endif()
endfunction()

# perdure_gtest_program(TARGET): the same. What tests include of GoogleTest and the standard library
# takes a compiler longer than what they say themselves. Each assertion names its line; a debugger
# gets the lines from a build of type Debug.
perdure_choose(PERDURE_TEST_LINES $<$<CONFIG:RelWithDebInfo>:-g0> IF NOT PERDURE_SANITIZER)
function(perdure_gtest_program target)
  perdure_test_program(${target})
  target_compile_options(${target} PRIVATE ${PERDURE_TEST_LINES})
  perdure_share_headers(${target} test LIBS GTest::gtest_main
    OPTIONS $<$<CONFIG:RelWithDebInfo>:-Og> ${PERDURE_TEST_LINES}
    HEADERS <gtest/gtest.h> <algorithm> <array> <cstdint> <cstring> <filesystem> <fstream>
            <functional> <map> <memory> <optional> <random> <string> <thread> <vector>)
endfunction()

# Tests that read files of the source tree (tests/support/source_tree.hpp).
if(PERDURE_TESTS)
  add_library(perdure_source_tree STATIC ${PROJECT_SOURCE_DIR}/tests/support/source_tree.cpp)
  target_compile_definitions(perdure_source_tree PRIVATE PERDURE_SOURCE_TREE="${CMAKE_SOURCE_DIR}")
endif()

# perdure_gtest_entry(NAME …): perdure_test_entry() of 120 s.
function(perdure_gtest_entry name)
  perdure_test_entry(${name} TIMEOUT 120 ${ARGN})
endfunction()

# perdure_tests_of(MODULE source …): the program MODULE_tests of all tests of a module, which CTest
# starts once for each of its entries (tests/support/test_main.cpp).
function(perdure_tests_of module)
  if(NOT PERDURE_TESTS)
    return()
  elseif(NOT TARGET perdure_test_main)
    add_library(perdure_test_main OBJECT ${PROJECT_SOURCE_DIR}/tests/support/test_main.cpp)
    target_link_libraries(perdure_test_main PRIVATE GTest::gtest perdure_build_flags)
  endif()
  if(NOT TARGET ${module}_tests)
    perdure_program(${module}_tests $<TARGET_OBJECTS:perdure_test_main> ${ARGN}
                    LIBS GTest::gtest perdure_build_flags WITH perdure_gtest_program)
  endif()
endfunction()

# perdure_tests(MODULE [what perdure_test() knows]): the tests of this folder, which are its
# *_test.cpp. MODULE_WORDS_test is of WORDS_test.cpp, with what is said of all of them, and in
#   // ctest: [NAME name] [what perdure_test() or, with RANKS, perdure_mpi_test() knows]
# in the file. Those of one NAME are one test. Without DEPS and LIBS they are of MODULE.
function(perdure_tests module)
  cmake_parse_arguments(all "" "NAME" "DEPS;LIBS" ${ARGN})
  file(GLOB files CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} *_test.cpp)
  set(names "")
  foreach(file IN LISTS files)
    file(STRINGS ${file} said REGEX "^// ctest: ")
    string(REPLACE "// ctest: " "" said "${said}")
    separate_arguments(said)
    cmake_parse_arguments(arg "" "NAME" "" ${said})
    set(name ${arg_NAME} ${all_NAME})
    if(NOT name)
      string(REGEX REPLACE "^(${module}_)?(.*)\\.cpp$" "${module}_\\2" name ${file})
    endif()
    list(APPEND names ${name})
    list(APPEND ${name}_words SOURCES ${file} ${arg_UNPARSED_ARGUMENTS})
  endforeach()
  list(REMOVE_DUPLICATES names)
  foreach(name IN LISTS names)
    set(words ${${name}_words})
    if("RANKS" IN_LIST words)
      perdure_mpi_test(${name} ${words})
      continue()
    elseif(NOT "DEPS" IN_LIST words AND NOT "LIBS" IN_LIST words)
      list(APPEND words DEPS ${all_DEPS} LIBS ${all_LIBS})
      if(NOT all_DEPS AND NOT all_LIBS)
        list(APPEND words DEPS ${module})
      endif()
    endif()
    perdure_test(${name} ${words} ${all_UNPARSED_ARGUMENTS})
  endforeach()
endfunction()

# perdure_test(NAME SOURCES … [DEPS …] [LIBS …] [IN word | ALONE] [LABELS …] [TIMEOUT s] [LONG s]
#              [COST s] [SERIAL] [UNSANITIZED] [ENVIRONMENT …]): a test of GoogleTest, ctest name
# NAME, in the program of the first of DEPS, or IN word_tests; in one of its own, NAME, if it is
# ALONE, as it defines what others call, or knows the shared library only.
# With LONG, NAME.long of `make soak` has all cases (slow_tests.hpp). With LONG or COST the test is
# one of the first to begin.
function(perdure_test name)
  cmake_parse_arguments(arg "ALONE;SERIAL;UNSANITIZED" "TIMEOUT;LONG;IN;COST"
                        "SOURCES;DEPS;LIBS;LABELS;ENVIRONMENT" ${ARGN})
  perdure_all_known(${name} ${arg_UNPARSED_ARGUMENTS})
  if(NOT PERDURE_TESTS OR (arg_UNSANITIZED AND PERDURE_SANITIZER))
    return()
  endif()
  list(TRANSFORM arg_DEPS PREPEND perdure_ OUTPUT_VARIABLE deps)
  if(arg_ALONE OR NOT arg_DEPS)
    set(command ${name})
    perdure_program(${name} ${arg_SOURCES}
                    LIBS ${deps} ${arg_LIBS} GTest::gtest_main perdure_build_flags)
    perdure_gtest_program(${name})
  else()
    list(APPEND arg_IN ${arg_DEPS})
    list(GET arg_IN 0 module)
    perdure_tests_of(${module})
    list(TRANSFORM arg_SOURCES REPLACE "^([^/$].*)$" "${CMAKE_CURRENT_SOURCE_DIR}/\\1")
    target_sources(${module}_tests PRIVATE ${arg_SOURCES})
    target_link_libraries(${module}_tests PRIVATE ${deps} ${arg_LIBS})
    list(TRANSFORM arg_SOURCES REPLACE "^.*/" "")
    list(JOIN arg_SOURCES "," files)
    set(command ${module}_tests --sources=${files})
  endif()
  perdure_choose(serial SERIAL IF arg_SERIAL)
  if(arg_LONG)
    perdure_gtest_entry(${name}.long TIMEOUT ${arg_LONG} COMMAND ${command} SOAK
                        ENVIRONMENT PERDURE_SLOW_TESTS=1)
    list(APPEND arg_COST 30)
    list(GET arg_COST 0 arg_COST)
  endif()
  perdure_gtest_entry(${name} TIMEOUT ${arg_TIMEOUT} LABELS ${arg_LABELS} COMMAND ${command}
                      COST ${arg_COST} ENVIRONMENT ${arg_ENVIRONMENT} ${serial})
  set_property(GLOBAL PROPERTY ${name}_command ${command})
endfunction()

# perdure_test_again(NAME SUFFIX …): a test of GoogleTest once more, as NAME.SUFFIX.
function(perdure_test_again name suffix)
  get_property(command GLOBAL PROPERTY ${name}_command)
  if(command)
    perdure_gtest_entry(${name}.${suffix} COMMAND ${command} ${ARGN})
  endif()
endfunction()

# perdure_mpi_test(NAME SOURCES … RANKS 1 2 4 [LIBS …] [TIMEOUT s] [LABELS …] [VARIANTS …])
#   One program per MPI flavour, which stands for @ in LIBS, run at every rank count; ctest name
#   NAME.FLAVOUR.nRANKS. With VARIANTS it is run with each of these words as its argument:
#   NAME.FLAVOUR.VARIANT.nRANKS. More than two ranks are left to `make soak` with an MPI whose ranks
#   spin while they wait, where there is one whose ranks yield.
function(perdure_mpi_test name)
  cmake_parse_arguments(arg "" "TIMEOUT" "SOURCES;RANKS;LIBS;VARIANTS;LABELS" ${ARGN})
  perdure_all_known(${name} ${arg_UNPARSED_ARGUMENTS})
  perdure_only_if(PERDURE_TESTS)
  perdure_program(${name}.@ ${arg_SOURCES} INCLUDES ${CMAKE_SOURCE_DIR}/tests
    LIBS ${arg_LIBS} perdure_mpi_shared_@ perdure_mpi_@ GTest::gtest perdure_build_flags)
  set(variants .)
  if(arg_VARIANTS)
    list(TRANSFORM arg_VARIANTS REPLACE "(.+)" ".\\1." OUTPUT_VARIABLE variants)
  endif()
  foreach(mpi IN LISTS PERDURE_MPI_NAMES)
    set(program ${name}.${mpi})
    perdure_gtest_program(${program})
    foreach(ranks IN LISTS arg_RANKS)
      perdure_choose(soak SOAK IF ranks GREATER 2 AND NOT mpi STREQUAL "openmpi"
                                  AND "openmpi" IN_LIST PERDURE_MPI_NAMES)
      foreach(variant IN LISTS variants)
        string(REPLACE "." "" word ${variant})
        perdure_test_entry(${program}${variant}n${ranks} ${soak} MPI ${mpi} RANKS ${ranks}
          LABELS ${arg_LABELS} TIMEOUT 60 TIMEOUT ${arg_TIMEOUT}
          COMMAND ${PERDURE_MPIRUN_${mpi}} ${ranks} $<TARGET_FILE:${program}> ${word})
      endforeach()
    endforeach()
  endforeach()
endfunction()
