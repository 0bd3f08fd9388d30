# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
include_guard()

# wring_write_compile_flags(FILE): writes the flags of a program that links wring::wring, one a line, for tests that call
# the compiler themselves. Flags may be quoted, and may start with CMake's SHELL:, which the reader takes away.
function(wring_write_compile_flags file)
  if(NOT TARGET wring_flags)
    file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/flags.cpp CONTENT "int unused;\n")
    add_library(wring_flags OBJECT EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/flags.cpp)
    target_link_libraries(wring_flags PRIVATE wring::wring wring_warnings)
  endif()
  set(includes $<TARGET_PROPERTY:wring_flags,INCLUDE_DIRECTORIES>)
  set(own ${wring_SOURCE_DIR}/include)
  set(foreign $<FILTER:${includes},EXCLUDE,^${own}$>)
  set(foreign $<REMOVE_DUPLICATES:$<FILTER:${foreign},EXCLUDE,^/usr/include$>>)
  set(definitions $<TARGET_PROPERTY:wring_flags,COMPILE_DEFINITIONS>)
  set(options $<TARGET_PROPERTY:wring_flags,COMPILE_OPTIONS>)
  file(
    GENERATE
    OUTPUT ${file}
    CONTENT
      "-std=c++20\n${CMAKE_CXX_FLAGS}\n\"-I${own}\"\n$<$<BOOL:${foreign}>:-isystem\n\"$<JOIN:${foreign},\"\n-isystem\n\">\"\n>$<$<BOOL:${definitions}>:-D$<JOIN:${definitions},\n-D>\n>$<JOIN:${options},\n>\n"
    TARGET wring_flags)
endfunction()
