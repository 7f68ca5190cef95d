// SPDX-License-Identifier: BSD-3-Clause
#include "byway/torch/options.h"

namespace byway::pytorch {

c10::intrusive_ptr<GroupOptions> optionsFrom(
    const c10::intrusive_ptr<c10d::Backend::Options>& options, const std::string& name) {
  if (!options) return c10::make_intrusive<GroupOptions>(name);
  const auto* ours = dynamic_cast<const GroupOptions*>(options.get());
  auto made = c10::make_intrusive<GroupOptions>(name, options->timeout);
  if (ours != nullptr) {
    made->topology = ours->topology;
    made->topologyRanks = ours->topologyRanks;
    made->pace = ours->pace;
    made->route = ours->route;
    made->stageQuota = ours->stageQuota;
    made->exchangeCounts = ours->exchangeCounts;
  }
  made->group_name = options->group_name;
  made->group_desc = options->group_desc;
  made->global_ranks_in_group = options->global_ranks_in_group;
  return made;
}

CommunicatorOptions communicatorOptions(const GroupOptions& options) {
  CommunicatorOptions out;
  out.topology = options.topology;
  out.topologyRanks = options.topologyRanks;
  out.route = options.route;
  out.stageQuota = options.stageQuota;
  out.timeout = static_cast<Seconds>(options.timeout.count()) * 1e-3;
  return out;
}

}  // namespace byway::pytorch
