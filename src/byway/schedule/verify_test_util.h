// SPDX-License-Identifier: BSD-3-Clause
// What the verifier's tests ask: accepted, or refused first of all by one rule.
#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "byway/schedule/verify.h"

namespace byway::testing_util {

inline std::string listed(const std::vector<Violation>& found) {
  std::string text;
  for (const Violation& v : found) text += "\n  V" + std::to_string(v.rule) + ": " + v.what;
  return text.empty() ? "\n  nothing" : text;
}

inline testing::AssertionResult accepted(const Schedule& schedule) {
  const auto found = violations(schedule);
  if (found.empty()) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "found:" << listed(found) << "\n" << toText(schedule);
}

// The first finding is of `rule` and says `text`.
inline testing::AssertionResult refusedBy(int rule, const std::string& text,
                                          const std::vector<Violation>& found) {
  if (!found.empty() && found[0].rule == rule && found[0].what.find(text) != std::string::npos) {
    return testing::AssertionSuccess();
  }
  return testing::AssertionFailure()
         << "expected V" << rule << ": ..." << text << "..., found:" << listed(found);
}
inline testing::AssertionResult refusedBy(int rule, const std::string& text,
                                          const Schedule& schedule) {
  return refusedBy(rule, text, violations(schedule));
}

}  // namespace byway::testing_util
