// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include <wring/compressor/concept.hpp>

/// Abilities that are known by their names: a compressor with feedback has those that the one inside has, in the same execution spaces.
/// The table of all is with `ErrorFeedback`.
namespace wring::inline v0::detail::feedback {

template <class Inner, class Derived> struct ForwardsFixedSize {
  std::size_t compressed_bytes(std::size_t n) const {
    return static_cast<const Derived*>(this)->inner().compressed_bytes(n);
  }
};

template <class Inner, class Derived> struct ForwardsFallbacks {
  std::uint64_t fallback_blocks() const {
    return static_cast<const Derived*>(this)->inner().fallback_blocks();
  }
};

template <class Inner, class Derived> struct ForwardsAdding {
  template <class Exec>
    requires AddingCompressor<Inner, Exec>
  void decompress_add(const Exec& exec, std::span<const std::byte> bytes,
                      std::span<typename Inner::value_type> values, const Context& context) {
    auto& self = *static_cast<Derived*>(this);
    self.inner_.decompress_add(exec, bytes, values, self.for_inner(context));
  }
};

/// Shows the compressor inside what it will be given: values with what is owed to them.
template <class Inner, class Derived> struct ForwardsInspecting {
  template <class Exec>
    requires InspectingCompressor<Inner, Exec>
  void inspect(const Exec& exec, std::span<const typename Inner::value_type> values, const Context& context) {
    static_cast<Derived*>(this)->show(exec, values, context);
  }
};

/// What a step is found from: the values as they are.
template <class Inner, class Derived> struct ForwardsSurveying {
  template <class Exec>
    requires SurveyingCompressor<Inner, Exec>
  double survey(const Exec& exec, std::span<const typename Inner::value_type> values,
                double root_mean_square) const {
    return static_cast<const Derived*>(this)->inner().survey(exec, values, root_mean_square);
  }
};

/// Nothing, in place of what the compressor inside cannot do.
template <int ability> struct Without {};

template <class Inner, class Derived>
struct Abilities
    : std::conditional_t<FixedSizeCompressor<Inner>, ForwardsFixedSize<Inner, Derived>, Without<0>>,
      std::conditional_t<CountsFallbacks<Inner>, ForwardsFallbacks<Inner, Derived>, Without<1>>,
      std::conditional_t<AddingCompressor<Inner>, ForwardsAdding<Inner, Derived>, Without<2>>,
      std::conditional_t<InspectingCompressor<Inner>, ForwardsInspecting<Inner, Derived>, Without<3>>,
      std::conditional_t<SurveyingCompressor<Inner>, ForwardsSurveying<Inner, Derived>, Without<4>> {};

}  // namespace wring::inline v0::detail::feedback
