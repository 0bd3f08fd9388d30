// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <wring/view/kinds.hpp>
#include <wring/view/pack.hpp>
