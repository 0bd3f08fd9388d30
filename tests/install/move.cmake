# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Installs the library, moves the folder, and asserts that nothing installed names where it came from.
# Usage: cmake -D BUILD=FOLDER -D SOURCE=FOLDER -D FOLDER=FOLDER -P move.cmake
cmake_minimum_required(VERSION 3.25)

file(REMOVE_RECURSE ${FOLDER}/first ${FOLDER}/moved ${FOLDER}/find_package)
execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${FOLDER}/first OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
file(RENAME ${FOLDER}/first ${FOLDER}/moved)

file(GLOB_RECURSE installed RELATIVE ${FOLDER}/moved ${FOLDER}/moved/*)
foreach(file IN LISTS installed)
  if(NOT file MATCHES "^(include/wring/.*\\.hpp|share/cmake/wring/wring-[a-z-]+\\.cmake|share/doc/wring/LICENSE)$")
    message(FATAL_ERROR "${file} should not be installed")
  endif()
  file(READ ${FOLDER}/moved/${file} text)
  foreach(path IN ITEMS ${BUILD} ${SOURCE} ${FOLDER})
    string(FIND "${text}" "${path}/" at)
    if(NOT at EQUAL -1)
      message(FATAL_ERROR "${file} names ${path}")
    endif()
  endforeach()
endforeach()
foreach(file IN ITEMS include/wring/wring.hpp include/wring/version.hpp share/cmake/wring/wring-config.cmake
                      share/cmake/wring/wring-config-version.cmake share/doc/wring/LICENSE)
  if(NOT file IN_LIST installed)
    message(FATAL_ERROR "${file} is not installed")
  endif()
endforeach()
