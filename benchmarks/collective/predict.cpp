// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// What the cost model says of an allreduce on a machine that may not be there, up to very many ranks.
//
//     predict [key=value ...]
//
// bytes=64m        of the vector       ratio=4.5     compression of a rank's own values
// sum_ratio=4     of sums             ranks=4,16,64,1024,100000
// segment=128k    bytes               depth=4
// and each member of wring::Machine: latency, overhead, bandwidth, measure, encode, combine, decode, launch, add, copy
// (seconds, or bytes per second). One row for each number of ranks and algorithm, compressed and as they are.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <map>
#include <string>
#include <vector>

#include <wring/algorithm.hpp>

#include "support/arguments.hpp"

namespace {

using namespace wring_benchmark;

struct Question {
  wring::Machine machine;
  wring::Load load{
      .bytes = std::size_t(1) << 26, .ratio = 4.5, .sum_ratio = 4, .combines = true, .measured = true};
  std::vector<int> ranks{4, 16, 64, 1024, 100000};

  /// False for what it does not know.
  bool take(const std::string& key, const std::string& value) {
    const std::map<std::string, double*> numbers{
        {"latency", &machine.latency}, {"overhead", &machine.overhead}, {"bandwidth", &machine.bandwidth},
        {"measure", &machine.measure}, {"encode", &machine.encode},     {"combine", &machine.combine},
        {"decode", &machine.decode},   {"launch", &machine.launch},     {"add", &machine.add},
        {"copy", &machine.copy},       {"ratio", &load.ratio},          {"sum_ratio", &load.sum_ratio}};
    if (const auto number = numbers.find(key); number != numbers.end())
      *number->second = number_from(value);
    else if (key == "bytes")
      load.bytes = size_from(value);
    else if (key == "segment")
      load.segment_bytes = size_from(value);
    else if (key == "depth")
      load.depth = count_from(value);
    else if (key == "ranks")
      take_ranks(value);
    else
      return false;
    return true;
  }

  void take_ranks(const std::string& list) {
    ranks.clear();
    for (const std::string& number : split(list)) ranks.push_back(count_from(number));
  }
};

template <class Algorithm> void print_row(const Algorithm& algorithm, int ranks, const Question& question) {
  wring::Load plain = question.load;
  plain.coded = plain.measured = false;
  const auto begin = std::chrono::steady_clock::now();
  const wring::Prediction coded = wring::predict(algorithm, {}, ranks, question.load, question.machine);
  const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const wring::Prediction as_they_are = wring::predict(algorithm, {}, ranks, plain, question.machine);
  std::printf("%8d  %-20s %12.3f %8.2f %8.2f %16.3f %10.2f %14.6f\n", ranks, algorithm.name().c_str(),
              1e3 * coded.seconds, coded.wire_share(), coded.busy_seconds / coded.seconds,
              1e3 * as_they_are.seconds, as_they_are.seconds / coded.seconds, took);
}

}  // namespace

int main(int count, char** values) {
  try {
    Question question;
    for (int i = 1; i < count; ++i) {
      const std::string text = values[i];
      const std::size_t equals = std::min(text.find('='), text.size());
      if (!question.take(text.substr(0, equals), text.substr(std::min(equals + 1, text.size())))) {
        std::fprintf(stderr, "predict: what is '%s'? See the head of predict.cpp.\n", values[i]);
        return 1;
      }
    }
    std::printf("allreduce of %zu bytes, compressed %.2f-fold, links of %.4g MB/s\n\n", question.load.bytes,
                question.load.ratio, question.machine.bandwidth / 1e6);
    std::printf("%8s  %-20s %12s %8s %8s %16s %10s %14s\n", "ranks", "algorithm", "ms", "wire", "busy",
                "uncompressed ms", "quotient", "predicted in s");
    for (const int ranks : question.ranks) {
      print_row(wring::Ring{}, ranks, question);
      print_row(wring::Direct{}, ranks, question);
      print_row(wring::HalvingDoubling{}, ranks, question);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "predict: %s\n", error.what());
    return 1;
  }
}
