// SPDX-License-Identifier: BSD-3-Clause
#include "byway/torch/gil.h"

#include <Python.h>

namespace byway::pytorch {

WithoutGil::WithoutGil() {
  if (Py_IsInitialized() != 0 && PyGILState_Check() != 0) saved_ = PyEval_SaveThread();
}

WithoutGil::~WithoutGil() {
  if (saved_ != nullptr) PyEval_RestoreThread(static_cast<PyThreadState*>(saved_));
}

}  // namespace byway::pytorch
