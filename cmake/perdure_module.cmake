# SPDX-License-Identifier: BSD-3-Clause
#
# perdure_module(NAME SOURCES … DEPS … [LIBS …] [FOLDER …] [APART source …])
#   A layer of src/: a static library that sees only the include roots of its DEPS, so that a
#   forbidden edge does not compile (tools/layers.txt says the same to tools/tidy.py).
#   Includes are written "module/header.hpp"; a module's include root is a folder with one link.
#   FOLDER is its folder in src/ where that is not NAME. Eight sources are compiled at once
#   (perdure_together), except those that are APART.
function(perdure_module name)
  cmake_parse_arguments(arg "" "FOLDER" "SOURCES;DEPS;LIBS;APART" ${ARGN})
  if(NOT arg_FOLDER)
    set(arg_FOLDER ${name})
  endif()
  set(root ${CMAKE_BINARY_DIR}/include_roots/${name})
  file(MAKE_DIRECTORY ${root})
  file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR} ${root}/${arg_FOLDER} SYMBOLIC)
  add_library(perdure_${name} STATIC ${arg_SOURCES})
  target_include_directories(perdure_${name} PUBLIC ${root})
  list(TRANSFORM arg_DEPS PREPEND perdure_)
  target_link_libraries(perdure_${name} PUBLIC ${arg_DEPS} ${arg_LIBS} PRIVATE perdure_build_flags)
  perdure_standard_headers(perdure_${name})
  perdure_together(perdure_${name} BATCH 8 APART ${arg_APART})
endfunction()

# perdure_together(TARGET [BATCH n] [APART source …]): a compiler takes the sources at once, or n of
# them, because it spends longer on what all of them include than on what they say. APART are those
# that have names of their own which others have, too. Where PERDURE_TOGETHER is off, each is by
# itself as ever.
function(perdure_together target)
  cmake_parse_arguments(arg "" "BATCH" "APART" ${ARGN})
  if(NOT PERDURE_TOGETHER)
    return()
  endif()
  if(NOT arg_BATCH)
    set(arg_BATCH 0)
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${arg_BATCH})
  # GCC takes what is local to a source for a header's, where another file includes the source.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  set_source_files_properties(${arg_APART} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# GCC 12 takes strings that are put together for accesses beyond them (its bug 105329), where the
# headers of the library are precompiled, or not much is optimised.
function(perdure_without_false_overflows target)
  target_compile_options(${target} PRIVATE
    $<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds> $<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overflow>)
endfunction()

# perdure_share_headers(TARGET NAME OPTIONS … LIBS … HEADERS …): TARGET takes HEADERS as they were
# compiled once with OPTIONS: for libraries, and for programs, whose code is placed in another way.
# Where a target has other flags, they are read as ever.
function(perdure_share_headers target name)
  cmake_parse_arguments(arg "" "" "OPTIONS;LIBS;HEADERS" ${ARGN})
  set(owner perdure_${name}_library_headers)
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "EXECUTABLE")
    set(owner perdure_${name}_program_headers)
  endif()
  if(NOT TARGET ${owner})
    set(source ${CMAKE_BINARY_DIR}/${owner}.cpp)
    file(WRITE ${source} "int main() {}\n")
    if(type STREQUAL "EXECUTABLE")
      add_executable(${owner} EXCLUDE_FROM_ALL ${source})
    else()
      add_library(${owner} OBJECT EXCLUDE_FROM_ALL ${source})
    endif()
    target_link_libraries(${owner} PRIVATE ${arg_LIBS} perdure_build_flags)
    target_compile_options(${owner} PRIVATE ${arg_OPTIONS})
    perdure_without_false_overflows(${owner})
    target_precompile_headers(${owner} PRIVATE ${arg_HEADERS})
  endif()
  target_precompile_headers(${target} REUSE_FROM ${owner})
  perdure_without_false_overflows(${target})
  set_target_properties(${target} PROPERTIES PCH_WARN_INVALID OFF)
endfunction()

# What nearly all sources include of the standard library takes a compiler a quarter of its time, so
# it is compiled once.
set(PERDURE_STANDARD_HEADERS <algorithm> <array> <atomic> <cstdint> <cstring> <functional> <map>
    <memory> <mutex> <optional> <span> <string> <string_view> <utility> <vector>)
function(perdure_standard_headers target)
  perdure_share_headers(${target} standard HEADERS ${PERDURE_STANDARD_HEADERS})
endfunction()

# perdure_always_optimised(TARGET): -O3 whatever the build type. A program's sources are compiled at
# once, those of libraries with the same headers.
function(perdure_always_optimised target)
  target_compile_options(${target} PRIVATE -O3)
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "EXECUTABLE")
    perdure_together(${target})
    return()
  endif()
  perdure_share_headers(${target} optimised OPTIONS -O3 HEADERS ${PERDURE_STANDARD_HEADERS})
endfunction()

# perdure_command_line(TARGET): its sources only read the command line, or report. CLI11 and JSON
# take a compiler half of the time where it does not optimise, and half of that in reading them,
# which it does once. What is in them takes longer in a source that uses neither, which has the
# property SKIP_PRECOMPILE_HEADERS.
function(perdure_command_line target)
  target_compile_options(${target} PRIVATE -O0)
  target_link_libraries(${target} PRIVATE perdure_cli nlohmann_json::nlohmann_json)
  perdure_share_headers(${target} command_line OPTIONS -O0
                        LIBS perdure_cli nlohmann_json::nlohmann_json
                        HEADERS ${PERDURE_STANDARD_HEADERS} <CLI/CLI.hpp> <nlohmann/json.hpp>)
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
  set_target_properties(${target} PROPERTIES PERDURE_TEST_LEVEL ${level})
  perdure_without_false_overflows(${target})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests/support)
  if(PERDURE_TEST_LINKER AND NOT PERDURE_SANITIZER)
    get_filename_component(folder ${PERDURE_TEST_LINKER} DIRECTORY)
    target_link_options(${target} PRIVATE -B${folder} -fuse-ld=lld)
  endif()
endfunction()

# What tests include of GoogleTest and the standard library takes a compiler longer than what they
# say themselves.
function(perdure_test_headers target)
  get_target_property(level ${target} PERDURE_TEST_LEVEL)
  perdure_share_headers(${target} test${level} LIBS GTest::gtest_main
    OPTIONS $<$<CONFIG:RelWithDebInfo>:${level}>
    HEADERS <gtest/gtest.h> <algorithm> <array> <cstdint> <cstring> <filesystem> <fstream>
            <functional> <map> <memory> <optional> <random> <string> <thread> <vector>)
endfunction()

# perdure_test_entry(NAME COMMAND … [TIMEOUT s] [LABELS …] [ENVIRONMENT …] [SOAK]): ctest's NAME, or
# with SOAK that of `make soak` only. With a sanitizer everything takes longer, and a SIGSEGV that a
# test expects is left to it: it comes from a store or load, so that its handler may do what others
# may not.
function(perdure_test_entry name)
  cmake_parse_arguments(arg "SOAK" "TIMEOUT" "COMMAND;LABELS;ENVIRONMENT" ${ARGN})
  set(soak "")
  if(arg_SOAK)
    set(soak CONFIGURATIONS soak)
    list(APPEND arg_LABELS soak)
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  add_test(NAME ${name} ${soak} COMMAND ${arg_COMMAND})
  set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}" ENVIRONMENT "${arg_ENVIRONMENT}")
  if(PERDURE_SANITIZER AND NOT PERDURE_SANITIZER STREQUAL "coverage")
    math(EXPR arg_TIMEOUT "10 * ${arg_TIMEOUT}")
    set(handlers "handle_segv=0:handle_sigbus=0:handle_sigfpe=0")
    set(faults "report_signal_unsafe=0")
    set_tests_properties(${name} PROPERTIES ENVIRONMENT_MODIFICATION
      "ASAN_OPTIONS=path_list_append:${handlers};TSAN_OPTIONS=path_list_append:${faults}")
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${arg_TIMEOUT})
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
    perdure_test_program(${module}_tests)
    perdure_test_headers(${module}_tests)
  endif()
endfunction()

# perdure_test(NAME SOURCES … DEPS … [LIBS …] [IN word | ALONE] [LABELS …] [TIMEOUT s] [LONG s]
#              [COST s]): a test of GoogleTest, ctest name NAME, in the program of the first of
# DEPS, or IN word_tests; in one of its own, NAME, if it is ALONE or knows the shared library only.
# With LONG, NAME.long of `make soak` has all cases (slow_tests.hpp). With LONG or COST the test is
# one of the first to begin.
function(perdure_test name)
  cmake_parse_arguments(arg "ALONE" "TIMEOUT;LONG;IN;COST" "SOURCES;DEPS;LIBS;LABELS" ${ARGN})
  if(NOT PERDURE_TESTS)
    return()
  endif()
  list(TRANSFORM arg_DEPS PREPEND perdure_ OUTPUT_VARIABLE deps)
  set(outside "")
  if("${deps};${arg_LIBS}" MATCHES "^;*perdure_shared;*$")
    set(outside OUTSIDE)
  endif()
  if(arg_ALONE OR outside OR NOT arg_DEPS)
    set(program ${name})
    set(command ${name})
    add_executable(${name} ${arg_SOURCES})
    target_link_libraries(${name} PRIVATE ${deps} ${arg_LIBS} GTest::gtest_main perdure_build_flags)
    perdure_test_program(${name} ${outside})
    perdure_test_headers(${name})
  else()
    list(APPEND arg_IN ${arg_DEPS})
    list(GET arg_IN 0 module)
    perdure_tests_of(${module})
    set(files "")
    foreach(source IN LISTS arg_SOURCES)
      get_filename_component(path ${source} ABSOLUTE)
      target_sources(${module}_tests PRIVATE ${path})
      if(source MATCHES "([^/]*_test\\.cpp)$")
        list(APPEND files ${CMAKE_MATCH_1})
      endif()
    endforeach()
    list(JOIN files "," files)
    set(command ${module}_tests --sources=${files})
    target_link_libraries(${module}_tests PRIVATE ${deps} ${arg_LIBS})
  endif()
  perdure_test_entry(${name} TIMEOUT ${arg_TIMEOUT} LABELS ${arg_LABELS} COMMAND ${command})
  if(arg_LONG)
    perdure_test_entry(${name}.long TIMEOUT ${arg_LONG} COMMAND ${command} SOAK
                       ENVIRONMENT PERDURE_SLOW_TESTS=1)
    list(APPEND arg_COST 30)
  endif()
  if(arg_COST)
    list(GET arg_COST 0 cost)
    set_tests_properties(${name} PROPERTIES COST ${cost})
  endif()
  set(${name}_command ${command} PARENT_SCOPE)  # for more entries
endfunction()

# perdure_mpi_test(NAME SOURCES … RANKS 1 2 4 [LIBS …] [TIMEOUT s] [VARIANTS …])
#   One program per MPI flavour, which stands for @ in LIBS, run at every rank count; ctest name
#   NAME.FLAVOUR.nRANKS. With VARIANTS it is run with each of these words as its argument:
#   NAME.FLAVOUR.VARIANT.nRANKS.
#   More than two ranks are left to `make soak` with an MPI whose ranks spin while they wait, where
#   there is one whose ranks yield.
function(perdure_mpi_test name)
  cmake_parse_arguments(arg "" "TIMEOUT" "SOURCES;RANKS;LIBS;VARIANTS;LABELS" ${ARGN})
  if(NOT PERDURE_TESTS)
    return()
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 60)
  endif()
  foreach(mpi IN LISTS PERDURE_MPI_NAMES)
    set(program ${name}.${mpi})
    add_executable(${program} ${arg_SOURCES})
    string(REPLACE "@" "${mpi}" libs "${arg_LIBS}")
    target_link_libraries(${program} PRIVATE ${libs} perdure_mpi_shared_${mpi}
                          perdure_mpi_${mpi} GTest::gtest perdure_build_flags)
    target_include_directories(${program} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
    set(outside OUTSIDE)
    if(libs MATCHES "_layer")
      set(outside "")
    endif()
    perdure_test_program(${program} ${outside})
    perdure_test_headers(${program})
    foreach(ranks IN LISTS arg_RANKS)
      foreach(variant IN LISTS arg_VARIANTS ITEMS "")
        set(test ${program}.${variant}.n${ranks})
        if(variant STREQUAL "")
          set(test ${program}.n${ranks})
          if(arg_VARIANTS)
            continue()
          endif()
        endif()
        set(soak "")
        if(ranks GREATER 2 AND NOT mpi STREQUAL "openmpi" AND "openmpi" IN_LIST PERDURE_MPI_NAMES)
          set(soak CONFIGURATIONS soak)
        endif()
        add_test(NAME ${test} ${soak}
                 COMMAND ${CMAKE_SOURCE_DIR}/tools/mpirun.sh ${PERDURE_MPIEXEC_${mpi}} ${ranks}
                         $<TARGET_FILE:${program}> ${variant})
        perdure_mpi_processors(processors ${mpi} ${ranks})
        set_tests_properties(${test} PROPERTIES TIMEOUT ${arg_TIMEOUT} PROCESSORS ${processors})
        if(soak)
          list(APPEND arg_LABELS soak)
        endif()
        set_tests_properties(${test} PROPERTIES LABELS "${arg_LABELS}")
        list(REMOVE_ITEM arg_LABELS soak)
      endforeach()
    endforeach()
  endforeach()
endfunction()
