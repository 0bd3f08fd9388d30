// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <wring/detail/checksum.hpp>
#include <wring/detail/feedback/memory.hpp>
#include <wring/detail/sentence.hpp>
#include <wring/error.hpp>
#include <wring/narrow.hpp>

/// A feedback state as bytes: docs/stream_format.md. Little endian.
namespace wring::inline v0::detail::feedback {

inline constexpr std::string_view saved_magic = "wringefb";
inline constexpr std::uint64_t saved_version = 2, saved_order = 0x0807060504030201;
inline constexpr std::size_t saved_head = 5 * 8;  ///< magic, order, version, length, checksum
inline constexpr std::uint64_t operations = 4;    ///< sum, mean, minimum, maximum

static_assert(std::endian::native == std::endian::little, "wring: hosts are little endian");

/// Writes words and runs of residuals, one after the other.
class Writer {
 public:
  Writer& word(std::uint64_t x) {
    put(&x, sizeof x);
    return *this;
  }
  template <class X, class Space> void view(const Kokkos::View<X*, Space>& values) {
    const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), values);
    word(values.extent(0));
    if (values.extent(0) > 0) put(host.data(), values.extent(0) * sizeof(X));
  }
  std::vector<std::byte> sealed() {
    const std::uint64_t length = bytes_.size(),
                        sum = checksum(std::span<const std::byte>(bytes_).subspan(saved_head));
    std::memcpy(bytes_.data() + 3 * 8, &length, 8), std::memcpy(bytes_.data() + 4 * 8, &sum, 8);
    return std::move(bytes_);
  }

 private:
  void put(const void* from, std::size_t n) {
    const auto* begin = static_cast<const std::byte*>(from);
    bytes_.insert(bytes_.end(), begin, begin + n);
  }
  std::vector<std::byte> bytes_;
};

/// Reads what a Writer wrote; never beyond the end.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) { open(); }

  std::uint64_t word() {
    std::uint64_t x = 0;
    std::memcpy(&x, take(8).data(), 8);
    return x;
  }
  /// A number of things of so many bytes each at least.
  std::size_t count(std::size_t each) {
    const std::uint64_t n = word();
    if (n > bytes_.size() / each) refuse("is cut short");
    return static_cast<std::size_t>(n);
  }
  template <class X, class Space> Kokkos::View<X*, Space> view() {
    const std::size_t n = count(sizeof(X));
    const auto from = take(n * sizeof(X));
    Kokkos::View<X*, Space> values("wring::residuals", n);
    const auto host = Kokkos::create_mirror_view(values);
    if (n > 0) std::memcpy(host.data(), from.data(), from.size());
    Kokkos::deep_copy(values, host);
    return values;
  }
  void expect_end() const {
    if (!bytes_.empty()) refuse("is longer than what it holds");
  }

  [[noreturn]] static void refuse(const std::string& what) {
    throw InvalidArgument("the saved feedback state " + what);
  }

 private:
  /// Magic, byte order, version, length, checksum, in that order.
  void open() {
    const std::size_t given = bytes_.size();
    if (given < saved_head || std::memcmp(take(8).data(), saved_magic.data(), 8) != 0)
      refuse("is none: it does not begin as one");
    const std::uint64_t order = word();
    if (order != saved_order)
      refuse(order == std::uint64_t{0x0102030405060708} ? "has the other byte order" : "is damaged");
    if (const std::uint64_t version = word(); version != saved_version)
      refuse(sentence("has version ", version, ", this library reads version ", saved_version));
    if (const std::uint64_t length = word(); length != given)
      refuse(sentence("has ", given, " bytes, not the ", length, " that were written"));
    const std::uint64_t sum = word();
    if (sum != checksum(bytes_)) refuse("is damaged: its checksum is wrong");
  }

  std::span<const std::byte> take(std::size_t n) {
    if (n > bytes_.size()) refuse("is cut short");
    const auto front = bytes_.first(n);
    bytes_ = bytes_.subspan(n);
    return front;
  }

  std::span<const std::byte> bytes_;
};

/// A number for an element type.
template <class T> std::uint64_t element_code() {
  std::uint64_t code = 0;
  const std::string_view name = FloatTraits<T>::name;
  std::memcpy(&code, name.data(), std::min<std::size_t>(8, name.size()));
  return code;
}

template <class Wide, class Space> void write_course(Writer& out, const Residuals<Wide, Space>& course) {
  const auto begins = course.begins();
  out.word(course.quantity).word(course.alone).word(course.first).word(course.count).word(begins.size());
  for (const std::size_t begin : begins) out.word(begin);
  out.word(course.runs.size());
  for (const auto& run : course.runs) out.view(run.full), out.view(run.codes), out.view(run.scales);
}

template <class T, class Wide, class Space>
std::vector<std::byte> save(const Memory<Wide, Space>& memory) {
  Writer out;
  std::uint64_t magic = 0;
  std::memcpy(&magic, saved_magic.data(), 8);
  out.word(magic).word(saved_order).word(saved_version).word(0).word(0);
  out.word(element_code<T>())
      .word(memory.eight_bits ? 8 : 0)
      .word(static_cast<std::uint64_t>(memory.rank + 1));
  out.word(static_cast<std::uint64_t>(memory.ranks)).word(memory.tensors.size());
  for (const auto& t : memory.tensors) {
    out.word(t ? 1 : 0);
    if (!t) continue;
    out.word(t->total).word(t->shape).word(t->steps).word(t->past);
    out.word(static_cast<std::uint64_t>(t->operation));
    const auto kept = [](const auto& entry) { return !entry.second.empty(); };
    out.word(static_cast<std::uint64_t>(std::count_if(t->courses.begin(), t->courses.end(), kept)));
    for (const auto& entry : t->courses)
      if (kept(entry)) out.word(entry.first), write_course(out, entry.second);
  }
  return out.sealed();
}

/// A number that must be below a limit.
inline std::uint64_t word_below(Reader& in, std::uint64_t limit) {
  const std::uint64_t x = in.word();
  if (x >= limit) Reader::refuse("is damaged");
  return x;
}

/// Arrays of the lengths that the course has, in the form that the state keeps.
template <class Wide, class Space>
Run<Wide, Space> read_run(Reader& in, const Residuals<Wide, Space>& course, bool eight_bits) {
  Run<Wide, Space> run;
  run.full = in.template view<Wide, Space>();
  run.codes = in.template view<std::int8_t, Space>(), run.scales = in.template view<Wide, Space>();
  const std::size_t full = run.full.extent(0), codes = run.codes.extent(0), scales = run.scales.extent(0);
  const bool whole = eight_bits ? codes == course.count && scales == course.groups() && full == 0
                                : full == course.count && codes == 0 && scales == 0;
  if (!whole && full + codes + scales != 0) Reader::refuse("is damaged");
  return run;
}

template <class Wide, class Space>
Residuals<Wide, Space> read_course(Reader& in, std::size_t total, bool eight_bits) {
  Residuals<Wide, Space> course;
  course.quantity = in.word(), course.alone = in.word();
  const std::size_t first = in.word(), count = in.word();
  if (first > total || count > total - first) Reader::refuse("is damaged");
  std::vector<std::size_t> begins(in.count(8));
  for (std::size_t& begin : begins) begin = in.word();
  if (begins.empty() || begins[0] != 0 || !std::is_sorted(begins.begin(), begins.end()) ||
      begins.back() > count)
    Reader::refuse("is damaged");
  course.shape(first, count, begins);
  const std::size_t runs = in.count(3 * 8);
  for (std::size_t k = 0; k < runs; ++k) course.runs.push_back(read_run(in, course, eight_bits));
  return course;
}

template <class Wide, class Space>
std::unique_ptr<Tensor<Wide, Space>> read_tensor(Reader& in, bool eight_bits) {
  auto t = std::make_unique<Tensor<Wide, Space>>();
  t->total = in.word(), t->shape = in.word(), t->steps = in.word(), t->past = in.word();
  t->operation = static_cast<Operation>(word_below(in, operations));
  const std::size_t courses = in.count(7 * 8);
  for (std::size_t k = 0; k < courses; ++k) {
    const std::uint64_t key = in.word();
    if (!t->courses.emplace(key, read_course<Wide, Space>(in, t->total, eight_bits)).second)
      Reader::refuse("is damaged");
  }
  return t;
}

template <class T, class Wide, class Space>
Memory<Wide, Space> restored(std::span<const std::byte> bytes, bool eight_bits) {
  constexpr std::uint64_t most_ranks = std::numeric_limits<int>::max();
  Reader in(bytes);
  if (in.word() != element_code<T>())
    Reader::refuse(sentence("is of another element type, this one is of ", FloatTraits<T>::name));
  if (in.word() != (eight_bits ? 8 : 0))
    Reader::refuse(eight_bits ? "has residuals of full size, this one has them in 8 bits"
                              : "has residuals in 8 bits, this one has them in full size");
  Memory<Wide, Space> memory;
  memory.eight_bits = eight_bits;
  memory.rank = static_cast<int>(word_below(in, most_ranks)) - 1;
  memory.ranks = static_cast<int>(word_below(in, most_ranks));
  if (memory.rank >= memory.ranks) Reader::refuse("is damaged");
  const std::size_t tensors = in.count(8);
  for (std::size_t i = 0; i < tensors; ++i) {
    memory.tensors.emplace_back();
    if (word_below(in, 2) != 0) memory.tensors.back() = read_tensor<Wide, Space>(in, eight_bits);
  }
  in.expect_end();
  return memory;
}

}  // namespace wring::inline v0::detail::feedback
