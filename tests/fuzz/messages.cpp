// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Whole operations of which one message was forged: bytes changed, cut or replaced, and the checksum made right again, so that
// nothing but the checks behind it stands in the way. No read out of bounds, whatever it says; and no rank hangs, unless a head
// was forged (it may then tell two ranks different things).
#include <deque>

#include <wring/algorithm.hpp>
#include <wring/collective.hpp>
#include <wring/compressor/grid.hpp>
#include <wring/compressor/none.hpp>
#include <wring/transport/in_process.hpp>

#include "fuzz.hpp"
#include "support/forging_link.hpp"

namespace fuzz {

using wring_test::ForgingLink;
using Exec = Kokkos::DefaultHostExecutionSpace;

/// Makes the checksum right, and the length. A message of the plan keeps the hash of its operation: with another one it would be
/// passed over as left by an operation of long ago.
void make_right(std::vector<std::byte>& message, bool head, std::uint64_t agreed) {
  const std::size_t at =
      head ? offsetof(wring::detail::Head, checksum) : offsetof(wring::detail::MessageHeader, checksum);
  if (message.size() < (head ? sizeof(wring::detail::Head) : wring::detail::header_bytes)) return;
  if (!head) {
    const std::uint64_t bytes = message.size();
    std::memcpy(message.data() + offsetof(wring::detail::MessageHeader, agreed), &agreed, sizeof agreed);
    std::memcpy(message.data() + offsetof(wring::detail::MessageHeader, bytes), &bytes, sizeof bytes);
  }
  std::memset(message.data() + at, 0, 8);
  const std::uint64_t sum = wring::detail::checksum(message);
  std::memcpy(message.data() + at, &sum, sizeof sum);
}

struct Forgery {
  bool head = false;
  int number = 0;  ///< of the rank's heads, or of its other messages
  unsigned way = 0;
  std::size_t at = 0;
  std::span<const std::byte> with;

  void apply(std::vector<std::byte>& message) const {
    std::uint64_t agreed = 0;
    std::memcpy(&agreed, message.data() + offsetof(wring::detail::MessageHeader, agreed), sizeof agreed);
    const std::size_t place = at % message.size();
    if (way == 0) message.resize(place);
    if (way == 1) message.insert(message.end(), with.begin(), with.end());
    if (way == 2) message.assign(with.begin(), with.end());
    for (std::size_t i = 0; way == 3 && i < with.size() && place + i < message.size(); ++i)
      message[place + i] ^= with[i];
    make_right(message, head, agreed);
  }
};

template <class Codec, class Algorithm>
void operation(Input input, const Algorithm& algorithm, std::optional<wring::Bound> bound) {
  using T = typename Codec::value_type;
  const int ranks = 2 + static_cast<int>(input.below(3));
  const std::size_t n = 1 + input.below(1500);
  const bool group = input.flag();
  const wring::Options options{.operation = static_cast<wring::Operation>(input.below(4)),
                               .segment_bytes = 2048,
                               .depth = 2,
                               .ride_along_bytes = input.flag() ? 65536u : 0u,
                               .confirm = input.flag()};
  Forgery forgery;
  forgery.head = input.flag(), forgery.number = static_cast<int>(input.below(6)),
  forgery.way = input.below(4);
  forgery.at = input.number(), forgery.with = input.rest();
  std::deque<Exactly<T>> data;
  wring::InProcess world(ranks);
  std::deque<ForgingLink> links;
  std::deque<wring::Allreduce<Codec, ForgingLink, Algorithm>> sums;
  std::vector<wring::Request> requests;
  using View = Kokkos::View<T*, Kokkos::HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
  for (int r = 0; r < ranks; ++r) {
    data.emplace_back(n);
    for (std::size_t i = 0; i < n; ++i) data.back().span()[i] = static_cast<T>(i % 17);
    const auto forge = [&forgery](bool head, int number, ForgingLink::Bytes& message) {
      if (head == forgery.head && number == forgery.number) forgery.apply(message);
    };
    links.emplace_back(world.link(r), r == 0 ? ForgingLink::Forge(forge) : ForgingLink::Forge());
    sums.emplace_back(Codec{}, links.back(), algorithm, options);
    const std::size_t half = group ? n / 2 : 0;
    const View first(data.back().span().data(), half), second(data.back().span().data() + half, n - half);
    requests.push_back(
        group ? sums.back().start(Exec{}, wring::group(wring::item(first, bound), wring::item(second, bound)))
              : sums.back().start(Exec{}, wring::group(wring::item(second, bound))));
  }
  while (world.progress() != wring::Progress::blocked) {
  }
  for (wring::Request& request : requests) {
    try {
      require(request.test() || forgery.head, "a rank hangs");
    } catch (const wring::Error&) {
    }
  }
}

void fuzz(Input input) {
  const bool grid = input.flag();
  const auto with = [&](const auto& algorithm) {
    if (grid)
      operation<wring::Grid<float>>(input, algorithm, wring::absolute(0.01));
    else
      operation<wring::None<double>>(input, algorithm, std::nullopt);
  };
  switch (input.below(3)) {
  case 0: return with(wring::Ring{});
  case 1: return with(wring::RecursiveDoubling{});
  default: return with(wring::Hierarchical<>(2));
  }
}

}  // namespace fuzz
