# SPDX-License-Identifier: BSD-3-Clause
#
# `cpack -G DEB` in a build tree makes one Debian package of what `cmake --install` installs, for
# the Debian, and the Python, on which it is made. It requires the MPIs' libraries for the programs
# with which `perdure cache predict` measures; Perdure's own are not linked with any.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME perdure)
set(CPACK_PACKAGE_VENDOR "the Perdure authors")
set(CPACK_PACKAGE_CONTACT "the Perdure authors <perdure@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL Unspecified)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# The libraries of the package depend on each other.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_BINARY_DIR}/src/capi
                                                ${CMAKE_BINARY_DIR}/trace/lib)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "python3-numpy")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "mpich, openmpi-bin, clang-19")
set(CPACK_DEBIAN_PACKAGE_DEPENDS "${PERDURE_COMMAND_PYTHON}")
if(TARGET _core)
  # Debian's python3 looks into its own folders only, and is led to this one.
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/debian/dist-packages/perdure.pth
       CONTENT "/usr/${CMAKE_INSTALL_LIBDIR}/perdure/python\n")
  set(CPACK_INSTALLED_DIRECTORIES
      "${CMAKE_BINARY_DIR}/debian/dist-packages;usr/lib/python3/dist-packages")
endif()
include(CPack)
