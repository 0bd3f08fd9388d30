# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# What tests, examples and benchmarks share: warnings, and how a program is started on several ranks.
include_guard()

# Warnings are for the project's own programs; wring::wring itself gives its users no flags.
add_library(wring_warnings INTERFACE)
target_compile_options(
  wring_warnings
  INTERFACE -Wall -Wextra $<$<CXX_COMPILER_ID:GNU>:-Wno-psabi> $<$<BOOL:${WRING_WARNINGS_AS_ERRORS}>:-Werror>)

# Each test sets its own number of threads. Threads are not bound, as ranks share cores here.
set(WRING_RUN_ENVIRONMENT OMP_PROC_BIND=false KOKKOS_DISABLE_WARNINGS=1
                          OMPI_MCA_btl=^tcp)  # all ranks are on this machine

set(WRING_MPI_LAUNCHER ${MPIEXEC_EXECUTABLE} ${MPIEXEC_PREFLAGS})
if(MPIEXEC_EXECUTABLE)
  execute_process(COMMAND ${MPIEXEC_EXECUTABLE} --version OUTPUT_VARIABLE launcher_version ERROR_QUIET)
  if(launcher_version MATCHES "Open MPI|OpenRTE|PRRTE|prte|prterun")  # more ranks than cores are welcome, root too
    list(APPEND WRING_MPI_LAUNCHER --allow-run-as-root --oversubscribe --bind-to none)
    set(WRING_OPEN_MPI TRUE)
  endif()
  string(REGEX MATCH "[^\n]+" launcher_version "${launcher_version}")
endif()

# wring_add_mpi_test(NAME name TARGET target RANKS n [TIMEOUT seconds] [LABELS ...] [FOLDER folder] [ARGUMENTS ...])
function(wring_add_mpi_test)
  cmake_parse_arguments(PARSE_ARGV 0 test "" "NAME;TARGET;RANKS;TIMEOUT;FOLDER" "LABELS;ARGUMENTS")
  if(NOT test_TIMEOUT)
    set(test_TIMEOUT 120)
  endif()
  if(NOT test_FOLDER)
    set(test_FOLDER ${CMAKE_CURRENT_BINARY_DIR})
  endif()
  add_test(
    NAME ${test_NAME}
    COMMAND ${WRING_MPI_LAUNCHER} ${MPIEXEC_NUMPROC_FLAG} ${test_RANKS} $<TARGET_FILE:${test_TARGET}>
            ${MPIEXEC_POSTFLAGS} ${test_ARGUMENTS}
    WORKING_DIRECTORY ${test_FOLDER})
  set_tests_properties(
    ${test_NAME}
    PROPERTIES PROCESSORS ${test_RANKS} TIMEOUT ${test_TIMEOUT} LABELS "${test_LABELS}"
               ENVIRONMENT "OMP_NUM_THREADS=1;${WRING_RUN_ENVIRONMENT}")
endfunction()

# Says what was found, since that decides what a result is worth.
function(wring_report_setting)
  message(STATUS "wring ${PROJECT_VERSION}: compiler ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}, "
                 "flags '${CMAKE_CXX_FLAGS}' (${CMAKE_BUILD_TYPE})")
  message(STATUS "wring ${PROJECT_VERSION}: Kokkos ${Kokkos_VERSION} (${Kokkos_DEVICES}), fmt ${fmt_VERSION}, "
                 "MPI ${MPI_CXX_VERSION}: ${launcher_version}")
endfunction()
