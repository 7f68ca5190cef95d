// SPDX-License-Identifier: BSD-3-Clause
// Proof that a schedule is the collective it claims to be. The rules V1 to V11 are stated in
// docs/schedules.md; their ids stand at the checks and in the tests' names.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "byway/schedule/dependences.h"
#include "byway/schedule/mapped.h"
#include "byway/schedule/schedule.h"

namespace byway {

struct Violation {
  int rule = 0;  // 3 for V3
  std::string what;
};

// The first violations found (at most 16), none for a right schedule. The second form checks a
// graph that is given (V7) instead of the one that dependencesOf makes.
std::vector<Violation> violations(const Schedule& schedule);
std::vector<Violation> violations(const Schedule& schedule, const DependenceGraph& graph);

// One operation of one rank's part.
enum class LocalKind : std::uint8_t { Send, Recv, Reduce, Copy };
struct LocalOp {
  LocalKind kind;
  std::uint32_t index;                 // of the transfer or step in the schedule
  std::uint32_t waitsFor;              // number of operations that must be over first
  std::uint32_t firstNext, nextCount;  // those that wait for this one: LocalProgram::next
  // Receives from one rank are posted in schedule order, so that its link carries messages in the
  // order the schedule was computed for: the receives before and after this one, or kNoOp.
  std::uint32_t previousRecv, nextRecv;
  // Of a transfer of a mapped phase: which of its sender's publications it is (kNoOp: a message),
  // and whether a sum reads it where it lies.
  std::uint32_t publication;
  bool isFolded;
};
inline constexpr std::uint32_t kNoOp = ~std::uint32_t{0};
struct LocalProgram {
  int rank = 0;
  std::vector<LocalOp> ops;          // in schedule order
  std::vector<std::uint32_t> waits;  // LocalOp::waitsFor of each
  std::vector<std::uint32_t> first;  // those that wait for none
  std::vector<std::uint32_t> next;   // indices of ops
  // Without messages: the operations in an order in which they may be done one after the other and
  // no rank waits longer than it has to. In each phase what others wait for comes first, then what
  // nobody does, then what waits for others. Empty with messages.
  std::vector<std::uint32_t> order;
  // Every stage access of the rank, once per piece: what a slot must be able to hold.
  struct SlotUse {
    std::uint32_t slot, block, share;
    Width width;
  };
  std::vector<SlotUse> slotUses;  // none for slots that stand for what mapped transfers bring
  std::uint32_t slots = 0;
  // Sums that read what a mapped transfer brings where it lies, and by Schedule::inputs the receive
  // (an index of ops) that brings it, or kNoOp; empty where there are none.
  struct Folded {
    std::uint32_t step, transfer, op;
  };
  std::uint32_t publications = 0;  // that it makes
  bool hearsAll = false;           // it has a mapped transfer from every other rank
  std::vector<Folded> folded;
  std::vector<std::uint32_t> inputRecv;
};

// Made by verify() alone; immutable and shared.
class VerifiedSchedule {
 public:
  const Schedule& schedule() const { return schedule_; }
  const DependenceGraph& graph() const { return graph_; }
  std::uint64_t hash() const { return hash_; }
  // A rank can bind its part by the counts of its own Input and Output blocks alone (others at 0):
  // there is no stage memory, and no block is cut. One such schedule serves every choice of counts,
  // whoever knows them.
  bool isTemplate() const { return isTemplate_; }
  // It has mapped phases; then no rank needs stage memory for them.
  bool isMapped() const { return isMapped_; }
  bool hasMessages() const { return hasMessages_; }
  // What its ranks publish must be copies (mapped.h).
  bool publishesCopies() const { return publishesCopies_; }
  // Computed once per rank, on first use; thread-safe.
  const LocalProgram& local(int rank) const;
  ~VerifiedSchedule();

 private:
  friend std::shared_ptr<const VerifiedSchedule> verify(Schedule schedule);
  VerifiedSchedule(Schedule schedule, DependenceGraph graph);
  Schedule schedule_;
  DependenceGraph graph_;
  std::uint64_t hash_ = 0;
  Publications publications_;
  bool isTemplate_ = false, isMapped_ = false, hasMessages_ = false, publishesCopies_ = false;
  struct Locals;
  std::unique_ptr<Locals> locals_;
};

// Throws Error{InvalidArgument} that lists the violations.
std::shared_ptr<const VerifiedSchedule> verify(Schedule schedule);

}  // namespace byway
