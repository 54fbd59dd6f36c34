// The magnitudes of DoRA outside of a step: those of a fresh adapter, and row norms for a merge.
//
// Threads  One thread; blocks on the readers.
// Errors   Those of the readers.

#pragma once

#include "core/device/tensor.h"
#include "core/model/frozen_model.h"

#include <millrace/status.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace mr {

// The lengths of the module's rows of W + scale B A, summed in double. `adapter` holds the elements
// of the group's adapter; empty: B is zero. W is read in F32, or as its BF16 weights.
Result<std::vector<float>> adaptedNorms(const ParamTable& table, GroupId group,
    const AdapterModule& module, MasterReader& model, std::span<const float> adapter, DType as);

// initialAdapter(), with which the model computes what it does without: what is trained in place of
// the model's own begins as a copy of it, and with DoRA the magnitudes are the lengths of the rows,
// as a step in `compute` reads them (in NF4 what its codes stand for). Table and model outlive it.
std::unique_ptr<MasterReader> freshAdapter(
    const ParamTable& table, std::uint64_t seed, MasterReader& model, DType compute);

} // namespace mr
