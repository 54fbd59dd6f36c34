// From the text of an entry to a program: a function and the slots of its operands for each
// instruction.
//
// Errors   InvalidArgument with the line and the instruction that the machine does not know.

#pragma once

#include "gpu/ptx/ptx_text.h"
#include "gpu/ptx/warp.h"

#include <string_view>
#include <vector>

namespace mr::ptx {

// "ld.global.v4.u32", in parts.
struct OpName {
    explicit OpName(std::string_view text);

    std::string_view whole;
    std::vector<std::string_view> parts;

    std::string_view first() const { return parts.front(); }
    std::string_view last() const { return parts.back(); }
    // The name begins with these parts.
    bool is(std::string_view begin) const;
    bool has(std::string_view part) const;
};

// Instructions of one lane, by name; null if there is none. `sourceBytes`: of a lane of the
// register that a conversion reads, which may be wider than its type.
Execute laneOp(const OpName& op, int sourceBytes);

// ... of a warp.
Execute warpOp(const OpName& op);
// Loads, stores, copies, with data in registers of so many bytes a lane.
Execute memoryOp(const OpName& op, int registerBytes);
// mov of two halves to a whole register, or back: slots whole, low half, high half.
Execute packOp(bool unpacks, int wholeBytes);

// Where the variables of an entry lie. Shared memory begins at 0, dynamic after static.
Result<Program> decode(const Module& module, const Entry& entry);

} // namespace mr::ptx
