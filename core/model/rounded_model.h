// A model in the type of a file that is written: every tensor rounded once, ties to even, but for
// the wide ones, which stay in F32.
//
// Its values are exact in both halves, so that a file of that type is equal to it.
//
// Threads    One thread; blocks on the reader.
// Ownership  Borrows table and reader, which outlive it.
// Errors     Those of the reader. InvalidArgument names a tensor with a number that is beyond the
//            largest one of F16.
// Units      Elements.

#pragma once

#include "core/model/weights.h"

#include <cstdint>

namespace mr {

class RoundedModel final : public MasterReader
{
public:
    // `table`: of the whole model.
    RoundedModel(const ParamTable& table, MasterReader& model, ExportType type);

    Status read(GroupId group, std::int64_t first, const MasterView& out) override;

private:
    Status roundTensor(const NamedTensor& tensor, const MasterView& part) const;

    const ParamTable& m_table;
    MasterReader& m_model;
    ExportType m_type;
};

} // namespace mr
