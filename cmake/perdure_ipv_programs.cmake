# SPDX-License-Identifier: BSD-3-Clause
#
# The programs of apps/ as perdure-clang makes them, and what is proven of them.
#
# perdure_ipv_programs(NAME LIBRARY SOURCE…): three programs of these sources and a static library,
# by perdure-clang++: NAME_clang, as they are; NAME_ipv, with --ipv=all for the sources that have
# the property PERDURE_IPV, which store to what is carried; and NAME_misses, NAME_ipv with each of
# its accesses simulated by bench/cache_model. Where LLVM's OpenMP is installed, also
# NAME_clang_openmp and NAME_ipv_openmp: the first two with -fopenmp for the sources that have the
# property PERDURE_OPENMP, whose loops it makes parallel. Custom targets build_NAME_…, as the rest
# of the build uses another compiler; their property PROGRAM is the path, OBJECTS what it is linked
# from.

# perdure_ipv_objects(NAME VARIANT SOURCE…): sets `objects`. One that programs of a folder share is
# made once, and so is one whose variants do not differ: a source without rows is no other with
# --ipv, nor one without parallel loops with -fopenmp (npb/parallel.hpp refuses what lacks the
# property). Ninja sees to that; make would make it for each program, at the same time.
function(perdure_ipv_objects name variant)
  perdure_choose(folder by_clang IF CMAKE_GENERATOR MATCHES "Ninja"
                 ELSE ${name}_${variant}_by_clang)
  file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/${folder})
  set(compiler ${CMAKE_BINARY_DIR}/trace/bin/perdure-clang++)
  set(objects "")
  foreach(source IN LISTS ARGN)
    get_source_file_property(rows ${source} PERDURE_IPV)
    get_source_file_property(parallel ${source} PERDURE_OPENMP)
    set(made ${variant})
    if(NOT parallel)
      string(REPLACE "_openmp" "" made ${made})
    endif()
    if(NOT rows)
      string(REPLACE "ipv" "clang" made ${made})
    endif()
    get_filename_component(path ${source} ABSOLUTE)
    file(RELATIVE_PATH stem ${CMAKE_SOURCE_DIR} ${path})
    string(MAKE_C_IDENTIFIER ${stem} stem)
    set(object ${CMAKE_CURRENT_BINARY_DIR}/${folder}/${stem}.${made}.o)
    list(APPEND objects ${object})
    get_property(known DIRECTORY PROPERTY PERDURE_IPV_OBJECTS)
    if(object IN_LIST known)
      continue()
    endif()
    set_property(DIRECTORY APPEND PROPERTY PERDURE_IPV_OBJECTS ${object})
    set(command ${compiler})
    if(made MATCHES "^ipv")
      list(APPEND command --ipv=all)
    elseif(made STREQUAL "misses")
      perdure_choose(passes ipv-all,trace IF rows ELSE trace)
      set(command ${CMAKE_COMMAND} -E env PERDURE_PASS=${passes} ${compiler}
                  -fpass-plugin=$<TARGET_FILE:PerdurePass>)
    endif()
    # These programs are compared: none may be faster for where the linker puts a function.
    set(flags -std=c++20 -O3 -DNDEBUG -falign-functions=64 -falign-loops=32
              -I${CMAKE_SOURCE_DIR}/apps -I${CMAKE_SOURCE_DIR}/include)
    if(made MATCHES "_openmp$")
      list(APPEND flags -fopenmp)
    elseif(NOT parallel)
      list(APPEND flags -DNPB_NO_PARALLEL_LOOPS)
    endif()
    add_custom_command(OUTPUT ${object} VERBATIM
      COMMAND ${command} ${flags} -MD -MF ${object}.d -c ${path} -o ${object}
      DEPENDS ${path} PerdurePass DEPFILE ${object}.d)
  endforeach()
  set(objects ${objects} PARENT_SCOPE)
endfunction()

function(perdure_ipv_programs name library)
  perdure_choose(openmp clang_openmp ipv_openmp IF PERDURE_LIBOMP)
  foreach(variant clang ipv ${openmp})
    perdure_ipv_objects(${name} ${variant} ${ARGN})
    perdure_choose(openmp -fopenmp IF variant MATCHES "_openmp$")
    set(program ${CMAKE_CURRENT_BINARY_DIR}/${name}_${variant})
    add_custom_command(OUTPUT ${program} VERBATIM
      COMMAND ${CMAKE_BINARY_DIR}/trace/bin/perdure-clang++ ${openmp} ${objects}
              $<TARGET_FILE:${library}> $<TARGET_FILE:npb_state> $<TARGET_FILE:perdure_shared>
              -Wl,-rpath,$<TARGET_FILE_DIR:perdure_shared> -Wl,-z,dynamic-undefined-weak
              -o ${program}
      DEPENDS ${objects} ${library} npb_state)
    add_custom_target(build_${name}_${variant} ALL DEPENDS ${program})
    set_target_properties(build_${name}_${variant} PROPERTIES PROGRAM ${program}
                                                              OBJECTS "${objects}")
  endforeach()
  perdure_ipv_objects(${name} misses ${ARGN})
  perdure_program(${name}_misses EXCLUDE_FROM_ALL ${objects}
                  LIBS ${library} npb_state perdure_redirected PROPERTIES LINKER_LANGUAGE CXX)
  add_dependencies(${name}_misses build_cache_model)
endfunction()

# perdure_crashing_program(NAME MADE LIBRARY …): the program NAME of the objects of build_MADE; its
# pool lies on a device that crashes (tests/ipv/crash_program.cpp).
function(perdure_crashing_program name made)
  get_target_property(objects build_${made} OBJECTS)
  perdure_program(${name} ${objects} LIBS ${ARGN} npb_state perdure_crashing
                  PROPERTIES LINKER_LANGUAGE CXX)
endfunction()

# perdure_ipv_crash_program(NAME LIBRARY OPTION …): NAME_crash, NAME_ipv that crashes. OPTION sets
# the iterations. Tests ipv_crash.NAME and, of all tiers, with versions made in front of the program
# and beside it, the soak tests ipv_crash.NAME.TIER.off and .on.
function(perdure_ipv_crash_program name library)
  perdure_crashing_program(${name}_crash ${name}_ipv ${library})
  perdure_test_entry(ipv_crash.${name} TIMEOUT 120 ENVIRONMENT PERDURE_IPV=helper=off,box_bytes=1
                     COMMAND ${name}_crash --images 3 -- ${ARGN} 3 --tier stream)
  set(iterations 24)  # two or four of each, and some after the choice
  foreach(tier auto copy stream)
    foreach(beside off on)
      perdure_test_entry(ipv_crash.${name}.${tier}.${beside} SOAK TIMEOUT 1800
        COMMAND ${name}_crash --images 20 --every-model -- ${ARGN} ${iterations} --tier ${tier}
        ENVIRONMENT PERDURE_IPV=helper=${beside},box_bytes=1)
    endforeach()
    set(iterations 5)
  endforeach()
endfunction()

# perdure_openmp_tests(CHECK NAME LIBRARY COUNT OPTION …): NAME_ipv_openmp gives the digits of
# NAME_clang_openmp with 1, 2 and 4 threads, and when it is killed and restarted; COUNT sets the
# iterations. Tests NAME.openmp.equal.t4 and, of two threads, NAME.openmp.restart, NAME.openmp.kill
# and ipv_crash.NAME.openmp, as perdure_ipv_crash_program() has it, of LIBRARY; soak tests
# NAME.openmp.equal.t1 and .t2.
function(perdure_openmp_tests check name library count)
  perdure_only_if(TARGET build_${name}_ipv_openmp)
  set(native $<TARGET_PROPERTY:build_${name}_clang_openmp,PROGRAM>)
  set(program $<TARGET_PROPERTY:build_${name}_ipv_openmp,PROGRAM>)
  foreach(run "1 SOAK" "2 SOAK" 4)
    separate_arguments(run)
    list(POP_FRONT run threads)
    perdure_test_entry(${name}.openmp.equal.t${threads} TIMEOUT 300 ${run}
      COMMAND ${check} equal_openmp ${native} ${program} ${ARGN}
      ENVIRONMENT OMP_NUM_THREADS=${threads} OMP_WAIT_POLICY=passive)
  endforeach()
  set(two_threads ENVIRONMENT OMP_NUM_THREADS=2 OMP_WAIT_POLICY=passive)
  # What is killed leaves a file of its OpenMP library in /dev/shm.
  perdure_test_entry(${name}.openmp.restart TIMEOUT 300 OWN_SHM ${two_threads}
    COMMAND ${check} restart ipv ${count} ${program} ${ARGN} --tier stream)
  perdure_test_entry(${name}.openmp.kill TIMEOUT 300 OWN_SHM ${two_threads}
    COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/ipv/kill_program.py
            --kills 3 --markers $<TARGET_FILE:npb_markers_test> ${program} ${ARGN})
  perdure_crashing_program(${name}_openmp_crash ${name}_ipv_openmp ${library} ${PERDURE_LIBOMP})
  perdure_test_entry(ipv_crash.${name}.openmp TIMEOUT 120
    COMMAND ${name}_openmp_crash --images 3 -- ${ARGN} ${count} 3 --tier stream
    ${two_threads} PERDURE_IPV=helper=off,box_bytes=1)
endfunction()

# perdure_ipv_kill_tests(NAME FEW OPTION … MANY OPTION …): NAME_ipv is killed at random instants and
# restarted (tests/ipv/kill_program.py), a few times in ipv_kill.NAME; many times in the soak tests
# ipv_kill.NAME.long and, two ranks of each MPI, ipv_kill.NAME.FLAVOUR.n2.
function(perdure_ipv_kill_tests name)
  cmake_parse_arguments(arg "" "" "FEW;MANY" ${ARGN})
  set(kill COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/ipv/kill_program.py
           --markers $<TARGET_FILE:npb_markers_test>)
  if(PERDURE_BY_CLANG)
    set(program $<TARGET_PROPERTY:build_${name}_ipv,PROGRAM>)
    perdure_test_entry(ipv_kill.${name} LABELS kill TIMEOUT 120 ${kill}
      SHORT --kills 3 ${program} ${arg_FEW} LONG .long 3600 --kills 100 ${program} ${arg_MANY})
  endif()
  perdure_test_entry(ipv_kill.${name}.@.n2 SOAK LABELS kill TIMEOUT 3600 PROCESSORS 2
    ${kill} --kills 30 --mpirun @MPIEXEC 2 $<TARGET_FILE:${name}_@> ${arg_MANY})
endfunction()
