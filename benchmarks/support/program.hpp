// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>

#include "support/arguments.hpp"

/// How every program ends: 0 done, 1 failed or a wrong result, 2 not understood, or a file that cannot be read or written. It says
/// what is wrong in one sentence, and before anything is measured where that is possible.
namespace wring_benchmark {

/// The sentence, after all that has been printed, and, for what was not understood, where to read on.
inline void complain(const std::string& program, const std::string& sentence, bool understood = true) {
  std::fflush(stdout);
  std::fprintf(stderr, "%s: %s\n", program.c_str(), sentence.c_str());
  if (!understood) std::fprintf(stderr, "%s --help lists the options\n", program.c_str());
}

/// A program without MPI. `prepare` makes of the arguments what `run` needs, which gives the exit status.
template <class Prepare, class Run>
int run_program(const std::string& name, const char* usage, int count, const char* const* texts,
                Prepare prepare, Run run) {
  bool ready = false;
  try {
    Arguments arguments(count, texts);
    if (arguments.help()) return std::fputs(usage, stdout), 0;
    auto prepared = prepare(arguments);
    ready = true;
    return run(prepared);
  } catch (const std::invalid_argument& error) {
    complain(name, error.what(), ready);
  } catch (const std::exception& error) {
    complain(name, error.what());
  }
  return ready ? 1 : 2;
}

}  // namespace wring_benchmark
