// SPDX-License-Identifier: BSD-3-Clause
// The bench's results file, written anew after every cell, from which a run that was ended goes on.
#pragma once

#include <string>
#include <vector>

#include "byway/tools/bench/measured.h"

namespace byway::tools {

struct Refused {
  std::string name, reason;
};

class ResultsFile {
 public:
  // `path` "": nothing is written. Results of other settings in the file are not taken.
  ResultsFile(std::string path, const BenchSettings& settings);

  // Takes over the cells of a file with equal settings, as many as are in `cells`. Throws
  // Error{InvalidArgument} where it cannot be read or has other settings.
  void resume(const std::string& path, const std::vector<DemoCell>& cells);
  // The same from the own file, where one is there that a run with equal settings left unfinished.
  void resumeUnfinished(const std::vector<DemoCell>& cells);

  bool has(const std::string& key) const;
  const std::vector<Measured>& cells() const { return cells_; }
  const std::vector<Refused>& refused() const { return refused_; }

  void refuse(const DemoCell& cell, std::string reason);
  void add(Measured cell);  // and write
  void add(std::vector<Measured> rows);
  void finish(const std::vector<Check>& checks);

 private:
  void take(const nlohmann::ordered_json& document, const std::vector<DemoCell>& cells);
  void write(bool complete, const std::vector<Check>& checks) const;

  std::string path_, settings_;  // the settings as JSON text
  std::string links_;            // in words
  std::vector<std::string> against_;
  std::vector<Measured> cells_;
  std::vector<Refused> refused_;
};

}  // namespace byway::tools
