// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/executors.hpp"

WRING_TEST_INSTANTIATE(wring::None<double>);
