// SPDX-License-Identifier: BSD-3-Clause
// The timed loop of one rank of one library, the same for all libraries that the bench compares.
// Also compiled with other libraries' compilers: C++17, the standard library and POSIX only.
//
// A rank connects to the bench's socket, says who it is (Hello), and answers each Command with a
// Reply until the bench closes the connection.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace byway_peers {

enum class CommandKind : std::uint32_t {
  Prepare,  // buffers and plans for a cell; one call, whose values are compared
  Warm,     // one call
  Run,      // `repeats` calls from `start` on
};

struct Hello {
  std::int32_t rank = 0;
  std::int32_t pid = 0;
};

struct Command {
  CommandKind kind = CommandKind::Prepare;
  std::uint32_t repeats = 1;
  double start = 0;  // CLOCK_MONOTONIC
  // Prepare: names as the bench's options have them.
  char collective[24] = {};
  char dtype[24] = {};
  std::uint64_t count = 0;  // elements of the collective's unit
};

struct Reply {
  double end = 0;  // Run
  std::uint64_t wrong = 0, checked = 0;
  char error[200] = {};  // "": none
};

// Root is rank 0; sums. AllReduce, Broadcast and Reduce work in place.
struct Cell {
  std::string collective, dtype;
  std::size_t elementBytes = 0, count = 0;
  int rank = 0, size = 0;
};

class Library {
 public:
  virtual ~Library() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Throws for what the library does not have.
  virtual void prepare(const Cell& /*cell*/) {}
  // In place `in` is `out`; a buffer that the rank has no use for is null.
  virtual void call(const Cell& cell, void* in, void* out) = 0;
};

inline double now() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

inline void sleepUntil(double when) {
  timespec time{};
  time.tv_sec = static_cast<time_t>(std::floor(when));
  time.tv_nsec = static_cast<long>((when - std::floor(when)) * 1e9);
  while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr) == EINTR) {
  }
}

// A rank's contribution: small numbers, whose sums every type of up to 64 ranks' holds or wraps.
inline std::uint64_t valueOf(int rank, std::size_t index) {
  return (static_cast<std::uint64_t>(rank) * 7 + index * 3 + 1) % 13;
}

// A cell's buffers, their contents and what they must hold after the call.
class Buffers {
 public:
  explicit Buffers(const Cell& cell) : cell_(cell) {
    const std::string& what = cell.collective;
    const auto size = static_cast<std::size_t>(cell.size);
    const bool root = cell.rank == 0;
    inPlace_ = what == "allreduce" || what == "broadcast" || what == "reduce";
    const bool manyIn = what == "reduce-scatter" || what == "all-to-all" || what == "scatter";
    const bool manyOut = what == "all-gather" || what == "all-to-all" || what == "gather";
    const bool noIn = inPlace_ || (what == "scatter" && !root);
    const bool noOut = what == "gather" && !root;
    inCount_ = noIn ? 0 : cell.count * (manyIn ? size : 1);
    outCount_ = noOut ? 0 : cell.count * (manyOut ? size : 1);
    input_.resize(inCount_ * cell.elementBytes + kSpare);
    output_.resize(outCount_ * cell.elementBytes + kSpare);
  }

  void* input() { return inPlace_ ? output() : inCount_ > 0 ? aligned(input_) : nullptr; }
  void* output() { return outCount_ > 0 ? aligned(output_) : nullptr; }

  void fill() {
    write(input(), inPlace_ ? outCount_ : inCount_,
          [&](std::size_t i) { return valueOf(cell_.rank, i); });
    if (inPlace_) return;
    write(output(), outCount_, [](std::size_t) { return std::uint64_t{99}; });
  }
  // Sums of zeros stay what they are, however often.
  void clear() {
    std::memset(input_.data(), 0, input_.size());
    std::memset(output_.data(), 0, output_.size());
  }
  std::uint64_t checked() const { return holdsResult() ? outCount_ : 0; }
  std::uint64_t wrong() {
    if (!holdsResult()) return 0;
    std::uint64_t count = 0;
    std::vector<unsigned char> expected(cell_.elementBytes);
    const auto* found = static_cast<const unsigned char*>(output());
    for (std::size_t i = 0; i < outCount_; ++i) {
      store(expected.data(), expectedAt(i));
      const bool equal =
          std::memcmp(expected.data(), found + i * cell_.elementBytes, cell_.elementBytes) == 0;
      count += equal ? 0 : 1;
    }
    return count;
  }

 private:
  static constexpr std::size_t kSpare = 4096;  // for alignment to a page

  static void* aligned(std::vector<unsigned char>& memory) {
    const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
    return memory.data() + (kSpare - address % kSpare) % kSpare;
  }
  bool holdsResult() const { return cell_.collective != "reduce" || cell_.rank == 0; }

  std::uint64_t sumAt(std::size_t index) const {
    std::uint64_t sum = 0;
    for (int r = 0; r < cell_.size; ++r) sum += valueOf(r, index);
    return sum;
  }
  std::uint64_t expectedAt(std::size_t i) const {
    const std::string& what = cell_.collective;
    const std::size_t n = cell_.count, mine = static_cast<std::size_t>(cell_.rank) * n;
    if (what == "allreduce" || what == "reduce") return sumAt(i);
    if (what == "reduce-scatter") return sumAt(mine + i);
    if (what == "all-gather" || what == "gather") return valueOf(static_cast<int>(i / n), i % n);
    if (what == "all-to-all") return valueOf(static_cast<int>(i / n), mine + i % n);
    return valueOf(0, what == "scatter" ? mine + i : i);
  }

  void store(void* to, std::uint64_t value) const {
    if (cell_.dtype == "float32") {
      const auto number = static_cast<float>(value);
      std::memcpy(to, &number, sizeof number);
    } else if (cell_.dtype == "float64") {
      const auto number = static_cast<double>(value);
      std::memcpy(to, &number, sizeof number);
    } else {
      std::memcpy(to, &value, cell_.elementBytes);  // little-endian: wraps
    }
  }
  template <class Value>
  void write(void* to, std::size_t count, Value value) const {
    for (std::size_t i = 0; i < count; ++i) {
      store(static_cast<unsigned char*>(to) + i * cell_.elementBytes, value(i));
    }
  }

  Cell cell_;
  bool inPlace_ = false;
  std::size_t inCount_ = 0, outCount_ = 0;
  std::vector<unsigned char> input_, output_;
};

// Of the types that are compared: those that all libraries have.
inline std::size_t bytesOf(const std::string& dtype) {
  if (dtype == "float32" || dtype == "int32") return 4;
  if (dtype == "float64" || dtype == "int64") return 8;
  if (dtype == "uint8" || dtype == "int8") return 1;
  throw std::runtime_error("no values of " + dtype + " to compare");
}

class Connection {
 public:
  explicit Connection(const std::string& path) : fd_(::socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    if (::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      throw std::runtime_error("cannot reach the bench at " + path + ": " + std::strerror(errno));
    }
  }
  ~Connection() { ::close(fd_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  template <class T>
  bool receive(T& value) const {
    auto* to = reinterpret_cast<char*>(&value);
    for (std::size_t got = 0; got < sizeof value;) {
      const ssize_t n = ::read(fd_, to + got, sizeof value - got);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;
      got += static_cast<std::size_t>(n);
    }
    return true;
  }
  template <class T>
  void send(const T& value) const {
    const auto* from = reinterpret_cast<const char*>(&value);
    for (std::size_t sent = 0; sent < sizeof value;) {
      const ssize_t n = ::send(fd_, from + sent, sizeof value - sent, MSG_NOSIGNAL);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) throw std::runtime_error("the bench is gone");
      sent += static_cast<std::size_t>(n);
    }
  }

 private:
  int fd_;
};

class Worker {
 public:
  explicit Worker(Library& library) : library_(library) {}

  Reply obey(const Command& command) {
    Reply reply;
    try {
      switch (command.kind) {
        case CommandKind::Prepare:
          prepare(command, reply);
          break;
        case CommandKind::Warm:
          call();
          break;
        case CommandKind::Run:
          sleepUntil(command.start);
          for (std::uint32_t i = 0; i < command.repeats; ++i) call();
          reply.end = now();
          break;
      }
    } catch (const std::exception& error) {
      std::strncpy(reply.error, error.what(), sizeof reply.error - 1);
      if (reply.error[0] == '\0') std::strncpy(reply.error, "failed", sizeof reply.error - 1);
    }
    return reply;
  }

 private:
  void prepare(const Command& command, Reply& reply) {
    buffers_.reset();
    cell_ = {command.collective,     command.dtype,
             bytesOf(command.dtype), static_cast<std::size_t>(command.count),
             library_.rank(),        library_.size()};
    buffers_ = std::make_unique<Buffers>(cell_);
    library_.prepare(cell_);
    buffers_->fill();
    call();
    reply.wrong = buffers_->wrong();
    reply.checked = buffers_->checked();
    buffers_->clear();
  }
  void call() { library_.call(cell_, buffers_->input(), buffers_->output()); }

  Library& library_;
  Cell cell_;
  std::unique_ptr<Buffers> buffers_;
};

// Serves the bench until it closes the connection. BYWAY_PEER_SOCKET names its socket.
inline void serve(Library& library) {
  const char* path = std::getenv("BYWAY_PEER_SOCKET");
  if (path == nullptr) throw std::runtime_error("BYWAY_PEER_SOCKET is not set");
  ::setpgid(0, 0);  // so that the bench's watcher can end it with what it started
  const Connection bench(path);
  bench.send(Hello{library.rank(), static_cast<std::int32_t>(::getpid())});
  Worker worker(library);
  Command command;
  while (bench.receive(command)) bench.send(worker.obey(command));
}

}  // namespace byway_peers
