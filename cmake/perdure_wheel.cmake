# SPDX-License-Identifier: BSD-3-Clause
#
# What a wheel has beside the Python package, in it, as a prefix of its own that can be moved:
# perdure/{lib,include,bin,share/perdure}. The package's modules find their libraries in its lib,
# and `perdure config` says to programs where all of it is.
#
# A wheel has no links: a library has the name of its SONAME, under which programs load it, and
# libNAME.so, which -lNAME looks for, leads the linker there.
set(in_wheel COMPONENT python EXCLUDE_FROM_ALL)

perdure_install_interface(perdure_wheel_targets perdure/lib perdure/include perdure/share/perdure
                          ${in_wheel} LIBRARIES NAMELINK_SKIP)
perdure_pkg_config(${PERDURE_WHEEL_FILES}/lib/pkgconfig ../.. lib include bin share/perdure
                   lib/cmake/perdure)
install(FILES ${written} DESTINATION perdure/lib/pkgconfig ${in_wheel})

# The compilers, their pass, and what they link to programs.
set(compiler_libraries "")
foreach(target perdure_trace_rt perdure_trace_tsan perdure_ipv_check_rt)
  if(TARGET ${target})
    list(APPEND compiler_libraries ${target})
  endif()
endforeach()
if(compiler_libraries)
  install(TARGETS ${compiler_libraries} LIBRARY DESTINATION perdure/lib ${in_wheel} NAMELINK_SKIP)
  install(DIRECTORY ${PERDURE_WHEEL_FILES}/bin DESTINATION perdure ${in_wheel}
          USE_SOURCE_PERMISSIONS)
  install(DIRECTORY ${CMAKE_BINARY_DIR}/trace/lib/perdure_instead_of_tsan
          DESTINATION perdure/lib ${in_wheel})
endif()

set(linked ${installed_libraries} ${compiler_libraries})
set(loaded ${veloc_libraries})
if(veloc_libraries)
  list(APPEND linked perdure_veloc)
  list(APPEND loaded perdure_preload)
endif()
if(TARGET PerdurePass)
  list(APPEND loaded PerdurePass)
  install(TARGETS PerdurePass LIBRARY DESTINATION perdure/lib ${in_wheel})
endif()
foreach(target IN LISTS linked)
  set(script ${PERDURE_WHEEL_FILES}/lib/$<TARGET_LINKER_FILE_NAME:${target}>)
  file(GENERATE OUTPUT ${script} CONTENT "INPUT($<TARGET_SONAME_FILE_NAME:${target}>)\n")
  install(FILES ${script} DESTINATION perdure/lib ${in_wheel})
endforeach()

add_custom_target(python_package DEPENDS _api_stub _core_stub perdure_keeper ${linked} ${loaded})
