//===- tensors.h - Programs on tensors ------------------------------------===//
#pragma once

#include "session.h"

namespace offload {

/// Whether host code has tensors that can be given memory: those with a rank, none of them sparse.
bool hasTensors(const IRModule &module);

} // namespace offload
