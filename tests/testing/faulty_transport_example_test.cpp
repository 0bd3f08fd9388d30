// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A user's own operation under fire, as docs/concepts.md shows it.
#include <catch2/catch_test_macros.hpp>

#include <deque>
#include <vector>

#include <wring/collective/allreduce.hpp>
#include <wring/compressor/none.hpp>
#include <wring/testing/faulty_transport.hpp>
#include <wring/transport/in_process.hpp>

using namespace wring::testing;

TEST_CASE("faulty transport: a damaged message of one's own operation", "[testing]") {
  wring::InProcess world(3);
  const FaultPlan plan{
      .faults = {
          {.kind = FaultKind::flip, .rank = 1, .messages = MessageKind::data, .number = 2, .amount = 777}}};
  std::deque<FaultyTransport<wring::InProcessTransport>> links;
  for (int rank = 0; rank < 3; ++rank) links.emplace_back(world.link(rank), plan);

  using Sum = wring::Allreduce<wring::None<float>, FaultyTransport<wring::InProcessTransport>>;
  std::deque<Sum> sums;
  std::vector<wring::Request> requests;
  std::vector<Kokkos::View<float*, Kokkos::HostSpace>> data;
  for (auto& link : links) {
    sums.emplace_back(wring::None<float>{}, link);
    data.emplace_back("data", 3000);
    Kokkos::deep_copy(data.back(), 1.0f);
    requests.push_back(sums.back().start(Kokkos::DefaultHostExecutionSpace{}, data.back()));
  }
  int failed = 0;
  for (std::size_t rank = 0; rank < 3; ++rank) {
    try {
      requests[rank].wait();  // moves all ranks
      CHECK(data[rank](0) == 3.0f);
    } catch (const wring::TransportError& error) {
      ++failed;
      CHECK(error.rank() == links[1].injected()[0].peer);  // who noticed
    }
  }
  CHECK(links[1].injected().size() == 1);
  CHECK(failed > 0);
}
