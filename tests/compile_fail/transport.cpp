// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a user reads whose transport lacks something.
#include <cstddef>
#include <optional>
#include <span>
#include <utility>

#include <wring/detail/transport_diagnostics.hpp>
#include <wring/transport/in_process.hpp>
#include <wring/transport/mpi.hpp>

namespace {

struct Complete {
  using memory_space = Kokkos::HostSpace;
  struct Request {};
  int rank() const { return 0; }
  int size() const { return 1; }
  Request send(int, int, std::span<const std::byte>) { return {}; }
  Request receive(int, int, std::span<std::byte>) { return {}; }
  std::optional<std::size_t> test(Request&) { return std::nullopt; }
  bool cancel(Request&) { return true; }
  wring::Session& session() { return session_; }
  wring::Session session_;
};

/// Complete, but for what a case replaces.
struct Link : Complete {
// CASE_memory_space expects: wring: the transport has no member type memory_space
#if defined(CASE_memory_space)
 private:
  using memory_space = void;

 public:
#endif
// CASE_request expects: wring: the transport has no member type Request
#if defined(CASE_request)
 private:
  using Request = void;

 public:
#endif
// CASE_request_fixed expects: wring: the transport's Request must be movable
#if defined(CASE_request_fixed)
  struct Request {
    Request() = default;
    Request(const Request&) = delete;
  };
  Request send(int, int, std::span<const std::byte>);
  Request receive(int, int, std::span<std::byte>);
  std::optional<std::size_t> test(Request&);
  bool cancel(Request&);
#endif
// CASE_rank expects: wring: the transport has no const member rank
#if defined(CASE_rank)
  int rank() { return 0; }
#endif
// CASE_size expects: wring: the transport has no const member size
#if defined(CASE_size)
  std::size_t size() const { return 1; }
#endif
// CASE_send expects: wring: the transport has no member send
#if defined(CASE_send)
  Request send(int, std::span<const std::byte>) { return {}; }
#endif
// CASE_receive expects: wring: the transport has no member receive
#if defined(CASE_receive)
  void receive(int, int, std::span<std::byte>) {}
#endif
// CASE_test expects: wring: the transport has no member test
#if defined(CASE_test)
  bool test(Request&) { return true; }
#endif
// CASE_cancel expects: wring: the transport has no member cancel
#if defined(CASE_cancel)
  void cancel(Request&) {}
#endif
// CASE_session expects: wring: the transport has no member session
#if defined(CASE_session)
  wring::Session session() { return {}; }
#endif
// CASE_progress expects: wring: the transport has shares_thread
#if defined(CASE_progress)
  static constexpr bool shares_thread = true;
#endif
// CASE_spend expects: wring: the transport has one of the members now
#if defined(CASE_spend)
  double now() const { return 0; }
#endif
// CASE_now expects: wring: the transport has one of the members now
#if defined(CASE_now)
  void spend(wring::Work, std::size_t) {}
#endif
// CASE_sum_words expects: wring: the transport has a member sum_words, which must
#if defined(CASE_sum_words)
  void sum_words(std::span<std::uint64_t>) {}
#endif
};

}  // namespace

void use(wring::InProcess& world, wring::MpiTransport& link) {
  wring::detail::explain_transport<Link>();
  [[maybe_unused]] wring::InProcessTransport& zero = world.link(0);
  [[maybe_unused]] wring::MpiTransport moved(std::move(link));
// CASE_copied_rank expects: deleted function.*InProcessTransport|call to deleted constructor of 'wring::InProcessTransport'
#if defined(CASE_copied_rank)
  wring::InProcessTransport copy = world.link(0);
#endif
// CASE_copied_link expects: deleted function.*MpiTransport|call to implicitly-deleted copy constructor of 'wring::MpiTransport'
#if defined(CASE_copied_link)
  wring::MpiTransport copy(moved);
#endif
// CASE_copied_request expects: deleted function.*Request|call to implicitly-deleted copy constructor of .*Request
#if defined(CASE_copied_request)
  wring::MpiTransport::Request request;
  wring::MpiTransport::Request copy(request);
#endif
}
