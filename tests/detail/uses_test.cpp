// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What becomes of a block after a step: found block by block, and by runs of blocks.
#include <wring/detail/uses.hpp>

#include <catch2/catch_test_macros.hpp>

using wring::Kind;
using wring::Wire;
using wring::detail::NextUses;
using wring::detail::Use;

namespace {

wring::Step step(Kind kind, int first, int last, Wire wire = Wire::coded) {
  wring::Step s;
  s.kind = kind, s.first = first, s.last = last, s.wire = wire, s.peer = 1;
  return s;
}

/// Blocks 0 and 1 go the same way, 2 another.
wring::Plan example() {
  wring::Plan plan;
  plan.blocks = 3;
  plan.steps = {step(Kind::combine, 0, 3, Wire::raw),
                step(Kind::send, 0, 2),
                step(Kind::send, 2, 3, Wire::raw),
                step(Kind::store, 0, 2),
                step(Kind::combine, 2, 3),
                step(Kind::finish, 2, 3)};
  return plan;
}

}  // namespace

TEST_CASE("uses: of every block after every step", "[detail]") {
  NextUses uses;
  uses.analyse(example());
  CHECK(uses.after(0, 0) == Use::send);
  CHECK(uses.after(0, 1) == Use::send);
  CHECK(uses.after(0, 2) == Use::send_raw);
  CHECK(uses.after(1, 0) == Use::overwritten);
  CHECK(uses.after(2, 0) == Use::read);     // block 2, added to
  CHECK(uses.after(3, 1) == Use::nothing);  // the result
  CHECK(uses.after(4, 0) == Use::read);     // finished
  CHECK(uses.after(5, 0) == Use::nothing);
}

TEST_CASE("uses: by runs as by blocks", "[detail]") {
  NextUses uses;
  uses.analyse(example(), 2, [](int block) { return block == 0 ? 0u : block == 2 ? 1u : 2u; });
  CHECK(uses.after(0, 0) == Use::send);
  CHECK(uses.after(0, 1) == Use::send_raw);
  CHECK(uses.after(1, 0) == Use::overwritten);
  CHECK(uses.after(2, 0) == Use::read);
  CHECK(uses.after(4, 0) == Use::read);
}
