// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <map>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/arguments.hpp"
#include "support/data.hpp"

namespace wring_benchmark {

/// A tensor within a flat gradient.
struct Tensor {
  std::string name, kind;
  std::size_t first, count;
};

/// A file with a line for each tensor, in order: name, kind, number of values. Lines that begin with # are comments.
inline std::vector<Tensor> read_tensors(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  std::vector<Tensor> tensors;
  std::size_t first = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    Tensor tensor{.name = {}, .kind = {}, .first = first, .count = 0};
    if (!(std::istringstream(line) >> tensor.name >> tensor.kind >> tensor.count))
      throw std::runtime_error(path + ": '" + line + "' is no name, kind and number");
    first += tensor.count;
    tensors.push_back(tensor);
  }
  return tensors;
}

/// Values that are encoded at once.
using Values = std::vector<float>;

/// The flat gradients of some workers, and the tensors they consist of.
struct GradientSet {
  std::string name;
  std::vector<Tensor> tensors;
  std::vector<Values> workers;

  /// What is encoded at once where tensors are encoded one by one, for each kind: small tensors of a kind are joined, as a group
  /// would join their messages.
  std::map<std::string, std::vector<Values>> by_kind(const Values& flat) const {
    constexpr std::size_t small = 4096;
    std::map<std::string, std::vector<Values>> kinds;
    std::map<std::string, Values> joined;
    for (const Tensor& tensor : tensors) {
      const auto values = std::span(flat).subspan(tensor.first, tensor.count);
      if (tensor.count < small)
        joined[tensor.kind].insert(joined[tensor.kind].end(), values.begin(), values.end());
      else
        kinds[tensor.kind].emplace_back(values.begin(), values.end());
    }
    for (const auto& [kind, values] : joined) kinds[kind].push_back(values);
    return kinds;
  }
};

/// NAME=TENSORS,FILE[,FILE ...]: the tensors, and the gradient of each worker.
inline GradientSet gradient_set_from(const std::string& text) {
  const auto equals = text.find('=');
  const auto files = equals == text.npos ? std::vector<std::string>() : split(text.substr(equals + 1));
  if (equals == 0 || files.size() < 2)
    throw std::invalid_argument("'" + text + "' is no NAME=TENSORS,FILE[,FILE ...]");
  GradientSet set{text.substr(0, equals), read_tensors(files[0]), {}};
  const std::size_t count = set.tensors.empty() ? 0 : set.tensors.back().first + set.tensors.back().count;
  for (std::size_t i = 1; i < files.size(); ++i) {
    set.workers.push_back(read_values<float>(files[i]));
    if (set.workers.back().size() != count)
      throw std::runtime_error(files[i] + " has " + std::to_string(set.workers.back().size()) + " values, " +
                               files[0] + " names " + std::to_string(count));
  }
  return set;
}

/// The first `count` values of each worker, and the tensors that begin there.
inline GradientSet shortened(GradientSet set, std::size_t count) {
  std::erase_if(set.tensors, [&](const Tensor& tensor) { return tensor.first >= count; });
  for (Tensor& tensor : set.tensors) tensor.count = std::min(tensor.count, count - tensor.first);
  for (Values& worker : set.workers) worker.resize(std::min(worker.size(), count));
  return set;
}

}  // namespace wring_benchmark
