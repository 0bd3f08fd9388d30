// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
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
inline constexpr std::uint64_t saved_version = 1, saved_order = 0x0807060504030201;
inline constexpr std::size_t saved_head = 5 * 8;  ///< magic, order, version, length, checksum

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
    out.word(t->total).word(t->steps).word(static_cast<std::uint64_t>(t->operation)).word(t->courses.size());
    for (const auto& [key, course] : t->courses) {
      out.word(key).word(course.first).word(course.count).word(course.runs.size());
      for (const auto& run : course.runs) out.view(run.full), out.view(run.codes), out.view(run.scales);
    }
  }
  return out.sealed();
}

template <class Wide, class Space> Residuals<Wide, Space> read_course(Reader& in, std::size_t total) {
  Residuals<Wide, Space> course;
  course.first = in.word(), course.count = in.word();
  if (course.first > total || course.count > total - course.first) Reader::refuse("is damaged");
  const std::size_t runs = in.count(3 * 8);
  for (std::size_t k = 0; k < runs; ++k) {
    Run<Wide, Space>& run = course.runs.emplace_back();
    run.full = in.template view<Wide, Space>();
    run.codes = in.template view<std::int8_t, Space>(), run.scales = in.template view<Wide, Space>();
    for (const std::size_t n : {run.full.extent(0), run.codes.extent(0)})
      if (n != 0 && n != course.count) Reader::refuse("is damaged");
  }
  return course;
}

template <class T, class Wide, class Space>
Memory<Wide, Space> restored(std::span<const std::byte> bytes, bool eight_bits) {
  Reader in(bytes);
  if (in.word() != element_code<T>())
    Reader::refuse(sentence("is of another element type, this one is of ", FloatTraits<T>::name));
  if (in.word() != (eight_bits ? 8 : 0))
    Reader::refuse(eight_bits ? "has residuals of full size, this one has them in 8 bits"
                              : "has residuals in 8 bits, this one has them in full size");
  Memory<Wide, Space> memory;
  memory.eight_bits = eight_bits;
  memory.rank = static_cast<int>(in.word()) - 1, memory.ranks = static_cast<int>(in.word());
  const std::size_t tensors = in.count(8);
  for (std::size_t i = 0; i < tensors; ++i) {
    memory.tensors.emplace_back();
    if (in.word() == 0) continue;
    auto& t = memory.tensors.back() = std::make_unique<Tensor<Wide, Space>>();
    t->total = in.word(), t->steps = in.word(), t->operation = static_cast<Operation>(in.word());
    const std::size_t courses = in.count(4 * 8);
    for (std::size_t k = 0; k < courses; ++k) {
      const std::uint64_t key = in.word();
      t->courses[key] = read_course<Wide, Space>(in, t->total);
    }
  }
  in.expect_end();
  return memory;
}

}  // namespace wring::inline v0::detail::feedback
