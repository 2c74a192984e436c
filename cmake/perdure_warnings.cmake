# SPDX-License-Identifier: BSD-3-Clause
#
# One interface target carries the warnings and the sanitizer of this build tree. What a library or
# program does not use of its modules is left out of it, though sources are compiled together.
# With PERDURE_SANITIZED programs have a run-time library that comes before all others.
add_library(perdure_build_flags INTERFACE)
set(PERDURE_SANITIZED OFF)
if(PERDURE_SANITIZER AND NOT PERDURE_SANITIZER STREQUAL "coverage")
  set(PERDURE_SANITIZED ON)
endif()
target_compile_options(perdure_build_flags INTERFACE
  -Wall -Wextra -Wshadow -Wformat=2 -Wimplicit-fallthrough -Wnull-dereference -Wdouble-promotion
  $<$<COMPILE_LANGUAGE:CXX>:-Wconversion -Wsign-conversion -Wold-style-cast -Wnon-virtual-dtor
                            -Woverloaded-virtual>
  $<$<BOOL:${PERDURE_WERROR}>:-Werror>
  -ffunction-sections -fdata-sections)
target_link_options(perdure_build_flags INTERFACE LINKER:--gc-sections)
set(sanitizers "")
if(PERDURE_SANITIZER STREQUAL "coverage")
  set(sanitizers --coverage)
elseif(PERDURE_SANITIZER STREQUAL "fuzz")
  set(sanitizers -fsanitize=address,undefined,fuzzer-no-link)
elseif(PERDURE_SANITIZER)
  set(sanitizers -fsanitize=${PERDURE_SANITIZER})
endif()
target_link_options(perdure_build_flags INTERFACE ${sanitizers})
if(PERDURE_SANITIZED)
  # GCC says that ThreadSanitizer does not see fences, and may report what they order. The checks
  # leave GCC 12 paths on which it believes a string to be longer than its array.
  list(APPEND sanitizers -fno-sanitize-recover=all -fno-omit-frame-pointer
              $<$<CXX_COMPILER_ID:GNU>:-Wno-tsan> $<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overread>)
endif()
target_compile_options(perdure_build_flags INTERFACE ${sanitizers})
