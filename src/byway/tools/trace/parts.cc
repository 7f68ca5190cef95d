// SPDX-License-Identifier: BSD-3-Clause
#include "byway/tools/trace/parts.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <tuple>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "byway/base/error.h"

namespace byway::tools {
namespace {

using Json = nlohmann::json;

void readHeader(const Json& json, TracePart& part) {
  if (json.at("byway") != "trace" || json.at("version") != 1) {
    throw Error(ErrorCode::InvalidArgument, "it is no trace of this version of Byway");
  }
  json.at("communicator").get_to(part.communicator);
  json.at("name").get_to(part.name);
  json.at("boot").get_to(part.boot);
  json.at("rank").get_to(part.rank);
  json.at("ranks").get_to(part.ranks);
  json.at("process").get_to(part.process);
  json.at("pid").get_to(part.pid);
  json.at("realtime_s").get_to(part.realtime);
}

TracedCall callOf(const Json& json) {
  return {json.at("seq"),     json.at("call"),    json.at("route"),
          json.at("plan"),    json.at("state"),   json.at("bytes"),
          json.at("created"), json.at("started"), json.at("ended")};
}

TracedTransfer transferOf(const Json& json, bool sends) {
  return {sends,
          json.at("seq"),
          json.at("id"),
          json.at("tag"),
          json.at("bytes"),
          json.at("pieces"),
          json.at("peer"),
          json.at("phase"),
          json.at("round"),
          json.at("block"),
          json.at("share"),
          json.at("issued"),
          json.at("done")};
}

TracedStep stepOf(const Json& json, bool reduces) {
  return {reduces,          json.at("seq"),   json.at("id"),    json.at("inputs"), json.at("bytes"),
          json.at("phase"), json.at("round"), json.at("start"), json.at("end")};
}

void readLine(const Json& json, TracePart& part) {
  const std::string kind = json.at("k");
  if (kind == "call")
    part.calls.push_back(callOf(json));
  else if (kind == "send" || kind == "recv")
    part.transfers.push_back(transferOf(json, kind == "send"));
  else if (kind == "reduce" || kind == "copy")
    part.steps.push_back(stepOf(json, kind == "reduce"));
  else
    throw Error(ErrorCode::InvalidArgument, fmt::format("\"{}\" is no kind of event", kind));
}

TracePart readPart(const std::string& path) {
  std::ifstream in(path);
  TracePart part;
  std::string text;
  for (int line = 1; std::getline(in, text); ++line) {
    // A process that was killed may have left half a line.
    if (in.eof() && line > 1) break;
    try {
      const Json json = Json::parse(text);
      if (line == 1)
        readHeader(json, part);
      else
        readLine(json, part);
    } catch (const std::exception& error) {
      throw Error(ErrorCode::InvalidArgument, fmt::format("{}:{}: {}", path, line, error.what()));
    }
  }
  return part;
}

}  // namespace

std::vector<TracePart> readParts(const std::string& folder) {
  std::error_code error;
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("trace-") && name.ends_with(".jsonl")) paths.push_back(entry.path());
  }
  if (error) {
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("cannot read the folder {}: {}", folder, error.message()));
  }
  if (paths.empty()) {
    throw Error(
        ErrorCode::InvalidArgument,
        fmt::format("{} holds no trace; run the program with BYWAY_TRACE={}", folder, folder));
  }
  std::vector<TracePart> parts;
  parts.reserve(paths.size());
  for (const std::string& path : paths) parts.push_back(readPart(path));
  std::erase_if(parts, [](const TracePart& part) { return part.communicator.empty(); });
  std::sort(parts.begin(), parts.end(), [](const TracePart& a, const TracePart& b) {
    return std::tie(a.process, a.pid, a.name, a.communicator) <
           std::tie(b.process, b.pid, b.name, b.communicator);
  });
  return parts;
}

}  // namespace byway::tools
