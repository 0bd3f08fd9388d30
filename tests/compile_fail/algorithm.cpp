// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// What the compiler says of types that are not an Algorithm. Without a CASE_ this file compiles.

#include <string>

#include <wring/algorithm.hpp>

namespace {

struct Right {
  wring::Plan plan(wring::Task, int rank, int ranks) const { return {rank, ranks}; }
  std::string name() const { return "right"; }
};

/// Stands for an entry point of the library.
template <class A>
int entry(const A&) {
  wring::expect_algorithm<A>();
  return 0;
}

}  // namespace

#if defined(CASE_no_plan)
// CASE_no_plan expects: wring: an Algorithm needs 'wring::Plan plan\(wring::Task, int rank, int ranks\) const'
struct Wrong {
  std::string name() const { return "wrong"; }
};
int test() { return entry(Wrong{}); }
#elif defined(CASE_plan_not_const)
// CASE_plan_not_const expects: wring: an Algorithm needs 'wring::Plan plan\(wring::Task, int rank, int ranks\) const'
struct Wrong : Right {
  wring::Plan plan(wring::Task, int rank, int ranks) { return {rank, ranks}; }
};
int test() { return entry(Wrong{}); }
#elif defined(CASE_no_name)
// CASE_no_name expects: wring: an Algorithm needs 'std::string name\(\) const'
struct Wrong {
  wring::Plan plan(wring::Task, int rank, int ranks) const { return {rank, ranks}; }
};
int test() { return entry(Wrong{}); }
#elif defined(CASE_not_copyable)
// CASE_not_copyable expects: wring: an Algorithm must be copyable
struct Wrong : Right {
  Wrong() = default;
  Wrong(const Wrong&) = delete;
};
int test() { return entry(Wrong{}); }
#elif defined(CASE_level_is_no_algorithm)
// CASE_level_is_no_algorithm expects: (constraint failure|constraints not satisfied|does not satisfy 'Algorithm')
wring::Hierarchical<int, wring::Ring> test() { return wring::Hierarchical<int, wring::Ring>(2); }
#else
int test() { return entry(Right{}) + entry(wring::Ring{}) + entry(wring::Hierarchical(2)); }
#endif
