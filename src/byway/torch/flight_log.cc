// SPDX-License-Identifier: BSD-3-Clause
#include "byway/torch/flight_log.h"

#include <ATen/core/Dict.h>
#include <ATen/core/List.h>
#include <ATen/core/ivalue.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <functional>
#include <mutex>
#include <numeric>
#include <string_view>
#include <utility>

#include <torch/csrc/jit/serialization/pickle.h>

#include "byway/comm/recording.h"

namespace byway::pytorch {
namespace {

using Clock = std::chrono::system_clock;
using Sizes = std::vector<std::int64_t>;

struct TensorList {
  std::vector<Sizes> sizes;
  std::vector<at::ScalarType> types;
};

// As it was made: names, and sizes as the tools have them, are made when it is read.
struct Entry {
  std::uint64_t number = 0;
  FlightCall call{};
  TensorList inputs, outputs;
  Clock::time_point created, ended;
  bool over = false, failed = false;
};

// The tools know the names of collectives below and those that are torch's records' too.
std::string_view nameInTools(std::string_view record) {
  static constexpr std::pair<std::string_view, std::string_view> kOthers[] = {
      {"allreduce", "all_reduce"},
      {"_allgather_base", "_all_gather_base"},
      {"allgather_coalesced", "ALLGATHER_coalesced"}};
  for (const auto& [ours, theirs] : kOthers) {
    if (record == ours) return theirs;
  }
  return record;
}

TensorList listOf(const Tensors& tensors) {
  TensorList list;
  for (const at::Tensor& tensor : tensors) {
    if (!tensor.defined()) continue;
    list.sizes.push_back(tensor.sizes().vec());
    list.types.push_back(tensor.scalar_type());
  }
  return list;
}

// A list of equal parts stands as one tensor of them all, as the tools expect it of all_gather and
// reduce_scatter; false where parts differ.
bool stack(TensorList& list) {
  if (list.sizes.empty()) return true;
  for (const Sizes& one : list.sizes) {
    if (one != list.sizes[0]) return false;
  }
  Sizes whole = list.sizes[0];
  whole.insert(whole.begin(), static_cast<std::int64_t>(list.sizes.size()));
  list.sizes = {std::move(whole)};
  list.types.resize(1);
  return true;
}

// A list of parts of any sizes stands as their number of elements, as the tools expect it of
// all_to_all.
void sum(TensorList& list) {
  std::int64_t elements = 0;
  for (const Sizes& one : list.sizes) {
    elements += std::accumulate(one.begin(), one.end(), std::int64_t{1}, std::multiplies<>());
  }
  list.sizes = {{elements}};
  if (list.types.size() > 1) list.types.resize(1);
}

// "gloo:all_reduce", "gloo:send 0->1"; "gloo:" since the tools take the names of the backends that
// they know only.
std::string nameOf(const FlightCall& call, TensorList& inputs, TensorList& outputs) {
  const std::string_view method = call.kind->name;
  std::string name = "gloo:";
  if (method.starts_with("fused")) return name + "coalesced";  // its lists differ from rank to rank
  name += nameInTools(call.kind->record);
  if (call.kind->type == c10d::OpType::ALLGATHER && !stack(outputs)) name += "_v";
  if (call.kind->type == c10d::OpType::REDUCE_SCATTER && !stack(inputs)) name += "_v";
  if (call.kind->type == c10d::OpType::ALLTOALL) {
    sum(inputs);
    sum(outputs);
  }
  if (!call.kind->isMessage) return name;
  const bool sends = call.kind->type == c10d::OpType::SEND;
  return name + " " + std::to_string(call.group->rank) + (sends ? "->" : "<-") +
         std::to_string(call.peer);
}

struct Log {
  std::mutex mutex;
  std::vector<Entry> entries;  // the call of number n at (n - 1) % size
  std::uint64_t made = 0;
  bool written = false;
  std::string folder;  // for calls that fail; "": none
};

Log& log() {
  static auto* const one = [] {
    auto* made = new Log();  // never destroyed: calls may end after this file's statics
    ChannelOptions options;
    readRecording(options);  // as it was when the first group was made, or that had failed
    made->entries.resize(options.recordedCalls);
    made->folder = options.recorderFolder;
    return made;
  }();
  return *one;
}

c10::impl::GenericDict newDict() {
  return c10::impl::GenericDict(c10::AnyType::get(), c10::AnyType::get());
}

c10::impl::GenericList newList() { return c10::impl::GenericList(c10::AnyType::get()); }

c10::IValue valueOf(const std::vector<Sizes>& sizes) {
  auto list = newList();
  for (const Sizes& one : sizes) list.push_back(c10::List<std::int64_t>(one));
  return list;
}

c10::IValue valueOf(const std::vector<at::ScalarType>& types) {
  auto list = newList();
  for (const at::ScalarType type : types) list.push_back(std::string(c10::toString(type)));
  return list;
}

std::int64_t nanoseconds(Clock::time_point when) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(when.time_since_epoch()).count();
}

c10::IValue valueOf(Entry entry) {
  const FlightCall& call = entry.call;
  const std::string name = nameOf(call, entry.inputs, entry.outputs);
  const bool done = entry.over && !entry.failed;
  auto dict = newDict();
  dict.insert("record_id", static_cast<std::int64_t>(entry.number - 1));
  dict.insert("pg_id", std::int64_t{0});
  dict.insert("process_group",
              c10::ivalue::Tuple::create({c10::IValue(call.group->name), call.group->description}));
  dict.insert("collective_seq_id", call.collectives);
  dict.insert("p2p_seq_id", call.messages);
  dict.insert("op_id", call.kind->isMessage ? call.messages : call.collectives);
  dict.insert("profiling_name", name);
  dict.insert("time_created_ns", nanoseconds(entry.created));
  if (done) {
    dict.insert("duration_ms",
                std::chrono::duration<double, std::milli>(entry.ended - entry.created).count());
  }
  dict.insert("input_sizes", valueOf(entry.inputs.sizes));
  dict.insert("input_dtypes", valueOf(entry.inputs.types));
  dict.insert("output_sizes", valueOf(entry.outputs.sizes));
  dict.insert("output_dtypes", valueOf(entry.outputs.types));
  dict.insert("state", done ? "completed" : "started");
  dict.insert("time_discovered_started_ns", nanoseconds(entry.created));
  dict.insert("time_discovered_completed_ns",
              entry.over ? c10::IValue(nanoseconds(entry.ended)) : c10::IValue());
  dict.insert("retired", entry.over);
  dict.insert("timeout_ms", call.timeoutMs);
  dict.insert("is_p2p", call.kind->isMessage);
  return dict;
}

std::string textOf(const std::vector<std::uint64_t>& ranks) {
  std::string text;
  for (const std::uint64_t rank : ranks) text += (text.empty() ? "" : ", ") + std::to_string(rank);
  return "[" + text + "]";
}

std::vector<Entry> keptCalls() {
  const std::scoped_lock lock(log().mutex);
  std::vector<Entry> kept;
  for (const Entry& entry : log().entries) {
    if (entry.number != 0) kept.push_back(entry);
  }
  std::sort(kept.begin(), kept.end(),
            [](const Entry& a, const Entry& b) { return a.number < b.number; });
  return kept;
}

void writeOnce(const FlightGroup& group) {
  if (log().folder.empty()) return;
  {
    const std::scoped_lock lock(log().mutex);
    if (std::exchange(log().written, true)) return;
  }
  const auto index = static_cast<std::size_t>(group.rank);
  const std::uint64_t rank = index < group.globalRanks.size() ? group.globalRanks[index]
                                                              : static_cast<std::uint64_t>(index);
  std::ofstream(log().folder + "/byway-flight-rank-" + std::to_string(rank), std::ios::binary)
      << flightRecord();
}

}  // namespace

std::uint64_t flightBegins(const FlightCall& call, const Tensors& inputs, const Tensors& outputs) {
  if (log().entries.empty()) return 0;
  Entry entry;
  entry.call = call;
  entry.inputs = listOf(inputs);
  entry.outputs = listOf(outputs);
  entry.created = Clock::now();
  const std::scoped_lock lock(log().mutex);
  entry.number = ++log().made;
  Entry& place = log().entries[(entry.number - 1) % log().entries.size()];
  std::swap(place, entry);  // the old one goes after the lock
  return place.number;
}

void flightEnds(std::uint64_t number, bool failed, int source) {
  if (number == 0) return;
  std::shared_ptr<const FlightGroup> group;
  {
    const std::scoped_lock lock(log().mutex);
    Entry& entry = log().entries[(number - 1) % log().entries.size()];
    if (entry.number != number) return;  // overwritten
    entry.over = true;
    entry.failed = failed;
    entry.ended = Clock::now();
    if (entry.call.kind->isMessage && entry.call.peer < 0) entry.call.peer = source;
    group = entry.call.group;
  }
  if (failed) writeOnce(*group);
}

std::string flightRecord() {
  auto entries = newList();
  auto groups = newDict();
  for (const Entry& entry : keptCalls()) {
    entries.push_back(valueOf(entry));
    const FlightGroup& group = *entry.call.group;
    auto about = newDict();
    about.insert("name", group.name);
    about.insert("desc", group.description);
    about.insert("ranks", textOf(group.globalRanks));
    groups.insert_or_assign(group.name, about);
  }
  auto record = newDict();
  record.insert("version", "2.10");
  record.insert("comm_lib_version", "byway");
  record.insert("pg_config", groups);
  record.insert("pg_status", newDict());
  record.insert("entries", entries);
  const std::vector<char> bytes = torch::jit::pickle(c10::IValue(record));
  return {bytes.begin(), bytes.end()};
}

}  // namespace byway::pytorch
