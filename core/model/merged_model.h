// A model with an adapter in it: W + scale B A, in F32, for every linear module that has one. With
// DoRA its rows are then scaled to their magnitudes. A module that the adapter trained whole
// takes the model's place.
//
// The sums are those of F32 products, as PEFT makes them. RoundedModel rounds them once to the type
// of a file. (Rounding B A to that type first, as PEFT's safe merge does, differs in some
// elements.)
//
// Threads    One thread; blocks on the readers.
// Ownership  Borrows table and readers, which outlive it.
// Errors     Those of the readers.
// Units      Elements.
// Source     Hu et al., "LoRA", arXiv 2106.09685, section 4.1.

#pragma once

#include "core/model/frozen_model.h"
#include "core/model/weights.h"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace mr {

// Elements that have an adapter, and those of them that are the same in BF16 with it: a change
// below half of the last place is lost there. Counted as they are read.
struct MergeCount {
    std::int64_t elements = 0;
    std::int64_t unchanged = 0;
};

class MergedModel final : public MasterReader
{
public:
    // `table` is that of the adapter; `model` reads all of the model beside it.
    MergedModel(const ParamTable& table, MasterReader& model, MasterReader& adapter);

    Status read(GroupId group, std::int64_t first, const MasterView& out) override;

    const MergeCount& count() const noexcept { return m_count; }

private:
    Status load(GroupId group);
    Status loadFactors(GroupId group);
    // `range`: the module's elements in the group of the model. `factors`: of its rows.
    void add(const AdapterModule& module, const MasterRange& range, std::span<const float> factors,
        std::int64_t first, const MasterView& out);
    // As far as the range is in `out`.
    Status replace(
        GroupId group, const ReplacedRange& range, std::int64_t first, const MasterView& out);
    // Element `i` of `out`.
    void write(float value, std::size_t i, const MasterView& out);

    const ParamTable& m_table;
    MasterReader& m_model;
    MasterReader& m_adapter;
    GroupId m_loaded{-1};
    std::vector<float> m_group;                // the adapter of one group
    std::vector<std::vector<float>> m_factors; // of its rows, by module; with DoRA alone
    std::vector<float> m_row;                  // of B A
    MergeCount m_count;
};

} // namespace mr
