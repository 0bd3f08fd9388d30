// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "cases/compressors/define.hpp"

template <> std::vector<wring_test::AnyCompressor<double>> wring_test::all_compressors<double>() {
  return define_all_compressors<double>();
}
