// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <exception>
#include <new>
#include <string>

#include <wring/error.hpp>

namespace wring::inline v0::detail {

/// What went wrong, on which rank: recorded, sent along, thrown at the end.
struct Failure {
  Cause cause = Cause::none;
  int rank = -1;
  std::string text;
  explicit operator bool() const { return cause != Cause::none; }
};

/// The failure that an exception stands for, on this rank.
inline Failure failure_from_current_exception(int rank) {
  try {
    throw;
  } catch (const Error& error) {
    return {error.cause(), error.rank() >= 0 ? error.rank() : rank, error.what()};
  } catch (const std::bad_alloc&) {
    return {Cause::other, rank, "out of memory"};
  } catch (const std::exception& error) {
    return {Cause::codec, rank, error.what()};
  } catch (...) {
    return {Cause::other, rank, "an exception of unknown type"};
  }
}

}  // namespace wring::inline v0::detail
