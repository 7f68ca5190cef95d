// SPDX-License-Identifier: BSD-3-Clause
#include "byway/transport/mapped/board.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <random>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "byway/base/cores.h"
#include "byway/base/error.h"
#include "byway/base/hash.h"

namespace byway {
namespace {

constexpr std::uint64_t kMagic = 0x42797761792e3033;  // "Byway.03"

constexpr std::uint32_t kElsewhere = 4;

// The words of a part that are of no call; each on a line of its own.
struct Head {
  std::uint64_t magic;
  std::uint64_t nonce;
  int cores;
  alignas(64) std::atomic<Board::Reach> verdict;
  alignas(64) std::atomic<std::uint64_t> done;
  std::atomic<std::uint64_t> ended;
  alignas(64) std::atomic<std::uint32_t> sleep;  // Board::Sleep, and kElsewhere
  alignas(64) std::atomic<int> seat;             // twice the core's number and 1; 1: waits there
};

struct Data {
  std::byte bytes[Board::kDataBytes];
  // So that slots do not compete for the same sets of a cache.
  std::byte unused[3 * 4096];
};

// A new file's bytes are zero, which is what every word starts from.
struct Layout {
  Head head;
  // Those of one call do not compete for the same sets of a cache either.
  alignas(4096) Publication publications[Board::kPublications][Board::kSlots + 1];
  alignas(4096) Data data[Board::kDataSlots];
  alignas(4096) std::byte ring[Board::kRingBytes];
};

std::uint64_t randomWord() {
  std::random_device source;
  return static_cast<std::uint64_t>(source()) << 32 | source();
}

struct ParsedAddress {
  unsigned long long pid = 0, descriptor = 0, nonce = 0, base = 0;
};

bool parse(const std::string& text, ParsedAddress& out) {
  return std::sscanf(text.c_str(), "board1:%llu:%llu:%llx:%llx", &out.pid, &out.descriptor,
                     &out.nonce, &out.base) == 4;
}

// Of a rank and slot, for dataStart(). All ranks' data passes through the same caches: some
// megabytes together have left those of a core, and stay in those that cores share.
std::uint64_t roomOfData(std::size_t ranks) {
  return Board::kDataBytes / std::max<std::size_t>(2, ranks);
}

bool copyFrom(std::uint64_t pid, std::uint64_t address, void* to, std::size_t bytes) {
  auto* out = static_cast<std::byte*>(to);
  while (bytes > 0) {
    const iovec mine{out, bytes};
    // NOLINTNEXTLINE(performance-no-int-to-ptr): an address of another process
    const iovec theirs{reinterpret_cast<void*>(address), bytes};
    const ssize_t got = process_vm_readv(static_cast<pid_t>(pid), &mine, 1, &theirs, 1, 0);
    if (got <= 0) return false;
    out += got;
    address += static_cast<std::uint64_t>(got);
    bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

}  // namespace

Stamp Publication::stamp() const {
  Stamp copy;
  for (std::size_t i = 0; i < copy.size(); ++i) {
    copy[i] = std::atomic_ref(const_cast<std::uint64_t&>(words[i])).load(std::memory_order_relaxed);
  }
  return copy;
}

void Publication::setStamp(const Stamp& stamp, std::uint64_t hash) {
  // What stays need not be fetched back from the ranks that read it.
  if (stampHash.load(std::memory_order_relaxed) == hash) return;
  stampHash.store(hash, std::memory_order_relaxed);
  for (std::size_t i = 0; i < stamp.size(); ++i) {
    std::atomic_ref(words[i]).store(stamp[i], std::memory_order_relaxed);
  }
}

std::uint64_t Publication::hashOf(const Stamp& stamp) {
  std::uint64_t hash = 0;
  for (const std::uint64_t word : stamp) hash = hashMix(hash, word);
  return hash;
}

// A mapping, shared by those boards of a process that have it.
struct Board::Part {
  Layout* layout = nullptr;
  std::uint64_t pid = 0;
  bool isOwnProcess = false;
  int descriptor = -1;  // the maker's, until all have mapped it
  ~Part() {
    closeDescriptor();
    if (layout != nullptr) munmap(layout, sizeof(Layout));
  }
  void closeDescriptor() {
    if (descriptor >= 0) close(descriptor);
    descriptor = -1;
  }
  bool map(int file) {
    void* at = mmap(nullptr, sizeof(Layout), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (at == MAP_FAILED) return false;
    layout = static_cast<Layout*>(at);
    return true;
  }

  // Parts that were made here, so that ranks of one process share one mapping.
  struct Registry {
    std::mutex mutex;
    std::map<std::uint64_t, std::weak_ptr<Part>> byNonce;
  };
  static Registry& registry() {
    static auto* const all = new Registry();
    return *all;
  }
};

std::shared_ptr<Board> Board::make(int rank, int ranks) {
  if (ranks > kMostRanks) return nullptr;
  auto part = std::make_shared<Part>();
  part->pid = static_cast<std::uint64_t>(getpid());
  part->isOwnProcess = true;
  part->descriptor = memfd_create("byway", MFD_CLOEXEC);
  if (part->descriptor < 0) return nullptr;
  if (ftruncate(part->descriptor, sizeof(Layout)) != 0 || !part->map(part->descriptor)) {
    return nullptr;
  }
  Head& head = part->layout->head;
  head.magic = kMagic;
  head.nonce = randomWord();
  head.cores = coresHere();
  auto& registry = Part::registry();
  const std::scoped_lock lock(registry.mutex);
  std::erase_if(registry.byNonce, [](const auto& one) { return one.second.expired(); });
  registry.byNonce.emplace(head.nonce, part);
  return std::shared_ptr<Board>(new Board(rank, ranks, std::move(part)));
}

Board::Board(int rank, int ranks, std::shared_ptr<Part> own)
    : rank_(rank), parts_(static_cast<std::size_t>(ranks)) {
  parts_[static_cast<std::size_t>(rank)] = std::move(own);
}

Board::~Board() = default;

std::string Board::address() const {
  const Part& own = part(rank_);
  return fmt::format("board1:{}:{}:{:x}:{:x}", own.pid, own.descriptor, own.layout->head.nonce,
                     reinterpret_cast<std::uintptr_t>(own.layout));
}

Board::Reach Board::mapPart(int rank, const std::string& address) {
  ParsedAddress at;
  if (!parse(address, at)) return Reach::None;
  auto& slot = parts_[static_cast<std::size_t>(rank)];
  if (at.pid == static_cast<std::uint64_t>(getpid())) {
    auto& registry = Part::registry();
    const std::scoped_lock lock(registry.mutex);
    const auto known = registry.byNonce.find(at.nonce);
    slot = known == registry.byNonce.end() ? nullptr : known->second.lock();
    return slot ? Reach::Memory : Reach::None;
  }
  // Another process of that number, on another host say, has another file there, or none.
  const std::string path = fmt::format("/proc/{}/fd/{}", at.pid, at.descriptor);
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (file < 0) return Reach::None;
  auto mapped = std::make_shared<Part>();
  mapped->pid = at.pid;
  mapped->descriptor = file;
  struct stat info {};
  const bool isOne = fstat(file, &info) == 0 && S_ISREG(info.st_mode) &&
                     info.st_size == static_cast<off_t>(sizeof(Layout)) && mapped->map(file);
  mapped->closeDescriptor();
  if (!isOne || mapped->layout->head.magic != kMagic || mapped->layout->head.nonce != at.nonce) {
    return Reach::None;
  }
  slot = std::move(mapped);
  std::uint64_t probe[2] = {0, 0};
  const bool reads = copyFrom(at.pid, at.base, probe, sizeof probe);
  return reads && probe[0] == kMagic && probe[1] == at.nonce ? Reach::Memory : Reach::Data;
}

Board::Reach Board::join(std::span<const std::string> addresses, Seconds timeout) {
  Reach mine = Reach::Memory;
  for (int r = 0; r < ranks(); ++r) {
    if (r != rank_) mine = std::min(mine, mapPart(r, addresses[static_cast<std::size_t>(r)]));
  }
  part(rank_).layout->head.verdict.store(mine, std::memory_order_release);
  // A rank whose part is not mapped here cannot be asked, but then the answer is None anyway, here
  // and, since this rank has said so, wherever this rank's part is mapped.
  const Clock& clock = SteadyClock::instance();
  const Seconds until = clock.now() + timeout;
  Reach all = mine;
  for (int r = 0; r < ranks(); ++r) {
    if (!parts_[static_cast<std::size_t>(r)]) continue;
    const auto& word = part(r).layout->head.verdict;
    Reach theirs = word.load(std::memory_order_acquire);
    for (int tries = 0; theirs == Reach::Unknown; ++tries) {
      if (clock.now() > until) {
        throw Error(ErrorCode::Timeout,
                    fmt::format("rank {} did not map the shared memory of its host within {} s", r,
                                timeout),
                    rank_);
      }
      constexpr int kYields = 100;
      if (tries < kYields)
        std::this_thread::yield();
      else
        std::this_thread::sleep_for(std::chrono::microseconds(200));
      theirs = word.load(std::memory_order_acquire);
    }
    all = std::min(all, theirs);
  }
  part(rank_).closeDescriptor();
  cores_ = part(rank_).layout->head.cores;
  for (const auto& one : parts_) {
    if (one) cores_ = std::min(cores_, one->layout->head.cores);
  }
  return reach_ = all;
}

Publication& Board::publication(int rank, std::uint64_t number, std::uint32_t index) {
  BYWAY_ASSERT(index < kPublications);
  return part(rank).layout->publications[index][number % kSlots];
}

std::span<std::byte> Board::data(int rank, std::uint64_t number) {
  return part(rank).layout->data[number % kDataSlots].bytes;
}

std::uint64_t Board::dataStart(std::uint64_t number, std::uint64_t bytes) {
  const std::uint64_t room = roomOfData(parts_.size());
  std::uint64_t& end = dataEnds_[number % kDataSlots];
  const std::uint64_t start = end + bytes <= room ? end : 0;
  end = start + bytes;
  return start;
}

std::span<std::byte> Board::ring(int rank) { return part(rank).layout->ring; }

void Board::reclaimRing() {
  const auto isFree = [](const Taken& one) {
    return (one.line->taken.load(std::memory_order_acquire) & one.readers) == one.readers;
  };
  while (!ringTaken_.empty() && isFree(ringTaken_.front())) ringTaken_.pop_front();
}

std::optional<std::uint64_t> Board::takeRing(std::uint64_t bytes, const Publication& line,
                                             std::uint64_t readers) {
  // Empty or not, it goes on where it was: see dataStart(), also for how far.
  if (ringTaken_.empty() && ringEnd_ >= kDataSlots * roomOfData(parts_.size())) ringEnd_ = 0;
  const std::uint64_t end = ringEnd_;
  const std::uint64_t first = ringTaken_.empty() ? kRingBytes : ringTaken_.front().offset;
  const bool wrapped = !ringTaken_.empty() && end <= first;
  std::uint64_t offset = end;
  if (end + bytes > (wrapped ? first : kRingBytes)) {
    if (wrapped || bytes > first) return std::nullopt;
    offset = 0;
  }
  constexpr std::uint64_t kLine = 64;
  ringTaken_.push_back({offset, &line, readers});
  ringEnd_ = offset + (bytes + kLine - 1) / kLine * kLine;
  return offset;
}

bool Board::isFree(std::uint64_t number, bool withData) {
  const std::uint64_t ahead = withData ? kDataSlots : kSlots;
  if (number <= slowest_ + ahead) return true;
  slowest_ = leastOf([](const Part& one) { return &one.layout->head.done; });
  return number <= slowest_ + ahead;
}

bool Board::setDone(std::uint64_t number) {
  auto& word = part(rank_).layout->head.done;
  if (word.load(std::memory_order_relaxed) == number) return false;
  word.store(number, std::memory_order_release);
  return true;
}

void Board::setEnded(std::uint64_t number) {
  auto& word = part(rank_).layout->head.ended;
  if (word.load(std::memory_order_relaxed) != number) {
    word.store(number, std::memory_order_release);
  }
}

bool Board::haveEnded(std::uint64_t number) {
  if (number <= allEnded_) return true;
  allEnded_ = leastOf([](const Part& one) { return &one.layout->head.ended; });
  return number <= allEnded_;
}

template <typename Word>
std::uint64_t Board::leastOf(const Word& word) const {
  std::uint64_t least = ~std::uint64_t{0};
  for (const auto& one : parts_) {
    least = std::min(least, word(*one)->load(std::memory_order_acquire));
  }
  return least;
}

void Board::setSleep(Sleep what, bool elsewhere) {
  auto& word = part(rank_).layout->head.sleep;
  if (what == Sleep::No && word.load(std::memory_order_relaxed) == 0) return;
  word.store(static_cast<std::uint32_t>(what) | (elsewhere ? kElsewhere : 0));
}

Board::Sleep Board::sleepOf(int rank) const {
  const auto word = part(rank).layout->head.sleep.load(std::memory_order_relaxed);
  return static_cast<Sleep>(word & ~kElsewhere);
}

bool Board::endSleepOf(int rank) {
  auto& word = part(rank).layout->head.sleep;
  const std::uint32_t before = word.exchange(0);
  if (before == 0) return false;
  if ((before & kElsewhere) != 0) return true;
  syscall(SYS_futex, &word, FUTEX_WAKE, 1, nullptr, nullptr, 0);
  return false;
}

void Board::sleep(Seconds longest) {
  auto& word = part(rank_).layout->head.sleep;
  const std::uint32_t what = word.load(std::memory_order_relaxed);
  if (what == 0 || longest <= 0) return;
  timespec time{};
  time.tv_sec = static_cast<time_t>(longest);
  time.tv_nsec = static_cast<long>((longest - static_cast<double>(time.tv_sec)) * 1e9);
  syscall(SYS_futex, &word, FUTEX_WAIT, what, &time, nullptr, 0);
}

void Board::setSeat(Seat seat) {
  auto& word = part(rank_).layout->head.seat;
  const int value = 2 * (seat.core + 1) + (seat.waits ? 1 : 0);
  if (word.load(std::memory_order_relaxed) != value) word.store(value, std::memory_order_relaxed);
}

Board::Seat Board::seatOf(int rank) const {
  const int value = part(rank).layout->head.seat.load(std::memory_order_relaxed);
  return {value / 2 - 1, value % 2 != 0};
}

bool Board::read(int from, std::uint64_t address, void* to, std::size_t bytes) const {
  const Part& there = part(from);
  if (!there.isOwnProcess) return copyFrom(there.pid, address, to, bytes);
  // NOLINTNEXTLINE(performance-no-int-to-ptr): as it came through shared memory
  std::memcpy(to, reinterpret_cast<const void*>(address), bytes);
  return true;
}

}  // namespace byway
