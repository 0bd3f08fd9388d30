// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The main function of every test that runs on several MPI ranks. Rank 0 reports; what fails on another rank
// is shown at once. A test case that failed on one rank may have left the others waiting, so the job ends there.
#include <Kokkos_Core.hpp>
#include <catch2/catch_session.hpp>
#include <catch2/catch_test_case_info.hpp>
#include <catch2/reporters/catch_reporter_event_listener.hpp>
#include <catch2/reporters/catch_reporter_registrars.hpp>
#include <cstdio>
#include <mpi.h>
#include <string>

#include "support/mpi_world.hpp"

int thread_level();

namespace {

using wring_test::world_rank, wring_test::world_size;

class FailureListener : public Catch::EventListenerBase {
 public:
  using Catch::EventListenerBase::EventListenerBase;

  void assertionEnded(const Catch::AssertionStats& stats) override {
    const auto& result = stats.assertionResult;
    if (result.isOk() || world_rank() == 0) return;
    std::string text = result.getExpressionInMacro() + " with expansion " + result.getExpandedExpression();
    if (result.hasMessage()) text += " " + std::string(result.getMessage());
    for (const auto& message : stats.infoMessages) text += "\n  with " + message.message;
    std::fprintf(stderr, "rank %d: %s:%zu: FAILED: %s\n", world_rank(), result.getSourceInfo().file,
                 result.getSourceInfo().line, text.c_str());
  }

  void testCaseEnded(const Catch::TestCaseStats& stats) override {
    if (stats.totals.testCases.failed == 0 || world_size() == 1) return;
    std::fprintf(stderr, "rank %d: test case '%s' failed; the job ends here\n", world_rank(),
                 stats.testInfo->name.c_str());
    std::fflush(nullptr);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
};

CATCH_REGISTER_LISTENER(FailureListener)

int run(int count, char* arguments[]) {
  Kokkos::ScopeGuard kokkos(count, arguments);
  Catch::Session session;
  if (const int error = session.applyCommandLine(count, arguments)) return error;
  if (world_rank() != 0) session.configData().defaultOutputFilename = "/dev/null";
  const int mine = session.run();
  int worst = 0;
  MPI_Allreduce(&mine, &worst, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  return worst;
}

}  // namespace

/// A test that needs more defines its own.
[[gnu::weak]] int thread_level() { return MPI_THREAD_FUNNELED; }

int main(int count, char* arguments[]) {
  int provided = 0;
  MPI_Init_thread(&count, &arguments, thread_level(), &provided);
  const int result = run(count, arguments);
  MPI_Finalize();
  return result;
}
