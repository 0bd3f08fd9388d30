// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Saved feedback states: bytes of a real one changed, cut or replaced, and the checksum made right again. What is taken can be saved and
// used by an operation.
#include <deque>

#include <wring/algorithm.hpp>
#include <wring/collective.hpp>
#include <wring/compressor/block_scaled.hpp>
#include <wring/compressor/error_feedback.hpp>
#include <wring/transport/in_process.hpp>

#include "pieces.hpp"

namespace fuzz {

using Codec = wring::ErrorFeedback<wring::BlockScaled<float, 2>>;
using State = wring::FeedbackState<float>;

constexpr std::size_t n = 300;
constexpr int ranks = 2;

/// A sum on both ranks; false if it was refused, alike on both.
bool operate(std::deque<State>& states) {
  using View = Kokkos::View<float*, Kokkos::HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
  wring::InProcess world(ranks);
  std::deque<wring::Allreduce<Codec, wring::InProcessTransport, wring::Ring>> sums;
  std::deque<Exactly<float>> data;
  std::vector<wring::Request> requests;
  for (int r = 0; r < ranks; ++r) {
    data.emplace_back(n);
    for (std::size_t i = 0; i < n; ++i) data.back().span()[i] = static_cast<float>(i % 17) - 8;
    sums.emplace_back(Codec({}, states[static_cast<std::size_t>(r)]), world.link(r));
    requests.push_back(sums.back().start(Exec{}, View(data.back().span().data(), n)));
  }
  while (world.progress() != wring::Progress::blocked) {
  }
  int good = 0;
  for (wring::Request& request : requests)
    accepts([&] {
      require(request.test(), "a rank hangs");
      ++good;
    });
  require(good == 0 || good == ranks, "one rank takes a state that another refuses");
  if (good > 0)
    require(std::memcmp(data[0].span().data(), data[1].span().data(), n * sizeof(float)) == 0,
            "the ranks' results differ");
  return good > 0;
}

wring::ResidualStorage storage_of(bool eight_bits) {
  return eight_bits ? wring::ResidualStorage::eight_bits : wring::ResidualStorage::full;
}

/// Right in all that is checked before the rest is read.
void make_right(std::vector<std::byte>& bytes) {
  if (bytes.size() < 40) return;
  const std::uint64_t length = bytes.size();
  std::memcpy(bytes.data() + 24, &length, 8);
  const std::uint64_t sum = wring::detail::checksum(std::span<const std::byte>(bytes).subspan(40));
  std::memcpy(bytes.data() + 32, &sum, 8);
}

void fuzz(Input input) {
  const bool eight_bits = input.flag(), used = input.flag();
  const unsigned way = input.below(4);
  const std::size_t at = input.number();
  std::deque<State> states;
  for (int r = 0; r < ranks; ++r) states.emplace_back(storage_of(eight_bits));
  if (used) require(operate(states), "a sum is refused");
  std::vector<std::byte> bytes = states[0].save();
  const auto with = input.rest();
  const std::size_t place = at % bytes.size();
  if (way == 0) bytes.resize(place);
  if (way == 1) bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(place), with.begin(), with.end());
  for (std::size_t i = 0; way == 2 && i < with.size() && place + i < bytes.size(); ++i)
    bytes[place + i] ^= with[i];
  if (way == 3) {  // anything behind the head
    bytes.resize(40);
    bytes.insert(bytes.end(), with.begin(), with.end());
  }
  make_right(bytes);
  State state(storage_of(eight_bits));
  if (!accepts([&] { state.restore(bytes); })) return;
  const std::vector<std::byte> saved = state.save();
  State again(storage_of(eight_bits));
  again.restore(saved);
  require(again.save() == saved, "a state that was saved is another one when it is restored");
  states[0] = std::move(state);
  operate(states);
}

}  // namespace fuzz
