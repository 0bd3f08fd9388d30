// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <wring/collective/executor/execution.hpp>
#include <wring/collective/executor/operands.hpp>
#include <wring/collective/group.hpp>
#include <wring/view/adaptor.hpp>
#include <wring/view/pack.hpp>

namespace wring::inline v0::detail {

/// An execution with the views it works on, which it keeps alive. All that depends on their types is here.
template <class Codec, class Link, class Exec, class Items> class ViewExecution final
    : public Execution<Codec, Link, Exec> {
 public:
  using T = typename Codec::value_type;

  /// Takes the views as the operands of the job. What is wrong with them is left in `job().failure`.
  void set_views(Items items, int rank, int ranks) {
    views_.emplace(std::move(items));
    operands_.clear();
    for_each_item(*views_, [this](const auto& item) { operands_.push_back(operand(item)); });
    this->take(operands_, rank, ranks);
  }

 private:
  template <class In, class Out, class Own> static Operand<Codec> operand(const Item<In, Out, Own>& item) {
    const auto& in = view_within(item.in);
    const auto& out = view_within(item.out);
    Operand<Codec> operand{in.data(),  out.data(),  shape_of(in),           shape_of(out),
                           item.bound, item.counts, adaptor_of<T>(item.in), adaptor_of<T>(item.out)};
    if constexpr (!std::is_void_v<Own>)
      if (item.own.codec()) operand.codec = &*item.own.codec(), operand.codec_hash = item.own.hash();
    return operand;
  }

  void release() override { views_.reset(); }

  std::optional<Items> views_;
  std::vector<Operand<Codec>> operands_;
};

}  // namespace wring::inline v0::detail
