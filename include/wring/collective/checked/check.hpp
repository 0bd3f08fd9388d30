// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <wring/algorithm/ring.hpp>
#include <wring/collective/allgather.hpp>
#include <wring/collective/checked/judge.hpp>
#include <wring/collective/checked/tensor.hpp>
#include <wring/collective/executor/agreement/division.hpp>
#include <wring/collective/request.hpp>
#include <wring/compressor/none.hpp>
#include <wring/error.hpp>

namespace wring::inline v0::detail {

/// A checked operation in flight: the operation, then the exchanges of its check, one after the other.
class CheckState {
 public:
  virtual ~CheckState() = default;

  bool ended() const { return ended_; }
  virtual Session& session() = 0;

  /// The request is being destroyed: the memory of its views must not be read any more. What is in flight is given up, which is an
  /// error on all ranks. If this rank has confirmed it already, the others go on to the next exchange, which is then given up in its
  /// stead: true, and `finish` must be called until it says that nothing is left to do.
  bool give_up() noexcept {
    given_up_ = true;
    if (ended_) return false;
    const bool confirmed = request_.state_ && request_.state_->has_confirmed();
    if (!confirmed) request_ = Request(), ended_ = true;
    return confirmed;
  }
  bool finish() noexcept {
    try {
      if (!request_.test()) return false;
      static_cast<void>(request_.wait());
      static_cast<void>(next());  // destroyed at once
    } catch (...) {               // the other ranks have met the same
    }
    ended_ = true;
    return true;
  }
  void begin(Request operation) { request_ = std::move(operation); }

  /// One exchange at a time, so that whoever steps all ranks in turn sees the next one move.
  bool test() {
    if (ended_) return true;
    if (guarded([this] { return request_.test(); })) guarded([this] { return step(request_.wait()); });
    return ended_;
  }
  Report wait(std::optional<Deadline> deadline) {
    while (!ended_) guarded([&] { return step(deadline ? request_.wait(*deadline) : request_.wait()); });
    return report_;
  }

 protected:
  /// Starts the next exchange of the check; none if the check is complete.
  virtual std::optional<Request> next() = 0;

  bool given_up() const { return given_up_; }

  Report report_;  ///< of the operation

 private:
  template <class Action> bool guarded(Action action) {
    try {
      return action();
    } catch (...) {
      ended_ = true;
      throw;
    }
  }

  bool step(Report&& report) {
    if (!std::exchange(checking_, true)) report_ = std::move(report);
    if (std::optional<Request> further = next())
      request_ = std::move(*further);
    else
      ended_ = true;
    return true;
  }

  Request request_;
  bool checking_ = false, ended_ = false, given_up_ = false;
};

/// A check whose request is gone, on its link until the other ranks can know.
class UnwatchedCheck final : public Pending {
 public:
  explicit UnwatchedCheck(std::shared_ptr<CheckState> state) : state_(std::move(state)) {}

  Progress advance() noexcept override {
    if (std::exchange(inside_, true))
      return Progress::blocked;  // to finish is to move the link, and what is on it
    const bool done = state_->finish();
    inside_ = false;
    return done ? Progress::finished : Progress::blocked;
  }
  std::string waits_for() const override { return "a confirmation (check given up)"; }
  void orphan() noexcept override {}

 private:
  std::shared_ptr<CheckState> state_;
  bool inside_ = false;
};

/// What the destructor of a request does with its check.
inline void leave_to_link(std::shared_ptr<CheckState> state) {
  if (state && state->give_up()) state->session().attach(std::make_shared<UnwatchedCheck>(state));
}

/// The check of an operation on elements of type T. Every rank gets everybody's inputs and results, piece by piece, and judges all of
/// them: so all ranks come to the same verdict.
template <class T, bool lossless, class Link> class Check final : public CheckState {
 public:
  struct Subject {
    Collective collective;
    Operation operation;
    int root;
    std::string name;  ///< of compressor and algorithm
  };

  Check(Link& link, Subject subject, std::size_t piece_bytes)
      : link_(&link), subject_(std::move(subject)), piece_(std::max<std::size_t>(1, piece_bytes / sizeof(T))),
        gather_(None<std::uint8_t>(), link, Ring(), {.confirm = true}) {}

  Check(const Check&) = delete;
  Session& session() override { return link_->session(); }

  /// Copies what is handed in. A failure is kept, and told to all ranks when the check opens.
  template <class Exec, class Tensors> void keep(const Exec& exec, const Tensors& tensors) {
    for_each_item(tensors.items, [&](const auto&) { ++count_; });
    const bool hands_in = subject_.collective != Collective::broadcast || subject_.root == link_->rank();
    prepare([&] {
      for_each_item(tensors.items,
                    [&](const auto& item) { tensors_.emplace_back().keep(exec, item, hands_in); });
    });
  }

 private:
  using Bytes =
      Kokkos::View<std::uint8_t*, Kokkos::HostSpace>;  // an exchange that is given up keeps them alive
  using Part = typename PartOf<T>::type;

  /// What each rank says first: whether it can check at all, and what relative bounds need to know of its inputs.
  static constexpr std::size_t opening_bytes = 8 + poison_text_bytes;

  template <class Action> void prepare(Action action) {
    try {
      if (failure_.empty()) action();
    } catch (const std::exception& error) {
      failure_ = std::string("cannot check its operation: ") + error.what();
    }
  }

  std::size_t ranks() const { return static_cast<std::size_t>(link_->size()); }

  std::optional<Request> next() override {
    if (!std::exchange(opened_, true)) return open();
    if (!std::exchange(agreed_, true))
      read_opening();
    else
      judge_piece();
    while (tensor_ < tensors_.size() && piece_range().count() == 0) ++tensor_, begin_ = 0;
    if (tensor_ == tensors_.size()) return std::nullopt;
    return gather_piece();
  }

  Request open() {
    if (given_up()) failure_ = "was destroyed before its check";
    prepare([this] {
      std::size_t most = 0;
      for (auto& t : tensors_) {
        t.arrange(subject_.collective, subject_.root, link_->rank(), link_->size());
        most = std::max(most, std::min(piece_, t.total()));
      }
      mine_ = bytes(2 * most * sizeof(T)), all_ = bytes(2 * most * sizeof(T) * ranks());
    });
    const std::size_t size = opening_bytes + count_ * sizeof(Magnitudes);
    if (mine_.size() < size) mine_ = bytes(size), all_ = bytes(size * ranks());
    std::memset(mine_.data(), 0, size);
    mine_(0) = failure_.empty() ? 0 : 1;
    std::memcpy(mine_.data() + 8, failure_.data(), std::min(failure_.size(), poison_text_bytes - 1));
    if (failure_.empty())
      for (std::size_t i = 0; i < tensors_.size(); ++i)
        std::memcpy(mine_.data() + opening_bytes + i * sizeof(Magnitudes), &tensors_[i].magnitudes,
                    sizeof(Magnitudes));
    counts_.assign(ranks(), size);
    return gather(size, size * ranks());
  }

  void read_opening() {
    const std::size_t size = counts_.front();
    for (std::size_t r = 0; r < ranks(); ++r)
      if (const std::uint8_t* said = all_.data() + r * size; said[0] != 0) {
        const std::string text = reinterpret_cast<const char*>(said + 8);
        throw Error("rank " + std::to_string(r) + " " + text, static_cast<int>(r));
      }
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      Magnitudes merged, of_rank;
      for (std::size_t r = 0; r < ranks(); ++r) {
        std::memcpy(&of_rank, all_.data() + r * size + opening_bytes + i * sizeof(Magnitudes),
                    sizeof of_rank);
        merged.merge(of_rank);
      }
      set_bound(tensors_[i], merged);
    }
  }

  /// The bound that the report claims; for a group, which reports its greatest one alone, the bound of each tensor.
  void set_bound(CheckedTensor<T>& t, const Magnitudes& merged) {
    if (!t.bound()) return;
    const bool reduction = reduces(subject_.collective);
    t.error = absolute_error(*t.bound(), merged, subject_.collective, subject_.operation, link_->size(),
                             static_cast<double>(t.total()) * (reduction ? link_->size() : 1));
    if (tensors_.size() == 1 && report_.bound) t.error = *report_.bound;
  }

  // ---- pieces ----------------------------------------------------------------------------------------------------------------

  ElementRange piece_range() const {
    const std::size_t total = tensors_[tensor_].total();
    return {begin_, std::min(total, begin_ + piece_)};
  }

  Request gather_piece() {
    const CheckedTensor<T>& t = tensors_[tensor_];
    const ElementRange range = piece_range();
    std::size_t all = 0;
    for (std::size_t r = 0; r < ranks(); ++r) {
      counts_[r] = (range.within(t.inputs_of(r)).count() + range.within(t.outputs_of(r)).count()) * sizeof(T);
      all += counts_[r];
    }
    const std::span<const T> input = t.input(range), output = t.output(range);
    if (given_up()) return gather(input.size_bytes() + output.size_bytes(), all);
    if (!input.empty()) std::memcpy(mine_.data(), input.data(), input.size_bytes());
    if (!output.empty()) std::memcpy(mine_.data() + input.size_bytes(), output.data(), output.size_bytes());
    return gather(input.size_bytes() + output.size_bytes(), all);
  }

  static Bytes bytes(std::size_t n) {
    return Bytes(Kokkos::view_alloc(Kokkos::WithoutInitializing, "wring::check"), n);
  }

  Request gather(std::size_t mine, std::size_t all) {
    return gather_.start(
        Kokkos::DefaultHostExecutionSpace(), Kokkos::subview(mine_, std::pair(std::size_t{0}, mine)),
        Kokkos::subview(all_, std::pair(std::size_t{0}, all)), std::span<const std::size_t>(counts_));
  }

  void judge_piece() {
    if (!given_up()) judge();
    begin_ = piece_range().last;
  }

  void judge() {
    const CheckedTensor<T>& t = tensors_[tensor_];
    ExactRule rule{.operation = reduces(subject_.collective) ? subject_.operation : Operation::max};
    if (t.bound()) rule.bound = t.error;
    if (lossless && !(reduces(subject_.collective) && adds(subject_.operation))) rule.bound = 0;
    if constexpr (FloatElement<Part>) rule.greatest = FloatTraits<Part>::greatest;
    Judge<Part, lossless> judge(rule);
    const ElementRange piece = piece_range();
    for (ElementRange part = t.alike(piece); part.count() > 0; part = t.alike({part.last, piece.last}))
      if (const auto finding = judge.first_wrong(evidence(t, piece, part))) fail(*finding, part.first, rule);
  }

  /// Where the values of `part` are among the bytes gathered for `piece`.
  Evidence<Part> evidence(const CheckedTensor<T>& t, const ElementRange& piece, const ElementRange& part) {
    constexpr std::size_t parts = sizeof(T) / sizeof(Part);
    Evidence<Part> e;
    e.count = part.count() * parts;
    const T* values = reinterpret_cast<const T*>(all_.data());
    for (std::size_t r = 0; r < ranks(); ++r) {
      for (const bool result : {false, true}) {
        const ElementRange whole = result ? t.outputs_of(r) : t.inputs_of(r), here = piece.within(whole);
        if (whole.holds(part)) {
          const Part* first = reinterpret_cast<const Part*>(values + (part.first - here.first));
          if (result)
            e.holders.emplace_back(static_cast<int>(r), first);
          else
            e.terms.push_back(first);
        }
        values += here.count();
      }
    }
    return e;
  }

  [[noreturn]] void fail(const Finding& finding, std::size_t first, const ExactRule& rule) const {
    const std::size_t index = first + finding.index / (sizeof(T) / sizeof(Part));
    const std::string operation = reduces(subject_.collective) ? std::string(name_of(subject_.collective)) +
                                                                     " " + name_of(subject_.operation)
                                                               : name_of(subject_.collective);
    throw VerificationError(fmt::format("{} by {}: element {} of tensor {} {}", operation, subject_.name,
                                        index, tensor_, finding.text),
                            finding.rank, {tensor_, index, finding.value, finding.exact, rule.bound});
  }

  Link* link_;
  Subject subject_;
  std::size_t piece_;
  Allgather<None<std::uint8_t>, Link, Ring> gather_;
  std::deque<CheckedTensor<T>> tensors_;
  std::string failure_;
  bool opened_ = false, agreed_ = false;
  std::size_t count_ = 0, tensor_ = 0, begin_ = 0;
  Bytes mine_, all_;
  std::vector<std::size_t> counts_;
};

}  // namespace wring::inline v0::detail
