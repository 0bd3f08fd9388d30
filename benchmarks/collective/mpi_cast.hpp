// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <mpi.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "collective/mpi_calls.hpp"
#include "collective/problem.hpp"

namespace wring_benchmark {

/// A float rounded to bfloat16, nearest, ties to even. Data here have no NaN.
inline std::uint16_t to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
inline float from_bfloat16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

/// What users of MPI do to halve the bytes: they cast to bfloat16, let MPI carry 16-bit words, and cast back. MPI has no such
/// type, so sums are formed by an operation of the user: two values are cast to float, added, and rounded again.
class CastToBfloat16 {
 public:
  explicit CastToBfloat16(const Problem& problem)
      : problem_(problem), in_(problem.in.size()), out_(problem.out.size()) {
    MPI_Op_create(&CastToBfloat16::add, 1, &sum_);
  }
  CastToBfloat16(const CastToBfloat16&) = delete;
  CastToBfloat16& operator=(const CastToBfloat16&) = delete;
  ~CastToBfloat16() { MPI_Op_free(&sum_); }

  void run() {
    const bool in_place = problem_.collective == wring::Collective::broadcast;
    if (!in_place) encode(problem_.in, in_);
    if (in_place && problem_.rank == 0) encode(problem_.out, out_);
    call_mpi(problem_.collective, in_.data(), out_.data(), static_cast<int>(problem_.elements),
             static_cast<int>(problem_.part), MPI_UINT16_T, sum_, MPI_COMM_WORLD);
    float* to = problem_.out.data();
#pragma omp simd
    for (std::size_t i = 0; i < out_.size(); ++i) to[i] = from_bfloat16(out_[i]);
  }

 private:
  static void encode(const Problem::View& from, std::vector<std::uint16_t>& to) {
    const float* values = from.data();
    std::uint16_t* bits = to.data();
#pragma omp simd
    for (std::size_t i = 0; i < to.size(); ++i) bits[i] = to_bfloat16(values[i]);
  }

  static void add(void* in, void* inout, int* count, MPI_Datatype* /*type*/) {
    const auto* a = static_cast<const std::uint16_t*>(in);
    auto* b = static_cast<std::uint16_t*>(inout);
#pragma omp simd
    for (int i = 0; i < *count; ++i) b[i] = to_bfloat16(from_bfloat16(a[i]) + from_bfloat16(b[i]));
  }

  const Problem& problem_;
  std::vector<std::uint16_t> in_, out_;
  MPI_Op sum_ = MPI_OP_NULL;
};

}  // namespace wring_benchmark
