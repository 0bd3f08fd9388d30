# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Warns, once, of a program that is compiled without optimisation for want of a build type: its collectives would be many
# times slower than they need be. A build type chosen with intent, Debug too, is nobody's mistake.
include_guard(GLOBAL)

get_property(wring_multi_config GLOBAL PROPERTY GENERATOR_IS_MULTI_CONFIG)
if(NOT wring_multi_config AND "${CMAKE_BUILD_TYPE}" STREQUAL "" AND NOT "${CMAKE_CXX_FLAGS}" MATCHES "(^| )-O")
  message(WARNING "wring: this project has no build type, so it is compiled without optimisation, and compression then "
                  "costs more time than it saves: configure with -D CMAKE_BUILD_TYPE=Release.")
endif()
unset(wring_multi_config)
