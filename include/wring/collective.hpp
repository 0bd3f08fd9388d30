// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <wring/collective/allgather.hpp>
#include <wring/collective/allreduce.hpp>
#include <wring/collective/broadcast.hpp>
#include <wring/collective/calibrate.hpp>
#include <wring/collective/checked.hpp>
#include <wring/collective/group.hpp>
#include <wring/collective/options.hpp>
#include <wring/collective/reduce_scatter.hpp>
#include <wring/collective/report.hpp>
#include <wring/collective/request.hpp>
#include <wring/collective/timeline.hpp>
