// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codec/element.hpp"

void wring_benchmark::register_half_t(Registry& registry) { register_element<wring::half_t>(registry); }
