// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "cases/compressors/define.hpp"

template <> std::vector<wring_test::AnyCompressor<wring::bhalf_t>>
wring_test::all_compressors<wring::bhalf_t>() {
  return define_all_compressors<wring::bhalf_t>();
}
