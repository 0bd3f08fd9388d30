// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// Algorithms: who sends which blocks to whom, in which order. Nothing here knows values, bytes or MPI.

#include <wring/algorithm/automatic.hpp>
#include <wring/algorithm/concept.hpp>
#include <wring/algorithm/cost.hpp>
#include <wring/algorithm/direct.hpp>
#include <wring/algorithm/halving_doubling.hpp>
#include <wring/algorithm/hierarchical.hpp>
#include <wring/algorithm/load.hpp>
#include <wring/algorithm/native.hpp>
#include <wring/algorithm/plan.hpp>
#include <wring/algorithm/recursive_doubling.hpp>
#include <wring/algorithm/ring.hpp>
#include <wring/algorithm/situation.hpp>
#include <wring/algorithm/verify.hpp>
