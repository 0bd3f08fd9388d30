// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codec/element.hpp"

void wring_benchmark::register_float(Registry& registry) { register_element<float>(registry); }
