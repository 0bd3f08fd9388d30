// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>

#include <wring/compressor/concept.hpp>

#include "support/buffer.hpp"

/// What the study knows of a codec: values go in, bits are counted, values come out.
namespace wring_benchmark {

/// |x|^2, and |x - y|^2.
inline double squares_of(std::span<const float> x) {
  double sum = 0;
  for (const float v : x) sum += double{v} * v;
  return sum;
}
inline double squared_distance(std::span<const float> x, std::span<const float> y) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += (double{x[i]} - y[i]) * (double{x[i]} - y[i]);
  return sum;
}
inline double root_mean_square(std::span<const float> x) {
  return x.empty() ? 0 : std::sqrt(squares_of(x) / static_cast<double>(x.size()));
}

/// Some values in a codec with one setting.
class Trial {
 public:
  virtual ~Trial() = default;
  virtual void encode() = 0;
  virtual void decode() = 0;
  virtual double bits() const = 0;  ///< of all values, once they are encoded
  virtual std::span<const float> decoded() const = 0;
};

/// A codec whose settings, from 0 on, are in the order of growing errors.
struct Family {
  int settings;
  std::function<std::unique_ptr<Trial>(std::span<const float>, int setting)> trial;
};

/// Families of settings under one name: at each error the best of them counts.
struct Codec {
  std::string name;
  std::vector<Family> families;
  bool is_ideal = false;  ///< counts the bits that an ideal coder would need, and writes none
};

/// Settings of codecs with a continuous parameter: bounds or steps in units of the root mean square, 8 in each octave; of zeros, of 1.
inline constexpr int scales = 137;
inline double scale_of(std::span<const float> values, int setting) {
  const double unit = root_mean_square(values);
  return std::exp2(setting / 8.0 - 10) * (unit > 0 ? unit : 1);
}

/// A compressor of one rank whose allreduce would be prepared with this bound; without one, where that is infinite.
template <class Compressor> class CompressorTrial final : public Trial {
 public:
  CompressorTrial(Compressor compressor, std::span<const float> values, double bound)
      : compressor_(std::move(compressor)), values_(values), decoded_(values.size()), bytes_(0), scratch_(0) {
    context_.count = context_.total = values.size();
    context_.allowed_error = bound;
    prepare(bound);
    bytes_ = Buffer<std::byte>(compressor_.max_compressed_bytes(values.size()));
    if constexpr (wring::ScratchCompressor<Compressor>) {
      scratch_ = Buffer<std::byte>(compressor_.scratch_bytes(values.size()));
      context_.scratch = scratch_.span();
    }
  }

  void encode() override { size_ = compressor_.compress(exec_, values_, bytes_.span(), context_); }
  void decode() override {
    compressor_.decompress(exec_, std::span<const std::byte>(bytes_.span().first(size_)), decoded_.span(),
                           context_);
  }
  double bits() const override { return 8.0 * static_cast<double>(size_); }
  std::span<const float> decoded() const override { return decoded_.span(); }

 private:
  void prepare(double bound) {
    if constexpr (wring::PreparedCompressor<Compressor>) {
      wring::Agreed agreed;
      agreed.total = values_.size(), agreed.measured = true;
      for (const float x : values_) agreed.max_abs = std::max(agreed.max_abs, std::fabs(double{x}));
      if (std::isfinite(bound)) agreed.allowed_error = bound;
      if constexpr (wring::SurveyingCompressor<Compressor>) {
        agreed.root_mean_square = root_mean_square(values_);
        if (agreed.root_mean_square > 0)
          agreed.survey = compressor_.survey(exec_, values_, agreed.root_mean_square);
      }
      compressor_.prepare(agreed);
    }
  }

  Kokkos::DefaultHostExecutionSpace exec_;
  Compressor compressor_;
  std::span<const float> values_;
  Buffer<float> decoded_;
  Buffer<std::byte> bytes_, scratch_;
  wring::Context context_;
  std::size_t size_ = 0;
};

template <class Compressor>
std::unique_ptr<Trial> trial_of(Compressor compressor, std::span<const float> values,
                                double bound = std::numeric_limits<double>::infinity()) {
  return std::make_unique<CompressorTrial<Compressor>>(std::move(compressor), values, bound);
}

/// A compressor under bounds of every size.
template <class Compressor> Family bounded(Compressor compressor) {
  return {scales, [compressor](std::span<const float> values, int setting) {
            return trial_of(compressor, values, scale_of(values, setting));
          }};
}

/// What `make` gives for each setting.
template <class Make> Family chosen(int settings, Make make) {
  return {settings,
          [make](std::span<const float> values, int setting) { return trial_of(make(setting), values); }};
}

}  // namespace wring_benchmark
