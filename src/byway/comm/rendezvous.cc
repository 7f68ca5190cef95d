// SPDX-License-Identifier: BSD-3-Clause
#include "byway/comm/rendezvous.h"

#include <algorithm>
#include <exception>
#include <random>
#include <utility>

#include <fmt/format.h>

#include "byway/base/clock.h"
#include "byway/base/error.h"
#include "byway/base/hash.h"

namespace byway {
namespace {

// A record is a list of strings, each with its length in front.
void append(std::string& out, const std::string& text) {
  out += fmt::format("{} ", text.size()) + text;
}

std::vector<std::string> split(const std::string& record) {
  std::vector<std::string> parts;
  std::size_t at = 0;
  while (at < record.size()) {
    const std::size_t blank = record.find(' ', at);
    if (blank == std::string::npos || blank - at > 8 || blank == at) break;
    std::size_t bytes = 0;
    for (std::size_t i = at; i < blank; ++i)
      bytes = bytes * 10 + static_cast<std::size_t>(record[i] - '0');
    if (bytes > record.size() - blank - 1) break;
    parts.push_back(record.substr(blank + 1, bytes));
    at = blank + 1 + bytes;
  }
  return at == record.size() ? parts : std::vector<std::string>{};
}

std::vector<std::string> readAll(Store& store, const std::string& prefix,
                                 const std::vector<int>& ranks, Seconds remaining,
                                 Seconds timeout) {
  const Seconds until = SteadyClock::instance().now() + remaining;
  std::vector<std::string> records;
  std::string missing;
  for (const int rank : ranks) {
    const Seconds left = std::max(0.0, until - SteadyClock::instance().now());
    try {
      records.push_back(store.get(prefix + std::to_string(rank), left));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::Timeout) throw;
      records.emplace_back();
      missing += (missing.empty() ? "" : ", ") + std::to_string(rank);
    }
  }
  if (!missing.empty()) {
    throw Error(ErrorCode::Timeout, fmt::format("ranks {} did not join communicator {} within {} s",
                                                missing, prefix, timeout));
  }
  return records;
}

void compare(const std::vector<std::vector<std::string>>& records, const std::vector<int>& ranks,
             const Settings& settings) {
  for (std::size_t i = 0; i < settings.size(); ++i) {
    for (std::size_t r = 1; r < records.size(); ++r) {
      if (records[r][i + 1] == records[0][i + 1]) continue;
      throw Error(
          ErrorCode::InvalidArgument,
          fmt::format("ranks differ in {}: rank {} has \"{}\", rank {} has \"{}\"; give all "
                      "ranks the same",
                      settings[i].first, ranks[0], records[0][i + 1], ranks[r], records[r][i + 1]));
    }
  }
}

// The first rank draws a number and invites each other rank to it; who has read its invitation
// removes it. So equal names may be used again: nobody sees an earlier use's number or records.
std::string agreeNonce(Store& store, const std::string& base, const std::vector<int>& ranks,
                       int self, Seconds timeout) {
  const auto invitation = [&](int rank) { return fmt::format("{}invite/{}", base, rank); };
  if (self != ranks[0]) {
    try {
      std::string nonce = store.get(invitation(self), timeout);
      store.remove(invitation(self));
      return nonce;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::Timeout) throw;
      throw Error(
          ErrorCode::Timeout,
          fmt::format("rank {} did not join communicator {} within {} s", ranks[0], base, timeout));
    }
  }
  std::random_device random;
  const std::string nonce = fmt::format("{:08x}{:08x}", static_cast<std::uint32_t>(random()),
                                        static_cast<std::uint32_t>(random()));
  for (const int rank : ranks) {
    if (rank != self) store.set(invitation(rank), nonce);
  }
  return nonce;
}

// What this rank left in the store, taken out again: after a failure, or by the last reader.
void cleanAfterFailure(Store& store, const std::string& base, const std::string& prefix,
                       const std::vector<int>& ranks, int self) {
  store.remove(prefix + std::to_string(self));
  if (self != ranks[0]) return;
  for (const int rank : ranks) store.remove(fmt::format("{}invite/{}", base, rank));
}

void cleanAfterReading(Store& store, const std::string& prefix, const std::vector<int>& ranks) {
  try {
    if (store.add(prefix + "read", 1) < static_cast<long>(ranks.size())) return;
  } catch (const std::exception&) {
    return;  // whoever keeps the store may have gone on, and ended: all records have been read
  }
  for (const int rank : ranks) store.remove(prefix + std::to_string(rank));
  store.remove(prefix + "read");
}

std::vector<std::string> exchange(Store& store, const std::string& base,
                                  const std::vector<int>& ranks, int self,
                                  const std::string& record, Seconds timeout, std::string& prefix) {
  const Seconds until = SteadyClock::instance().now() + timeout;
  prefix = base + agreeNonce(store, base, ranks, self, timeout) + "/";
  store.set(prefix + std::to_string(self), record);
  try {
    auto texts = readAll(store, prefix, ranks, std::max(0.0, until - SteadyClock::instance().now()),
                         timeout);
    cleanAfterReading(store, prefix, ranks);
    return texts;
  } catch (const Error&) {
    cleanAfterFailure(store, base, prefix, ranks, self);
    throw;
  }
}

}  // namespace

Meeting meet(Store& store, const std::string& name, const std::vector<int>& ranks, int self,
             const std::string& address, const Settings& settings, Seconds timeout) {
  // Group and name together, so that equal names of different groups do not meet.
  std::uint64_t group = hashText(name);
  for (const int rank : ranks) group = hashMix(group, static_cast<std::uint64_t>(rank));
  const std::string base = fmt::format("byway/{}/{:016x}/", name, group);

  std::string record;
  append(record, address);
  for (const auto& [key, value] : settings) append(record, value);
  std::string prefix;
  const auto texts = exchange(store, base, ranks, self, record, timeout, prefix);

  std::vector<std::vector<std::string>> records;
  Meeting meeting{hashText(prefix), {}};
  for (const std::string& text : texts) {
    records.push_back(split(text));
    if (records.back().size() != settings.size() + 1) {
      throw Error(
          ErrorCode::InvalidArgument,
          fmt::format("the record of a rank under {} is not one of this version of Byway", prefix));
    }
    // Addresses hold the processes' random ids, so no two communicators share an id.
    meeting.id = hashText(records.back()[0], meeting.id);
    meeting.addresses.push_back(records.back()[0]);
  }
  compare(records, ranks, settings);
  return meeting;
}

}  // namespace byway
