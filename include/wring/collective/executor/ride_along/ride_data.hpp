// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <limits>
#include <span>

#include <wring/collective/executor/segments/pieces.hpp>

/// What both forms of riding along need: bytes in and out of the memory of the execution space, and the way of a result to the user.
namespace wring::inline v0::detail {

template <class S> Bytes<typename S::Space> to_device(S& s, std::span<const std::byte> bytes) {
  Bytes<typename S::Space> copy = s.pool.take(bytes.size());
  copy_bytes<typename S::Space, Kokkos::HostSpace>(s.exec, bytes, copy.span.data());
  return copy;
}

template <class S> void to_host(S& s, std::span<const std::byte> bytes, std::byte* to) {
  copy_bytes<Kokkos::HostSpace, typename S::Space>(s.exec, bytes, to);
  s.exec.fence("wring::ride");
}

template <class S> Context ride_context(S& s, const PieceRange& range, int rank, Phase phase, int terms) {
  const auto& allowed = s.tensors[0].allowed;
  Context c = s.context(range, phase, terms,
                        allowed.empty() ? std::numeric_limits<double>::infinity() : allowed[0], false);
  c.rank = rank;
  return c;
}

/// Copies the part of a result that is this rank's into the user's memory.
template <class S> void write_result(S& s, const PieceRange& range, std::span<const typename S::T> values) {
  const auto& tensor = s.tensors[0];
  values = s.task.collective == Collective::reduce_scatter
               ? values.subspan(tensor.out_offset, tensor.out.size())
               : values.first(range.count);
  copy_values<typename S::T>(s.exec, values, tensor.out);
}

/// Decodes a complete result of `terms` inputs into the user's memory.
template <class S>
void publish(S& s, const PieceRange& range, const Bytes<typename S::Space>& result, int terms) {
  using T = typename S::T;
  const Context c = ride_context(s, range, s.plan.rank, Phase::final, terms);
  if (s.task.collective != Collective::reduce_scatter) return decode(s, result.span, s.output(range), c);
  const Bytes<typename S::Space> memory = s.pool.take(range.count * sizeof(T));
  const std::span<T> values(reinterpret_cast<T*>(memory.span.data()), range.count);
  decode(s, result.span, values, c);
  write_result(s, range, values);
  s.exec.fence("wring::ride");  // `memory` goes back to the pool
}

}  // namespace wring::inline v0::detail
