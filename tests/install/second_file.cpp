// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <wring/wring.hpp>

int second_file() { return WRING_VERSION_MAJOR < 0; }
