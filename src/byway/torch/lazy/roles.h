// SPDX-License-Identifier: BSD-3-Clause
// What each c10d operator does with the tensors it is given; its schema does not say.
#pragma once

#include <string_view>
#include <vector>

#include <torch/csrc/distributed/c10d/Types.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>

namespace byway::pytorch::lazy {

enum class Role : char { In, Out, InOut };

struct OpRoles {
  std::string_view op;  // without namespace
  c10d::OpType type;
  std::vector<Role> roles;  // of its first arguments, which hold its tensors
  bool isMessage = false;   // point to point: has no async_op argument, always starts and waits
};

const std::vector<OpRoles>& allRoles();
// Null for operators that are not recorded.
const OpRoles* rolesOf(std::string_view op);

}  // namespace byway::pytorch::lazy
