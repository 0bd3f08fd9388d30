// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <wring/config.hpp>
#include <wring/error.hpp>

namespace wring::inline v0 {

/// What a collective has to move, and how: the part of a prediction that is neither the algorithm nor the machine.
struct Load {
  std::size_t bytes =
      0;  ///< of values: the whole vector, in allgather and reduce_scatter all ranks' parts together
  std::size_t value_bytes = 4;  ///< of one value

  bool coded = true;     ///< false: values travel as they are, whatever the plan says
  double ratio = 1;      ///< uncompressed bytes per byte of an encoded piece of a rank's own values
  double sum_ratio = 0;  ///< the same for partial sums and results, which are wider; 0: as `ratio`
  bool combines =
      false;  ///< encoded pieces are added without decoding, and decoded once, at the end (CombiningCompressor)
  bool packs_always = false;  ///< those have no form for speed, for raw steps (no WideFormCompressor)
  bool lossless =
      false;  ///< what was encoded need not be decoded again by the rank that holds it (LosslessCompressor)
  bool finishes = false;  ///< complete sums are worked on once more (FinishingCompressor)
  bool measured = false;  ///< the inputs are measured first, for a bound
  bool ahead = false;  ///< or encoded before the ranks agree, and measured on the way (MeasuringCompressor)

  std::size_t segment_bytes = 128 * 1024;  ///< `Options::segment_bytes`
  int depth = 4;                           ///< `Options::depth`
  bool confirm = false;                    ///< `Options::confirm`

  friend bool operator==(const Load&, const Load&) = default;
};

/// How small data travel with the agreement: summed up on the way (encoded pieces that combine, an absolute bound), or everybody's
/// together, which each rank then works on by itself.
enum class RidesAlong { summed, gathered };

/// Throws InvalidArgument for a load that no operation can have.
inline void expect_possible(const Load& load) {
  constexpr std::size_t most_value_bytes = 1024;
  constexpr double least_ratio = 1e-100;
  if (load.value_bytes == 0 || load.value_bytes > most_value_bytes)
    throw InvalidArgument("load: a value has no bytes, or more than 1024");
  if (!(load.ratio >= least_ratio) || !(load.sum_ratio == 0 || load.sum_ratio >= least_ratio))
    throw InvalidArgument("load: a compression ratio is not greater than 0, from 1e-100 on");
  if (load.segment_bytes == 0) throw InvalidArgument("load: a segment has no bytes");
  if (load.depth < 1 || load.depth > 30)
    throw InvalidArgument("load: there must be 1 to 30 segments in flight");
}

}  // namespace wring::inline v0
