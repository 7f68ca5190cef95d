// SPDX-License-Identifier: BSD-3-Clause
#include "byway/tools/trace/merge.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "byway/tools/trace/parts.h"

namespace byway::tools {
namespace {

using Json = nlohmann::ordered_json;

// Which side's record of which message: communicator, call, transfer, round, tag, from, to.
using MessageId =
    std::tuple<std::string, std::int64_t, std::uint64_t, int, std::uint64_t, int, int>;

MessageId idOf(const TracePart& part, const TracedTransfer& t) {
  return {
      part.communicator,           t.sequence, t.id, t.round, t.tag, t.sends ? part.rank : t.peer,
      t.sends ? t.peer : part.rank};
}

// One bar.
struct Span {
  Seconds start = 0, end = 0;
  std::string name;
  Json arguments;
};

class Merger {
 public:
  explicit Merger(const std::vector<TracePart>& parts) : parts_(parts) {
    findProcesses();
    findTimes();
    for (const TracePart& part : parts_) {
      for (const TracedTransfer& t : part.transfers) {
        if (t.sends) sent_[idOf(part, t)] = at(part, t.issued);
      }
    }
  }

  MergedTrace run() {
    for (std::size_t p = 0; p < pids_.size(); ++p) writeProcess(static_cast<int>(p));
    result_.ranks = pids_.size();
    const Json document{{"displayTimeUnit", "ms"},
                        {"otherData", {{"writer", "byway trace"}, {"hosts", result_.hosts}}},
                        {"traceEvents", std::move(events_)}};
    result_.json = document.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
    return std::move(result_);
  }

 private:
  int processOf(const TracePart& part) const { return processes_.at({part.process, part.pid}); }

  void findProcesses() {
    std::set<std::string> boots;
    for (const TracePart& part : parts_) {
      boots.insert(part.boot);
      const std::pair<int, std::int64_t> process{part.process, part.pid};
      if (processes_.try_emplace(process, static_cast<int>(pids_.size())).second) {
        pids_.push_back(process);
      }
      ranks_[part.communicator][part.rank] = process;
    }
    result_.hosts = boots.size();
  }

  // Seconds on a clock of all: the monotonic one where there is one host, else each host's own
  // clock of the day.
  Seconds at(const TracePart& part, Seconds time) const {
    return time + (result_.hosts > 1 ? part.realtime : 0) - origin_;
  }
  void findTimes() {
    Seconds first = kNever;
    for (const TracePart& part : parts_) {
      for (const auto& c : part.calls) first = std::min(first, at(part, c.created));
      for (const auto& t : part.transfers) first = std::min(first, at(part, t.issued));
      for (const auto& s : part.steps) first = std::min(first, at(part, s.start));
    }
    origin_ = first < kNever ? first : 0;
  }

  std::string nameOf(const std::pair<int, std::int64_t>& process) const {
    const auto same = std::count_if(pids_.begin(), pids_.end(),
                                    [&](const auto& p) { return p.first == process.first; });
    return same == 1 ? fmt::format("rank {}", process.first)
                     : fmt::format("rank {} (pid {})", process.first, process.second);
  }

  void describe(const char* what, int pid, int tid, const Json& arguments) {
    events_.push_back(
        {{"ph", "M"}, {"name", what}, {"pid", pid}, {"tid", tid}, {"args", arguments}});
  }
  void track(int pid, int tid, const std::string& name) {
    describe("thread_name", pid, tid, {{"name", name}});
    describe("thread_sort_index", pid, tid, {{"sort_index", tid}});
  }
  void bar(int pid, int tid, const char* category, const Span& span) {
    const auto microseconds = [](Seconds time) { return std::round(time * 1e9) / 1e3; };
    const double start = microseconds(span.start);
    events_.push_back({{"ph", "X"},
                       {"name", span.name},
                       {"cat", category},
                       {"pid", pid},
                       {"tid", tid},
                       {"ts", start},
                       {"dur", std::round((microseconds(span.end) - start) * 1e3) / 1e3},
                       {"args", span.arguments}});
  }

  // Bars that overlap stand on tracks of their own.
  void tracks(int pid, int firstTid, const std::string& name, const char* category,
              std::vector<Span> spans) {
    std::stable_sort(spans.begin(), spans.end(),
                     [](const Span& a, const Span& b) { return a.start < b.start; });
    std::vector<Seconds> ends;
    for (const Span& span : spans) {
      const auto free =
          std::find_if(ends.begin(), ends.end(), [&](Seconds end) { return end <= span.start; });
      const int lane = static_cast<int>(free - ends.begin());
      if (free == ends.end()) {
        ends.push_back(0);
        track(pid, firstTid + lane, lane == 0 ? name : fmt::format("{} ({})", name, lane + 1));
      }
      ends[static_cast<std::size_t>(lane)] = span.end;
      bar(pid, firstTid + lane, category, span);
    }
  }

  void writeProcess(int pid) {
    constexpr int kLinks = 1000, kSteps = 100000;
    describe("process_name", pid, 0, {{"name", nameOf(pids_[static_cast<std::size_t>(pid)])}});
    describe("process_sort_index", pid, 0, {{"sort_index", pid}});
    std::vector<Span> calls, steps;
    std::map<int, std::vector<Span>> links;  // by the process that sends
    for (const TracePart& part : parts_) {
      if (processOf(part) != pid) continue;
      for (const TracedCall& call : part.calls) calls.push_back(spanOf(part, call));
      for (const TracedStep& step : part.steps) steps.push_back(spanOf(part, step));
      for (const TracedTransfer& t : part.transfers) {
        if (!t.sends) links[senderOf(part, t)].push_back(spanOf(part, t));
      }
    }
    result_.calls += calls.size();
    result_.steps += steps.size();
    tracks(pid, 1, "calls", "call", std::move(calls));
    for (auto& [from, spans] : links) {
      result_.transfers += spans.size();
      oneAfterAnother(spans);
      const std::string name =
          from < 0 ? "from a rank without a trace"
                   : fmt::format("from {}", nameOf(pids_[static_cast<std::size_t>(from)]));
      track(pid, kLinks + from, name);
      for (const Span& span : spans) bar(pid, kLinks + from, "transfer", span);
    }
    tracks(pid, kSteps, "local steps", "step", std::move(steps));
  }

  int senderOf(const TracePart& part, const TracedTransfer& t) const {
    const auto& ranks = ranks_.at(part.communicator);
    const auto found = ranks.find(t.peer);
    return found == ranks.end() ? -1 : processes_.at(found->second);
  }

  // A link carries a message once it was sent and its receive was posted, and the one before is
  // through.
  static void oneAfterAnother(std::vector<Span>& spans) {
    std::stable_sort(spans.begin(), spans.end(),
                     [](const Span& a, const Span& b) { return a.end < b.end; });
    Seconds free = -kNever;
    for (Span& span : spans) {
      span.start = std::min(std::max(span.start, free), span.end);
      free = span.end;
    }
  }

  Span spanOf(const TracePart& part, const TracedCall& call) const {
    Json arguments{{"communicator", part.name},
                   {"rank", part.rank},
                   {"sequence", call.sequence},
                   {"bytes", call.bytes},
                   {"state", call.state}};
    if (call.sequence >= 0) {
      arguments["route"] = call.route;
      arguments["plan"] = call.plan;
    }
    if (call.started >= 0) arguments["waited_us"] = (call.started - call.created) * 1e6;
    return {at(part, call.created), at(part, call.ended), call.call, std::move(arguments)};
  }

  Span spanOf(const TracePart& part, const TracedTransfer& t) const {
    const auto sent = sent_.find(idOf(part, t));
    const Seconds posted = at(part, t.issued);
    Json arguments{{"communicator", part.name},
                   {"sequence", t.sequence},
                   {"transfer", t.id},
                   {"bytes", t.bytes},
                   {"posted_us", posted * 1e6}};
    if (sent != sent_.end()) arguments["sent_us"] = sent->second * 1e6;
    std::string name = fmt::format("message {}, tag {}", t.id, t.tag);
    if (t.sequence >= 0) {
      name = fmt::format("transfer {}", t.id);
      arguments["phase"] = t.phase;
      arguments["round"] = t.round;
      arguments["block"] = t.block;
      arguments["share"] = t.share;
      arguments["pieces"] = t.pieces;
    } else {
      arguments["tag"] = t.tag;
    }
    const Seconds start = sent == sent_.end() ? posted : std::max(posted, sent->second);
    return {start, std::max(start, at(part, t.done)), std::move(name), std::move(arguments)};
  }

  Span spanOf(const TracePart& part, const TracedStep& s) const {
    return {at(part, s.start),
            at(part, s.end),
            s.reduces ? fmt::format("sum of {}", s.inputs) : "copy",
            {{"communicator", part.name},
             {"sequence", s.sequence},
             {"step", s.id},
             {"bytes", s.bytes},
             {"phase", s.phase},
             {"round", s.round}}};
  }

  const std::vector<TracePart>& parts_;
  std::map<std::pair<int, std::int64_t>, int> processes_;  // rank of the job and pid, to the index
  std::vector<std::pair<int, std::int64_t>> pids_;
  std::map<std::string, std::map<int, std::pair<int, std::int64_t>>> ranks_;  // by communicator
  std::map<MessageId, Seconds> sent_;
  Seconds origin_ = 0;
  Json events_ = Json::array();
  MergedTrace result_;
};

}  // namespace

MergedTrace mergeTrace(const std::string& folder) {
  const auto parts = readParts(folder);
  return Merger(parts).run();
}

}  // namespace byway::tools
