// SPDX-License-Identifier: BSD-3-Clause
#include "byway/torch/process_group.h"

#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "byway/base/clock.h"
#include "byway/torch/call.h"
#include "byway/torch/errors.h"
#include "byway/torch/flight_log.h"
#include "byway/torch/gil.h"
#include "byway/torch/hook.h"
#include "byway/torch/record.h"
#include "byway/torch/store_adapter.h"

namespace byway::pytorch {
namespace {

struct Live {
  std::mutex mutex;
  std::vector<std::weak_ptr<Communicator>> communicators;
};

// Never destroyed: groups may outlive this file's statics.
Live& live() {
  static auto* const all = new Live();
  return *all;
}

void remember(const std::shared_ptr<Communicator>& communicator) {
  const std::scoped_lock lock(live().mutex);
  std::erase_if(live().communicators, [](const auto& weak) { return weak.expired(); });
  live().communicators.push_back(communicator);
}

std::shared_ptr<Communicator> makeCommunicator(const c10::intrusive_ptr<c10d::Store>& store,
                                               int rank, int size, const GroupOptions& options) {
  const WithoutGil released;
  StoreAdapter adapter(store);
  std::vector<int> ranks(static_cast<std::size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  auto endpoint =
      options.pace.empty() ? Endpoint::process() : Endpoint::process(parsePace(options.pace));
  std::shared_ptr<Communicator> communicator =
      Communicator::create(std::move(endpoint), adapter, meetingName(options.group_name),
                           std::move(ranks), rank, communicatorOptions(options));
  remember(communicator);
  return communicator;
}

constexpr Seconds kDestroySeconds = 10;

}  // namespace

ProcessGroupByway::ProcessGroupByway(const c10::intrusive_ptr<c10d::Store>& store, int rank,
                                     int size, c10::intrusive_ptr<GroupOptions> options)
    : c10d::Backend(rank, size), options_(std::move(options)), process_(::getpid()) {
  communicator_ = translated("byway: creating group " + options_->group_name + " on rank " +
                                 std::to_string(rank) + " of " + std::to_string(size),
                             [&] { return makeCommunicator(store, rank, size, *options_); });
  init();
}

ProcessGroupByway::~ProcessGroupByway() {
  const WithoutGil released;
  communicator_.reset();  // destroys it, unless a forked child's
}

void ProcessGroupByway::setTimeout(std::chrono::milliseconds timeout) {
  options_->timeout = timeout;
}

std::uint64_t ProcessGroupByway::getSequenceNumberForGroup() {
  return static_cast<std::uint64_t>(collectives_.load());
}

c10d::ErrorType ProcessGroupByway::getError() {
  if (!state_->failed) return c10d::ErrorType::SUCCESS;
  switch (state_->firstFailure.load()) {
    case ErrorCode::Timeout:
      return c10d::ErrorType::TIMEOUT;
    case ErrorCode::PeerLost:
    case ErrorCode::Aborted:
      return c10d::ErrorType::REMOTE_ERROR;
    case ErrorCode::InvalidArgument:
    case ErrorCode::Mismatch:
    case ErrorCode::Broken:
    case ErrorCode::Resource:
    case ErrorCode::Unsupported:
    case ErrorCode::Internal:
      break;
  }
  return c10d::ErrorType::COMM_ERROR;
}

void ProcessGroupByway::abort() {
  const WithoutGil released;
  translated("byway: abort", [&] { communicator_->abort("the group was aborted"); });
}

void ProcessGroupByway::shutdown() {
  const WithoutGil released;
  std::exception_ptr error;
  try {
    runCallHook("shutdown");
  } catch (...) {
    error = std::current_exception();
  }
  translated("byway: shutdown", [&] { communicator_->destroy(kDestroySeconds); });
  if (error) std::rethrow_exception(error);
}

// A topology that the new group has of its own numbers its ranks.
std::vector<int> ProcessGroupByway::topologyRanksOf(const std::vector<int>& ranks,
                                                    const GroupOptions& made) const {
  if (made.topology != options_->topology) {
    if (!made.topology.empty()) return {};
    return {made.global_ranks_in_group.begin(), made.global_ranks_in_group.end()};
  }
  std::vector<int> some;
  for (const int rank : ranks) {
    const auto& mine = options_->topologyRanks;
    some.push_back(mine.empty() ? rank : mine.at(static_cast<std::size_t>(rank)));
  }
  return some;
}

c10::intrusive_ptr<c10d::Backend> ProcessGroupByway::split(
    const c10::intrusive_ptr<c10d::Store>& store, const std::vector<int>& ranks,
    const c10::intrusive_ptr<c10d::Backend::Options>& options) {
  runCallHook("split");
  const auto self = std::find(ranks.begin(), ranks.end(), rank_);
  if (self == ranks.end()) return nullptr;
  auto made = optionsFrom(options ? options : getBackendOptions(), options_->backend);
  made->global_ranks_in_group.clear();
  for (const int rank : ranks) {
    const auto& mine = options_->global_ranks_in_group;
    const auto index = static_cast<std::size_t>(rank);
    made->global_ranks_in_group.push_back(index < mine.size() ? mine[index] : index);
  }
  made->topologyRanks = topologyRanksOf(ranks, *made);
  return c10::make_intrusive<ProcessGroupByway>(store, static_cast<int>(self - ranks.begin()),
                                                static_cast<int>(ranks.size()), std::move(made));
}

CallContext ProcessGroupByway::contextOf(const CallKind& kind) {
  CallContext context;
  context.group = pg_uid_.empty() ? options_->group_name : pg_uid_;
  context.rank = rank_;
  context.size = size_;
  context.operation = kind.name;
  context.sequence = kind.isMessage ? ++messages_ : ++collectives_;
  context.state = state_;
  return context;
}

// torch gives the group's name once it is made.
std::shared_ptr<const FlightGroup> ProcessGroupByway::flightGroup() {
  const std::scoped_lock lock(windowMutex_);
  const std::string& name = pg_uid_.empty() ? options_->group_name : pg_uid_;
  if (!flightGroup_ || flightGroup_->name != name || flightGroup_->description != pg_desc_) {
    FlightGroup group{name, pg_desc_, options_->global_ranks_in_group, rank_};
    if (group.globalRanks.empty()) {
      group.globalRanks.resize(static_cast<std::size_t>(size_));
      std::iota(group.globalRanks.begin(), group.globalRanks.end(), 0);
    }
    flightGroup_ = std::make_shared<const FlightGroup>(std::move(group));
  }
  return flightGroup_;
}

ProcessGroupByway::WorkPtr ProcessGroupByway::call(const CallKind& kind, const Tensors& inputs,
                                                   const Tensors& outputs,
                                                   std::chrono::milliseconds timeout,
                                                   const std::function<void(Call&)>& make,
                                                   int peer) {
  if (isChecking()) return checkedOnly(make);
  runCallHook(kind.name);
  freeLeftovers();
  CallContext context = contextOf(kind);
  const auto fail = [&](const Error& error) {
    state_->note(error);
    context.tensors = describe(inputs);
    throwToTorch(error, context.text());
  };
  if (::getpid() != process_) {
    fail({ErrorCode::Broken,
          "this process was forked from the one that made the group; start processes that "
          "communicate with spawn or exec",
          rank_});
  }
  const WithoutGil released;
  if (timeout.count() <= 0) timeout = options_->timeout;
  context.flight = flightBegins(
      {&kind, flightGroup(), collectives_, messages_, peer, timeout.count()}, inputs, outputs);
  const auto now = [&] {
    Call call(*communicator_, timeout);
    try {
      make(call);
    } catch (const Error& error) {
      if (!call.submitting() && !kind.isMessage) communicator_->refuse(error);
      flightEnds(context.flight, true, -1);
      fail(error);
    }
    const bool asGloo = options_->backend == "gloo";
    auto work =
        c10::make_intrusive<CallWork>(kind.type, asGloo ? kind.titleAsGloo : kind.title,
                                      std::move(context), inputs, outputs, call.sharedHolder());
    work->start(call.takeWorks());
    return work;
  };
  auto work = recorded(
      kind, {context.sequence, rank_, size_, pg_uid_, pg_desc_, options_->global_ranks_in_group},
      inputs, outputs, now);
  const std::scoped_lock lock(windowMutex_);
  if (window_) window_->push_back(work);
  return work;
}

// Another name for the error is not needed: whoever asks makes the call to get it (hook.h).
ProcessGroupByway::WorkPtr ProcessGroupByway::checkedOnly(const std::function<void(Call&)>& make) {
  const WithoutGil released;
  Call call(*communicator_, options_->timeout);
  make(call);
  auto work = c10::make_intrusive<WindowWork>(rank_, std::vector<c10::intrusive_ptr<WorkBase>>());
  work->start();
  return work;
}

void ProcessGroupByway::startCoalescing() {
  runCallHook("start_coalescing");
  const std::scoped_lock lock(windowMutex_);
  if (!window_) window_.emplace();
}

ProcessGroupByway::WorkPtr ProcessGroupByway::endCoalescing() {
  runCallHook("end_coalescing");
  std::vector<c10::intrusive_ptr<WorkBase>> calls;
  {
    const std::scoped_lock lock(windowMutex_);
    if (window_) calls.swap(*window_);
    window_.reset();
  }
  auto work = c10::make_intrusive<WindowWork>(rank_, std::move(calls));
  work->start();
  return work;
}

Call::Call(Communicator& communicator, std::chrono::milliseconds timeout)
    : communicator_(communicator), timeout_(static_cast<Seconds>(timeout.count()) * 1e-3) {}

CallOptions Call::options() const {
  CallOptions options;
  options.timeout = timeout_;
  options.keepAlive = holder_;
  options.checkOnly = isChecking();
  return options;
}

void shutdownAll(Seconds bound) {
  try {
    runCallHook("shutdown");
  } catch (...) {
    // The process ends: nobody is there to be told.
  }
  std::vector<std::weak_ptr<Communicator>> all;
  {
    const std::scoped_lock lock(live().mutex);
    all.swap(live().communicators);
  }
  const WithoutGil released;
  const Seconds until = SteadyClock::instance().now() + bound;
  for (const auto& weak : all) {
    const auto communicator = weak.lock();
    if (!communicator) continue;
    try {
      communicator->destroy(std::max(0.0, until - SteadyClock::instance().now()));
    } catch (const Error&) {
      // A forked child's: nothing to destroy.
    }
  }
}

}  // namespace byway::pytorch
