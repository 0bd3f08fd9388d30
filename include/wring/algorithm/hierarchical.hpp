// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <wring/algorithm/concept.hpp>
#include <wring/algorithm/ring.hpp>
#include <wring/algorithm/verify.hpp>
#include <wring/detail/sentence.hpp>
#include <wring/error.hpp>

namespace wring::inline v0 {

namespace detail {

/// Ranks numbered node by node. `shards` is the size of the smallest node: so many ranks of each node are active, and
/// each of them answers for one shard of the vector. The further ranks of a node lean on the active rank `i % shards`.
struct NodeLayout {
  std::vector<int> begin{0};  ///< begin[n]: first rank of node n; one entry more than nodes
  int shards = 0;

  int nodes() const { return static_cast<int>(begin.size()) - 1; }
  int ranks() const { return begin.back(); }
  int first(int node) const { return begin[static_cast<std::size_t>(node)]; }
  int size(int node) const { return first(node + 1) - first(node); }
  int node_of(int rank) const {
    return static_cast<int>(std::upper_bound(begin.begin(), begin.end(), rank) - begin.begin()) - 1;
  }
  bool even() const { return ranks() == shards * nodes(); }
  void add(int size) {
    shards = nodes() == 0 ? size : std::min(shards, size);
    begin.push_back(ranks() + size);
  }
};

/// How the steps of a sub-plan become steps of the whole plan.
struct Graft {
  std::vector<int> cut;        ///< block b of the sub-plan is the blocks [cut[b], cut[b + 1]) of the whole
  int budget = 0;              ///< class 0 of the sub-plan is this class of the whole
  bool one_class = false;      ///< all classes of the sub-plan become the one class `budget`
  Wire at_most = Wire::coded;  ///< raw: nothing of the sub-plan is coded
  Wire at_least = Wire::raw;   ///< coded: everything of it is
};

/// Appends the messages of `sub`, whose rank r is rank `real(r)` of the whole, and hands its finish steps to `finish`.
template <class Real, class Finish>
void graft(Plan& plan, const Plan& sub, const Graft& how, Real real, Finish finish) {
  const auto cut = [&](int b) { return how.cut[static_cast<std::size_t>(b)]; };
  for (Step s : sub.steps) {
    s.first = cut(s.first);
    s.last = cut(s.last);
    if (s.first >= s.last) continue;  // both ends leave it out
    if (s.kind == Kind::finish) {
      finish(s);
      continue;
    }
    if (s.kind == Kind::sum)
      throw InvalidArgument(
          "Hierarchical: the transport sums over all ranks, not over those of a node (Native)");
    s.peer = real(s.peer);
    s.wire = std::min(std::max(s.wire, how.at_least), how.at_most);
    s.budget =
        static_cast<std::uint16_t>(s.wire == Wire::raw ? 0 : how.budget + (how.one_class ? 0 : s.budget));
    plan.steps.push_back(s);
  }
}

/// Cuts the blocks [first, last) into `parts` ranges as equal as can be.
inline std::vector<int> even_cuts(int first, int last, int parts) {
  std::vector<int> cut(static_cast<std::size_t>(parts) + 1);
  for (int k = 0; k <= parts; ++k)
    cut[static_cast<std::size_t>(k)] =
        first + static_cast<int>(static_cast<long long>(last - first) * k / parts);
  return cut;
}

}  // namespace detail

/// Two levels: `Intra` among the ranks of a node, `Inter` between nodes. Both may be any algorithm, `Hierarchical` too.
/// Each node adds up first, shard by shard; then shard s of all nodes is added by the s-th ranks of the nodes; then it is
/// spread inside each node. So 1/(ranks per node) of the data of a node crosses the slow links, once.
///
/// Ranks are numbered node by node. Nodes of unequal size are allowed: only as many ranks of a node as the smallest node has
/// take part in all phases, the others give their data to one of these and get the result from it.
///
/// `inside` says how reductions travel within a node: `Wire::raw` (default) sends values as they are, which needs no
/// time for the codec and no share of the bound; `Wire::coded` encodes there too. Allgather and broadcast always encode
/// a value once, at its owner, and forward the bytes, inside and outside: so all ranks hold the same bits.
///
/// Cost, allreduce, N nodes of equal size, raw inside: N-1 edges and then 1 with an `Inter` like `Ring`.
/// Coded inside: p-N, N-1, 1.
template <Algorithm Intra = Ring, Algorithm Inter = Ring>
class Hierarchical {
 public:
  /// Nodes of `ranks_per_node` ranks; the last one may have fewer.
  explicit Hierarchical(int ranks_per_node, Intra intra = Intra{}, Inter inter = Inter{},
                        Wire inside = Wire::raw)
      : Hierarchical(std::vector<int>{ranks_per_node}, std::move(intra), std::move(inter), inside, true) {}

  /// Nodes of these sizes, which must add up to the number of ranks.
  explicit Hierarchical(std::vector<int> node_sizes, Intra intra = Intra{}, Inter inter = Inter{},
                        Wire inside = Wire::raw)
      : Hierarchical(std::move(node_sizes), std::move(intra), std::move(inter), inside, false) {}

  std::string name() const {
    return "hierarchical(" + std::string(intra_.name()) + ", " + std::string(inter_.name()) +
           (inside_ == Wire::raw ? ", raw" : ", coded") + " inside)";
  }

  /// Throws InvalidArgument if the node sizes do not add up to `ranks`.
  Plan plan(Task task, int rank, int ranks) const {
    const detail::NodeLayout nodes = layout_for(ranks);
    if (task.collective == Collective::broadcast) return broadcast(nodes, task.root, rank);
    if (task.collective == Collective::allgather) return allgather(nodes, rank);
    return reduce(nodes, task, rank);
  }

  /// Differs when the node sizes, or those of a nested `Hierarchical`, differ.
  std::uint64_t layout() const {
    detail::Hasher h;
    h.add(uniform_).add(sizes_.size());
    for (int size : sizes_) h.add(size);
    return h.add(layout_of(intra_)).add(layout_of(inter_)).value();
  }

  /// By formula where nodes are equal and raw inside, else counted.
  EdgeCount edges(Task task, int ranks) const {
    const detail::NodeLayout nodes = layout_for(ranks);
    if (!reduces(task.collective) || !nodes.even() || inside_for(nodes) == Wire::coded)
      return count_edges(plans_of(*this, task, ranks), task);
    if (nodes.nodes() == 1) return {};
    EdgeCount count =
        edges_of(inter_, task, nodes.nodes());  // each shard, 1/shards of a vector, has its own `Inter`
    for (double& moved : count.moved) moved *= 1.0 / nodes.shards;
    return count;
  }

 private:
  using Nodes = detail::NodeLayout;

  Hierarchical(std::vector<int> sizes, Intra intra, Inter inter, Wire inside, bool uniform)
      : sizes_(std::move(sizes)), intra_(std::move(intra)), inter_(std::move(inter)), inside_(inside),
        uniform_(uniform) {
    if (sizes_.empty()) throw InvalidArgument("wring::Hierarchical: there must be at least one node");
    for (int size : sizes_)
      if (size < 1)
        throw InvalidArgument(
            detail::sentence("wring::Hierarchical: a node has at least 1 rank, not ", size));
  }

  Nodes layout_for(int ranks) const {
    Nodes nodes;
    if (uniform_) {
      while (nodes.ranks() < ranks) nodes.add(std::min(sizes_[0], ranks - nodes.ranks()));
      return nodes;
    }
    for (int size : sizes_) nodes.add(size);
    if (nodes.ranks() != ranks)
      throw InvalidArgument(detail::sentence("wring::Hierarchical: the node sizes add up to ", nodes.ranks(),
                                             " ranks, but there are ", ranks));
    return nodes;
  }

  /// Where no node has two ranks there is no inside.
  Wire inside_for(const Nodes& nodes) const { return nodes.ranks() == nodes.nodes() ? Wire::raw : inside_; }

  /// A rank's place in the hierarchy, and the blocks of the whole: one per rank, ordered by shard, then node, then rank.
  /// Within a shard the nodes come in the block order of `Inter`, and the shards in that of `Intra`, so that every
  /// range of blocks of a sub-plan is a range of blocks here.
  struct Place {
    const Nodes& nodes;
    int node, local, shard;
    Plan plan;
    std::vector<int> shard_cut;  ///< blocks of the k-th shard in the order of `Intra`
    std::vector<std::vector<int>>
        node_cut;               ///< node_cut[shard]: blocks of the k-th node in the order of `Inter`
    std::vector<int> block_of;  ///< block_of[rank]

    Place(const Nodes& layout, int rank, const std::vector<int>& shard_order,
          const std::vector<int>& node_order)
        : nodes(layout), node(nodes.node_of(rank)), local(rank - nodes.first(node)),
          shard(local % nodes.shards), plan{rank, nodes.ranks()}, shard_cut{0}, node_cut(shard_order.size()),
          block_of(static_cast<std::size_t>(nodes.ranks())) {
      for (int s : shard_order) {
        std::vector<int>& cut = node_cut[static_cast<std::size_t>(s)];
        for (int n : node_order) {
          cut.push_back(plan.blocks);
          for (int i = s; i < nodes.size(n); i += nodes.shards) add_block(nodes.first(n) + i);
        }
        cut.push_back(plan.blocks);
        shard_cut.push_back(plan.blocks);
      }
    }

    void add_block(int rank) {
      plan.owner.push_back(rank);
      block_of[static_cast<std::size_t>(rank)] = plan.blocks++;
    }
    bool leans() const { return local >= nodes.shards; }
    int in_node(int i) const { return nodes.first(node) + i; }
    int leader() const { return in_node(shard); }
    int across(int n) const { return nodes.first(n) + shard; }
    int block(int i) const { return block_of[static_cast<std::size_t>(in_node(i))]; }
    const std::vector<int>& nodes_of_shard() const { return node_cut[static_cast<std::size_t>(shard)]; }
    /// Calls f(i) for the ranks of the node that lean on this one.
    template <class F>
    void for_followers(F f) const {
      for (int i = local + nodes.shards; i < nodes.size(node); i += nodes.shards) f(i);
    }
  };

  /// In which order a sub-plan lays the blocks of its ranks, each of which must have one.
  template <Algorithm A>
  static std::vector<int> order(const A& algorithm, Collective collective, int ranks) {
    std::vector<int> owner = algorithm.plan({collective}, 0, ranks).owner, sorted = owner;
    std::sort(sorted.begin(), sorted.end());
    bool once = static_cast<int>(sorted.size()) == ranks;
    for (int r = 0; once && r < ranks; ++r) once = sorted[static_cast<std::size_t>(r)] == r;
    if (!once)
      throw InvalidArgument("wring::Hierarchical: " + std::string(algorithm.name()) +
                            " cannot be a level, because it does not give each rank exactly one block");
    return owner;
  }

  static void no_finish(const Step&) {}

  /// The error classes of a reduction, counted alike on every rank: lean, inside, between, result.
  struct Classes {
    int lean = 0, intra = 0, inter = 0, result = 0, count = 0;
  };
  Classes classes(const Nodes& nodes, Task task, Wire inside, int inter_budgets) const {
    Classes c;
    if (inside == Wire::raw) {
      c.count = inter_budgets;
      return c;
    }
    c.intra = nodes.even() ? 0 : 1;
    c.inter = c.intra + intra_.plan({Collective::reduce_scatter}, 0, nodes.shards).budgets;
    c.result = c.inter + (nodes.nodes() > 1 ? std::max(1, inter_budgets) : 0);
    c.count = c.result + (task.collective == Collective::allreduce || !nodes.even() ? 1 : 0);
    return c;
  }

  Plan reduce(const Nodes& nodes, Task task, int rank) const {
    const bool all = task.collective == Collective::allreduce;
    const auto shard_order = order(intra_, Collective::reduce_scatter, nodes.shards);
    Place at(nodes, rank, shard_order, order(inter_, Collective::reduce_scatter, nodes.nodes()));
    if (all && order(intra_, Collective::allgather, nodes.shards) != shard_order)
      throw InvalidArgument("wring::Hierarchical: " + std::string(intra_.name()) +
                            " orders the blocks of reduce_scatter and allgather differently");
    const Plan between = inter_.plan(task, at.node, nodes.nodes());
    const Wire inside = inside_for(nodes);
    const Classes c = classes(nodes, task, inside, between.budgets);
    Plan& plan = at.plan;
    plan.budgets = c.count;
    plan.widest = plan.blocks;
    if (at.leans()) {
      plan.send(at.leader(), 0, plan.blocks, c.lean, inside);
      if (all)
        plan.store(at.leader(), 0, plan.blocks, c.result, inside);
      else
        plan.store(at.leader(), at.block(at.local), at.block(at.local) + 1, c.result, inside);
    } else {
      collect(at, inside, c);
      reduce_between(at, between, all, inside, c);
      if (all)
        spread(at, inside, c.result);
      else
        at.for_followers(
            [&](int i) { plan.send(at.in_node(i), at.block(i), at.block(i) + 1, c.result, inside); });
    }
    if (all) plan.owner.clear();
    return std::move(at.plan);
  }

  /// First phase: the node's sum of this rank's shard.
  void collect(Place& at, Wire inside, const Classes& c) const {
    at.for_followers([&](int i) { at.plan.combine(at.in_node(i), 0, at.plan.blocks, c.lean, inside); });
    const Plan sub = intra_.plan({Collective::reduce_scatter}, at.local, at.nodes.shards);
    detail::graft(
        at.plan, sub, {.cut = at.shard_cut, .budget = c.intra, .at_most = inside},
        [&](int i) { return at.in_node(i); }, no_finish);
  }

  /// Second phase: the sum of all nodes. If what follows inside the node is encoded, then the result is, when it is
  /// finished, on every rank that finishes it: otherwise those that need no message would keep other bits.
  void reduce_between(Place& at, const Plan& between, bool all, Wire inside, const Classes& c) const {
    const std::vector<int>& mine = at.nodes_of_shard();
    detail::Graft how{.cut = mine, .budget = c.inter, .at_least = inside};
    if (all) how.cut = detail::even_cuts(mine.front(), mine.back(), between.blocks);
    const bool encode = all && inside == Wire::coded;
    detail::graft(
        at.plan, between, how, [&](int n) { return at.across(n); },
        [&](const Step& s) {
          if (encode)
            at.plan.finish(s.first, s.last, Wire::coded, c.result);
          else
            at.plan.finish(s.first, s.last, s.wire, s.wire == Wire::coded ? c.inter + s.budget : 0);
        });
  }

  /// Last phase: the shards to all ranks of the node. Everything in one class, because it is encoded once.
  void spread(Place& at, Wire wire, int budget) const {
    const Plan sub = intra_.plan({Collective::allgather}, at.local, at.nodes.shards);
    detail::graft(
        at.plan, sub, {.cut = at.shard_cut, .budget = budget, .one_class = true, .at_most = wire},
        [&](int i) { return at.in_node(i); }, no_finish);
    at.for_followers([&](int i) { at.plan.send(at.in_node(i), 0, at.plan.blocks, budget, wire); });
  }

  Plan allgather(const Nodes& nodes, int rank) const {
    Place at(nodes, rank, order(intra_, Collective::allgather, nodes.shards),
             order(inter_, Collective::allgather, nodes.nodes()));
    Plan& plan = at.plan;
    plan.budgets = nodes.ranks() > 1 ? 1 : 0;
    plan.widest = nodes.ranks() > 1 ? plan.blocks : 0;
    if (at.leans()) {
      plan.send(at.leader(), at.block(at.local), at.block(at.local) + 1);
      plan.store(at.leader(), 0, plan.blocks);
      return std::move(at.plan);
    }
    at.for_followers([&](int i) { plan.store(at.in_node(i), at.block(i), at.block(i) + 1); });
    detail::graft(
        plan, inter_.plan({Collective::allgather}, at.node, nodes.nodes()),
        {.cut = at.nodes_of_shard(), .one_class = true}, [&](int n) { return at.across(n); }, no_finish);
    spread(at, Wire::coded, 0);
    return std::move(at.plan);
  }

  /// From the root to one rank of each node, then inside each node.
  Plan broadcast(const Nodes& nodes, int root, int rank) const {
    const int node = nodes.node_of(rank), home = nodes.node_of(root), local_root = root - nodes.first(home);
    const auto host = [&](int n) { return n == home ? local_root : std::min(local_root, nodes.size(n) - 1); };
    const int local = rank - nodes.first(node);
    Plan plan{rank, nodes.ranks()};
    plan.blocks = broadcast_blocks(nodes);
    plan.budgets = nodes.ranks() > 1 ? 1 : 0;
    plan.widest = nodes.ranks() > 1 ? plan.blocks : 0;
    const auto append = [&](const Plan& sub, auto real) {
      detail::graft(plan, sub, {.cut = detail::even_cuts(0, plan.blocks, sub.blocks), .one_class = true},
                    real, no_finish);
    };
    if (local == host(node))
      append(inter_.plan({Collective::broadcast, home}, node, nodes.nodes()),
             [&](int n) { return nodes.first(n) + host(n); });
    append(intra_.plan({Collective::broadcast, host(node)}, local, nodes.size(node)),
           [&](int i) { return nodes.first(node) + i; });
    return plan;
  }

  /// Enough blocks for either level, and a multiple of those of the slower one, so that its messages are equal.
  int broadcast_blocks(const Nodes& nodes) const {
    const int between = inter_.plan({Collective::broadcast}, 0, nodes.nodes()).blocks;
    int inside = 1;
    for (int n = 0; n < nodes.nodes(); ++n)
      if (n == 0 || nodes.size(n) != nodes.size(n - 1))
        inside = std::max(inside, intra_.plan({Collective::broadcast}, 0, nodes.size(n)).blocks);
    return (inside + between - 1) / between * between;
  }

  std::vector<int> sizes_;
  Intra intra_;
  Inter inter_;
  Wire inside_;
  bool uniform_;
};

static_assert(LaidOutAlgorithm<Hierarchical<>> && EdgeCountedAlgorithm<Hierarchical<>>);

}  // namespace wring::inline v0
