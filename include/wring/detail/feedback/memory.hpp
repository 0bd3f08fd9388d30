// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <wring/compressor/concept.hpp>
#include <wring/detail/hash.hpp>
#include <wring/detail/sentence.hpp>
#include <wring/error.hpp>
#include <wring/narrow.hpp>
#include <wring/operation.hpp>

/// What error feedback keeps between operations: for each tensor and each way in which operations have moved it, one vector for the first
/// encoding of every value, one for the second, and so on.
namespace wring::inline v0::detail::feedback {

/// The residuals of one course (see Opening::course), by number of encoding. Those that nothing has been encoded for are empty.
template <class Wide, class Space> struct Residuals {
  using Run = Kokkos::View<Wide*, Space>;
  std::size_t first = 0, count = 0;  ///< the values of the tensor that they are for
  std::vector<Run> runs;

  /// Those of the values [at, at + n), zeros at first.
  std::span<Wide> of(int encoding, std::size_t at, std::size_t n) {
    const auto k = static_cast<std::size_t>(encoding);
    if (k >= runs.size()) runs.resize(k + 1);
    if (runs[k].extent(0) == 0) runs[k] = Run("wring::residuals", count);
    if (at < first || at - first > count || n > count - (at - first))
      throw CodecError(sentence("error feedback: values ", at, " to ", at + n, " are none of this rank's"));
    return {runs[k].data() + (at - first), n};
  }
};

/// All of one tensor.
template <class Wide, class Space> struct Tensor {
  std::size_t total = 0;
  std::uint64_t steps = 0;  ///< operations completed
  Operation operation = Operation::sum;
  std::map<std::uint64_t, Residuals<Wide, Space>> courses;
  bool open = false;     ///< an operation is in flight
  bool encoded = false;  ///< and has encoded something
  bool damaged = false;  ///< one failed after that: some residuals are new, some old
};

template <class Wide, class Space> struct Memory {
  int rank = -1, ranks = 0;                                   ///< of the link; none yet
  std::vector<std::unique_ptr<Tensor<Wide, Space>>> tensors;  ///< by item; null: never used

  /// The tensor of an operation, now in use.
  Tensor<Wide, Space>& open(const Opening& o) {
    if (used() && (o.rank != rank || o.ranks != ranks))
      throw InvalidArgument(sentence("the feedback state is that of rank ", rank, " of ", ranks,
                                     ", this is rank ", o.rank, " of ", o.ranks));
    if (o.item >= tensors.size()) tensors.resize(o.item + 1);
    if (!tensors[o.item]) tensors[o.item] = std::make_unique<Tensor<Wide, Space>>();
    Tensor<Wide, Space>& tensor = *tensors[o.item];
    expect_same(tensor, o);
    rank = o.rank, ranks = o.ranks;
    tensor.total = o.total, tensor.operation = o.operation;
    tensor.open = true, tensor.encoded = false;
    Residuals<Wide, Space>& course = tensor.courses[course_of(o)];
    course.first = o.first, course.count = o.count;
    return tensor;
  }

  /// Whether any operation has been completed.
  bool used() const {
    for (const auto& t : tensors)
      if (t && t->steps > 0) return true;
    return false;
  }

  static std::uint64_t course_of(const Opening& o) {
    return Hasher().add(o.course).add(o.first).add(o.count).value();
  }

  bool in_flight() const {
    for (const auto& t : tensors)
      if (t && t->open) return true;
    return false;
  }
  bool damaged() const {
    for (const auto& t : tensors)
      if (t && t->damaged) return true;
    return false;
  }

 private:
  static void expect_same(const Tensor<Wide, Space>& t, const Opening& o) {
    if (t.open) throw InvalidArgument("another operation with this feedback state is in flight");
    if (t.damaged)
      throw InvalidArgument("an operation with this feedback state has failed on its way: reset() or "
                            "restore() the state on all ranks");
    if (t.steps == 0) return;
    if (t.total != o.total)
      throw InvalidArgument(sentence("tensor ", o.item, " has ", o.total, " elements, its feedback state ",
                                     t.total, ": reset() where shapes or their order have changed"));
    if (t.operation != o.operation)
      throw InvalidArgument(sentence("the feedback state is one of a ", name_of(t.operation), ", not of a ",
                                     name_of(o.operation)));
  }
};

}  // namespace wring::inline v0::detail::feedback
