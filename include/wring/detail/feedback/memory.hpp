// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include <wring/compressor/concept.hpp>
#include <wring/detail/feedback/residuals.hpp>
#include <wring/detail/hash.hpp>
#include <wring/detail/sentence.hpp>
#include <wring/error.hpp>
#include <wring/operation.hpp>

/// What error feedback keeps between operations: for each tensor and each way in which operations have moved it, one vector for the first
/// encoding of every value, one for the second, and so on.
namespace wring::inline v0::detail::feedback {

/// All of one tensor.
template <class Wide, class Space> struct Tensor {
  using Course = Residuals<Wide, Space>;

  std::size_t total = 0;
  std::uint64_t shape = 0;  ///< Opening::shape
  std::uint64_t steps = 0;  ///< operations completed
  std::uint64_t past = 0;   ///< a number for them, the same on all ranks
  Operation operation = Operation::sum;
  std::map<std::uint64_t, Course> courses;
  bool open = false;     ///< an operation is in flight
  bool encoded = false;  ///< and has encoded something
  bool damaged = false;  ///< one failed after that: some residuals are new, some old

  /// What a course takes over from the others, now that operations move the tensor so. Nothing is owed twice, and no memory stays behind.
  template <class T, class Exec>
  void gather(const Exec& exec, Course& to, bool eight_bits, const Context& context) {
    for (auto& [key, course] : courses)
      if (to.takes_from(course))
        to.template take<T>(exec, course, eight_bits, residual_draws(context, steps));
    std::erase_if(courses, [&](const auto& entry) { return &entry.second != &to && entry.second.empty(); });
  }

  /// Calls `f(run)` for all that the next operation may pay back.
  template <class F> void for_each_owed(const Course& to, F f) const {
    for (const auto& run : to.runs) f(run);
    for (const auto& [key, course] : courses)
      if (to.takes_from(course))
        for (std::size_t k = 0; k < std::min(course.alone, course.runs.size()); ++k) f(course.runs[k]);
  }
};

template <class Wide, class Space> struct Memory {
  bool eight_bits = false;
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
    tensor.total = o.total, tensor.shape = o.shape, tensor.operation = o.operation;
    Residuals<Wide, Space>& course = tensor.courses[course_of(o)];
    course.shape(o);
    course.quantity = quantity_of(o);
    tensor.open = true, tensor.encoded = false;
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
  /// Sums are the same sums however they are moved; copies are of one rank.
  static std::uint64_t quantity_of(const Opening& o) {
    if (reduces(o.collective)) return 0;
    return Hasher().add(o.collective).add(o.root).value();
  }

  static void expect_same(const Tensor<Wide, Space>& t, const Opening& o) {
    if (t.open) throw InvalidArgument("another operation with this feedback state is in flight");
    if (t.damaged)
      throw InvalidArgument("an operation with this feedback state has failed on its way: reset() or "
                            "restore() the state on all ranks");
    if (t.steps == 0) return;
    if (t.total != o.total)
      throw InvalidArgument(sentence("tensor ", o.item, " has ", o.total, " elements, its feedback state ",
                                     t.total, ": reset() where shapes or their order have changed"));
    if (t.shape != o.shape)
      throw InvalidArgument(sentence("tensor ", o.item,
                                     " has other extents than the one that its feedback "
                                     "state is of: reset() where shapes or their order have changed"));
    if (t.operation != o.operation)
      throw InvalidArgument(sentence("the feedback state is one of a ", name_of(t.operation), ", not of a ",
                                     name_of(o.operation)));
  }
};

}  // namespace wring::inline v0::detail::feedback
