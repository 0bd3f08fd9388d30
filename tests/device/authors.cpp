// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What authors of compressors start from, on a device: the template's codec, and random numbers in a kernel.
#include "elements.hpp"

#include <wring/random.hpp>

#include "../../examples/compressor_template/include/common_step/common_step.hpp"

template <class T> struct Authors {
  using Codec = common_step::CommonStep<T>;
  using Bytes = std::span<const std::byte>;

  struct Draw {
    wring::RandomDraws draws;
    T* values;
    KOKKOS_FUNCTION void operator()(std::size_t i) const { values[i] = static_cast<T>(draws.uniform(i)); }
  };

  static void all(const Device& exec, const Codec& codec, std::span<T> values, std::span<std::byte> bytes) {
    const wring::Context context{.count = values.size()};
    codec.compress(exec, std::span<const T>(values), bytes, context);
    codec.combine(exec, Bytes(bytes), Bytes(bytes), bytes, context);
    codec.decompress(exec, Bytes(bytes), values, context);
    Kokkos::parallel_for("draw",
                         Kokkos::RangePolicy<Device, Kokkos::IndexType<std::size_t>>(exec, 0, values.size()),
                         Draw{wring::RandomDraws::shared(1, 0, context), values.data()});
  }
};

template struct Authors<float>;
template struct Authors<double>;
