// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <wring/view/adaptor.hpp>
#include <wring/view/common_scale.hpp>
#include <wring/view/kinds.hpp>
#include <wring/view/pack.hpp>
#include <wring/view/scaled.hpp>
#include <wring/view/symmetric.hpp>
