// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include <wring/bound.hpp>

#include "support/arguments.hpp"
#include "support/data.hpp"

namespace wring_benchmark {

/// What two ranks hold, and which bounds are asked of it.
struct DataSet {
  std::string name;
  std::vector<float> mine, theirs;
  std::vector<wring::Bound> bounds{wring::relative_to_rms(0.1), wring::relative_to_rms(0.01)};
};

inline DataSet made_data_set() {
  return {"made", made_values(std::size_t{1} << 20, 0), made_values(std::size_t{1} << 20, 1)};
}

/// KIND:FILE[,FILE] with the kind `gradient` (bounds of 0.1 and 0.01 of the root mean square) or `field` (0.001 and 0.0001 of the
/// range), or `made`. From one file alone, the second rank holds the same values from the middle on.
inline DataSet data_set_from(const std::string& text) {
  if (text == "made") return made_data_set();
  const auto colon = text.find(':');
  const std::string kind = text.substr(0, colon);
  const auto files = colon == text.npos ? std::vector<std::string>() : split(text.substr(colon + 1));
  if ((kind != "gradient" && kind != "field") || files.empty() || files.size() > 2)
    throw std::invalid_argument("'" + text + "' is no gradient:FILE[,FILE], field:FILE[,FILE] or made");
  DataSet set{std::filesystem::path(files[0]).stem().string(), read_values<float>(files[0]), {}};
  if (kind == "field") set.bounds = {wring::relative_to_range(1e-3), wring::relative_to_range(1e-4)};
  set.theirs = files.size() == 2 ? read_values<float>(files[1]) : set.mine;
  if (files.size() == 1)
    std::ranges::rotate(set.theirs, set.theirs.begin() + static_cast<std::ptrdiff_t>(set.mine.size() / 2));
  return set;
}

}  // namespace wring_benchmark
