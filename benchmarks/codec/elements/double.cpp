// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codec/element.hpp"

void wring_benchmark::register_double(Registry& registry) { register_element<double>(registry); }
