// Frozen groups in 4 bits: where their tensors lie, and how they come there.
//
// The matrices of a block are packed (nf4_code.h); norms and biases, embedding and head stay in the
// compute type.
//
// Threads    One thread; blocks on the reader.
// Ownership  A packer borrows table and reader.
// Errors     Those of the reader and of the sink.
// Units      Elements and bytes as named.

#pragma once

#include "core/device/tensor.h"
#include "core/model/frozen_model.h"
#include "core/model/nf4_code.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace mr {

// One tensor of a packed group.
struct PackedTensor {
    std::int64_t first = 0; // element of the group
    std::int64_t elements = 0;
    std::size_t at = 0; // byte of the packed group; a multiple of 16
    bool isPacked = false;
};

struct PackedGroup {
    std::vector<PackedTensor> tensors; // in the order of the table
    std::size_t bytes = 0;             // 0: the group is not packed

    // Precondition: it has the element.
    const PackedTensor& holding(std::int64_t element) const;
};

// The packed form of a group's own weights, which are frozen.
PackedGroup packedGroup(const ParamTable& trained, GroupId group, DType compute);

// Packs groups as the pieces of their tensors come, each tensor from its first element on.
class GroupPacker
{
public:
    using Sink = std::function<Status(GroupId group, std::size_t at, std::span<const std::byte>)>;

    GroupPacker(const ParamTable& trained, DType compute, MasterReader& model, Sink sink);

    bool packs(GroupId group) const;
    Status add(GroupId group, std::int64_t first, const MasterView& piece);

private:
    Status addMatrix(GroupId group, const PackedTensor& tensor, std::int64_t first);

    std::vector<PackedGroup> m_groups; // by group
    DType m_compute;
    MasterReader& m_model;
    Sink m_sink;
    Nf4Packer m_packer;
    bool m_isRead = false; // the codes of this matrix were in the file
    std::vector<std::byte> m_bytes;
    std::vector<float> m_values; // of the piece
};

// The model that an adapter over NF4 is trained on: each packed element is what its code stands
// for. Table and reader outlive it.
std::unique_ptr<MasterReader> nf4Model(const ParamTable& model, MasterReader& reader);

} // namespace mr
