// SPDX-License-Identifier: BSD-3-Clause
// The c10d backend: translates torch's calls into the communicator's.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "byway/comm/communicator.h"
#include "byway/torch/options.h"
#include "byway/torch/tensors.h"
#include "byway/torch/work.h"

namespace byway::pytorch {

class Call;
struct CallKind;
struct FlightGroup;
struct FusedCall;

class ProcessGroupByway final : public c10d::Backend {
 public:
  using WorkPtr = c10::intrusive_ptr<c10d::Work>;

  // All ranks of the group create it together; throws when one does not come in time.
  ProcessGroupByway(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                    c10::intrusive_ptr<GroupOptions> options);
  ~ProcessGroupByway() override;

  // NOLINTNEXTLINE(readability-const-return-type): as the base class has it
  const std::string getBackendName() const override { return options_->backend; }
  c10::intrusive_ptr<c10d::Backend::Options> getBackendOptions() override { return options_; }
  c10::intrusive_ptr<GroupOptions> groupOptions() const { return options_; }
  bool supportsSplitting() const override { return true; }
  bool supportsCoalescing() const override { return true; }
  void setTimeout(std::chrono::milliseconds timeout) override;
  std::uint64_t getSequenceNumberForGroup() override;
  void setSequenceNumberForGroup() override {}
  c10d::ErrorType getError() override;
  void abort() override;
  void shutdown() override;
  // On the members only; null on ranks that are not in `ranks` (ranks of this group).
  c10::intrusive_ptr<c10d::Backend> split(
      const c10::intrusive_ptr<c10d::Store>& store, const std::vector<int>& ranks,
      const c10::intrusive_ptr<c10d::Backend::Options>& options) override;

  // Reductions and copies of whole tensors: collectives.cc.
  WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override;
  WorkPtr allreduce_coalesced(Tensors& tensors,
                              const c10d::AllreduceCoalescedOptions& options) override;
  WorkPtr reduce(Tensors& tensors, const c10d::ReduceOptions& options) override;
  WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override;
  WorkPtr barrier(const c10d::BarrierOptions& options) override;
  void monitoredBarrier(const c10d::BarrierOptions& options, bool waitAllRanks) override;

  // all_gather, reduce_scatter: gathering.cc.
  WorkPtr allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                    const c10d::AllgatherOptions& options) override;
  WorkPtr _allgather_base(at::Tensor& output, at::Tensor& input,
                          const c10d::AllgatherOptions& options) override;
  WorkPtr allgather_coalesced(std::vector<Tensors>& outputs, Tensors& inputs,
                              const c10d::AllgatherOptions& options) override;
  WorkPtr allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::AllgatherOptions& options) override;
  WorkPtr reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                         const c10d::ReduceScatterOptions& options) override;
  WorkPtr _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                               const c10d::ReduceScatterOptions& options) override;
  WorkPtr reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::ReduceScatterOptions& options) override;

  // gather, scatter, all_to_all: exchanges.cc.
  WorkPtr gather(std::vector<Tensors>& outputs, Tensors& inputs,
                 const c10d::GatherOptions& options) override;
  WorkPtr scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                  const c10d::ScatterOptions& options) override;
  WorkPtr alltoall_base(at::Tensor& output, at::Tensor& input,
                        std::vector<std::int64_t>& outputSplits,
                        std::vector<std::int64_t>& inputSplits,
                        const c10d::AllToAllOptions& options) override;
  WorkPtr alltoall(Tensors& outputs, Tensors& inputs,
                   const c10d::AllToAllOptions& options) override;

  // point_to_point.cc.
  WorkPtr send(Tensors& tensors, int destination, int tag) override;
  WorkPtr recv(Tensors& tensors, int source, int tag) override;
  WorkPtr recvAnysource(Tensors& tensors, int tag) override;

  // The same collective in several groups at once, one call for each type of element: fused.cc.
  // Not torch's: byway.torch.fused_* call it, on every rank of this group.
  WorkPtr fused(FusedCall& fused, std::chrono::milliseconds timeout);
  // Every rank gives a row of one length and gets those of all ranks, one after another. Waits.
  std::vector<std::uint64_t> exchangeCounts(const std::vector<std::uint64_t>& row,
                                            std::chrono::milliseconds timeout);
  // Throws ValueError(`why`), and tells the other ranks that this one's next call is wrong.
  void refuse(const std::string& why);
  // The flight recorder's, as JSON (docs/recorder.md).
  std::string recordedCalls() const { return communicator_->recordedCalls(); }

  // Calls between these two are under way at once; the second gives a work for all of them.
  void startCoalescing() override;
  WorkPtr endCoalescing() override;

 private:
  // Makes one call: the hook, the profiler's records, translation of errors. `make` checks the
  // arguments, throwing Error{InvalidArgument}, and submits. `peer`: a message's other rank.
  WorkPtr call(const CallKind& kind, const Tensors& inputs, const Tensors& outputs,
               std::chrono::milliseconds timeout, const std::function<void(Call&)>& make,
               int peer = -1);
  WorkPtr checkedOnly(const std::function<void(Call&)>& make);
  CallContext contextOf(const CallKind& kind);
  std::shared_ptr<const FlightGroup> flightGroup();
  void checkRoot(std::int64_t root) const;
  std::vector<int> topologyRanksOf(const std::vector<int>& ranks, const GroupOptions& made) const;

  c10::intrusive_ptr<GroupOptions> options_;
  std::shared_ptr<Communicator> communicator_;
  std::shared_ptr<GroupState> state_ = std::make_shared<GroupState>();
  const int process_;  // its id: a forked child is another
  std::atomic<std::int64_t> collectives_{0}, messages_{0};
  std::shared_ptr<const FlightGroup> flightGroup_;
  std::mutex windowMutex_;  // and flightGroup_
  std::optional<std::vector<c10::intrusive_ptr<WorkBase>>> window_;
};

// Destroys the communicators of all groups of this process, at the end of the interpreter, within
// `bound` seconds.
void shutdownAll(Seconds bound);

}  // namespace byway::pytorch
