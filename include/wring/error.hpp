// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>

namespace wring::inline v0 {

/// What went wrong, as one number that fits into a message between ranks.
enum class Cause : int {
  none = 0,
  argument = 1,      ///< a call that cannot be carried out (InvalidArgument)
  mismatch = 2,      ///< ranks disagree on what must be equal (MismatchError)
  unattainable = 3,  ///< a bound that the element type or the compressor cannot hold (BoundUnattainable)
  codec = 4,         ///< a compressor failed, or bytes are not what it wrote (CodecError)
  transport = 5,     ///< the transport failed or delivered damaged bytes (TransportError)
  timeout = 6,       ///< a rank was not there by the deadline (TimeoutError)
  abandoned = 7,     ///< a rank destroyed its operation early, or its link is retired (AbandonedError)
  other = 8,         ///< anything else that was thrown on a rank (Error)
  verification = 9,  ///< a checked operation gave a wrong result (VerificationError)
};

/// The base of all errors of this library. `rank()` is the rank where the cause lies, -1 where no rank is to blame.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& what, int rank = -1, Cause cause = Cause::other)
      : std::runtime_error(what), rank_(rank), cause_(cause) {}
  int rank() const noexcept { return rank_; }
  Cause cause() const noexcept { return cause_; }

 private:
  int rank_;
  Cause cause_;
};

/// An argument that cannot be accepted: thrown on every rank that takes part.
struct InvalidArgument : Error {
  explicit InvalidArgument(const std::string& what, int rank = -1) : Error(what, rank, Cause::argument) {}
};

/// Ranks disagree on something that must be equal; the message names the field and the ranks. Data are untouched.
struct MismatchError : Error {
  explicit MismatchError(const std::string& what, int rank = -1) : Error(what, rank, Cause::mismatch) {}
};

/// The bound asked for is smaller than the rounding that cannot be avoided. Thrown on all ranks, data are untouched.
struct BoundUnattainable : Error {
  explicit BoundUnattainable(const std::string& what, int rank = -1)
      : Error(what, rank, Cause::unattainable) {}
};

/// A compressor failed, or was given bytes that it did not write.
struct CodecError : Error {
  explicit CodecError(const std::string& what, int rank = -1) : Error(what, rank, Cause::codec) {}
};

/// The transport reported an error, or delivered a message that is damaged.
struct TransportError : Error {
  explicit TransportError(const std::string& what, int rank = -1) : Error(what, rank, Cause::transport) {}
};

/// A deadline passed; the message names whom this rank waited for. The operation is abandoned, its link retired.
struct TimeoutError : Error {
  explicit TimeoutError(const std::string& what, int rank = -1) : Error(what, rank, Cause::timeout) {}
};

/// A rank gave its operation up before the end, or the link was retired by an earlier failure.
struct AbandonedError : Error {
  explicit AbandonedError(const std::string& what, int rank = -1) : Error(what, rank, Cause::abandoned) {}
};

/// A checked operation (`Checked`) gave a wrong result: the first element that violates, the same on every rank. `rank()` is the
/// lowest rank that holds it.
struct VerificationError : Error {
  /// Figures as doubles; `bound` is empty where the operation has none.
  struct Element {
    std::size_t tensor = 0,
                index = 0;  ///< which of its group, and which element of the whole tensor in row-major order
    double value = 0, exact = 0;
    std::optional<double> bound{};
  };
  VerificationError(const std::string& what, int rank, const Element& first)
      : Error(what, rank, Cause::verification), element(first) {}
  Element element;
};

/// Throws the class that belongs to a cause: how an error that happened on another rank is raised on this one.
[[noreturn]] inline void throw_error(Cause cause, const std::string& what, int rank) {
  switch (cause) {
  case Cause::argument: throw InvalidArgument(what, rank);
  case Cause::mismatch: throw MismatchError(what, rank);
  case Cause::unattainable: throw BoundUnattainable(what, rank);
  case Cause::codec: throw CodecError(what, rank);
  case Cause::transport: throw TransportError(what, rank);
  case Cause::timeout: throw TimeoutError(what, rank);
  case Cause::abandoned: throw AbandonedError(what, rank);
  default: throw Error(what, rank, cause);
  }
}

}  // namespace wring::inline v0
