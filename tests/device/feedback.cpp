// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The kernels of error feedback, for every element type, and one whole compressor with it, on a device.
#include "elements.hpp"

#include <wring/compressor/cast.hpp>
#include <wring/compressor/error_feedback.hpp>

namespace wring::inline v0::detail::feedback {

#define CHECK(T)                                                                                             \
  template void compensate<T>(const Device&, std::span<const T>, const FloatTraits<T>::Wide*, std::span<T>,  \
                              FloatTraits<T>::Wide, FloatTraits<T>::Wide);                                   \
  template void remember<T>(const Device&, std::span<const T>, std::span<const T>, FloatTraits<T>::Wide*,    \
                            FloatTraits<T>::Wide);                                                           \
  template void pay_back<T>(const Device&, const FloatTraits<T>::Wide*, std::span<T>, FloatTraits<T>::Wide); \
  template double greatest_magnitude<T>(const Device&, std::span<const FloatTraits<T>::Wide>);               \
  template void expand<T>(const Device&, const std::int8_t*, const FloatTraits<T>::Wide*,                    \
                          std::span<FloatTraits<T>::Wide>);                                                  \
  template void pack<T>(const Device&, const PackResiduals<T>&);
WRING_EACH_ELEMENT(CHECK)

}  // namespace wring::inline v0::detail::feedback

using Narrowed = wring::ErrorFeedback<wring::Cast<wring::half_t>, Device::memory_space>;
template std::size_t Narrowed::compress(const Device&, std::span<const float>, std::span<std::byte>,
                                        const wring::Context&);
template void Narrowed::decompress(const Device&, std::span<const std::byte>, std::span<float>,
                                   const wring::Context&);
template void Narrowed::begin(const Device&, std::uint64_t);
template double Narrowed::greatest(const Device&, double) const;
template class wring::FeedbackState<float, Device::memory_space>;
