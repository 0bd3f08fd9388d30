// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <ios>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace wring_benchmark {

/// A file for results. It is opened when the program begins, so that a path that cannot be written is told before anything is
/// measured; what the file held is replaced when the results are there, and not before.
class ResultFile {
 public:
  /// Throws std::runtime_error if the file cannot be written. An empty path is no file: nothing is written.
  explicit ResultFile(std::string path = "") : path_(std::move(path)) {
    if (path_.empty()) return;
    std::error_code ignored;
    fresh_ = !std::filesystem::exists(path_, ignored);
    errno = 0;
    if (!std::ofstream(path_, std::ios::binary | std::ios::app)) fail();
  }
  ResultFile(ResultFile&& other) noexcept : path_(std::move(other.path_)), fresh_(other.fresh_) {
    other.path_.clear(), other.fresh_ = false;
  }
  ResultFile& operator=(ResultFile&&) = delete;
  /// Without results no empty file is left where there was none.
  ~ResultFile() {
    std::error_code ignored;
    if (fresh_) std::filesystem::remove(path_, ignored);
  }

  bool wanted() const { return !path_.empty(); }

  /// Throws std::runtime_error where not all of it could be written.
  void write(std::string_view content) {
    if (!wanted()) return;
    fresh_ = false;
    errno = 0;
    std::ofstream file(path_, std::ios::binary);
    if (!file.write(content.data(), static_cast<std::streamsize>(content.size())).flush()) fail();
  }

 private:
  [[noreturn]] void fail() const {
    const int error = errno;
    throw std::runtime_error("cannot write " + path_ +
                             (error ? ": " + std::generic_category().message(error) : ""));
  }

  std::string path_;
  bool fresh_ = false;  ///< there was no such file, and nothing has been written yet
};

}  // namespace wring_benchmark
