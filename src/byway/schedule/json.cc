// SPDX-License-Identifier: BSD-3-Clause
#include "byway/schedule/json.h"

#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "byway/schedule/json_reader.h"

namespace byway {
namespace {

using Bounds = ScheduleBounds;

const char* nameOf(Width width) { return width == Width::Element ? "element" : "accumulator"; }

class Writer {
 public:
  explicit Writer(const Schedule& schedule) : s_(schedule) {}

  std::string write() && {
    add("{{\"byway\": \"schedule\", \"version\": 1, \"name\": {}, \"collective\": \"{}\", "
        "\"ranks\": {},\n",
        jsonQuoted(s_.name), toString(s_.shape.collective), s_.shape.ranks);
    list("groups", s_.shape.groups, [&](const Group& group) {
      add("{{\"ranks\": [{}], \"root\": {}}}", fmt::join(group.ranks, ", "), group.root);
    });
    list("blocks", s_.shape.blocks, [&](const Block& block) {
      add("{{\"group\": {}, \"source\": {}, \"destination\": {}, \"shares\": [{}], "
          "\"direct_shares\": {}}}",
          block.group, block.source, block.destination, fmt::join(block.shares, ", "),
          block.directShares);
    });
    list("phases", s_.phases, [&](const Phase& one) { phase(one); });
    add(" \"slots\": [{}]}}\n", fmt::join(s_.slots, ", "));
    return std::move(text_);
  }

 private:
  template <typename... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
  }

  // One element a line.
  template <typename Range, typename Write>
  void list(const char* name, const Range& range, const Write& writeOne) {
    add(" \"{}\": [", name);
    bool first = true;
    for (const auto& one : range) {
      text_ += first ? "\n  " : ",\n  ";
      first = false;
      writeOne(one);
    }
    text_ += "],\n";
  }

  void phase(const Phase& phase) {
    add("{{\"transfers\": [");
    for (std::uint32_t i = 0; i < phase.transferCount; ++i) {
      const auto& transfer = s_.transfers[phase.firstTransfer + i];
      add("{}{{\"from\": {}, \"to\": {}}}", i == 0 ? "\n    " : ",\n    ", ref(transfer.from),
          ref(transfer.to));
    }
    add("],\n   \"steps\": [");
    for (std::uint32_t i = 0; i < phase.stepCount; ++i) {
      add("{}", i == 0 ? "\n    " : ",\n    ");
      step(s_.steps[phase.firstStep + i]);
    }
    add("],\n   \"protocol\": \"{}\"}}", toString(phase.protocol));
  }

  void step(const Step& step) {
    std::vector<std::string> inputs;
    for (const auto& input : s_.inputsOf(step)) inputs.push_back(ref(input));
    switch (step.kind) {
      case StepKind::Reduce:
        add("{{\"kind\": \"reduce\", \"to\": {}, \"inputs\": [{}], \"divisor\": {}}}", ref(step.to),
            fmt::join(inputs, ", "), step.divisor);
        break;
      case StepKind::Copy:
        add("{{\"kind\": \"copy\", \"to\": {}, \"from\": {}, \"skip_when_aliased\": {}}}",
            ref(step.to), fmt::join(inputs, ", "), step.skipWhenAliased);
        break;
    }
  }

  std::string ref(const Ref& ref) const {
    std::string pieces;
    for (const auto& piece : s_.piecesOf(ref)) {
      pieces += pieces.empty() ? "" : ", ";
      pieces += ref.space == Space::Stage
                    ? fmt::format("[{}, {}, {}]", piece.block, piece.share, piece.slot)
                    : fmt::format("[{}, {}]", piece.block, piece.share);
    }
    return fmt::format("{{\"space\": \"{}\", \"width\": \"{}\", \"rank\": {}, \"pieces\": [{}]}}",
                       toString(ref.space), nameOf(ref.width), ref.rank, pieces);
  }

  const Schedule& s_;
  std::string text_;
};

class Reader {
 public:
  Schedule read(const JsonReader& root) && {
    root.expectKind("schedule");
    root.onlyFields(
        {"byway", "version", "name", "collective", "ranks", "groups", "blocks", "phases", "slots"});
    s_.name = root.field("name").text();
    shape(root);
    for (const auto& one : root.field("phases").elements(Bounds::kPhases)) phase(one);
    slots(root.field("slots"));
    return std::move(s_);
  }

 private:
  void shape(const JsonReader& root) {
    const auto collective = root.field("collective");
    const auto parsed = parseCollective(collective.text());
    if (!parsed) collective.fail(fmt::format("{} is no collective", jsonQuoted(collective.text())));
    s_.shape.collective = *parsed;
    s_.shape.ranks = static_cast<int>(root.field("ranks").integer(1, Bounds::kRanks));
    std::size_t blocks = 0;
    for (const auto& one : root.field("groups").elements(Bounds::kRanks)) {
      s_.shape.groups.push_back(group(one));
      blocks += static_cast<std::size_t>(
          blocksPerGroup(s_.shape.collective, s_.shape.groups.back().size()));
    }
    const auto list = root.field("blocks");
    const auto found = list.elements(Bounds::kPlaces);
    if (found.size() != blocks) {
      list.fail(fmt::format("has {} elements; the groups have {} blocks", found.size(), blocks));
    }
    std::size_t shares = 0;
    for (const auto& one : found) {
      s_.shape.blocks.push_back(block(one));
      shares += s_.shape.blocks.back().shares.size();
    }
    if (shares * static_cast<std::size_t>(s_.shape.ranks) > Bounds::kPlaces) {
      list.fail(fmt::format("{} shares on {} ranks are more than the {} places allowed", shares,
                            s_.shape.ranks, Bounds::kPlaces));
    }
  }

  Group group(const JsonReader& json) const {
    json.onlyFields({"ranks", "root"});
    Group result;
    const auto most = static_cast<std::uint64_t>(s_.shape.ranks) - 1;
    for (const auto rank : json.field("ranks").unsignedList(Bounds::kRanks, most)) {
      result.ranks.push_back(static_cast<int>(rank));
    }
    result.root = static_cast<int>(json.field("root").integer(0, Bounds::kRanks));
    return result;
  }

  Block block(const JsonReader& json) const {
    json.onlyFields({"group", "source", "destination", "shares", "direct_shares"});
    Block result;
    result.group = static_cast<int>(json.field("group").integer(0, Bounds::kRanks));
    result.source = static_cast<int>(json.field("source").integer(-1, Bounds::kRanks));
    result.destination = static_cast<int>(json.field("destination").integer(-1, Bounds::kRanks));
    result.shares = json.field("shares").unsignedList(Bounds::kPlaces, kWhole);
    result.directShares = static_cast<int>(json.field("direct_shares").integer(0, Bounds::kPlaces));
    return result;
  }

  static Protocol protocol(const JsonReader& json) {
    for (const Protocol one : {Protocol::Messages, Protocol::Mapped}) {
      if (json.text() == toString(one)) return one;
    }
    json.fail(
        fmt::format("{} is no protocol; there are messages and mapped", jsonQuoted(json.text())));
  }

  void phase(const JsonReader& json) {
    json.onlyFields({"transfers", "steps", "protocol"});
    Phase phase;
    if (const auto named = json.optionalField("protocol")) phase.protocol = protocol(*named);
    phase.firstTransfer = static_cast<std::uint32_t>(s_.transfers.size());
    phase.firstStep = static_cast<std::uint32_t>(s_.steps.size());
    const auto transfers = json.field("transfers");
    for (const auto& one : transfers.elements(Bounds::kOperations - s_.transfers.size())) {
      one.onlyFields({"from", "to"});
      const auto from = ref(one.field("from"));
      s_.transfers.push_back({from, ref(one.field("to"))});
    }
    for (const auto& one : json.field("steps").elements(Bounds::kOperations - s_.steps.size())) {
      step(one);
    }
    phase.transferCount = static_cast<std::uint32_t>(s_.transfers.size()) - phase.firstTransfer;
    phase.stepCount = static_cast<std::uint32_t>(s_.steps.size()) - phase.firstStep;
    s_.phases.push_back(phase);
  }

  void step(const JsonReader& json) {
    Step step;
    const auto kind = json.field("kind");
    std::vector<Ref> inputs;
    if (kind.text() == "reduce") {
      json.onlyFields({"kind", "to", "inputs", "divisor"});
      step.kind = StepKind::Reduce;
      step.divisor = static_cast<std::uint32_t>(json.field("divisor").integer(1, Bounds::kRanks));
      step.to = ref(json.field("to"));
      for (const auto& one : json.field("inputs").elements(Bounds::kPieces)) {
        inputs.push_back(ref(one));
      }
    } else if (kind.text() == "copy") {
      json.onlyFields({"kind", "to", "from", "skip_when_aliased"});
      step.kind = StepKind::Copy;
      step.skipWhenAliased = json.field("skip_when_aliased").boolean();
      step.to = ref(json.field("to"));
      inputs.push_back(ref(json.field("from")));
    } else {
      kind.fail(fmt::format("{} is neither reduce nor copy", jsonQuoted(kind.text())));
    }
    step.firstInput = static_cast<std::uint32_t>(s_.inputs.size());
    step.inputCount = static_cast<std::uint32_t>(inputs.size());
    s_.inputs.insert(s_.inputs.end(), inputs.begin(), inputs.end());
    s_.steps.push_back(step);
  }

  Ref ref(const JsonReader& json) {
    json.onlyFields({"space", "width", "rank", "pieces"});
    Ref result;
    result.space = space(json.field("space"));
    result.width = width(json.field("width"));
    result.rank = static_cast<std::int32_t>(json.field("rank").integer(0, s_.shape.ranks - 1));
    result.first = static_cast<std::uint32_t>(s_.pieces.size());
    const std::size_t numbers = result.space == Space::Stage ? 3 : 2;
    for (const auto& one : json.field("pieces").elements(Bounds::kPieces - s_.pieces.size())) {
      const auto piece = one.unsignedList(numbers, Bounds::kPlaces);
      if (piece.size() != numbers) {
        one.fail(numbers == 3 ? "must be [block, share, slot]" : "must be [block, share]");
      }
      s_.pieces.push_back({static_cast<std::uint32_t>(piece[0]),
                           static_cast<std::uint32_t>(piece[1]),
                           numbers == 3 ? static_cast<std::uint32_t>(piece[2]) : 0});
    }
    result.count = static_cast<std::uint32_t>(s_.pieces.size()) - result.first;
    return result;
  }

  static Space space(const JsonReader& json) {
    for (const auto one : {Space::Input, Space::Output, Space::Stage}) {
      if (json.text() == toString(one)) return one;
    }
    json.fail(fmt::format("{} is none of input, output, stage", jsonQuoted(json.text())));
  }

  static Width width(const JsonReader& json) {
    for (const auto one : {Width::Element, Width::Accumulator}) {
      if (json.text() == nameOf(one)) return one;
    }
    json.fail(fmt::format("{} is neither element nor accumulator", jsonQuoted(json.text())));
  }

  void slots(const JsonReader& json) {
    const auto ranks = static_cast<std::size_t>(s_.shape.ranks);
    std::size_t total = 0;
    for (const auto count : json.unsignedList(ranks, Bounds::kSlots)) {
      s_.slots.push_back(static_cast<std::uint32_t>(count));
      total += count;
    }
    if (s_.slots.size() != ranks) {
      json.fail(fmt::format("has {} elements for {} ranks", s_.slots.size(), ranks));
    }
    if (total > Bounds::kSlots) {
      json.fail(fmt::format("{} slots, more than the {} allowed", total, Bounds::kSlots));
    }
  }

  Schedule s_;
};

}  // namespace

std::string toJson(const Schedule& schedule) { return Writer(schedule).write(); }

Schedule scheduleFromJson(std::string_view json, const std::string& source) {
  return Reader().read(JsonReader::parse(json, source, Bounds::kTextBytes));
}

}  // namespace byway
