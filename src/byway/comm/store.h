// SPDX-License-Identifier: BSD-3-Clause
// Where ranks leave their addresses for each other. Callers may bring their own.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "byway/base/clock.h"

namespace byway {

// Keys are ASCII without blanks; values at most 64 KB. Any thread may call.
class Store {
 public:
  virtual ~Store() = default;
  virtual void set(const std::string& key, const std::string& value) = 0;
  // Waits until the key is there. Throws Error{Timeout} that names the key after `timeout` seconds.
  virtual std::string get(const std::string& key, Seconds timeout) = 0;
  // Adds to a counter that starts at 0 and returns the sum, atomically among all ranks.
  virtual long add(const std::string& key, long amount) = 0;
  // Forgets a key, counters too. Does not throw: a key that is not there, or that cannot be removed
  // any more, is left.
  virtual void remove(const std::string& key) noexcept = 0;
};

// For ranks in one process.
class HashStore final : public Store {
 public:
  HashStore();
  ~HashStore() override;
  void set(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key, Seconds timeout) override;
  long add(const std::string& key, long amount) override;
  void remove(const std::string& key) noexcept override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// For processes that share a folder: one file a key, written under another name and renamed. The
// folder must be new for every job. Throws Error{Resource} when it cannot be written.
class FileStore final : public Store {
 public:
  explicit FileStore(std::string folder);
  void set(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key, Seconds timeout) override;
  long add(const std::string& key, long amount) override;
  void remove(const std::string& key) noexcept override;

 private:
  std::string path(const std::string& key) const;
  std::string folder_;
};

// Which rank this process is, as its launcher says: BYWAY_RANK, BYWAY_SIZE and BYWAY_STORE (a
// folder) as `byway run` sets them; the rank and size also as torchrun, Open MPI, MPICH and Slurm
// set them. Throws Error{InvalidArgument} that names what is missing.
struct LaunchInfo {
  int rank = 0;
  int size = 1;
  std::string storeFolder;
};
LaunchInfo launchInfo();

}  // namespace byway
