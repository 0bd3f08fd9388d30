// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "cases/compressors/define.hpp"

template <> std::vector<wring_test::AnyCompressor<wring::half_t>>
wring_test::all_compressors<wring::half_t>() {
  return define_all_compressors<wring::half_t>();
}
