// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <wring/algorithm.hpp>
#include <wring/bound.hpp>
#include <wring/collective.hpp>
#include <wring/compressor.hpp>
#include <wring/error.hpp>
#include <wring/narrow.hpp>
#include <wring/operation.hpp>
#include <wring/transport.hpp>
#include <wring/version.hpp>
#include <wring/view.hpp>
#include <wring/work.hpp>
