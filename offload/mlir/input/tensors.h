//===- tensors.h - Programs on tensors ------------------------------------===//
#pragma once

#include "session.h"

namespace offload {

/// Whether host code has tensors that can be given memory: none of them has an encoding.
bool hasTensors(const IRModule &module);

} // namespace offload
