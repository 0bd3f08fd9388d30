// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <mpi.h>

#include <Kokkos_Core.hpp>

#include <wring/detail/sentence.hpp>
#include <wring/detail/transport/target.hpp>
#include <wring/error.hpp>
#include <wring/transport/concept.hpp>
#include <wring/transport/session.hpp>

namespace wring::inline v0 {

/// The ranks of an MPI communicator, which is duplicated: the caller's own messages and those of the library never meet.
///
/// Collective construction: all ranks of the communicator construct their links together, and should destroy them together. MPI is
/// initialised before and finalised after. Move-only; operations refer to it, so it stays where it is while any exists.
///
/// Belongs to one thread at a time. Links of several threads at once need MPI_THREAD_MULTIPLE; any thread other than the one that
/// constructed the link needs MPI_THREAD_SERIALIZED at least, which is checked.
///
/// A message that does not fit is a TransportError, but by MPI's rules the program that sends it is wrong: Open MPI 5.0 reports it and
/// yet writes past the end of the receive when the message is above its eager limit. So receives must have room for the longest
/// message that may come.
///
/// Errors: InvalidArgument before anything is sent (null and intercommunicators, MPI not running); TransportError with MPI's own text.
class MpiTransport {
 public:
  using memory_space = Kokkos::HostSpace;

  class Request {
   public:
    Request() = default;
    Request(Request&& other) noexcept { swap(other); }
    Request& operator=(Request&& other) noexcept {
      Request(std::move(other)).swap(*this);
      return *this;
    }

   private:
    friend MpiTransport;
    Request(int peer, int channel, std::size_t size, bool sends)
        : size_(size), peer_(peer), channel_(channel), sends_(sends) {}
    void swap(Request& other) noexcept {
      std::swap(handle_, other.handle_), std::swap(size_, other.size_), std::swap(peer_, other.peer_);
      std::swap(channel_, other.channel_), std::swap(sends_, other.sends_);
    }

    MPI_Request handle_ = MPI_REQUEST_NULL;
    std::size_t size_ = 0;
    int peer_ = -1, channel_ = 0;
    bool sends_ = false;
  };

  explicit MpiTransport(MPI_Comm communicator)
      : MpiTransport() {  // what follows may throw: the destructor cleans up
    require_usable(communicator);
    // Without the caller's hints: some of them promise what this library does not keep (mpi_assert_exact_length).
    require(MPI_Comm_dup_with_info(communicator, MPI_INFO_NULL, &communicator_), "MPI_Comm_dup_with_info");
    require(MPI_Comm_set_errhandler(communicator_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    require(MPI_Comm_rank(communicator_, &rank_), "MPI_Comm_rank");
    require(MPI_Comm_size(communicator_, &size_), "MPI_Comm_size");
    require_channels();
  }

  MpiTransport(MpiTransport&& other) noexcept : MpiTransport() { swap(other); }
  MpiTransport& operator=(MpiTransport&& other) noexcept {
    MpiTransport(std::move(other)).swap(*this);
    return *this;
  }

  /// Gives operations that were abandoned and still drain a last chance. What MPI may still read stays allocated for ever.
  /// After MPI_Finalize nothing of MPI is touched.
  ~MpiTransport() {
    if (communicator_ == MPI_COMM_NULL) return;
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (finalized != 0) {
      std::fputs("wring: an MpiTransport outlives MPI_Finalize(); destroy it before\n", stderr);
    } else {
      for (int i = 0; i < last_chances && session_.in_flight() > 0; ++i) session_.progress();
    }
    const bool clean = finalized == 0 && session_.clean() && session_.in_flight() == 0 && !take_unclaimed();
    session_.orphan();
    if (session_.in_flight() > 0) static_cast<void>(new Session(std::move(session_)));
    // A communicator with messages that nobody takes must not be freed: MPICH aborts the program over them.
    if (clean) MPI_Comm_free(&communicator_);
  }

  int rank() const { return rank_; }
  int size() const { return size_; }
  Session& session() { return session_; }

  /// The duplicate. Use it to ask, not to communicate.
  MPI_Comm communicator() const { return communicator_; }

  /// Moves every operation in flight on this link.
  Progress progress() { return session_.progress(); }

  /// Starts a message of less than 2^31 bytes. A rank may send to itself.
  Request send(int peer, int channel, std::span<const std::byte> bytes) {
    require_open();
    detail::require_target("MPI transport", rank_, size_, peer, channel);
    Request request(peer, channel, bytes.size(), true);
    require(MPI_Isend(bytes.data(), count(bytes.size()), MPI_BYTE, peer, channel, communicator_,
                      &request.handle_),
            "MPI_Isend", request);
    return request;
  }

  /// Starts a receive of less than 2^31 bytes.
  Request receive(int peer, int channel, std::span<std::byte> bytes) {
    require_open();
    detail::require_target("MPI transport", rank_, size_, peer, channel);
    Request request(peer, channel, bytes.size(), false);
    require(MPI_Irecv(bytes.data(), count(bytes.size()), MPI_BYTE, peer, channel, communicator_,
                      &request.handle_),
            "MPI_Irecv", request);
    return request;
  }

  /// Starts a sum over all ranks of less than 2^31 words: MPI_Iallreduce, whose order is that of the other collectives on the duplicate,
  /// of which there are none.
  Request sum_words(std::span<std::uint64_t> words) {
    require_open();
    Request request(-1, 0, words.size_bytes(), true);
    require(MPI_Iallreduce(MPI_IN_PLACE, words.data(), count(words.size()), MPI_UINT64_T, MPI_SUM,
                           communicator_, &request.handle_),
            "MPI_Iallreduce", request);
    return request;
  }

  std::optional<std::size_t> test(Request& request) {
    require_thread();
    if (request.handle_ == MPI_REQUEST_NULL) {
      throw InvalidArgument("MPI transport: test of a request that is not in flight", rank_);
    }
    int completed = 0;
    MPI_Status status;
    const int code = MPI_Test(&request.handle_, &completed, &status);
    if (code == MPI_SUCCESS && completed == 0) return std::nullopt;
    const Request done = std::exchange(request, Request());
    require(code, "MPI_Test", done);
    if (done.sends_) return done.size_;
    int length = 0;
    require(MPI_Get_count(&status, MPI_BYTE, &length), "MPI_Get_count", done);
    if (length < 0 || static_cast<std::size_t>(length) > done.size_)
      require(MPI_ERR_TRUNCATE, "MPI_Test", done);
    return static_cast<std::size_t>(length);
  }

  /// A receive is always given up: taken back, or completed if its message is already here. A send or a sum that has not completed
  /// refuses, since MPI may still read its bytes: they stay where they are until `test` succeeds.
  bool cancel(Request& request) {
    if (request.handle_ == MPI_REQUEST_NULL) return true;
    require_thread();
    if (request.sends_) {
      int completed = 0;
      const int code = MPI_Test(&request.handle_, &completed, MPI_STATUS_IGNORE);
      if (code == MPI_SUCCESS && completed == 0) return false;
    } else {
      if (MPI_Cancel(&request.handle_) != MPI_SUCCESS) return false;
      static_cast<void>(
          MPI_Wait(&request.handle_, MPI_STATUS_IGNORE));  // local; an error of what nobody wants is nobody's
    }
    request = Request();
    return true;
  }

 private:
  static constexpr int last_chances = 1000;

  /// Takes what peers have sent for operations that this rank never started. Whether there was anything.
  bool take_unclaimed() {
    for (bool any = false;; any = true) {
      int found = 0, length = 0;
      MPI_Message message = MPI_MESSAGE_NULL;
      MPI_Status status;
      if (MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, communicator_, &found, &message, &status) != MPI_SUCCESS ||
          found == 0)
        return any;
      if (MPI_Get_count(&status, MPI_BYTE, &length) != MPI_SUCCESS || length < 0) return true;
      std::vector<std::byte> bytes(static_cast<std::size_t>(length) + 1);
      if (MPI_Mrecv(bytes.data(), length, MPI_BYTE, &message, MPI_STATUS_IGNORE) != MPI_SUCCESS) return true;
    }
  }

  MpiTransport() = default;

  void swap(MpiTransport& other) noexcept {
    std::swap(communicator_, other.communicator_), std::swap(rank_, other.rank_),
        std::swap(size_, other.size_);
    std::swap(level_, other.level_), std::swap(thread_, other.thread_), std::swap(session_, other.session_);
  }

  /// All that can be refused without communication.
  void require_usable(MPI_Comm communicator) {
    int initialized = 0, finalized = 0;
    require(MPI_Initialized(&initialized), "MPI_Initialized");
    require(MPI_Finalized(&finalized), "MPI_Finalized");
    if (initialized == 0)
      throw InvalidArgument("MPI transport: MPI is not initialised; call MPI_Init_thread first");
    if (finalized != 0) throw InvalidArgument("MPI transport: MPI has been finalised already");
    if (communicator == MPI_COMM_NULL)
      throw InvalidArgument("MPI transport: the communicator is MPI_COMM_NULL");
    int inter = 0, main = 0;
    require(MPI_Comm_test_inter(communicator, &inter), "MPI_Comm_test_inter");
    if (inter != 0) {
      throw InvalidArgument(
          "MPI transport: an intercommunicator has two groups of ranks, but collectives here have one; "
          "merge them first (MPI_Intercomm_merge)");
    }
    require(MPI_Query_thread(&level_), "MPI_Query_thread");
    require(MPI_Is_thread_main(&main), "MPI_Is_thread_main");
    if (main == 0 && level_ < MPI_THREAD_SERIALIZED) refuse_thread();
  }

  /// MPI guarantees 32767; nothing works without it.
  void require_channels() const {
    void* bound = nullptr;
    int known = 0;
    require(MPI_Comm_get_attr(communicator_, MPI_TAG_UB, &bound, &known), "MPI_Comm_get_attr");
    if (known != 0 && *static_cast<const int*>(bound) < 32767) {
      throw TransportError("MPI transport: MPI_TAG_UB is less than 32767", rank_);
    }
  }

  /// Whether a message may begin now, on this thread.
  void require_open() const {
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (finalized != 0) throw InvalidArgument("MPI transport: used after MPI_Finalize", rank_);
    require_thread();
  }

  void require_thread() const {
    if (level_ < MPI_THREAD_SERIALIZED && std::this_thread::get_id() != thread_) refuse_thread();
  }

  [[noreturn]] void refuse_thread() const {
    throw InvalidArgument(
        "MPI transport: used from a second thread, which needs MPI_THREAD_SERIALIZED (MPI_THREAD_MULTIPLE if "
        "several threads use links at the same time); MPI was initialised for less",
        rank_);
  }

  int count(std::size_t bytes) const {
    if (bytes > static_cast<std::size_t>(INT_MAX)) {
      throw InvalidArgument(detail::sentence("MPI transport: a message of ", bytes, " bytes, at most ",
                                             INT_MAX, " are possible"),
                            rank_);
    }
    return static_cast<int>(bytes);
  }

  void require(int code, const char* call) const {
    if (code != MPI_SUCCESS) throw TransportError(where() + call + ": " + text(code), rank_);
  }

  void require(int code, const char* call, const Request& request) const {
    if (code == MPI_SUCCESS) return;
    if (request.peer_ < 0)
      throw TransportError(
          detail::sentence(where(), call, " for a sum of ", request.size_, " bytes: ", text(code)), rank_);
    throw TransportError(detail::sentence(where(), call, " for ", request.size_, " bytes ",
                                          (request.sends_ ? "to" : "from"), " rank ", request.peer_,
                                          " on channel ", request.channel_, ": ", text(code)),
                         request.peer_);
  }

  std::string where() const { return detail::sentence("MPI transport: rank ", rank_, ": "); }

  static std::string text(int code) {
    char buffer[MPI_MAX_ERROR_STRING] = {};
    int length = 0;
    if (MPI_Error_string(code, buffer, &length) != MPI_SUCCESS) return detail::sentence("error ", code);
    std::replace(buffer, buffer + length, '\n', ' ');
    return std::string(buffer, static_cast<std::size_t>(length));
  }

  MPI_Comm communicator_ = MPI_COMM_NULL;
  int rank_ = -1, size_ = 0;
  int level_ = MPI_THREAD_SINGLE;
  std::thread::id thread_ = std::this_thread::get_id();
  Session session_;
};

static_assert(WordSummingTransport<MpiTransport>);

}  // namespace wring::inline v0
