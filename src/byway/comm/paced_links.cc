// SPDX-License-Identifier: BSD-3-Clause
#include "byway/comm/paced_links.h"

#include <algorithm>
#include <cmath>

namespace byway {
namespace {

double finiteOrNone(double limit) { return std::isfinite(limit) ? limit : 0; }

}  // namespace

void PacedLinks::place(int self, PeerId peer, int rank) {
  if (self_ < 0) self_ = self;
  const auto index = static_cast<std::size_t>(peer);
  if (index >= ranks_.size()) ranks_.resize(index + 1, -1);
  if (ranks_[index] < 0) ranks_[index] = rank;
}

LinkRate PacedLinks::rateFrom(PeerId peer) const {
  const auto index = static_cast<std::size_t>(peer);
  const int from = index < ranks_.size() ? ranks_[index] : -1;
  if (from < 0 || from == self_) return {};
  const double link = topology_->link(from, self_);
  return {std::min(link, topology_->egress[static_cast<std::size_t>(from)]), topology_->alpha,
          link <= 0};
}

PortLimits PacedLinks::ports() const {
  if (self_ < 0) return {};
  const auto self = static_cast<std::size_t>(self_);
  return {finiteOrNone(topology_->egress[self]), finiteOrNone(topology_->ingress[self])};
}

PaceOptions PacedLinks::options(const std::shared_ptr<PacedLinks>& self) {
  PaceOptions options;
  options.rateFrom = [self](PeerId peer) { return self->rateFrom(peer); };
  const Topology& topology = *self->topology_;
  const auto limited = [](double limit) { return std::isfinite(limit); };
  if (std::any_of(topology.egress.begin(), topology.egress.end(), limited) ||
      std::any_of(topology.ingress.begin(), topology.ingress.end(), limited)) {
    options.ports = [self] { return self->ports(); };
  }
  return options;
}

}  // namespace byway
