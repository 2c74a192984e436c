# SPDX-License-Identifier: BSD-3-Clause
#
# perdure_module(NAME DEPS … [LIBS …] [SOURCES … | EXCEPT source … MORE source …] [INCLUDES …]
#                [FOLDER …] [APART source …])
#   A layer of src/: a static library that sees only the include roots of its DEPS, so that a
#   forbidden edge does not compile (tools/layers.txt says the same to tools/tidy.py).
#   Includes are written "module/header.hpp"; a module's include root is a folder with one link.
#   It has the .cpp of its folder, without tests and what is in EXCEPT, and MORE; or its SOURCES.
#   FOLDER is its folder in src/ where that is not NAME. Eight sources are compiled at once
#   (perdure_together), except those that are APART.
#   With @ in NAME it is made for each MPI flavour, which stands for @, of sources that are compiled
#   all at once. They include <mpi.h> through that flavour only.
function(perdure_module pattern)
  cmake_parse_arguments(arg "" "FOLDER" "SOURCES;EXCEPT;MORE;DEPS;LIBS;INCLUDES;APART" ${ARGN})
  perdure_all_known(${pattern} ${arg_UNPARSED_ARGUMENTS})
  if(NOT arg_SOURCES)
    perdure_sources(arg_SOURCES EXCEPT ${arg_EXCEPT})
    list(APPEND arg_SOURCES ${arg_MORE})
  endif()
  list(TRANSFORM arg_DEPS PREPEND perdure_)
  perdure_choose(flavours ${PERDURE_MPI_LIBRARIES} IF pattern MATCHES "@" ELSE -)
  perdure_choose(batch BATCH 8 IF NOT pattern MATCHES "@")
  foreach(mpi IN LISTS flavours)
    string(REPLACE "@" "${mpi}" name ${pattern})
    string(REPLACE "@" "${mpi}" libraries "${arg_DEPS};${arg_LIBS}")
    set(root ${CMAKE_BINARY_DIR}/include_roots/${name})
    perdure_choose(folder ${arg_FOLDER} IF arg_FOLDER ELSE ${name})
    perdure_include_root(${root} ${folder})
    add_library(perdure_${name} STATIC ${arg_SOURCES})
    target_include_directories(perdure_${name} PUBLIC ${root} ${arg_INCLUDES})
    target_link_libraries(perdure_${name} PUBLIC ${libraries} PRIVATE perdure_build_flags)
    perdure_standard_headers(perdure_${name})
    perdure_together(perdure_${name} ${batch} APART ${arg_APART})
  endforeach()
endfunction()

# perdure_sources(OUT EXCEPT source …): the .cpp of this folder, without tests.
function(perdure_sources out)
  file(GLOB sources CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} *.cpp)
  list(FILTER sources EXCLUDE REGEX "_test\\.cpp$")
  list(REMOVE_ITEM sources ${ARGN})
  set(${out} ${sources} PARENT_SCOPE)
endfunction()

# perdure_table(TABLE TYPE SUFFIX source …): the sources in ${TABLE}, with TABLE.cpp, in whose .in
# stand the @entries@, what NAME_SUFFIX() of each NAME.cpp returns, a TYPE, and the @declarations@.
function(perdure_table table type suffix)
  set(declarations "")
  set(entries "")
  perdure_choose(address & IF type MATCHES "&$")
  foreach(source IN LISTS ARGN)
    get_filename_component(name ${source} NAME_WE)
    string(APPEND declarations "${type} ${name}_${suffix}();\n")
    list(APPEND entries "${address}${name}_${suffix}()")
  endforeach()
  list(JOIN entries ", " entries)
  configure_file(${table}.cpp.in ${table}.cpp @ONLY)
  set(${table} ${ARGN} ${CMAKE_CURRENT_BINARY_DIR}/${table}.cpp PARENT_SCOPE)
endfunction()

# perdure_only_if(CONDITION [ELSE message]): leaves a CMakeLists.txt, or a function, where it does
# not hold, and says so.
macro(perdure_only_if)
  cmake_parse_arguments(only "" "" "ELSE" ${ARGN})
  if(NOT (${only_UNPARSED_ARGUMENTS}))
    if(only_ELSE)
      message(STATUS ${only_ELSE})
    endif()
    return()
  endif()
endmacro()

# perdure_choose(NAME word … IF condition … [ELSE word …]): NAME is these words where the condition
# holds, else the others, or nothing.
macro(perdure_choose name)
  cmake_parse_arguments(chosen "" "" "IF;ELSE" ${ARGN})
  set(${name} ${chosen_ELSE})
  if(${chosen_IF})
    set(${name} ${chosen_UNPARSED_ARGUMENTS})
  endif()
endmacro()

# perdure_all_known(NAME WORD …): fails if a function is given words that it does not know.
function(perdure_all_known name)
  if(ARGN)
    message(FATAL_ERROR "${name}: '${ARGN}' is said of it, which is not known; see cmake/")
  endif()
endfunction()

# perdure_include_root(ROOT NAME): this folder as NAME, below which its headers are included.
function(perdure_include_root root name)
  file(MAKE_DIRECTORY ${root})
  file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR} ${root}/${name} SYMBOLIC)
endfunction()

# perdure_program(NAME source … [what perdure_library() knows]): a program. Without LIBS it is
# linked with Perdure's library, the MPI if there is @ in NAME, and the flags of the build.
function(perdure_program pattern)
  perdure_choose(perdure perdure_mpi_shared_@ perdure_mpi_@ IF pattern MATCHES "@"
                 ELSE perdure_shared)
  perdure_choose(libraries LIBS ${perdure} perdure_build_flags IF NOT "LIBS" IN_LIST ARGN)
  perdure_target(${pattern} "" "" ${ARGN} ${libraries})
endfunction()

# perdure_library(NAME STATIC|SHARED|MODULE|OBJECT source … [PUBLIC library …] [LIBS …] [OPTIONS …]
#                 [DEFINITIONS …] [INCLUDES …] [SYSTEM include …] [LINK option …]
#                 [PROPERTIES name value …] [WITH function …])
#   With the flags of the build. With @ in NAME, one for each MPI flavour, which stands for @ in
#   sources, PUBLIC and LIBS, too. INCLUDES are PUBLIC. WITH functions are called for it, such as
#   perdure_command_line.
function(perdure_library pattern kind)
  perdure_target(${pattern} ${kind} perdure_build_flags ${ARGN})
endfunction()

function(perdure_target pattern kind flags)
  cmake_parse_arguments(arg "" ""
    "PUBLIC;LIBS;OPTIONS;DEFINITIONS;INCLUDES;SYSTEM;LINK;PROPERTIES;WITH" ${ARGN})
  perdure_choose(flavours ${PERDURE_MPI_NAMES} IF pattern MATCHES "@" ELSE -)
  foreach(mpi IN LISTS flavours)
    string(REPLACE "@" "${mpi}" name ${pattern})
    string(REPLACE "@" "${mpi}" public "${arg_PUBLIC}")
    string(REPLACE "@" "${mpi}" libraries "${arg_LIBS}")
    string(REPLACE "@" "${mpi}" sources "${arg_UNPARSED_ARGUMENTS}")
    if(kind)
      add_library(${name} ${kind} ${sources})
    else()
      add_executable(${name} ${sources})
    endif()
    target_link_libraries(${name} PUBLIC ${public} PRIVATE ${libraries} ${flags})
    target_compile_options(${name} PRIVATE ${arg_OPTIONS})
    target_compile_definitions(${name} PRIVATE ${arg_DEFINITIONS})
    target_include_directories(${name} PUBLIC ${arg_INCLUDES})
    target_include_directories(${name} SYSTEM PRIVATE ${arg_SYSTEM})
    target_link_options(${name} PRIVATE ${arg_LINK})
    if(arg_PROPERTIES)
      set_target_properties(${name} PROPERTIES ${arg_PROPERTIES})
    endif()
    foreach(function IN LISTS arg_WITH)
      cmake_language(CALL ${function} ${name})
    endforeach()
  endforeach()
endfunction()

# perdure_together(TARGET [BATCH n] [APART source …]): a compiler takes the sources at once, or n of
# them, because it spends longer on what all of them include than on what they say. APART are those
# that have names of their own which others have, too.
function(perdure_together target)
  cmake_parse_arguments(arg "" "BATCH" "APART" BATCH 0 ${ARGN})
  perdure_only_if(PERDURE_TOGETHER)
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
  get_target_property(type ${target} TYPE)
  perdure_choose(kind program IF type STREQUAL "EXECUTABLE" ELSE library)
  set(owner perdure_${name}_${kind}_headers)
  if(NOT TARGET ${owner})
    set(source ${CMAKE_BINARY_DIR}/${owner}.cpp)
    file(CONFIGURE OUTPUT ${source} CONTENT "int main() {}\n")  # writes what is another text only
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
  else()
    perdure_share_headers(${target} optimised OPTIONS -O3 HEADERS ${PERDURE_STANDARD_HEADERS})
  endif()
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

