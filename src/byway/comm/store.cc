// SPDX-License-Identifier: BSD-3-Clause
#include "byway/comm/store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <mutex>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "byway/base/error.h"

namespace byway {
namespace {

[[noreturn]] void late(const std::string& key, Seconds timeout) {
  throw Error(
      ErrorCode::Timeout,
      fmt::format("no rank left \"{}\" in the store within {} s; see whether all ranks of the "
                  "communicator started",
                  key, timeout));
}

long toLong(const std::string& text) {
  return text.empty() ? 0 : std::strtol(text.c_str(), nullptr, 10);
}

}  // namespace

struct HashStore::State {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, std::string> values;
};

HashStore::HashStore() : state_(std::make_unique<State>()) {}
HashStore::~HashStore() = default;

void HashStore::set(const std::string& key, const std::string& value) {
  const std::scoped_lock lock(state_->mutex);
  state_->values[key] = value;
  state_->changed.notify_all();
}

std::string HashStore::get(const std::string& key, Seconds timeout) {
  std::unique_lock lock(state_->mutex);
  const auto here = [&] { return state_->values.count(key) != 0; };
  if (!state_->changed.wait_for(lock, std::chrono::duration<double>(timeout), here)) {
    late(key, timeout);
  }
  return state_->values[key];
}

long HashStore::add(const std::string& key, long amount) {
  const std::scoped_lock lock(state_->mutex);
  std::string& value = state_->values[key];
  value = std::to_string(toLong(value) + amount);
  state_->changed.notify_all();
  return toLong(value);
}

void HashStore::remove(const std::string& key) noexcept {
  const std::scoped_lock lock(state_->mutex);
  state_->values.erase(key);
}

FileStore::FileStore(std::string folder) : folder_(std::move(folder)) {
  if (::mkdir(folder_.c_str(), 0700) != 0 && errno != EEXIST) {
    throw Error(ErrorCode::Resource, fmt::format("cannot make the store's folder {}: {}", folder_,
                                                 std::strerror(errno)));
  }
}

std::string FileStore::path(const std::string& key) const {
  std::string name;
  for (const char c : key) name += c == '/' ? '%' : c;
  return folder_ + "/" + name;
}

void FileStore::set(const std::string& key, const std::string& value) {
  const std::string target = path(key);
  const std::string draft = fmt::format("{}.{}.{}", target, ::getpid(),
                                        std::hash<std::thread::id>{}(std::this_thread::get_id()));
  std::ofstream out(draft, std::ios::binary);
  out << value;
  out.close();
  if (!out || std::rename(draft.c_str(), target.c_str()) != 0) {
    throw Error(ErrorCode::Resource,
                fmt::format("cannot write {} in the store: {}", target, std::strerror(errno)));
  }
}

std::string FileStore::get(const std::string& key, Seconds timeout) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(timeout);
  auto pause = std::chrono::microseconds(200);
  constexpr auto kLongest = std::chrono::microseconds(20000);
  for (;;) {
    std::ifstream in(path(key), std::ios::binary);
    if (in) return {std::istreambuf_iterator<char>(in), {}};
    if (std::chrono::steady_clock::now() >= until) late(key, timeout);
    std::this_thread::sleep_for(pause);  // a folder cannot be waited on portably
    pause = std::min(pause * 2, kLongest);
  }
}

long FileStore::add(const std::string& key, long amount) {
  const std::string file = path(key) + ".counter";
  const int fd = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0 || ::flock(fd, LOCK_EX) != 0) {
    const int error = errno;
    if (fd >= 0) ::close(fd);
    throw Error(ErrorCode::Resource, fmt::format("cannot lock {}: {}", file, std::strerror(error)));
  }
  std::array<char, 32> text{};
  const ssize_t got = ::pread(fd, text.data(), text.size() - 1, 0);
  const long sum = (got > 0 ? std::strtol(text.data(), nullptr, 10) : 0) + amount;
  const std::string out = std::to_string(sum);
  const bool right = ::pwrite(fd, out.data(), out.size(), 0) == static_cast<ssize_t>(out.size()) &&
                     ::ftruncate(fd, static_cast<off_t>(out.size())) == 0;
  ::close(fd);
  if (!right) throw Error(ErrorCode::Resource, fmt::format("cannot write {}", file));
  return sum;
}

void FileStore::remove(const std::string& key) noexcept {
  ::unlink(path(key).c_str());
  ::unlink((path(key) + ".counter").c_str());
}

namespace {

struct Launcher {
  const char* name;
  const char* rank;
  const char* size;
};
constexpr std::array<Launcher, 5> kLaunchers{
    {{"byway run", "BYWAY_RANK", "BYWAY_SIZE"},
     {"torchrun", "RANK", "WORLD_SIZE"},
     {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
     {"MPICH", "PMI_RANK", "PMI_SIZE"},
     {"Slurm", "SLURM_PROCID", "SLURM_NTASKS"}}};

int number(const char* name, const char* text) {
  char* end = nullptr;
  const long value = std::strtol(text, &end, 10);
  if (end == text || *end != '\0' || value < 0 || value > 1000000) {
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("{}=\"{}\" is not a rank count", name, text));
  }
  return static_cast<int>(value);
}

}  // namespace

LaunchInfo launchInfo() {
  LaunchInfo info;
  for (const Launcher& launcher : kLaunchers) {
    const char* rank = std::getenv(launcher.rank);
    const char* size = std::getenv(launcher.size);
    if (rank == nullptr && size == nullptr) continue;
    if (rank == nullptr || size == nullptr) {
      // RANK alone may be anybody's variable; ours are set together.
      if (&launcher != &kLaunchers[0]) continue;
      throw Error(
          ErrorCode::InvalidArgument,
          fmt::format("{} is set without {}", rank != nullptr ? launcher.rank : launcher.size,
                      rank != nullptr ? launcher.size : launcher.rank));
    }
    info.rank = number(launcher.rank, rank);
    info.size = number(launcher.size, size);
    if (info.rank >= info.size) {
      throw Error(ErrorCode::InvalidArgument, fmt::format("{}={} but {}={}", launcher.rank,
                                                          info.rank, launcher.size, info.size));
    }
    const char* folder = std::getenv("BYWAY_STORE");
    if (folder == nullptr && info.size > 1) {
      throw Error(ErrorCode::InvalidArgument,
                  "BYWAY_STORE is not set; name a folder that all ranks share and that is new for "
                  "this job, or start the program with `byway run`");
    }
    if (folder != nullptr) info.storeFolder = folder;
    return info;
  }
  return info;
}

}  // namespace byway
