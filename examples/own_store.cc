// SPDX-License-Identifier: BSD-3-Clause
// Ranks that meet through a store of the caller's: here one file that all of them append to; it
// could be any service that keeps keys. Even and odd ranks form a communicator each.
//   byway run -n 4 own_store
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "byway/comm/communicator.h"

namespace {

// The last record of a key counts; an empty one removes it. A record is "KEY SIZE VALUE\n";
// addresses hold any bytes.
class OneFileStore final : public byway::Store {
 public:
  explicit OneFileStore(std::string path) : path_(std::move(path)) {}

  void set(const std::string& key, const std::string& value) override {
    const Lock lock(path_);
    append(key, value);
  }
  std::string get(const std::string& key, byway::Seconds timeout) override {
    const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(timeout);
    for (;;) {
      if (auto value = find(key)) return *value;
      if (std::chrono::steady_clock::now() >= until) {
        throw byway::Error(byway::ErrorCode::Timeout, "nobody left \"" + key + "\" in " + path_);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }
  long add(const std::string& key, long amount) override {
    const Lock lock(path_);
    const long sum = std::stol(last(key).value_or("0")) + amount;
    append(key, std::to_string(sum));
    return sum;
  }
  void remove(const std::string& key) noexcept override {
    try {
      const Lock lock(path_);
      append(key, "");
    } catch (const std::exception&) {
      // It stays: no harm, but the file grows.
    }
  }

 private:
  // One process and thread at a time.
  class Lock {
   public:
    explicit Lock(const std::string& path)
        : fd_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
      if (fd_ < 0 || ::flock(fd_, LOCK_EX) != 0) {
        throw byway::Error(byway::ErrorCode::Resource, "cannot lock " + path);
      }
    }
    ~Lock() { ::close(fd_); }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

   private:
    int fd_;
  };

  std::optional<std::string> find(const std::string& key) {
    const Lock lock(path_);
    return last(key);
  }
  std::optional<std::string> last(const std::string& key) const {
    std::ifstream in(path_, std::ios::binary);
    std::optional<std::string> found;
    std::string name;
    std::size_t bytes = 0;
    while (in >> name >> bytes) {
      std::string value(bytes, '\0');
      in.get();
      in.read(value.data(), static_cast<std::streamsize>(bytes));
      if (name != key) continue;
      found.reset();
      if (bytes > 0) found = std::move(value);
    }
    return found;
  }
  void append(const std::string& key, const std::string& value) const {
    std::ofstream out(path_, std::ios::binary | std::ios::app);
    out << key << ' ' << value.size() << ' ' << value << '\n';
    if (!out.flush()) throw byway::Error(byway::ErrorCode::Resource, "cannot write " + path_);
  }

  std::string path_;
};

}  // namespace

int main() try {
  const byway::LaunchInfo launch = byway::launchInfo();
  OneFileStore store((launch.storeFolder.empty() ? "." : launch.storeFolder) + "/own-store");
  const int parity = launch.rank % 2;
  std::vector<int> ranks;
  for (int rank = parity; rank < launch.size; rank += 2) ranks.push_back(rank);

  const auto group = byway::Communicator::create(byway::Endpoint::process(), store,
                                                 parity == 0 ? "even" : "odd", ranks, launch.rank);
  std::vector<std::int64_t> mine{launch.rank};
  std::vector<std::int64_t> all(ranks.size());
  group
      ->allGather(byway::Region(mine.data(), sizeof(std::int64_t)),
                  byway::Region(all.data(), all.size() * sizeof(std::int64_t)), 1,
                  byway::DType::Int64)
      .wait();

  std::ostringstream line;
  for (const std::int64_t rank : all) line << ' ' << rank;
  std::printf("rank %d is %d of %d in its group:%s\n", launch.rank, group->rank(), group->size(),
              line.str().c_str());
} catch (const byway::Error& error) {
  std::fprintf(stderr, "%s: %s\n", byway::toString(error.code()), error.what());
  return 1;
}
