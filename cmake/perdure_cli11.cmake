# SPDX-License-Identifier: BSD-3-Clause
#
# perdure_cli: CLI11 for who includes <CLI/CLI.hpp>. Link it after perdure_build_flags: GCC 12 warns
# of a null pointer in CLI11's string splitting that cannot be null, and being a system header does
# not silence it once it is inlined.
#
# All of CLI11 is in its headers, and a compiler takes 6 s for it in each of two dozen sources, 17 s
# where it optimises. GCC compiles the member functions and tables of a header's classes in one
# object only if the header says "#pragma interface" and that object's source "#pragma
# implementation". So the headers of CLI11 are put together into one that begins so. Others than GCC
# take them as they are.
add_library(perdure_cli INTERFACE)
target_link_libraries(perdure_cli INTERFACE CLI11::CLI11)
target_compile_options(perdure_cli INTERFACE -Wno-null-dereference)

find_path(PERDURE_CLI11_INCLUDE CLI/CLI.hpp)
file(STRINGS ${PERDURE_CLI11_INCLUDE}/CLI/CLI.hpp parts REGEX "^#include \"[A-Za-z]+\\.hpp\"$")
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU" OR NOT parts)
  return()
endif()
set(text "#pragma once\n#pragma interface\n")
foreach(part IN LISTS parts)
  string(REGEX MATCH "[A-Za-z]+\\.hpp" name ${part})
  file(READ ${PERDURE_CLI11_INCLUDE}/CLI/${name} read)
  string(REGEX REPLACE "#(pragma once|include \"[A-Za-z]+\\.hpp\")" "" read "${read}")
  string(APPEND text "${read}")
endforeach()
set(place ${CMAKE_BINARY_DIR}/cli11)
file(GENERATE OUTPUT ${place}/CLI/CLI.hpp CONTENT "${text}")
file(GENERATE OUTPUT ${place}/cli11.cpp
     CONTENT "#pragma implementation \"CLI.hpp\"\n#include <CLI/CLI.hpp>\n")
target_include_directories(perdure_cli SYSTEM BEFORE INTERFACE ${place})
add_library(perdure_cli11 STATIC ${place}/cli11.cpp)
target_link_libraries(perdure_cli11 PRIVATE perdure_build_flags CLI11::CLI11)
target_include_directories(perdure_cli11 SYSTEM BEFORE PRIVATE ${place})
target_compile_options(perdure_cli11 PRIVATE -Wno-null-dereference -O0)
target_link_libraries(perdure_cli INTERFACE perdure_cli11)
