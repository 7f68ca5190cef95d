// SPDX-License-Identifier: BSD-3-Clause
#include "byway/transport/ucx/library.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucm/api/ucm.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>

#include <fmt/format.h>
#include <ucs/config/global_opts.h>
#include <ucs/debug/log_def.h>

#include "byway/base/error.h"
#include "byway/base/log.h"
#include "byway/transport/ucx/ucx_wire.h"

// Called by libucs while it is loaded, in place of libucm's function of that name, which comes
// after it in the order of look-up: the only moment at which the hooks into mmap, munmap, brk and
// shmat can be prevented without the environment. Nothing here needs them as long as no device
// memory is used.
extern "C" void ucm_set_global_opts(const ucm_global_config_t* options) {
  const char* wanted = std::getenv("BYWAY_UCX_MEM_EVENTS");
  if (wanted == nullptr || *wanted != 'y') {
    // The caller's own copy. Only this field, which stands at the same place in every version.
    const_cast<ucm_global_config_t*>(options)->enable_events = 0;
  }
  using Set = void (*)(const ucm_global_config_t*);
  const auto set = reinterpret_cast<Set>(dlsym(RTLD_NEXT, "ucm_set_global_opts"));
  if (set != nullptr) set(options);
}

namespace byway {
namespace ucx {
namespace {

struct Setting {
  const char* key;
  const char* value;
};
// docs/transport.md says why; BYWAY_UCX_<key> overrides each.
constexpr std::array kSettings{
    Setting{"RCACHE_ENABLE", "n"},       Setting{"POSIX_FIFO_SIZE", "1024"},
    Setting{"SYSV_FIFO_SIZE", "1024"},   Setting{"TCP_KEEPIDLE", "5s"},
    Setting{"WARN_INVALID_CONFIG", "n"},
};
// Posix shared memory has a name in /dev/shm while UCX fills it with zeros, tens of milliseconds
// for a process, and a process killed then leaves it behind. System V memory is marked for removal
// some microseconds after it was made, and /dev/shm may be small.
const char* transports() {
  shminfo limits{};
  return shmctl(0, IPC_INFO, reinterpret_cast<shmid_ds*>(&limits)) < 0 ? "^cuda" : "^cuda,posix";
}

constexpr std::array kGlobalSettings{
    Setting{"HANDLE_ERRORS", "none"},
    Setting{"WARN_UNUSED_ENV_VARS", "n"},
    Setting{"VFS_ENABLE", "n"},
};

std::atomic<bool> isExiting{false};

LogLevel toLogLevel(ucs_log_level_t level) {
  if (level <= UCS_LOG_LEVEL_ERROR) return LogLevel::Error;
  if (level == UCS_LOG_LEVEL_WARN) return LogLevel::Warning;
  return level == UCS_LOG_LEVEL_INFO ? LogLevel::Info : LogLevel::Debug;
}

// Called from UCX's C code: nothing may be thrown through it.
ucs_log_func_rc_t logLine(const char* file, unsigned line, const char* /*function*/,
                          ucs_log_level_t level, const ucs_log_component_config_t* /*component*/,
                          const char* message, va_list arguments) {
  if (isExiting.load()) return UCS_LOG_FUNC_RC_STOP;
  std::array<char, 1024> text;
  std::vsnprintf(text.data(), text.size(), message, arguments);
  try {
    const std::string_view path(file);
    const std::string_view name = path.substr(path.find_last_of('/') + 1);
    log(toLogLevel(level), fmt::format("ucx: {} ({}:{})", text.data(), name, line));
  } catch (...) {  // out of memory: the line is lost
  }
  return UCS_LOG_FUNC_RC_STOP;
}

bool isSetByUser(const char* key) {
  return std::getenv(fmt::format("BYWAY_UCX_{}", key).c_str()) != nullptr;
}

ucp_config_t* makeConfig() {
  for (const Setting& setting : kGlobalSettings) {
    const char* value = std::getenv(fmt::format("BYWAY_UCX_{}", setting.key).c_str());
    ucs_global_opts_set_value(setting.key, value == nullptr ? setting.value : value);
  }
  ucp_config_t* config = nullptr;
  check(ucp_config_read("BYWAY", nullptr, &config), "read UCX's settings");
  std::vector<Setting> settings(kSettings.begin(), kSettings.end());
  settings.push_back({"TLS", transports()});
  for (const Setting& setting : settings) {
    if (isSetByUser(setting.key)) continue;
    if (ucp_config_modify(config, setting.key, setting.value) == UCS_OK) continue;
    log(LogLevel::Debug, fmt::format("ucx: this version has no setting {}", setting.key));
  }
  return config;
}

std::string runtimeVersion() {
  unsigned major = 0, minor = 0, release = 0;
  ucp_get_version(&major, &minor, &release);
  return fmt::format("{}.{}.{}", major, minor, release);
}

std::string libraryPath() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(&ucp_get_version), &info) == 0) return "unknown";
  return info.dli_fname;
}

bool mayTraceOthers() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, 2> data{};
  if (syscall(SYS_capget, &header, data.data()) != 0) return false;
  return (data[0].effective >> CAP_SYS_PTRACE & 1U) != 0;
}

// Whether a process of the same user may read this one's memory, as far as one process can tell.
bool canReadAcrossProcesses() {
  int from = 42, to = 0;
  iovec local{&to, sizeof to}, remote{&from, sizeof from};
  if (process_vm_readv(getpid(), &local, 1, &remote, 1, 0) != sizeof to || to != 42) return false;
  int scope = 0;  // without yama there is no such file
  std::ifstream("/proc/sys/kernel/yama/ptrace_scope") >> scope;
  return scope == 0 || mayTraceOthers();
}

}  // namespace

void check(ucs_status_t status, const char* what) {
  if (status == UCS_OK) return;
  throw Error(ErrorCode::Resource, fmt::format("UCX {} from {} cannot {}: {}", runtimeVersion(),
                                               libraryPath(), what, ucs_status_string(status)));
}

void redirectLog() {
  static std::once_flag once;
  std::call_once(once, [] {
    std::atexit([] { isExiting.store(true); });  // UCX says a last word after our statics are gone
    ucs_log_push_handler(&logLine);
  });
}

void checkVersion() {
  unsigned major = 0, minor = 0, release = 0;
  ucp_get_version(&major, &minor, &release);
  if (UCP_VERSION(major, minor) >= UCP_API_VERSION) return;
  throw Error(
      ErrorCode::Unsupported,
      fmt::format("UCX {} was loaded from {}, but Byway was built with {}.{}; put the newer "
                  "library first in the search path or rebuild",
                  runtimeVersion(), libraryPath(), UCP_API_MAJOR, UCP_API_MINOR));
}

unsigned forks() {
  static std::atomic<unsigned> count{0};
  static std::once_flag once;
  std::call_once(once, [] { pthread_atfork(nullptr, nullptr, [] { count.fetch_add(1); }); });
  return count.load(std::memory_order_relaxed);
}

std::vector<int> openDescriptors() {
  std::vector<int> open;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", error)) {
    open.push_back(std::atoi(entry.path().filename().c_str()));
  }
  // The one that did the listing is in the list.
  const auto isClosed = [](int fd) { return fcntl(fd, F_GETFD) < 0; };
  open.erase(std::remove_if(open.begin(), open.end(), isClosed), open.end());
  return open;
}

void closeNewDescriptorsOnExec(const std::vector<int>& before) {
  for (const int fd : openDescriptors()) {
    if (std::find(before.begin(), before.end(), fd) != before.end()) continue;
    struct stat what {};
    if (fstat(fd, &what) != 0 || S_ISFIFO(what.st_mode)) continue;
    fcntl(fd, F_SETFD, FD_CLOEXEC);
  }
}

Worker::Worker() {
  redirectLog();
  checkVersion();
  try {
    start();
  } catch (...) {
    if (worker_ != nullptr) ucp_worker_destroy(worker_);
    if (context_ != nullptr) ucp_cleanup(context_);
    throw;
  }
}

void Worker::start() {
  const std::vector<int> before = openDescriptors();
  ucp_config_t* config = makeConfig();
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_NAME;
  params.features = UCP_FEATURE_AM | UCP_FEATURE_RMA | UCP_FEATURE_WAKEUP;
  params.name = "byway";
  const ucs_status_t status = ucp_init(&params, config, &context_);
  ucp_config_release(config);
  check(status, "start");

  ucp_worker_params_t worker{};
  worker.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  worker.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  check(ucp_worker_create(context_, &worker, &worker_), "make a worker");
  check(ucp_worker_get_efd(worker_, &events_), "give an event descriptor");
  closeNewDescriptorsOnExec(before);
}

Worker::~Worker() {
  ucp_worker_destroy(worker_);
  ucp_cleanup(context_);
}

std::vector<std::byte> Worker::address() const {
  ucp_address_t* packed = nullptr;
  std::size_t bytes = 0;
  check(ucp_worker_get_address(worker_, &packed, &bytes), "tell its address");
  const auto* begin = reinterpret_cast<const std::byte*>(packed);
  std::vector<std::byte> address(begin, begin + bytes);
  ucp_worker_release_address(worker_, packed);
  return address;
}

}  // namespace ucx

UcxInfo ucxInfo() {
  UcxInfo info;
  info.compiledVersion = fmt::format("{}.{}", UCP_API_MAJOR, UCP_API_MINOR);
  info.runtimeVersion = ucx::runtimeVersion();
  info.libraryPath = ucx::libraryPath();
  info.fetchWithoutCopyThread = ucx::canReadAcrossProcesses();
  return info;
}

}  // namespace byway
