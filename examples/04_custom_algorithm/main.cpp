// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An algorithm of one's own (tree.hpp): verified for 1 to 32 ranks, then run in all four collectives on 7 ranks that share this
// process and thread: no mpirun needed. Grid's results must be those of Ring, bit for bit.
#include "tree.hpp"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

#include <wring/testing/algorithm_laws.hpp>
#include <wring/wring.hpp>

using wring::Collective;
using Exec = Kokkos::DefaultHostExecutionSpace;
using Link = wring::InProcessTransport;
using Vector = Kokkos::View<float*, Kokkos::HostSpace>;

constexpr int ranks = 7;
constexpr std::size_t part = 10000;

/// Runs a collective on all ranks: start(operation, rank) starts it on one. Returns the bytes that all ranks sent.
template <class Operation, class Algorithm, class Start> std::uint64_t run(const Algorithm& algorithm,
                                                                           Start start) {
  wring::InProcess world(ranks);
  std::vector<Operation> operations;
  std::vector<wring::Request> requests;
  for (int r = 0; r < ranks; ++r) operations.emplace_back(wring::Grid<float>{}, world.link(r), algorithm);
  for (int r = 0; r < ranks; ++r) requests.push_back(start(operations[static_cast<std::size_t>(r)], r));
  for (wring::Request& request : requests) request.wait();  // moves all ranks
  return world.bytes();
}

/// The results of all ranks, one behind the other.
template <class Algorithm> std::vector<Vector> results(Collective collective, const Algorithm& algorithm,
                                                       std::uint64_t& bytes) {
  const std::size_t all = part * ranks;
  const wring::Bound bound = wring::absolute(1e-3);
  std::vector<Vector> in, out;
  for (int r = 0; r < ranks; ++r) {
    in.emplace_back("in", collective == Collective::allgather ? part : all);
    out.emplace_back("out", collective == Collective::reduce_scatter ? part : all);
    for (std::size_t i = 0; i < in.back().size(); ++i) in.back()(i) = std::sin(0.01F * float(i)) + float(r);
  }
  const auto both = [&](auto& operation, int r) { return operation.start(Exec{}, in[r], out[r], bound); };
  const auto from_last = [&](auto& operation, int r) {
    Kokkos::deep_copy(out[r], in[r]);
    return operation.start(Exec{}, out[r], ranks - 1, bound);
  };
  using Codec = wring::Grid<float>;
  switch (collective) {
  case Collective::allreduce: bytes = run<wring::Allreduce<Codec, Link, Algorithm>>(algorithm, both); break;
  case Collective::reduce_scatter:
    bytes = run<wring::ReduceScatter<Codec, Link, Algorithm>>(algorithm, both);
    break;
  case Collective::allgather: bytes = run<wring::Allgather<Codec, Link, Algorithm>>(algorithm, both); break;
  case Collective::broadcast:
    bytes = run<wring::Broadcast<Codec, Link, Algorithm>>(algorithm, from_last);
    break;
  }
  return out;
}

bool equals_ring(Collective collective) {
  std::uint64_t tree_bytes = 0, ring_bytes = 0;
  const auto tree = results(collective, Tree{}, tree_bytes),
             ring = results(collective, wring::Ring{}, ring_bytes);
  bool equal = true;
  for (std::size_t r = 0; r < tree.size(); ++r)
    equal = equal && std::memcmp(tree[r].data(), ring[r].data(), sizeof(float) * ring[r].size()) == 0;
  std::printf("%-15s tree %8llu bytes, ring %8llu bytes, results %s\n", name_of(collective),
              static_cast<unsigned long long>(tree_bytes), static_cast<unsigned long long>(ring_bytes),
              equal ? "equal" : "DIFFER");
  return equal;
}

int main(int count, char** arguments) {
  const Kokkos::ScopeGuard kokkos(count, arguments);
  const std::vector<std::string> faults = wring::testing::check_algorithm_laws(Tree{}, 32);
  for (const std::string& fault : faults) std::printf("%s\n", fault.c_str());
  std::printf("tree, 1 to 32 ranks: %s\n",
              faults.empty() ? "the plans are right and free of deadlock" : "BROKEN");
  bool good = faults.empty();
  for (const Collective c :
       {Collective::allreduce, Collective::reduce_scatter, Collective::allgather, Collective::broadcast})
    good = equals_ring(c) && good;
  return good ? 0 : 1;
}
