// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a user reads who calls a collective in a way that cannot work.
#include <wring/algorithm/native.hpp>
#include <wring/collective.hpp>
#include <wring/collective/checked.hpp>
#include <wring/compressor/cast.hpp>
#include <wring/compressor/none.hpp>
#include <wring/compressor/packed_words.hpp>
#include <wring/transport/in_process.hpp>

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
using Host = Kokkos::HostSpace;
using Link = wring::InProcessTransport;

struct Padded {
  long a;
  int b;
};
struct NoLink {};
struct Wordless {
  using memory_space = Host;
  struct Request {};
  int rank() const { return 0; }
  int size() const { return 1; }
  Request send(int, int, std::span<const std::byte>) { return {}; }
  Request receive(int, int, std::span<std::byte>) { return {}; }
  std::optional<std::size_t> test(Request&) { return std::nullopt; }
  bool cancel(Request&) { return true; }
  wring::Session& session() { return session_; }
  wring::Session session_;
};
struct NoAlgorithm {};

[[maybe_unused]] void use(Link& link, wring::InProcess& world) {
  const Exec exec{};
  const Kokkos::View<float*, Host> data, other;
  const Kokkos::View<const float*, Host> constant;
  const Kokkos::View<double*, Host> doubles;
  const std::vector<std::size_t> counts;

  wring::Allreduce sum(wring::None<float>{}, link);
  wring::Allreduce cast(wring::Cast<wring::half_t>{}, link);
  wring::ReduceScatter scatter(wring::Grid<float>{}, link);
  wring::Allgather gather(wring::Grid<float>{}, link);
  wring::Broadcast spread(wring::Cast<wring::half_t>{}, link);
  sum(exec, constant, data, wring::absolute(1));
  scatter(exec, constant, other, counts, wring::absolute(1));
  gather(exec, constant, other, counts, wring::absolute(1));
  cast(exec, data);
  spread(exec, data, 0);
  wring::allreduce(exec, data, wring::absolute(1), world.link(0));

// CASE_element_type first expects: wring: the views' element type is not the compressor's value_type
#if defined(CASE_element_type)
  sum(exec, doubles);
#endif
// CASE_own_compressor first expects: wring: an item's own compressor must be of the same type as the operation's
#if defined(CASE_own_compressor)
  sum(exec, wring::group(wring::item(data).with(wring::Cast<wring::half_t>{})));
#endif
// CASE_mixed_types first expects: wring: input and output must have the same element type
#if defined(CASE_mixed_types)
  sum(exec, doubles, data);
#endif
// CASE_const_output first expects: wring: .*the output must not be const
#if defined(CASE_const_output)
  sum(exec, constant);
#endif
// CASE_padded_struct expects: wring: the compressor's value_type is no element type|constraint.*ElementType|ElementType.*evaluated to false
#if defined(CASE_padded_struct)
  wring::Allreduce(wring::None<Padded>{}, link)(exec, Kokkos::View<Padded*, Host>());
#endif
// CASE_bound_allreduce expects: wring: this compressor promises no bound
#if defined(CASE_bound_allreduce)
  cast(exec, data, wring::absolute(1));
#endif
// CASE_bound_apart expects: wring: this compressor promises no bound
#if defined(CASE_bound_apart)
  static_cast<void>(cast.start(exec, constant, data, wring::absolute(1)));
#endif
// CASE_bound_scatter expects: wring: this compressor promises no bound
#if defined(CASE_bound_scatter)
  wring::ReduceScatter(wring::Cast<wring::half_t>{}, link)(exec, constant, data, counts, wring::absolute(1));
#endif
// CASE_bound_gather expects: wring: this compressor promises no bound
#if defined(CASE_bound_gather)
  wring::Allgather(wring::Cast<wring::half_t>{}, link)(exec, constant, data, wring::relative_to_rms(1));
#endif
// CASE_bound_broadcast expects: wring: this compressor promises no bound
#if defined(CASE_bound_broadcast)
  spread(exec, data, 0, wring::absolute(1));
#endif
// CASE_temporary_link expects: deleted function
#if defined(CASE_temporary_link)
  wring::Allreduce<wring::None<float>, Link> dangling(wring::None<float>{}, std::move(link));
#endif
// CASE_no_link expects: wring: the transport has no member type memory_space
#if defined(CASE_no_link)
  NoLink none;
  wring::Allreduce<wring::None<float>, NoLink> wrong(wring::None<float>{}, none);
#endif
// CASE_no_algorithm expects: wring: an Algorithm needs
#if defined(CASE_no_algorithm)
  wring::Allreduce wrong(wring::None<float>{}, link, NoAlgorithm{});
#endif
// CASE_native_without_words first expects: wring: this algorithm lets the transport add up words, but the pieces of this compressor
#if defined(CASE_native_without_words)
  wring::Allreduce wrong(wring::Grid<float>{}, link, wring::Native{});
#endif
// CASE_native_over_wordless first expects: wring: this algorithm lets the transport add up words, which this transport cannot
#if defined(CASE_native_over_wordless)
  Wordless wordless;
  wring::Allreduce wrong(wring::PackedWords<float>{}, wordless, wring::Native{});
#endif
// CASE_element_type_of_grid first expects: wring: the views' element type is not the compressor's value_type
#if defined(CASE_element_type_of_grid)
  wring::Allreduce(wring::Grid<float>{}, link)(exec, doubles, wring::absolute(1));
#endif
// CASE_element_type_in_group first expects: wring: the views' element type is not the compressor's value_type
#if defined(CASE_element_type_in_group)
  sum(exec, wring::group(wring::item(data), wring::item(doubles)));
#endif
// CASE_element_type_checked first expects: wring: the views' element type is not the compressor's value_type
#if defined(CASE_element_type_checked)
  wring::Checked(std::move(sum))(exec, doubles);
#endif
// CASE_exec_left_out first expects: wring: the first argument must be a Kokkos execution space
#if defined(CASE_exec_left_out)
  sum(data, wring::absolute(1));
#endif
// CASE_exec_left_out_alone first expects: wring: the first argument must be a Kokkos execution space
#if defined(CASE_exec_left_out_alone)
  sum(data);
#endif
// CASE_exec_left_out_of_scatter first expects: wring: the first argument must be a Kokkos execution space
#if defined(CASE_exec_left_out_of_scatter)
  scatter(constant, other, counts, wring::absolute(1));
#endif
// CASE_exec_left_out_of_broadcast first expects: wring: the first argument must be a Kokkos execution space
#if defined(CASE_exec_left_out_of_broadcast)
  static_cast<void>(spread.start(data, 0));
#endif
// CASE_vector first expects: wring: data are given as a Kokkos::View
#if defined(CASE_vector)
  sum(exec, std::vector<float>(10));
#endif
// CASE_item_alone first expects: wring: data are given as a Kokkos::View
#if defined(CASE_item_alone)
  sum(exec, wring::item(data));
#endif
// CASE_free_vector first expects: wring: data are given as a Kokkos::View
#if defined(CASE_free_vector)
  std::vector<float> values(10);
  wring::allreduce(exec, values, wring::absolute(1), link);
#endif
// CASE_free_pointer first expects: wring: data are given as a Kokkos::View
#if defined(CASE_free_pointer)
  wring::broadcast(exec, data.data(), 0, wring::absolute(1), link);
#endif
// CASE_free_group first expects: wring: a group needs a collective object
#if defined(CASE_free_group)
  wring::allreduce(exec, wring::group(wring::item(data)), wring::absolute(1), link);
#endif
// CASE_free_exec_left_out first expects: wring: the first argument must be a Kokkos execution space
#if defined(CASE_free_exec_left_out)
  wring::reduce_scatter(constant, other, counts, wring::absolute(1), link);
#endif
// CASE_no_exec first expects: wring: the first argument must be a Kokkos execution space
#if defined(CASE_no_exec)
  sum(3, data);
#endif
}

}  // namespace
