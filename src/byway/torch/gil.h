// SPDX-License-Identifier: BSD-3-Clause
// Python's interpreter lock, given up around whatever may wait.
#pragma once

namespace byway::pytorch {

// Gives the lock up while it lives, on a thread that holds it; nothing on others.
class WithoutGil {
 public:
  WithoutGil();
  ~WithoutGil();
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  void* saved_ = nullptr;
};

}  // namespace byway::pytorch
