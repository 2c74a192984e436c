# perdure_ipv_programs(NAME LIBRARY SOURCE…): the programs NAME_clang and NAME_ipv of these sources
# and a static library, by perdure-clang++ as they are and with --ipv=all. Custom targets
# build_NAME_…, as the rest of the build is by another compiler; their property PROGRAM is the path.
function(perdure_ipv_programs name library)
  set(compiler ${CMAKE_BINARY_DIR}/trace/bin/perdure-clang++)
  set(flags -std=c++20 -O3 -DNDEBUG -I${CMAKE_SOURCE_DIR}/apps -I${CMAKE_SOURCE_DIR}/include)
  set(objects_folder ${CMAKE_CURRENT_BINARY_DIR}/${name}_by_clang)
  file(MAKE_DIRECTORY ${objects_folder})
  foreach(variant clang ipv)
    set(options "")
    if(variant STREQUAL "ipv")
      set(options --ipv=all)
    endif()
    set(objects "")
    foreach(source IN LISTS ARGN)
      get_filename_component(path ${source} ABSOLUTE)
      file(RELATIVE_PATH stem ${CMAKE_SOURCE_DIR} ${path})
      string(MAKE_C_IDENTIFIER ${stem} stem)
      set(object ${objects_folder}/${stem}.${variant}.o)
      add_custom_command(OUTPUT ${object} VERBATIM
        COMMAND ${compiler} ${options} ${flags} -MD -MF ${object}.d -c ${path} -o ${object}
        DEPENDS ${path} PerdurePass DEPFILE ${object}.d)
      list(APPEND objects ${object})
    endforeach()
    set(program ${CMAKE_CURRENT_BINARY_DIR}/${name}_${variant})
    add_custom_command(OUTPUT ${program} VERBATIM
      COMMAND ${compiler} ${objects} $<TARGET_FILE:${library}> $<TARGET_FILE:npb_state>
              $<TARGET_FILE:perdure_shared> -Wl,-rpath,$<TARGET_FILE_DIR:perdure_shared>
              -Wl,-z,dynamic-undefined-weak -o ${program}
      DEPENDS ${objects} ${library} npb_state perdure_shared)
    add_custom_target(build_${name}_${variant} ALL DEPENDS ${program})
    set_target_properties(build_${name}_${variant} PROPERTIES PROGRAM ${program})
  endforeach()
endfunction()
