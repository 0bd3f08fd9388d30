// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include <wring/detail/sentence.hpp>
#include <wring/detail/transport/local_link.hpp>
#include <wring/detail/transport/queue.hpp>
#include <wring/detail/transport/run_ranks.hpp>
#include <wring/detail/transport/sums.hpp>
#include <wring/error.hpp>
#include <wring/transport/concept.hpp>

namespace wring::inline v0 {

/// How messages travel in an InProcess world. The defaults are strict: a send completes only when its receive takes the message,
/// and everything happens at once and in order. The same options give the same course of events, always.
struct InProcessOptions {
  /// Messages of up to this many bytes are copied when sent, so that their sends complete at once.
  std::size_t eager_limit = 0;
  /// A matched message is delivered after this many unsuccessful tests of its send or receive (with a seed: 0 to this many).
  int delay = 0;
  /// Other than 0: the ranks are stepped in random order, a new one each time.
  std::uint64_t seed = 0;
};

namespace detail {

/// A message, or a receive for one, from `post` until it has been delivered and its request has been tested.
struct Posting {
  Posting* next = nullptr;     ///< in a queue or in the list of free ones
  Posting* partner = nullptr;  ///< a send and its receive know each other from match to delivery
  int from = 0, to = 0, channel = 0;
  const std::byte* source = nullptr;
  std::byte* target = nullptr;
  std::size_t size = 0;    ///< of the bytes given
  std::size_t length = 0;  ///< what `test` reports
  int polls = 0;           ///< tests left until delivery
  bool sends = false, buffered = false, delivered = false, truncated = false;
  bool sums = false, summed = false;  ///< of a sum; all ranks have come to it
  Summand summand{};
  bool requested = false;       ///< a request refers to it
  std::vector<std::byte> kept;  ///< the message, if its sender may reuse the bytes before it is delivered
};

/// Moves the messages of all ranks. Allocates only while the number of messages in flight grows.
class PostOffice {
 public:
  using Entry = Posting;

  PostOffice(int ranks, const InProcessOptions& options)
      : options_(options), random_(options.seed), sends_(static_cast<std::size_t>(ranks)),
        receives_(static_cast<std::size_t>(ranks)), sums_(ranks) {}

  Posting* send(int from, int to, int channel, std::span<const std::byte> bytes) {
    Posting* posting = fresh(from, to, channel, bytes.size());
    posting->sends = true;
    posting->source = bytes.data();
    posting->length = bytes.size();
    if (bytes.size() <= options_.eager_limit) keep(*posting);
    meet(posting, sends_[index(to)], receives_[index(to)]);
    return posting;
  }

  Posting* receive(int from, int to, int channel, std::span<std::byte> bytes) {
    Posting* posting = fresh(from, to, channel, bytes.size());
    posting->sends = false;
    posting->target = bytes.data();
    posting->length = 0;
    meet(posting, receives_[index(to)], sends_[index(to)]);
    return posting;
  }

  Posting* sum(int rank, std::span<std::uint64_t> words) {
    Posting* posting = fresh(rank, rank, 0, words.size_bytes());
    posting->sums = true, posting->length = posting->size;
    posting->summand = {words, {}};
    sums_.join(index(rank), posting, [this](std::span<Posting* const> all, bool fit) {
      for (Posting* p : all) {
        ++events_;
        p->summed = true, p->truncated = !fit, p->polls = polls();
        if (!p->requested) recycle(p);
      }
    });
    return posting;
  }

  /// Whether the bytes of this posting are the caller's again.
  bool completed(Posting& posting) {
    if (posting.sums) return posting.delivered = posting.delivered || (posting.summed && come(posting));
    if (posting.partner != nullptr) poll(&posting);
    return posting.delivered || posting.buffered;
  }
  static bool truncated(const Posting& posting) { return posting.truncated; }

  /// Its request is gone, or will be.
  void dismiss(Posting* posting) {
    posting->requested = false;
    if (posting->delivered) recycle(posting);
  }

  /// A receive is taken back (delivered at once if it has its message), a message is copied and still arrives.
  void withdraw(Posting* posting) {
    ++events_;
    if (posting->sums) return withdraw_sum(posting);
    if (posting->partner != nullptr) deliver(*posting->partner, *posting);
    if (!posting->delivered && posting->sends && !posting->buffered) keep(*posting);
    if (!posting->delivered && !posting->sends) {
      receives_[index(posting->to)].take([posting](const Posting& other) { return &other == posting; });
      posting->delivered = true;
    }
    dismiss(posting);
  }

  /// Puts the ranks in the order in which they are stepped next.
  void shuffle(std::vector<int>& ranks) {
    if (options_.seed == 0) return;
    for (std::size_t i = ranks.size(); i > 1; --i) std::swap(ranks[i - 1], ranks[draw(i)]);
  }

  std::uint64_t events() const { return events_; }
  std::uint64_t messages() const { return messages_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  static std::size_t index(int rank) { return static_cast<std::size_t>(rank); }

  Posting* fresh(int from, int to, int channel, std::size_t size) {
    ++events_;
    if (free_ == nullptr) free_ = &postings_.emplace_back();
    Posting* posting = std::exchange(free_, free_->next);
    posting->from = from, posting->to = to, posting->channel = channel, posting->size = size;
    posting->buffered = posting->delivered = posting->truncated = posting->sums = posting->summed = false;
    posting->requested = true;
    return posting;
  }

  void recycle(Posting* posting) {
    if (posting->kept.capacity() > options_.eager_limit) std::vector<std::byte>().swap(posting->kept);
    posting->next = std::exchange(free_, posting);
  }

  /// The words are the caller's again; what they were still counts.
  void withdraw_sum(Posting* posting) {
    posting->delivered = posting->summed;
    if (!posting->summed)
      posting->summand.kept.assign(posting->summand.words.begin(), posting->summand.words.end());
    dismiss(posting);
  }

  /// Whether a sum that has been added up is reported now.
  bool come(Posting& posting) {
    ++events_;
    return posting.polls-- == 0;
  }

  /// Unsuccessful tests before something that has happened is reported.
  int polls() {
    const int most = options_.delay;
    return options_.seed == 0 ? most : static_cast<int>(draw(static_cast<std::size_t>(most) + 1));
  }

  static void keep(Posting& posting) {
    posting.kept.assign(posting.source, posting.source + posting.size);
    posting.source = posting.kept.data();
    posting.buffered = true;
  }

  void meet(Posting* posting, PostingQueue<Posting>& own, PostingQueue<Posting>& others) {
    Posting* other = others.take_partner(*posting);
    if (other == nullptr) return own.append(posting);
    posting->polls = polls();
    posting->partner = other, other->partner = posting;
    other->polls = posting->polls;
    if (posting->polls == 0) deliver(*posting, *other);
  }

  void poll(Posting* posting) {
    ++events_;
    Posting* partner = posting->partner;
    if (posting->polls == 0) return deliver(*posting, *partner);
    partner->polls = --posting->polls;
  }

  void deliver(Posting& one, Posting& other) {
    Posting& message = one.sends ? one : other;
    Posting& receipt = one.sends ? other : one;
    ++events_, ++messages_, bytes_ += message.size;
    receipt.length = std::min(message.size, receipt.size);
    receipt.truncated = message.size > receipt.size;
    if (receipt.length > 0) std::memcpy(receipt.target, message.source, receipt.length);
    for (Posting* posting : {&message, &receipt}) {
      posting->partner = nullptr;
      posting->delivered = true;
      if (!posting->requested) recycle(posting);
    }
  }

  /// A random number below `end` (splitmix64).
  std::size_t draw(std::size_t end) {
    std::uint64_t z = random_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return static_cast<std::size_t>((z ^ (z >> 31)) % end);
  }

  InProcessOptions options_;
  std::uint64_t random_;
  std::vector<PostingQueue<Posting>> sends_, receives_;  // by the rank that receives
  Sums<Posting> sums_;
  std::deque<Posting> postings_;
  Posting* free_ = nullptr;
  std::uint64_t events_ = 0, messages_ = 0, bytes_ = 0;
};

}  // namespace detail

class InProcess;

/// The link of one rank of an InProcess world. It belongs to the world: `InProcessTransport& link = world.link(rank)`.
class InProcessTransport : public detail::LocalLink<InProcess, detail::PostOffice> {
 public:
  InProcess& world() { return *world_; }

 private:
  friend InProcess;
  InProcessTransport(InProcess& world, detail::PostOffice& office, int rank, int size)
      : LocalLink(world, office, rank, size) {}
};

/// Any number of ranks in one process and one thread, stepped in turn: no `mpirun` needed. For tests, debugging and teaching.
///
///     wring::InProcess world(4);
///     for (int r = 0; r < 4; ++r) requests.push_back(operations[r].start(...));   // each with world.link(r)
///     while (!all_complete(requests)) world.progress();
///
/// Blocking calls cannot work here, since the other ranks would never start theirs. Lives longer than what uses its links.
class InProcess {
 public:
  explicit InProcess(int ranks, const InProcessOptions& options = {})
      : office_(checked(ranks, options), options), order_(static_cast<std::size_t>(ranks)) {
    std::iota(order_.begin(), order_.end(), 0);
    for (int r = 0; r < ranks; ++r) links_.emplace_back(new InProcessTransport(*this, office_, r, ranks));
  }
  InProcess(const InProcess&) = delete;
  InProcess& operator=(const InProcess&) = delete;

  static constexpr const char* transport = "in-process transport";

  int size() const { return static_cast<int>(links_.size()); }
  InProcessTransport& link(int rank) { return *links_.at(static_cast<std::size_t>(rank)); }

  /// Moves the operations of all ranks. `blocked`: no rank can move until somebody starts something.
  Progress progress() {
    const std::uint64_t before = office_.events();
    bool moved = false;
    office_.shuffle(order_);
    for (std::size_t i = 0; i < order_.size(); ++i) {  // by index: progress may be called from within
      moved |= link(order_[i]).session().progress() != Progress::blocked;
    }
    return moved || office_.events() != before ? Progress::moved : Progress::blocked;
  }

  /// Messages delivered so far, and their bytes.
  std::uint64_t messages() const { return office_.messages(); }
  std::uint64_t bytes() const { return office_.bytes(); }

 private:
  static int checked(int ranks, const InProcessOptions& options) {
    if (ranks < 1)
      throw InvalidArgument(detail::sentence("in-process world: ", ranks, " ranks, at least 1 needed"));
    if (options.delay < 0) throw InvalidArgument("in-process world: the delay is negative");
    return ranks;
  }

  detail::PostOffice office_;  // before the links, whose operations may use it when they are destroyed
  std::vector<int> order_;
  std::vector<std::unique_ptr<InProcessTransport>> links_;
};

/// Runs a program of `ranks` ranks in this thread. `start(link)` is called for each rank and returns something whose `test()` says
/// whether it has finished: a request, or a pointer to an object that owns all it needs. Returns when all have finished.
/// What `start` or `test` throw is passed on. Throws Error if no rank can move any more, saying what each of them waits for.
template <class Start>
void in_process(int ranks, Start&& start, const InProcessOptions& options = {}) {
  InProcess world(ranks, options);
  detail::run_ranks(world, start);
}

static_assert(SharedThreadTransport<InProcessTransport> && WordSummingTransport<InProcessTransport>);

}  // namespace wring::inline v0
