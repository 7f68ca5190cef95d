// SPDX-License-Identifier: BSD-3-Clause
#include "byway/executor/collective_operation.h"

#include <algorithm>
#include <numeric>
#include <set>

#include <fmt/format.h>

#include "byway/base/copy.h"
#include "byway/executor/collective_round.h"
#include "byway/schedule/loads.h"

namespace byway {
namespace {

// Bytes of operands that a local step may touch before it gives way: about 50 us of memory traffic.
constexpr std::uint64_t kSliceBytes = 256 * 1024;
// The same where operands are read from other processes, for which larger parts are cheaper.
constexpr std::uint64_t kMappedSliceBytes = 512 * 1024;
// Of a step that is not cut further, results and inputs together.
constexpr std::uint64_t kWholeBytes = 64 * 1024;
constexpr std::uint64_t kAlignBytes = 64;

}  // namespace

void CollectiveOperation::Round::reset() {
  operation = nullptr;
  bound.reset();
  for (IndexQueue* queue : {&ready, &steps.steps, &leisure.steps}) queue->clear();
  steps.piece = leisure.piece = 0;
  steps.element = leisure.element = 0;
  for (auto* list : {&waits, &toPublish, &toRead, &toBeTaken}) list->clear();
  state.clear();
  issuedAt.clear();
  published.clear();
  ringUse.clear();
  located.clear();
  copies.clear();
  number = ringPhaseEnd = 0;
  ringHoldsPhase = hasWaited = false;
  stageOffset = remaining = dataNeed = dataUsed = fetched = 0;
  dataStart.reset();
  isStuck = false;
}

void CollectiveOperation::Round::begin() {
  const LocalProgram& local = *bound->local;
  remaining = local.ops.size();
  state.assign(local.ops.size(), OpState::Waiting);
  waits = local.waits;
  ready.set(local.first);
}

void CollectiveOperation::Round::beginAfter(std::uint32_t done) {
  const LocalProgram& local = *bound->local;
  begin();
  if (done == 0) return;
  remaining -= done;
  ready.clear();
  for (std::uint32_t i = 0; i < done; ++i) {
    state[local.order[i]] = OpState::Done;
    const LocalOp& op = local.ops[local.order[i]];
    for (std::uint32_t n = 0; n < op.nextCount; ++n) --waits[local.next[op.firstNext + n]];
  }
  for (std::uint32_t i = 0; i < local.ops.size(); ++i) {
    if (waits[i] == 0 && state[i] != OpState::Done) ready.push_back(i);
  }
}

void CollectiveOperation::Round::forgetCall() {
  std::fill(published.begin(), published.end(), Published::No);
  std::fill(located.begin(), located.end(), Located{});
  if (!copies.empty()) copies.clear();
  dataStart.reset();
  dataUsed = 0;
  hasWaited = false;
  looks = 0;
}

// Rounds are used again, so that a call takes no memory for them.
struct CollectiveOperation::RoundPool {
  static constexpr std::size_t kMost = 16;
  std::vector<std::unique_ptr<Round>> rounds;
  static RoundPool& here() {
    thread_local RoundPool pool;
    return pool;
  }
  std::unique_ptr<Round> take() {
    if (rounds.empty()) return std::make_unique<Round>();
    auto round = std::move(rounds.back());
    rounds.pop_back();
    return round;
  }
  void give(std::unique_ptr<Round> round) {
    if (rounds.size() >= kMost) return;
    round->reset();
    rounds.push_back(std::move(round));
  }
};

void OperationRequest::take(CallData&& data) {
  input = std::move(data.input);
  output = std::move(data.output);
  timeout = data.timeout;
  keepAlive = std::move(data.keepAlive);
}

CollectiveOperation::CollectiveOperation(Channel& channel, OperationRequest&& request,
                                         std::uint64_t sequence, Seconds deadline)
    : Operation(channel, static_cast<std::int64_t>(sequence), request.stamp, deadline,
                std::move(request.keepAlive)),
      request_(std::move(request)),
      elementBytes_(sizeOf(request_.dtype)),
      accumulatorBytes_(sizeOf(accumulatorOf(request_.dtype, request_.op))),
      stampHash_(Publication::hashOf(request_.stamp)) {
  if (supplied()) planRounds();
}

bool CollectiveOperation::mayGoAgain() const {
  return done() && !failed() && inFlight_ == 0 && request_.bound != nullptr && lastRound_;
}

void CollectiveOperation::goAgain(CallData&& data, std::uint64_t sequence, Seconds deadline) {
  renew(static_cast<std::int64_t>(sequence), deadline, std::move(data.keepAlive));
  request_.take(std::move(data));
  nextRound_ = roundsDone_ = 0;
  stageOffset_ = stageBytes_ = 0;
}

void CollectiveOperation::supply(OperationRequest&& request) {
  BYWAY_ASSERT(!supplied() && request.schedule != nullptr);
  request_ = std::move(request);
  setStamp(request_.stamp);
  stampHash_ = Publication::hashOf(request_.stamp);
  elementBytes_ = sizeOf(request_.dtype);
  accumulatorBytes_ = sizeOf(accumulatorOf(request_.dtype, request_.op));
  planRounds();
}

CollectiveOperation::~CollectiveOperation() = default;

void CollectiveOperation::planRounds() {
  BYWAY_ASSERT(!request_.ownCounts || request_.schedule->isTemplate());
  if (request_.bound != nullptr) return;
  const Schedule& s = request_.schedule->schedule();
  if (std::all_of(s.slots.begin(), s.slots.end(), [](auto slots) { return slots == 0; })) return;
  std::vector<double> blockBytes;
  for (const auto count : request_.blockCounts) {
    blockBytes.push_back(static_cast<double>(count) * static_cast<double>(elementBytes_));
  }
  const std::uint64_t quota = channel_.stage().quota();
  const Rounds rounds =
      roundsFor(s, blockBytes,
                static_cast<double>(accumulatorBytes_) / static_cast<double>(elementBytes_), quota);
  if (rounds.count == 0) {
    throw Error(ErrorCode::Resource,
                fmt::format("a stage quota of {} bytes is too small for this plan; raise it to {}",
                            quota, rounds.stage),
                channel_.rank(), sequence());
  }
  BYWAY_ASSERT(rounds.count == 1 || !request_.schedule->isMapped());
  roundCount_ = rounds.count;
  roundStage_ = rounds.stage;
}

Stamp CollectiveOperation::messageStamp(const MatchKey& key) const {
  const Schedule& s = request_.schedule->schedule();
  if (!request_.ownCounts || key.transfer >= s.transfers.size()) return stamp();
  std::uint64_t elements = 0;
  for (const Piece& piece : s.piecesOf(s.transfers[key.transfer].to)) {
    elements += request_.blockCounts[piece.block];
  }
  return forPair(stamp(), elements);
}

MatchKey CollectiveOperation::keyOf(std::uint32_t transfer, int source) const {
  return {channel_.id(), static_cast<std::uint64_t>(sequence()), transfer,
          static_cast<std::uint32_t>(source)};
}

// While it is not known, later calls must not take what this one may need.
bool CollectiveOperation::needsStage() const {
  return !supplied() || !localProgram().slotUses.empty();
}

bool CollectiveOperation::tryStart() {
  if (!supplied()) return false;
  if (lastRound_ && mayStartInOrder()) {
    startInOrder();
    return true;
  }
  if (roundCount_ == 1) {
    startRound(0);
    stageBytes_ = rounds_[0]->bound->stageBytes;
  } else {
    // A rank without slots takes nothing, as needsStage() says.
    stageBytes_ = needsStage() ? roundStage_ * kRoundsInFlight : 0;
  }
  if (stageBytes_ > 0) {
    const auto offset = channel_.stage().take(stageBytes_);
    if (!offset) {
      rounds_.clear();
      nextRound_ = 0;
      return false;
    }
    stageOffset_ = *offset;
  }
  started_ = true;
  if (roundCount_ == 1) {
    rounds_[0]->stageOffset = stageOffset_;
  } else {
    for (std::uint32_t i = 0; i < kRoundsInFlight; ++i) startRound(i);
  }
  return true;
}

// Nothing leaves by a message, and no place has to be had first.
bool CollectiveOperation::mayStartInOrder() const {
  const LocalProgram& local = localProgram();
  return local.order.size() == local.ops.size() && lastRound_->bound->stageBytes == 0 &&
         channel_.trace() == nullptr;
}

// What can be done at once is done in order, without queues: most calls of a few bytes end here.
// What is left goes on from there.
void CollectiveOperation::startInOrder() {
  Round& round = *lastRound_;
  round.forgetCall();
  const auto& order = round.bound->local->order;
  std::uint32_t done = 0;
  while (done < order.size() && doAtOnce(round, order[done])) ++done;
  nextRound_ = 1;
  started_ = true;
  if (done == order.size()) {
    roundsDone_ = 1;
    return;
  }
  round.beginAfter(done);
  rounds_.push_back(std::move(lastRound_));
}

// The whole of an operation of which all that come before it are over; false: not now, or not so.
bool CollectiveOperation::doAtOnce(Round& round, std::uint32_t index) {
  const LocalOp& op = round.bound->local->ops[index];
  switch (op.kind) {
    case LocalKind::Send:
      return publish(round, index) && round.published[op.publication] == Published::InSlot;
    case LocalKind::Recv:
      awaitPublication(round, index);
      return look(round, index);
    case LocalKind::Reduce:
    case LocalKind::Copy:
      break;
  }
  const Step& step = request_.schedule->schedule().steps[op.index];
  if (!wholeStep(round, index, step)) return false;
  letGoOfInputs(round, step);
  return true;
}

const LocalProgram& CollectiveOperation::localProgram() const {
  return request_.bound ? *request_.bound->local : request_.schedule->local(channel_.rank());
}

void CollectiveOperation::startRound(std::uint32_t number) {
  if (lastRound_) {
    lastRound_->forgetCall();
    lastRound_->begin();
    rounds_.push_back(std::move(lastRound_));
    nextRound_ = number + 1;
    return;
  }
  auto round = RoundPool::here().take();
  round->operation = this;
  round->number = number;
  const auto& totals = request_.blockCounts;
  if (request_.bound != nullptr) {
    round->bound = request_.bound;
  } else if (roundCount_ == 1) {
    round->bound = std::make_shared<const Binding>(bind(
        *request_.schedule, channel_.rank(), {totals, {}, {}}, elementBytes_, accumulatorBytes_));
  } else {
    const std::uint64_t unit = std::max<std::uint64_t>(1, kAlignBytes / elementBytes_);
    std::vector<std::uint64_t> starts;
    std::vector<std::uint64_t> counts;
    for (const std::uint64_t total : totals) {
      const std::uint64_t units = (total + unit - 1) / unit;
      const auto border = [&](std::uint64_t r) {
        return std::min(total, units * r / roundCount_ * unit);
      };
      starts.push_back(border(number));
      counts.push_back(border(number + 1) - border(number));
    }
    round->bound = std::make_shared<const Binding>(bind(*request_.schedule, channel_.rank(),
                                                        {counts, starts, totals}, elementBytes_,
                                                        accumulatorBytes_));
    BYWAY_ASSERT(round->bound->stageBytes <= roundStage_);
    round->stageOffset = stageOffset_ + (number % kRoundsInFlight) * roundStage_;
  }
  round->begin();
  rounds_.push_back(std::move(round));
  nextRound_ = number + 1;
}

bool CollectiveOperation::advance() {
  if (!started_ || failed()) return false;
  bool did = false;
  for (std::size_t i = 0; i < rounds_.size() && !failed();) {
    Round& round = *rounds_[i];
    do {
      while (!round.ready.empty() && !failed()) {
        const std::uint32_t index = round.ready.front();
        round.ready.pop_front();
        issue(round, index);
        did = true;
      }
      did = advanceMapped(round) || did;
      if (round.ready.empty()) did = localWork(round, round.steps) || did;
    } while (!round.ready.empty() && !failed());
    if (round.remaining == round.leisure.steps.size()) did = localWork(round, round.leisure) || did;
    if (round.remaining > 0 || !round.toBeTaken.empty()) {
      ++i;
      continue;
    }
    did = true;
    ++roundsDone_;
    if (request_.bound)
      lastRound_ = std::move(rounds_[i]);
    else
      RoundPool::here().give(std::move(rounds_[i]));
    rounds_.erase(rounds_.begin() + static_cast<std::ptrdiff_t>(i));
    if (nextRound_ < roundCount_) startRound(nextRound_);
  }
  return did;
}

bool CollectiveOperation::advanceAtLeisure() {
  if (!started_ || failed()) return false;
  return std::any_of(rounds_.begin(), rounds_.end(),
                     [&](const auto& round) { return localWork(*round, round->leisure); });
}

void CollectiveOperation::issue(Round& round, std::uint32_t index) {
  const Schedule& s = request_.schedule->schedule();
  const LocalOp& op = round.bound->local->ops[index];
  if (op.previousRecv != kNoOp && round.state[op.previousRecv] < OpState::Issued) {
    round.state[index] = OpState::Held;
    return;
  }
  round.state[index] = OpState::Issued;
  mark(round, index);
  if (op.nextRecv != kNoOp && round.state[op.nextRecv] == OpState::Held) {
    round.ready.push_front(op.nextRecv);
  }
  if (op.publication != kNoOp) return issueMapped(round, index);
  switch (op.kind) {
    case LocalKind::Send:
      transfer(round, index, s.transfers[op.index].to.rank, true);
      break;
    case LocalKind::Recv:
      transfer(round, index, s.transfers[op.index].from.rank, false);
      break;
    case LocalKind::Reduce:
      round.steps.steps.push_back(index);
      break;
    case LocalKind::Copy:
      (op.nextCount == 0 ? round.leisure : round.steps).steps.push_back(index);
      break;
  }
}

Buffer CollectiveOperation::place(const Round& round, const Ref& ref, const Piece& piece,
                                  std::uint64_t element, std::uint64_t elements) const {
  const Binding& b = *round.bound;
  const std::uint64_t width = b.widthBytes(ref.width);
  return onePlace(
      round, {ref.space, true, b.range(ref, piece).offset + element * width, elements * width});
}

// What lies in one place of a space, or the part of it that is one place of the caller's memory.
Buffer CollectiveOperation::onePlace(const Round& round, const Binding::Place& place) const {
  if (place.space == Space::Input) return request_.input.at(place.offset, place.bytes);
  if (place.space == Space::Output) return request_.output.at(place.offset, place.bytes);
  Buffer buffer{nullptr, place.bytes, request_.stageKind, 0};
  if (buffer.kind != MemoryKind::Phantom) {
    buffer.address = channel_.stage().data() + round.stageOffset + place.offset;
  }
  return buffer;
}

// Null where that is several places, or none that stands for bytes.
std::byte* CollectiveOperation::addressOf(const Round& round, const Binding::Place& place) const {
  if (!place.isOne) return nullptr;
  if (place.space == Space::Input) return request_.input.addressOf(place.offset, place.bytes);
  if (place.space == Space::Output) return request_.output.addressOf(place.offset, place.bytes);
  if (request_.stageKind == MemoryKind::Phantom) return nullptr;
  return channel_.stage().data() + round.stageOffset + place.offset;
}

// This rank's end of transfer `index` of its operations.
const std::vector<Buffer>& CollectiveOperation::buffersOf(const Round& round,
                                                          std::uint32_t index) const {
  std::vector<Buffer>& buffers = channel_.buffers();
  const Binding& b = *round.bound;
  const Binding::Place& whole = b.ops[index].at;
  if (whole.bytes == 0) return buffers;
  if (whole.isOne) {
    buffers.push_back(onePlace(round, whole));
    if (buffers[0].bytes == whole.bytes) return buffers;
    buffers.clear();
  }
  const LocalOp& op = b.local->ops[index];
  const Transfer& t = request_.schedule->schedule().transfers[op.index];
  const Ref& ref = op.kind == LocalKind::Send ? t.from : t.to;
  for (const Piece& piece : request_.schedule->schedule().piecesOf(ref)) {
    const Binding::Range range = b.range(ref, piece);
    if (range.bytes == 0) continue;
    switch (ref.space) {
      case Space::Input:
        request_.input.resolve(range.offset, range.bytes, buffers);
        break;
      case Space::Output:
        request_.output.resolve(range.offset, range.bytes, buffers);
        break;
      case Space::Stage:
        buffers.push_back(place(round, ref, piece, 0, b.cell(piece).count));
        break;
    }
  }
  return buffers;
}

void CollectiveOperation::transfer(Round& round, std::uint32_t index, int peer, bool sends) {
  std::vector<Buffer> buffers = buffersOf(round, index);
  if (buffers.empty() && request_.ownCounts) {
    buffers.push_back(Buffer{&nothing_, 1, MemoryKind::Host, 0});
  } else if (buffers.empty()) {
    finishOp(round, index);
    return;
  }
  const Schedule& s = request_.schedule->schedule();
  const std::uint32_t transferId = round.number * static_cast<std::uint32_t>(s.transfers.size()) +
                                   round.bound->local->ops[index].index;
  const MatchKey key = keyOf(transferId, sends ? channel_.rank() : peer);
  const Completion done{&CollectiveOperation::transferDone, &round, index};
  ++inFlight_;
  if (sends) {
    const std::vector<ConstBuffer> from(buffers.begin(), buffers.end());
    channel_.transport().send(channel_.peer(peer), key, messageStamp(key), from, done);
  } else {
    channel_.transport().recv(channel_.peer(peer), key, buffers, done);
  }
}

void CollectiveOperation::transferDone(void* self, std::uint32_t index, Outcome outcome) {
  Round& round = *static_cast<Round*>(self);
  CollectiveOperation& operation = *round.operation;
  --operation.inFlight_;
  if (outcome == Outcome::Ok) {
    operation.finishOp(round, index);
    return;
  }
  if (operation.failed()) return;
  const LocalOp& op = round.bound->local->ops[index];
  const Transfer& t = operation.request_.schedule->schedule().transfers[op.index];
  const bool sends = op.kind == LocalKind::Send;
  operation.channel_.transferFailed(operation, sends, sends ? t.to.rank : t.from.rank, outcome);
}

void CollectiveOperation::finishOp(Round& round, std::uint32_t index) {
  const LocalProgram& local = *round.bound->local;
  round.state[index] = OpState::Done;
  --round.remaining;
  trace(round, index);
  const LocalOp& op = local.ops[index];
  for (std::uint32_t n = 0; n < op.nextCount; ++n) {
    const std::uint32_t next = local.next[op.firstNext + n];
    if (--round.waits[next] == 0) round.ready.push_back(next);
  }
}

bool CollectiveOperation::localWork(Round& round, LocalQueue& queue) {
  if (queue.steps.empty() || round.isStuck) return false;
  const std::uint32_t index = queue.steps.front();
  const bool isNew = queue.piece == 0 && queue.element == 0;
  if (isNew) mark(round, index);
  const Step& step = request_.schedule->schedule().steps[round.bound->local->ops[index].index];
  if ((isNew && wholeStep(round, index, step)) || localSlice(round, queue, step)) {
    queue.steps.pop_front();
    queue.piece = 0;
    queue.element = 0;
    letGoOfInputs(round, step);
    finishOp(round, index);
  }
  return true;
}

namespace {

bool phantom(const Buffer& to, std::span<const Buffer> from) {
  return to.kind == MemoryKind::Phantom ||
         std::any_of(from.begin(), from.end(),
                     [](const Buffer& b) { return b.kind == MemoryKind::Phantom; });
}

}  // namespace

// The whole of a small step whose data are in one place each, as they are in most calls that take
// little time; false: it is none.
bool CollectiveOperation::wholeStep(Round& round, std::uint32_t index, const Step& step) {
  const Binding& b = *round.bound;
  const Binding::Op& op = b.ops[index];
  const std::uint64_t bytes = op.at.bytes;
  if (bytes == 0) return true;
  if (bytes * (step.inputCount + 1) > kWholeBytes) return false;
  std::byte* const to = addressOf(round, op.at);
  if (to == nullptr) return false;
  const auto& recvs = b.local->inputRecv;
  const auto operandOf = [&](std::uint32_t i) {
    const std::uint32_t recv = recvs.empty() ? kNoOp : recvs[step.firstInput + i];
    return recv != kNoOp ? round.located[recv].data
                         : addressOf(round, b.inputPlaces[op.firstInput + i]);
  };
  if (step.kind == StepKind::Copy) {
    const std::byte* const from = operandOf(0);
    if (from == nullptr) return false;
    if (to != from) copy(to, from, bytes);
    return true;
  }
  const Schedule& s = request_.schedule->schedule();
  auto& operands = channel_.operands(step.inputCount).inputs;
  for (std::uint32_t i = 0; i < step.inputCount; ++i) {
    operands[i] = {operandOf(i), s.inputs[step.firstInput + i].width};
    if (operands[i].data == nullptr) return false;
  }
  const ReduceSpec spec{request_.dtype, request_.op,     step.to.width,
                        step.divisor,   request_.factor, bytes};
  reduce(spec, to, operands, bytes / b.widthBytes(step.to.width));
  return true;
}

// Works on one step for about kSliceBytes; true when the step is over.
bool CollectiveOperation::localSlice(Round& round, LocalQueue& queue, const Step& step) {
  const Schedule& s = request_.schedule->schedule();
  const Binding& b = *round.bound;
  const auto pieces = s.piecesOf(step.to);
  const auto inputs = s.inputsOf(step);
  const auto& recvs = round.bound->local->inputRecv;
  const auto recvOf = [&](std::size_t i) {
    return recvs.empty() ? kNoOp : recvs[step.firstInput + i];
  };
  std::uint64_t budget = recvs.empty() ? kSliceBytes : kMappedSliceBytes;
  auto& [from, operands] = channel_.operands(inputs.size());
  while (queue.piece < pieces.size()) {
    const Piece& piece = pieces[queue.piece];
    const std::uint64_t left = b.cell(piece).count - queue.element;
    if (left == 0) {
      ++queue.piece;
      queue.element = 0;
      continue;
    }
    const std::uint64_t perElement =
        b.widthBytes(step.to.width) + inputs.size() * b.widthBytes(Width::Accumulator);
    std::uint64_t count = left;
    if (count * perElement > budget) {
      count = std::min(left, std::max<std::uint64_t>(64, budget / perElement));
    }
    // A piece may lie in several parts of the caller's memory.
    const auto fit = [&](const Buffer& in, Width width) {
      const std::uint64_t bytes = b.widthBytes(width);
      if (in.bytes < count * bytes) count = in.bytes / bytes;
    };
    const Buffer to = place(round, step.to, piece, queue.element, count);
    fit(to, step.to.width);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (recvOf(i) != kNoOp) {
        count = std::min(count, Channel::kScratchBytes / b.widthBytes(inputs[i].width));
        continue;
      }
      from[i] = place(round, inputs[i], s.piecesOf(inputs[i])[queue.piece], queue.element, count);
      fit(from[i], inputs[i].width);
      operands[i] = {from[i].address, inputs[i].width};
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (recvOf(i) == kNoOp) continue;
      const std::uint64_t width = b.widthBytes(inputs[i].width);
      std::uint64_t offset = queue.element * width;
      for (std::size_t p = 0; p < queue.piece; ++p) offset += b.cell(pieces[p]).count * width;
      operands[i] = {mappedOperand(round, recvOf(i), offset, count * width, i, inputs.size()),
                     inputs[i].width};
      if (operands[i].data == nullptr) return false;
    }
    if (phantom(to, from)) {
      queue.element += left;
      continue;
    }
    if (step.kind == StepKind::Copy) {
      const std::uint64_t bytes = count * b.widthBytes(step.to.width);
      const bool isLarge = step.to.space == Space::Output && inputs[0].space == Space::Input &&
                           request_.output.bytes() >= kStreamedBytes;
      // The two are the same memory or apart.
      if (to.address != from[0].address) {
        (isLarge ? streamCopy : copy)(to.address, from[0].address, bytes);
      }
    } else {
      const ReduceSpec spec{request_.dtype,  request_.op,
                            step.to.width,   step.divisor,
                            request_.factor, b.cell(piece).count * b.widthBytes(step.to.width)};
      reduce(spec, to.address, operands, count);
    }
    queue.element += count;
    const std::uint64_t cost = count * perElement;
    if (cost >= budget) return false;
    budget -= cost;
  }
  return true;
}

void CollectiveOperation::release() {
  if (stageBytes_ > 0 && started_) channel_.stage().give(stageOffset_);
  stageBytes_ = 0;
  rounds_.clear();
  request_.keepAlive.reset();
  Operation::release();
}

void CollectiveOperation::describe(CallRecord& record) const {
  record.stamp = stamp();
  if (!supplied()) return;
  record.bytes = request_.input.bytes();
  copyText(request_.schedule->schedule().name, record.route);
}

std::string CollectiveOperation::describe() const { return byway::describe(stamp()); }

void CollectiveOperation::mark(Round& round, std::uint32_t index) const {
  if (channel_.trace() == nullptr) return;
  round.issuedAt.resize(round.state.size());
  round.issuedAt[index] = channel_.transport().clock().now();
}

void CollectiveOperation::trace(const Round& round, std::uint32_t index) const {
  TraceLog* const log = channel_.trace();
  if (log == nullptr) return;
  const Schedule& s = request_.schedule->schedule();
  const LocalOp& op = round.bound->local->ops[index];
  const bool isStep = op.kind == LocalKind::Reduce || op.kind == LocalKind::Copy;
  const Ref& ref = isStep                       ? s.steps[op.index].to
                   : op.kind == LocalKind::Send ? s.transfers[op.index].from
                                                : s.transfers[op.index].to;
  std::uint64_t bytes = 0;
  for (const Piece& piece : s.piecesOf(ref)) bytes += round.bound->range(ref, piece).bytes;
  if (bytes == 0) return;
  const auto phase = std::find_if(s.phases.begin(), s.phases.end(), [&](const Phase& p) {
    return op.index < (isStep ? p.firstStep + p.stepCount : p.firstTransfer + p.transferCount);
  });
  const int number = static_cast<int>(phase - s.phases.begin());
  const Seconds now = channel_.transport().clock().now();
  const auto r = static_cast<int>(round.number);
  if (isStep) {
    log->add(TraceLog::Step{sequence(), op.kind == LocalKind::Reduce, s.steps[op.index].inputCount,
                            bytes, number, r, op.index, round.issuedAt[index], now});
    return;
  }
  const Transfer& t = s.transfers[op.index];
  const bool sends = op.kind == LocalKind::Send;
  const Piece& first = s.piecesOf(ref)[0];
  log->add(TraceLog::Transfer{sequence(), op.index, 0, sends, sends ? t.to.rank : t.from.rank,
                              bytes, number, r, first.block, first.share, ref.count,
                              round.issuedAt[index], now});
}

CollectiveOperation::Outstanding CollectiveOperation::transfersUnderWay() const {
  Outstanding ranks;
  if (!supplied()) return ranks;
  const Schedule& s = request_.schedule->schedule();
  for (const auto& round : rounds_) {
    for (std::size_t i = 0; i < round->state.size(); ++i) {
      if (round->state[i] != OpState::Issued) continue;
      const LocalOp& op = round->bound->local->ops[i];
      if (op.kind == LocalKind::Send) ranks.to.insert(s.transfers[op.index].to.rank);
      if (op.kind == LocalKind::Recv) ranks.from.insert(s.transfers[op.index].from.rank);
    }
  }
  return ranks;
}

std::set<int> CollectiveOperation::waitsFor() const {
  Outstanding ranks = transfersUnderWay();
  ranks.from.merge(ranks.to);
  return ranks.from;
}

std::string CollectiveOperation::outstanding() const {
  if (!supplied()) return "what it needs to know had not come from the other ranks";
  if (!started_) return "it had not started: an earlier call was under way";
  const auto [from, to] = transfersUnderWay();
  std::string text;
  if (!from.empty()) text += fmt::format("waiting for data from ranks {}", fmt::join(from, ", "));
  if (!to.empty()) {
    text += fmt::format("{}waiting for ranks {} to take data", text.empty() ? "" : "; ",
                        fmt::join(to, ", "));
  }
  return text.empty() ? "nothing was outstanding on this rank" : text;
}

}  // namespace byway
