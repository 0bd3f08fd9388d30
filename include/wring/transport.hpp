// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <wring/transport/concept.hpp>
#include <wring/transport/in_process.hpp>
#include <wring/transport/session.hpp>
#include <wring/transport/simulated.hpp>

#if __has_include(<mpi.h>)  // programs whose ranks share a process need no MPI
#include <wring/transport/mpi.hpp>
#endif
