// SPDX-License-Identifier: BSD-3-Clause
// Memory in which messages of many pieces are gathered. It is kept for the next ones: fresh memory
// costs as much as the copy into it.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "byway/base/buffer.h"

namespace byway::ucx {

std::size_t bytesOf(std::span<const ConstBuffer> pieces);
// Copies host pieces to `out`, one after another; phantom ones leave a gap.
void gatherPieces(std::span<const ConstBuffer> pieces, std::byte* out);

class StagingPool {
 public:
  struct Block {
    std::unique_ptr<std::byte[]> memory;
    std::size_t bytes = 0;  // at least what was asked for
  };

  // With contents of whatever it had. At most twice as large as asked for.
  Block take(std::size_t bytes);
  // Frees the longest kept ones where more than kKeptBytes would be kept.
  void give(Block block);
  std::size_t keptBytes() const { return keptBytes_; }

  static constexpr std::size_t kKeptBytes = std::size_t{64} << 20;

 private:
  std::vector<Block> kept_;  // in the order in which they came
  std::size_t keptBytes_ = 0;
};

}  // namespace byway::ucx
