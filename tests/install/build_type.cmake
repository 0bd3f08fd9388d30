# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Configures projects without languages, with and without a build type, and counts the warnings.
# Usage: cmake -D SCRIPT=WringBuildType.cmake -D FOLDER=FOLDER -D GENERATOR=NAME -P build_type.cmake
cmake_minimum_required(VERSION 3.25)

file(REMOVE_RECURSE ${FOLDER})
file(WRITE ${FOLDER}/project/CMakeLists.txt
     "cmake_minimum_required(VERSION 3.25)\nproject(client LANGUAGES NONE)\ninclude(${SCRIPT})\ninclude(${SCRIPT})\n")

set(ENV{CMAKE_BUILD_TYPE} "")  # else it would be the default

# expect_warnings(COUNT NAME ARGUMENTS...)
function(expect_warnings count name)
  execute_process(
    COMMAND ${CMAKE_COMMAND} -G ${GENERATOR} -S ${FOLDER}/project -B ${FOLDER}/${name} ${ARGN}
    OUTPUT_QUIET
    ERROR_VARIABLE errors COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "no build type" warnings "${errors}")
  list(LENGTH warnings found)
  if(NOT found EQUAL count)
    message(FATAL_ERROR "${name}: ${found} warnings, not ${count}: ${errors}")
  endif()
endfunction()

expect_warnings(1 none)
expect_warnings(1 flags_without -D "CMAKE_CXX_FLAGS=-g -Wall")
expect_warnings(0 release -D CMAKE_BUILD_TYPE=Release)
expect_warnings(0 debug -D CMAKE_BUILD_TYPE=Debug)
expect_warnings(0 flags -D "CMAKE_CXX_FLAGS=-g -O2")
