// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <wring/detail/feedback/memory.hpp>
#include <wring/detail/feedback/saved.hpp>
#include <wring/error.hpp>
#include <wring/narrow.hpp>

namespace wring::inline v0 {

template <class Inner, class Space> class ErrorFeedback;

/// How residuals are kept. `eight_bits`: in groups of 128 with a scale each, 1.03 bytes a value (1.06 for double). They are rounded at
/// random by up to a 127th of the greatest in their group, so that what storing them loses is zero on average, but not made good: the sum of
/// T results is off by about sqrt(T) such roundings more. Ranks that encode the same sum round alike; own values are
/// rounded by other draws on each rank. Groups whose greatest is below
/// 127 * 2^-116 are zeros.
enum class ResidualStorage { full, eight_bits };

/// What error feedback keeps on one rank: for every encoding that the rank performs, what was lost in it. Owned by the caller; one for each
/// object that calls a collective, or for each tensor if there are several of the same length. Tensors of a group are told apart by their
/// place in it.
///
/// Residuals are float for float and the 16-bit types, double for double, in memory that `Space` names: one vector of the tensor for each
/// encoding of an element (one where every element is encoded once, as in `Ring` and `Direct`; one more with `Grid` on more than four
/// ranks; log2 p with `RecursiveDoubling`), allocated when first needed.
///
/// Where operations come to move the tensor in another way (another algorithm, what else `Automatic` chooses, other tensors in the
/// group), what this rank owes by itself is carried over, to its first encoding of each element; that synchronises, and may allocate. What
/// several ranks owe in common, having encoded the same partial sum (`RecursiveDoubling`), stays until the tensor is moved in that way again, as does what
/// is owed to copies from another root.
template <FloatElement T, class Space = Kokkos::HostSpace> class FeedbackState {
 public:
  using value_type = T;
  using residual_type = typename FloatTraits<T>::Wide;

  explicit FeedbackState(ResidualStorage storage = ResidualStorage::full)
      : memory_(std::make_shared<Memory>()) {
    memory_->eight_bits = storage == ResidualStorage::eight_bits;
  }
  FeedbackState(FeedbackState&&) noexcept = default;
  FeedbackState& operator=(FeedbackState&&) noexcept = default;
  FeedbackState(const FeedbackState&) = delete;
  FeedbackState& operator=(const FeedbackState&) = delete;

  /// Operations completed on a tensor of the group.
  std::uint64_t steps(std::size_t item = 0) const {
    return item < memory_->tensors.size() && memory_->tensors[item] ? memory_->tensors[item]->steps : 0;
  }

  /// What this rank has lost in its encodings number `encoding` of each element, in units of sums, of MEAN as well: as many doubles as
  /// the tensor has elements, or none. Of all courses together. Synchronises.
  std::vector<double> residuals(std::size_t item = 0, int encoding = 0) const;

  /// Forgets everything: on all ranks, or their next operation is refused. Throws InvalidArgument while an operation is in flight.
  void reset() {
    expect_idle();
    const bool eight_bits = memory_->eight_bits;
    *memory_ = Memory();
    memory_->eight_bits = eight_bits;
  }

  /// All of it as bytes (docs/stream_format.md), with number of rank and ranks. Throws InvalidArgument while an operation is in flight,
  /// and after one that has failed on its way.
  std::vector<std::byte> save() const {
    expect_idle();
    if (memory_->damaged())
      throw InvalidArgument("a feedback state that an operation has left halfway cannot be saved");
    return detail::feedback::save<T>(*memory_);
  }

  /// Takes over what `save` wrote, and drops what was here. Throws InvalidArgument for bytes of another version, byte order, element type,
  /// storage or length, and for damaged ones: nothing is changed then. A state of another rank, or of another number of ranks, is
  /// refused by the next operation, on all ranks.
  void restore(std::span<const std::byte> bytes) {
    expect_idle();
    *memory_ = detail::feedback::restored<T, residual_type, Space>(bytes, memory_->eight_bits);
  }

 private:
  using Memory = detail::feedback::Memory<residual_type, Space>;
  template <class Inner, class S> friend class ErrorFeedback;

  void expect_idle() const {
    if (memory_->in_flight())
      throw InvalidArgument("an operation with this feedback state is in flight: wait for it");
  }

  std::shared_ptr<Memory> memory_;
};

template <FloatElement T, class Space>
std::vector<double> FeedbackState<T, Space>::residuals(std::size_t item, int encoding) const {
  std::vector<double> all;
  if (item >= memory_->tensors.size() || !memory_->tensors[item]) return all;
  const auto& tensor = *memory_->tensors[item];
  for (const auto& [key, course] : tensor.courses) {
    const auto k = static_cast<std::size_t>(encoding);
    if (k >= course.runs.size() || course.runs[k].empty()) continue;
    const std::vector<residual_type> values = course.values(k);
    all.resize(tensor.total);
    for (std::size_t i = 0; i < values.size(); ++i) all[course.first + i] += static_cast<double>(values[i]);
  }
  return all;
}

}  // namespace wring::inline v0
