// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstddef>

#include <wring/detail/grid/layout.hpp>
#include <wring/detail/value_kernels.hpp>

/// How a piece is shared out among threads: in runs of whole chunks of 32 blocks, whose places come from a
/// prefix sum.
namespace wring::inline v0::detail::grid {

/// Bytes read from one or two payloads, bytes written, and blocks with values beyond the agreed magnitude.
struct Progress {
  std::size_t a = 0, b = 0, out = 0, too_large = 0;
  u64 quanta = 0;  ///< OR of the magnitudes
  Progress& operator+=(const Progress& other) {
    a += other.a, b += other.b, out += other.out, too_large += other.too_large, quanta |= other.quanta;
    return *this;
  }
};

/// A run of blocks.
struct Run {
  std::size_t first, last;
};

/// What is done with runs of blocks, its type forgotten.
/// `body.measure(run)` says what a run takes, `body.run(run, at)` does it and says so too. Refers to `body`.
class RunBody {
 public:
  template <class Body> explicit RunBody(const Body& body)
      : body_(&body),
        measure_([](const void* b, Run run) { return static_cast<const Body*>(b)->measure(run); }),
        run_([](const void* b, Run run, Progress at) { return static_cast<const Body*>(b)->run(run, at); }) {}

  Progress measure(Run run) const { return measure_(body_, run); }
  Progress run(Run run, Progress at) const { return run_(body_, run, at); }

 private:
  const void* body_;
  Progress (*measure_)(const void*, Run);
  Progress (*run_)(const void*, Run, Progress);
};

/// One of the two passes over as many runs as there are threads: `parts` has what each takes, or where it begins and then what it took.
struct RunPass {
  RunBody body;
  std::size_t blocks, unit, runs;  ///< a run begins at a multiple of `unit` blocks
  Progress* parts;
  bool last;

  std::size_t bound(std::size_t run) const {
    const std::size_t units = (blocks + unit - 1) / unit;
    const std::size_t block = (units / runs * run + units % runs * run / runs) * unit;
    return block < blocks ? block : blocks;
  }
  void operator()(std::size_t run) const {
    const Run blocks_of_run{bound(run), bound(run + 1)};
    parts[run] = last ? body.run(blocks_of_run, parts[run]) : body.measure(blocks_of_run);
  }
};

/// Does all blocks: in one pass on a single thread, else measured first, with the same bytes. Kokkos' parallel scan would do, but makes
/// strings in every call.
template <class Exec>
Progress for_runs(const Exec& exec, const char* label, std::size_t blocks, const RunBody& body,
                  std::size_t unit = blocks_per_chunk) {
  constexpr std::size_t most_runs = 256;
  const std::size_t threads = std::min(most_runs, static_cast<std::size_t>(exec.concurrency()));
  const std::size_t units = (blocks + unit - 1) / unit;
  const std::size_t runs = units < threads ? units : threads;
  if (runs <= 1) {
    exec.fence(label);  // what was submitted before must be there
    return body.run(Run{0, blocks}, Progress{});
  }
  Progress parts[most_runs], total;
  const auto pass = [&](bool last) {
    for_each_task(label, exec, runs * values_per_task, RunPass{body, blocks, unit, runs, parts, last});
    exec.fence(label);
  };
  pass(false);
  for (std::size_t run = 0; run < runs; ++run) {
    const Progress begin = total;
    total += parts[run], parts[run] = begin;
  }
  pass(true);
  total = {};
  for (std::size_t run = 0; run < runs; ++run) total += parts[run];
  return total;
}

}  // namespace wring::inline v0::detail::grid
