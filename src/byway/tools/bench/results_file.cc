// SPDX-License-Identifier: BSD-3-Clause
#include "byway/tools/bench/results_file.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "byway/base/error.h"
#include "byway/tools/files.h"
#include "byway/tools/version.h"

namespace byway::tools {
namespace {

using Json = nlohmann::ordered_json;

// All that a cell's result depends on and that its key does not say.
Json settingsOf(const BenchSettings& settings) {
  Json made{{"scenario", toString(settings.scenario)},
            {"clock", settings.isVirtual ? "virtual" : "real"},
            {"topology", fmt::format("{:016x}", settings.links.hash())},
            {"pairs", {settings.rule.least, settings.rule.most}},
            {"half_width", settings.rule.halfWidth},
            {"byway", versionText()}};
  if (!settings.against.empty()) made["against"] = settings.against;
  return made;
}

Json parsed(const std::string& path) {
  Json document = Json::parse(readFile(path), nullptr, false);
  if (document.is_object() && document.value("byway", "") == "results" &&
      document.contains("settings") && document.contains("rows") && document.contains("details")) {
    return document;
  }
  throw Error(ErrorCode::InvalidArgument, fmt::format("{} holds no results of byway bench", path));
}

}  // namespace

ResultsFile::ResultsFile(std::string path, const BenchSettings& settings)
    : path_(std::move(path)),
      settings_(settingsOf(settings).dump()),
      links_(settings.links.name),
      against_(settings.against) {}

void ResultsFile::resume(const std::string& path, const std::vector<DemoCell>& cells) {
  const Json document = parsed(path);
  if (document["settings"].dump() != settings_) {
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("--resume: {} has results of other settings: {}, now {}", path,
                            document["settings"].dump(), settings_));
  }
  try {
    take(document, cells);
  } catch (const Json::exception& error) {
    throw Error(ErrorCode::InvalidArgument, fmt::format("--resume: {}: {}", path, error.what()));
  }
}

void ResultsFile::resumeUnfinished(const std::vector<DemoCell>& cells) {
  std::error_code ignored;
  if (path_.empty() || path_ == "-" || !std::filesystem::is_regular_file(path_, ignored)) return;
  try {
    const Json document = parsed(path_);
    if (document["settings"].dump() != settings_ || document.value("complete", true)) return;
    take(document, cells);
  } catch (const Error&) {            // something else, which is written over
  } catch (const Json::exception&) {  // damaged
    cells_.clear();
  }
}

void ResultsFile::take(const Json& document, const std::vector<DemoCell>& cells) {
  std::set<std::string> wanted;
  for (const DemoCell& cell : cells) {
    if (against_.empty()) wanted.insert(keyOf(cell));
    for (const std::string& peer : against_) wanted.insert(keyAgainst(cell, peer));
  }
  for (std::size_t i = 0; i < document.at("rows").size(); ++i) {
    Measured cell = measuredOf(document.at("rows").at(i), document.at("details").at(i));
    if (wanted.count(cell.key) > 0 && !has(cell.key)) cells_.push_back(std::move(cell));
  }
}

bool ResultsFile::has(const std::string& key) const {
  return std::any_of(cells_.begin(), cells_.end(),
                     [&](const Measured& cell) { return cell.key == key; });
}

void ResultsFile::refuse(const DemoCell& cell, std::string reason) {
  refused_.push_back({cell.name(), std::move(reason)});
}

void ResultsFile::add(Measured cell) {
  cells_.push_back(std::move(cell));
  if (path_ != "-") write(false, {});
}

void ResultsFile::add(std::vector<Measured> rows) {
  for (Measured& row : rows) cells_.push_back(std::move(row));
  if (path_ != "-") write(false, {});
}

void ResultsFile::finish(const std::vector<Check>& checks) { write(true, checks); }

void ResultsFile::write(bool complete, const std::vector<Check>& checks) const {
  if (path_.empty()) return;
  const Json settings = Json::parse(settings_);
  Json document{{"byway", "results"},
                {"version", 1},
                {"command", "bench " + settings["scenario"].get<std::string>()},
                {"clock", settings["clock"]},
                {"links", links_},
                {"settings", settings},
                {"complete", complete},
                {"refused", Json::array()},
                {"checks", Json::array()},
                {"rows", Json::array()},
                {"details", Json::array()}};
  for (const Refused& one : refused_) {
    document["refused"].push_back({{"cell", one.name}, {"reason", one.reason}});
  }
  for (const Check& one : checks) {
    document["checks"].push_back({{"name", one.name}, {"held", one.held}, {"missed", one.missed}});
  }
  for (const Measured& cell : cells_) {
    document["rows"].push_back(rowOf(cell));
    document["details"].push_back(detailOf(cell));
  }
  writeFileAtomically(path_, document.dump(1) + "\n");
}

}  // namespace byway::tools
