// SPDX-License-Identifier: BSD-3-Clause
#include "byway/comm/communicator.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "byway/base/hash.h"
#include "byway/comm/call.h"
#include "byway/comm/communicator_state.h"
#include "byway/comm/recording.h"
#include "byway/comm/rendezvous.h"

namespace byway {
namespace {

constexpr Seconds kDestroySeconds = 10;

std::string topologyText(const CommunicatorOptions& options) {
  if (!options.topology.empty()) return options.topology;
  const char* text = std::getenv("BYWAY_TOPOLOGY");
  return text != nullptr && *text != '\0' ? text : "host";
}

Topology topologyOf(const CommunicatorOptions& options, int size) {
  const std::string text = topologyText(options);
  const auto& some = options.topologyRanks;
  if (some.empty() || text == "host") return parseTopology(text, size);
  const Topology whole = parseTopology(text);
  if (*std::max_element(some.begin(), some.end()) >= whole.ranks) return parseTopology(text, size);
  return partOf(whole, some);
}

Seconds lateAfterOf(const CommunicatorOptions& options) {
  constexpr Seconds kLateAfter = 30;
  if (options.lateAfter) return *options.lateAfter;
  const char* text = std::getenv("BYWAY_LATE_AFTER");
  if (text == nullptr || *text == '\0') return kLateAfter;
  char* end = nullptr;
  const Seconds seconds = std::strtod(text, &end);
  if (*end == '\0' && seconds > 0) return seconds;
  throw Error(ErrorCode::InvalidArgument,
              fmt::format("BYWAY_LATE_AFTER=\"{}\" is no positive number of seconds (\"inf\": "
                          "never)",
                          text));
}

bool mayMap(const CommunicatorOptions& options) {
  if (options.mapped) return *options.mapped;
  const char* text = std::getenv("BYWAY_MAPPED");
  const std::string value = text == nullptr ? "" : text;
  if (value.empty() || value == "1") return true;
  if (value == "0") return false;
  throw Error(ErrorCode::InvalidArgument,
              fmt::format("BYWAY_MAPPED=\"{}\" is neither 0 nor 1", value));
}

// What a rank tells the others: its board's address, and its transport's.
std::string joined(const Board* board, const Address& address) {
  std::string text = board == nullptr ? "" : board->address();
  text += '\0';
  text.append(reinterpret_cast<const char*>(address.data()), address.size());
  return text;
}

// Where all ranks can use one; the same on all ranks.
std::shared_ptr<Board> joinedBoard(std::shared_ptr<Board> board, const Meeting& meeting,
                                   Seconds timeout) {
  if (!board) return nullptr;
  std::vector<std::string> addresses;
  for (const std::string& text : meeting.addresses)
    addresses.push_back(text.substr(0, text.find('\0')));
  if (board->join(addresses, timeout) == Board::Reach::None) return nullptr;
  return board;
}

double mappedBytesOf(const Board* board) {
  if (board == nullptr) return 0;
  if (board->reach() == Board::Reach::Memory) return std::numeric_limits<double>::infinity();
  // Places for lists of memory, and sizes that a plan is made for lie up to an eighth lower.
  return 0.75 * static_cast<double>(Board::kDataBytes);
}

void checkRanks(const std::vector<int>& ranks, int self) {
  std::vector<int> sorted = ranks;
  std::sort(sorted.begin(), sorted.end());
  if (!sorted.empty() && sorted[0] < 0) {
    throw Error(ErrorCode::InvalidArgument, fmt::format("{} is no rank", sorted[0]));
  }
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) {
    throw Error(ErrorCode::InvalidArgument, fmt::format("rank {} is listed twice", *twice));
  }
  if (!std::binary_search(sorted.begin(), sorted.end(), self)) {
    throw Error(
        ErrorCode::InvalidArgument,
        fmt::format("rank {} creates a communicator of ranks {}, to which it does not belong", self,
                    fmt::join(ranks, " ")));
  }
}

void checkTopologyRanks(const std::vector<int>& some, std::size_t size) {
  const bool isWrong = std::any_of(some.begin(), some.end(), [](int rank) { return rank < 0; });
  if (some.empty() || (some.size() == size && !isWrong)) return;
  throw Error(ErrorCode::InvalidArgument,
              fmt::format("topologyRanks has {}; give one rank of the topology for each of the "
                          "communicator's {}, or none",
                          fmt::join(some, " "), size));
}

}  // namespace

std::size_t Region::bytes() const {
  std::size_t sum = 0;
  for (const Buffer& part : parts()) sum += part.bytes;
  return sum;
}

Region readOnly(const void* address, std::size_t bytes) {
  return {const_cast<void*>(address), bytes};  // NOLINT: Inputs are never written
}

std::unique_ptr<Communicator> Communicator::create(std::shared_ptr<Endpoint> endpoint, Store& store,
                                                   const std::string& name, std::vector<int> ranks,
                                                   int self, CommunicatorOptions options) {
  checkRanks(ranks, self);
  checkTopologyRanks(options.topologyRanks, ranks.size());
  const int size = static_cast<int>(ranks.size());
  Topology topology = topologyOf(options, size);
  const bool maps = mayMap(options) && topology.name == "host" && size > 1 &&
                    endpoint->pace() == Pace{} && endpoint->selfDriven() &&
                    options.memory == MemoryKind::Host;
  const Settings settings{
      {"topology (option or BYWAY_TOPOLOGY)",
       fmt::format("{} [{:016x}]", topology.name, topology.hash())},
      {"stage quota", std::to_string(options.stageQuota)},
      {"route", options.route},
      {"exchange of counts", options.exchangeCounts ? "on" : "off"},
      {"mapped memory (option or BYWAY_MAPPED)", maps ? "on" : "off"},
      {"kind of memory", options.memory == MemoryKind::Phantom ? "phantom" : "host"},
      {"pace (option or BYWAY_PACE)", endpoint->pace().text()}};
  ChannelOptions channel;
  channel.rank = static_cast<int>(std::find(ranks.begin(), ranks.end(), self) - ranks.begin());
  if (maps) channel.board = Board::make(channel.rank, size);
  const Meeting meeting =
      meet(store, name, ranks, self, joined(channel.board.get(), endpoint->engine()->address()),
           settings, options.timeout);
  channel.id = meeting.id;
  channel.stageQuota = options.stageQuota;
  channel.lateAfter = lateAfterOf(options);
  for (const std::string& record : meeting.addresses) {
    const std::string text = record.substr(record.find('\0') + 1);
    try {
      channel.peers.push_back(endpoint->engine()->connect(
          {reinterpret_cast<const std::byte*>(text.data()), text.size()}));
    } catch (const Error& error) {
      throw Error(error.code(),
                  fmt::format("rank {} cannot be reached: {}", channel.peers.size(), error.what()),
                  channel.rank);
    }
  }
  channel.board = joinedBoard(std::move(channel.board), meeting, options.timeout);
  if (channel.board) endpoint->engine()->shareHostWith(size);
  const double mappedBytes = mappedBytesOf(channel.board.get());
  const bool coresForAll = channel.board && size <= channel.board->cores();
  // The pace's topology is the job's, too.
  const auto& places = options.topologyRanks.empty() ? ranks : options.topologyRanks;
  endpoint->place(places.at(static_cast<std::size_t>(channel.rank)), channel.peers, places);
  channel.trace.name = name;
  channel.trace.process = self;
  readRecording(channel);
  auto state = std::make_shared<CommunicatorState>(std::move(endpoint), std::move(topology),
                                                   std::move(options), mappedBytes, coresForAll);
  state->rank = channel.rank;
  state->size = size;
  state->channel = state->engine->open(std::move(channel)).shared_from_this();
  return std::unique_ptr<Communicator>(new Communicator(std::move(state)));
}

std::unique_ptr<Communicator> Communicator::world(CommunicatorOptions options) {
  const LaunchInfo info = launchInfo();
  std::vector<int> ranks;
  for (int r = 0; r < info.size; ++r) ranks.push_back(r);
  if (info.size == 1) {
    HashStore store;
    return create(Endpoint::process(), store, "world", std::move(ranks), 0, std::move(options));
  }
  FileStore store(info.storeFolder);
  return create(Endpoint::process(), store, "world", std::move(ranks), info.rank,
                std::move(options));
}

Communicator::Communicator(std::shared_ptr<CommunicatorState> state) : state_(std::move(state)) {}

Communicator::~Communicator() {
  try {
    destroy(kDestroySeconds);
  } catch (const Error&) {
    // In a forked child there is nothing to destroy.
  }
}

int Communicator::rank() const { return state_->rank; }
int Communicator::size() const { return state_->size; }
const CommunicatorOptions& Communicator::options() const { return state_->options; }

void Communicator::refuse(const Error& error) { state_->engine->refuse(*state_->open(), error); }

void Communicator::abort(const std::string& why) {
  std::shared_ptr<Channel> channel;
  {
    const std::scoped_lock lock(state_->mutex);
    channel = state_->channel;
  }
  if (channel) state_->engine->abort(*channel, why);
}

void Communicator::destroy(Seconds bound) {
  std::shared_ptr<Channel> channel;
  {
    const std::scoped_lock lock(state_->mutex);
    channel = std::exchange(state_->channel, nullptr);
  }
  if (!channel) return;
  state_->engine->locked([&] { state_->prepared.clear(); });
  state_->engine->close(*channel, bound);
}

std::uint64_t Communicator::stageInUse() const {
  const auto channel = state_->open();
  return state_->engine->locked([&] { return channel->stage().inUse(); });
}

std::uint64_t Communicator::stagePeak() const {
  const auto channel = state_->open();
  return state_->engine->locked([&] { return channel->stage().peak(); });
}

Work Communicator::fused(Collective collective, std::span<const CallGroup> groups,
                         const FusedArgs& mine, DType dtype, const Reduction& reduction,
                         const CallOptions& options) {
  return submitCall(
      *state_,
      {collective, {groups.begin(), groups.end()}, dtype, reduction, false, options.liveGroups},
      mine, options);
}

namespace {

Communicator::PlanInfo infoOf(const Plan& plan) {
  return {plan.chosen->schedule().name,
          plan.chosen->hash(),
          plan.direct->hash(),
          plan.relayed(),
          plan.predicted,
          plan.directPredicted};
}

}  // namespace

Communicator::PlanInfo Communicator::planFor(Collective collective,
                                             std::span<const CallGroup> groups, DType dtype,
                                             const Reduction& reduction) const {
  const Call call{collective, {groups.begin(), groups.end()}, dtype, reduction, false, 0};
  return infoOf(*planOf(*state_, call, false));
}

Communicator::PlanInfo Communicator::prepare(Collective collective,
                                             std::span<const CallGroup> groups, DType dtype,
                                             const Reduction& reduction, int liveGroups) {
  const Call call{collective, {groups.begin(), groups.end()}, dtype, reduction, false, liveGroups};
  return infoOf(*planOf(*state_, call, true));
}

}  // namespace byway
