// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>

#include <wring/operation.hpp>

namespace wring::inline v0 {

/// Options of a collective. They must be equal on all ranks; a difference is reported on every rank.
/// `Automatic` chooses `segment_bytes`, `depth` and `ride_along_bytes` by itself where they are left as they are here.
struct Options {
  Operation operation = Operation::sum;
  std::size_t segment_bytes =
      128 * 1024;  ///< of values per block and segment at most: the unit of pipelining
  int depth = 4;   ///< segments in flight at once, 1 to 30; from four segments on no more than half of them
  /// Data of up to this many bytes travel with the agreement: the vector, where it can be summed on the way (64 KiB at most), else
  /// everybody's together (16 KiB at most). 0: none.
  std::size_t ride_along_bytes = 2048;
  bool confirm = false;  ///< one exchange more at the end: a failure anywhere is an error everywhere
  std::uint64_t step =
      0;  ///< the user's step number, handed to the compressor: what it draws at random depends on it

  friend bool operator==(const Options&, const Options&) = default;
};

}  // namespace wring::inline v0
