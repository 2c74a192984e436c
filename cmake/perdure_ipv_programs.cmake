# perdure_ipv_programs(NAME LIBRARY SOURCE…): three programs of these sources and a static library,
# by Clang: NAME_clang, as they are; NAME_ipv, with --ipv=all; and NAME_misses, NAME_ipv with the
# cache model of bench/cache_model behind each of its accesses. Custom targets build_NAME_…, as the
# rest of the build is by another compiler; their property PROGRAM is the path.
function(perdure_ipv_objects name variant)
  set(flags -std=c++20 -O3 -DNDEBUG -I${CMAKE_SOURCE_DIR}/apps -I${CMAKE_SOURCE_DIR}/include)
  set(compiler ${CMAKE_BINARY_DIR}/trace/bin/perdure-clang++)
  set(command ${compiler})
  if(variant STREQUAL "ipv")
    list(APPEND command --ipv=all)
  elseif(variant STREQUAL "misses")
    set(command ${CMAKE_COMMAND} -E env PERDURE_PASS=ipv-all,trace ${compiler}
                -fpass-plugin=$<TARGET_FILE:PerdurePass>)
  endif()
  set(objects "")
  foreach(source IN LISTS ARGN)
    get_filename_component(path ${source} ABSOLUTE)
    file(RELATIVE_PATH stem ${CMAKE_SOURCE_DIR} ${path})
    string(MAKE_C_IDENTIFIER ${stem} stem)
    set(object ${CMAKE_CURRENT_BINARY_DIR}/${name}_by_clang/${stem}.${variant}.o)
    add_custom_command(OUTPUT ${object} VERBATIM
      COMMAND ${command} ${flags} -MD -MF ${object}.d -c ${path} -o ${object}
      DEPENDS ${path} PerdurePass DEPFILE ${object}.d)
    list(APPEND objects ${object})
  endforeach()
  set(objects ${objects} PARENT_SCOPE)
endfunction()

function(perdure_misses_program name library)
  perdure_ipv_objects(${name} misses ${ARGN})
  add_executable(${name}_misses ${objects})
  set_target_properties(${name}_misses PROPERTIES LINKER_LANGUAGE CXX)
  target_link_libraries(${name}_misses PRIVATE ${library} npb_state perdure_redirected)
  add_dependencies(${name}_misses build_cache_model)
endfunction()

function(perdure_ipv_programs name library)
  file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/${name}_by_clang)
  foreach(variant clang ipv)
    perdure_ipv_objects(${name} ${variant} ${ARGN})
    set(program ${CMAKE_CURRENT_BINARY_DIR}/${name}_${variant})
    add_custom_command(OUTPUT ${program} VERBATIM
      COMMAND ${CMAKE_BINARY_DIR}/trace/bin/perdure-clang++ ${objects} $<TARGET_FILE:${library}>
              $<TARGET_FILE:npb_state> $<TARGET_FILE:perdure_shared>
              -Wl,-rpath,$<TARGET_FILE_DIR:perdure_shared> -Wl,-z,dynamic-undefined-weak
              -o ${program}
      DEPENDS ${objects} ${library} npb_state perdure_shared)
    add_custom_target(build_${name}_${variant} ALL DEPENDS ${program})
    set_target_properties(build_${name}_${variant} PROPERTIES PROGRAM ${program})
  endforeach()
  perdure_misses_program(${name} ${library} ${ARGN})
endfunction()
