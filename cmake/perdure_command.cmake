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

file(RELATIVE_PATH PERDURE_COMMAND_FOLDER /${CMAKE_INSTALL_BINDIR} /${command_folder})
set(PERDURE_COMMAND_PYTHON python${Python_VERSION_MAJOR}.${Python_VERSION_MINOR}
    CACHE INTERNAL "the interpreter that the command needs")
configure_file(${PROJECT_SOURCE_DIR}/cmake/perdure_command.in
               ${CMAKE_BINARY_DIR}/command/perdure @ONLY)
install(PROGRAMS ${CMAKE_BINARY_DIR}/command/perdure DESTINATION ${CMAKE_INSTALL_BINDIR})

# perdure_made_folder(TARGET FOLDER DESTINATION SCRIPT [WORD …] DEPENDS …): what tools/SCRIPT puts
# into FOLDER, with the package and its modules in sight.
function(perdure_made_folder target folder destination script)
  cmake_parse_arguments(arg "" "" "DEPENDS" ${ARGN})
  set(made ${CMAKE_BINARY_DIR}/${folder})
  add_custom_command(OUTPUT ${made}.done COMMENT "Making ${folder}"
    COMMAND ${CMAKE_COMMAND} -E env
            --modify PYTHONPATH=path_list_prepend:${CMAKE_BINARY_DIR}/python
            --modify PYTHONPATH=path_list_prepend:${CMAKE_SOURCE_DIR}/python
            ${Python_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/${script} ${made}
            ${arg_UNPARSED_ARGUMENTS}
    COMMAND ${CMAKE_COMMAND} -E touch ${made}.done
    DEPENDS ${CMAKE_SOURCE_DIR}/tools/${script} ${arg_DEPENDS})
  add_custom_target(${target} ALL DEPENDS ${made}.done)
  install(DIRECTORY ${made}/ DESTINATION ${destination})
endfunction()
# Typer and Rich, which Debian has older than needed, and what they need.
perdure_made_folder(command_packages command_packages ${command_folder}/packages copy_packages.py
                    typer rich DEPENDS ${CMAKE_SOURCE_DIR}/tools/requirements.txt)
file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/python/perdure/*.py)
perdure_made_folder(man_pages man ${CMAKE_INSTALL_MANDIR} man_pages.py ${PROJECT_VERSION}
                    DEPENDS ${sources} _core)
perdure_made_folder(command_completions completions ${CMAKE_INSTALL_DATADIR} completions.py
                    DEPENDS ${CMAKE_SOURCE_DIR}/python/perdure/about.py
                            ${CMAKE_SOURCE_DIR}/tools/requirements.txt)
