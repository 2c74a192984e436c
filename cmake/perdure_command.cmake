# SPDX-License-Identifier: BSD-3-Clause
#
# The command `perdure` in a prefix: its package and the Python packages that it needs, for the
# Python that it was built with, below LIBDIR/perdure; a starter in BINDIR; man pages; what
# completes its words in bash, zsh and fish.
#
# Programs import perdure from LIBDIR/perdure/python, which has nothing else; numpy is theirs.
set(command_folder ${CMAKE_INSTALL_LIBDIR}/perdure)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/python/perdure DESTINATION ${command_folder}/python
        PATTERN __pycache__ EXCLUDE)
install(TARGETS _api _core LIBRARY DESTINATION ${command_folder}/python/perdure)
install(TARGETS perdure_keeper RUNTIME DESTINATION ${command_folder}/python/perdure)
install(FILES ${PROJECT_SOURCE_DIR}/data/energy/reference.json
        DESTINATION ${command_folder}/python/perdure/energy)

# Typer and Rich, which Debian has older than needed, and what they need.
set(packages_folder ${CMAKE_BINARY_DIR}/command_packages)
add_custom_command(OUTPUT ${packages_folder}.done
  COMMAND ${Python_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/copy_packages.py ${packages_folder}
          typer rich
  COMMAND ${CMAKE_COMMAND} -E touch ${packages_folder}.done
  DEPENDS ${CMAKE_SOURCE_DIR}/tools/copy_packages.py ${CMAKE_SOURCE_DIR}/tools/requirements.txt
  COMMENT "Copying the Python packages of the command")
add_custom_target(command_packages ALL DEPENDS ${packages_folder}.done)
install(DIRECTORY ${packages_folder}/ DESTINATION ${command_folder}/packages)

file(RELATIVE_PATH PERDURE_COMMAND_FOLDER /${CMAKE_INSTALL_BINDIR} /${command_folder})
set(PERDURE_COMMAND_PYTHON python${Python_VERSION_MAJOR}.${Python_VERSION_MINOR}
    CACHE INTERNAL "the interpreter that the command needs")
configure_file(${PROJECT_SOURCE_DIR}/cmake/perdure_command.in
               ${CMAKE_BINARY_DIR}/command/perdure @ONLY)
install(PROGRAMS ${CMAKE_BINARY_DIR}/command/perdure DESTINATION ${CMAKE_INSTALL_BINDIR})

set(pages ${CMAKE_BINARY_DIR}/man)
file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/python/perdure/*.py)
add_custom_command(OUTPUT ${pages}.done
  COMMAND ${CMAKE_COMMAND} -E env
          --modify PYTHONPATH=path_list_prepend:${CMAKE_BINARY_DIR}/python
          --modify PYTHONPATH=path_list_prepend:${CMAKE_SOURCE_DIR}/python
          ${Python_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/man_pages.py ${pages} ${PROJECT_VERSION}
  COMMAND ${CMAKE_COMMAND} -E touch ${pages}.done
  DEPENDS ${sources} ${CMAKE_SOURCE_DIR}/tools/man_pages.py _core
  COMMENT "Making the man pages")
add_custom_target(man_pages ALL DEPENDS ${pages}.done)
install(DIRECTORY ${pages}/ DESTINATION ${CMAKE_INSTALL_MANDIR})

set(completions ${CMAKE_BINARY_DIR}/completions)
add_custom_command(OUTPUT ${completions}.done
  COMMAND ${CMAKE_COMMAND} -E env --modify PYTHONPATH=path_list_prepend:${CMAKE_SOURCE_DIR}/python
          ${Python_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/completions.py ${completions}
  COMMAND ${CMAKE_COMMAND} -E touch ${completions}.done
  DEPENDS ${CMAKE_SOURCE_DIR}/python/perdure/about.py ${CMAKE_SOURCE_DIR}/tools/completions.py
          ${CMAKE_SOURCE_DIR}/tools/requirements.txt
  COMMENT "Making the completions of the command")
add_custom_target(command_completions ALL DEPENDS ${completions}.done)
install(DIRECTORY ${completions}/ DESTINATION ${CMAKE_INSTALL_DATADIR})
