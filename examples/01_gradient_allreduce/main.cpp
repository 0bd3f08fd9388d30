// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Data-parallel training: every rank has computed a gradient from its own batch, and all need the mean of them. One table
// compares MPI_Allreduce with wring, for each algorithm and two bounds on the error of the result.
//
//   mpirun -n 4 gradient_allreduce [FOLDER of step0100_w0.f32 ...]
//
// The gradients are real ones (examples/data). Ends with 1 if an error exceeds its bound or results differ in a bit.
#include "support.hpp"

#include <wring/wring.hpp>

using Vector = Kokkos::View<float*, Kokkos::HostSpace>;
using Exec = Kokkos::DefaultHostExecutionSpace;

class Comparison {
 public:
  explicit Comparison(const std::string& folder)
      : link_(MPI_COMM_WORLD), own_(load(folder + "/step0100_w" + std::to_string(link_.rank() % 4) + ".f32")),
        exact_(own_), in_(own_.data(), own_.size()), out_("result", own_.size()) {}

  bool run() {
    if (link_.rank() == 0)
      std::printf("mean of %d gradients of %zu float32, root mean square %.3e\n\n", link_.size(), own_.size(),
                  exact_.root_mean_square);
    if (link_.rank() == 0) Row::print_heading();
    plain();
    for (const double fraction : {0.1, 0.001}) {
      first_.clear();
      if (link_.rank() == 0) std::printf("wring, relative_to_rms(%g)\n", fraction);
      compressed(fraction, wring::Ring{});
      compressed(fraction, wring::Direct{});
      compressed(fraction, wring::RecursiveDoubling{});
      compressed(fraction, wring::HalvingDoubling{});
      compressed(fraction,
                 wring::Hierarchical(2));  // nodes of two ranks; what stays within one is not packed
    }
    if (link_.rank() == 0)
      std::printf("\n%s\n", good_ ? "All results are within their bounds and equal." : "FAILED");
    return good_;
  }

 private:
  void plain() {
    Row row{.name = "MPI_Allreduce (least bytes possible)"};
    row.milliseconds = milliseconds([&] {
      MPI_Allreduce(in_.data(), out_.data(), static_cast<int>(in_.size()), MPI_FLOAT, MPI_SUM,
                    MPI_COMM_WORLD);
      for (std::size_t i = 0; i < out_.size(); ++i) out_(i) /= static_cast<float>(link_.size());
    });
    row.bytes = 2.0 * (link_.size() - 1) * static_cast<double>(4 * in_.size());
    finish(row);
  }

  template <class Algorithm> void compressed(double fraction, Algorithm algorithm) {
    wring::Allreduce mean(wring::Grid<float>{}, link_, algorithm, {.operation = wring::mean});
    wring::Report report;
    Row row;
    row.milliseconds =
        milliseconds([&] { report = mean(Exec{}, in_, out_, wring::relative_to_rms(fraction)); });
    row.name = "  " + algorithm.name();
    row.bytes = over_ranks(static_cast<double>(report.bytes_sent), MPI_DOUBLE, MPI_SUM);
    if (row.bytes > 0)
      row.ratio = over_ranks(static_cast<double>(report.bytes_raw), MPI_DOUBLE, MPI_SUM) / row.bytes;
    row.bound = report.bound.value_or(0);
    if (first_.empty()) first_.assign(out_.data(), out_.data() + out_.size());
    row.all_algorithms_agree = on_all_ranks(std::memcmp(first_.data(), out_.data(), 4 * out_.size()) == 0);
    finish(row);
    const bool as_asked = row.bound > 0 && row.bound <= fraction * exact_.root_mean_square;
    good_ = good_ && as_asked && row.error <= row.bound && row.all_ranks_agree && row.all_algorithms_agree;
  }

  void finish(Row& row) {
    row.error = exact_.error_of(out_.data());
    row.all_ranks_agree = same_on_all_ranks(out_.data(), out_.size());
    if (link_.rank() == 0) row.print();
  }

  wring::MpiTransport link_;
  std::vector<float> own_, first_;
  Reference exact_;
  Vector in_, out_;
  bool good_ = true;
};

int main(int count, char** arguments) {
  MPI_Init(&count, &arguments);
  bool good = false;
  {
    const Kokkos::ScopeGuard kokkos(count, arguments);
    try {
      good = Comparison(count > 1 ? arguments[1] : EXAMPLE_DATA).run();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
    }
  }
  MPI_Finalize();
  return good ? 0 : 1;
}
