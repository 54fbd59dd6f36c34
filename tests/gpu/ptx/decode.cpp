#include "gpu/ptx/decode.h"

#include "gpu/ptx/lane_ops.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace mr::ptx {
namespace {

constexpr std::size_t kSlotAlignment = 64;

// Bytes of a lane of a register; 0 for a predicate.
int registerBytes(std::string_view type)
{
    if (type == "pred")
        return 0;
    if (type.ends_with("64"))
        return 8;
    return type.ends_with("16") || type.ends_with("8") ? 2 : 4;
}

std::size_t aligned(std::size_t at, std::size_t to)
{
    return (at + to - 1) / to * to;
}

class Decoder
{
public:
    Decoder(const Module& module, const Entry& entry)
        : m_module(module)
        , m_entry(entry)
    {
    }

    Result<Program> decode()
    {
        m_program.name = m_entry.name;
        m_program.target = m_module.target;
        m_program.maxThreads = m_entry.maxThreads;
        m_program.registerBytes = kSlotAlignment; // offset 0 means none
        placeVariables();
        for (const Instruction& instruction : m_entry.instructions) {
            Step step;
            step.index = static_cast<std::uint32_t>(m_program.steps.size());
            if (const Status status = decodeOne(instruction, step); !status.ok())
                return status;
            m_program.steps.push_back(step);
            m_program.lines.push_back(instruction.line);
            m_program.texts.push_back(instruction.op);
        }
        return std::move(m_program);
    }

private:
    static Status unknown(const Instruction& instruction, std::string_view why)
    {
        return Status::error(ErrorKind::InvalidArgument,
            fmt::format("line {}: {}: {}", instruction.line, instruction.op, why));
    }

    void placeVariables()
    {
        std::size_t at = 0;
        const auto place = [&](const std::vector<Variable>& variables, bool dynamic) {
            for (const Variable& variable : variables) {
                if (variable.isDynamic != dynamic)
                    continue;
                at = aligned(at, variable.align);
                m_symbols[variable.name] = at;
                at += variable.bytes;
            }
        };
        place(m_module.shared, false);
        place(m_entry.shared, false);
        // Dynamic memory begins at one place for all its names.
        at = aligned(at, 16);
        m_program.sharedBytes = at;
        place(m_module.shared, true);
        at = 0;
        for (const Variable& variable : m_entry.local) {
            at = aligned(at, variable.align);
            m_symbols[variable.name] = at;
            at += variable.bytes;
        }
        m_program.localBytes = aligned(at, 16);
        at = 0;
        for (const Variable& parameter : m_entry.parameters) {
            at = aligned(at, parameter.align);
            m_symbols[parameter.name] = at;
            m_program.parameters.push_back({at, parameter.bytes});
            at += parameter.bytes;
        }
        m_program.parameterBytes = at;
    }

    std::uint32_t newSlot(int bytes)
    {
        const auto slot = static_cast<std::uint32_t>(m_program.registerBytes);
        const std::size_t size =
            bytes == 0 ? sizeof(Mask) : static_cast<std::size_t>(bytes) * kLanes;
        m_program.registerBytes = aligned(slot + size, kSlotAlignment);
        return slot;
    }

    // Bytes of a lane of the register of this name; -1 if it was not declared.
    int bytesOf(const std::string& name) const
    {
        if (const auto found = m_entry.registers.find(name); found != m_entry.registers.end())
            return registerBytes(found->second);
        const std::size_t digits = name.find_last_not_of("0123456789") + 1;
        const auto found = m_entry.registers.find(name.substr(0, digits));
        return found == m_entry.registers.end() ? -1 : registerBytes(found->second);
    }

    std::uint32_t slotOfRegister(const std::string& name)
    {
        const auto [found, isNew] = m_slots.try_emplace(name, 0U);
        if (isNew)
            found->second = newSlot(std::max(bytesOf(name), 0));
        return found->second;
    }

    std::uint32_t slotOfConstant(std::uint64_t bits, int bytes)
    {
        if (bytes < 8 && bytes > 0)
            bits &= (1ULL << (8 * bytes)) - 1;
        const auto [found, isNew] = m_constants.try_emplace({bits, bytes}, 0U);
        if (isNew) {
            found->second = newSlot(bytes);
            m_program.constants.push_back({found->second, bytes, bits});
        }
        return found->second;
    }

    std::optional<std::uint32_t> slotOfSpecial(std::string_view name)
    {
        using Special = Program::Special;
        static const std::map<std::string_view, Special> kNames = {{"%tid.x", Special::TidX},
            {"%tid.y", Special::TidY}, {"%tid.z", Special::TidZ}, {"%ntid.x", Special::NtidX},
            {"%ntid.y", Special::NtidY}, {"%ntid.z", Special::NtidZ}, {"%ctaid.x", Special::CtaidX},
            {"%ctaid.y", Special::CtaidY}, {"%ctaid.z", Special::CtaidZ},
            {"%nctaid.x", Special::NctaidX}, {"%nctaid.y", Special::NctaidY},
            {"%nctaid.z", Special::NctaidZ}, {"%laneid", Special::LaneId},
            {"%warpid", Special::WarpId}};
        const auto found = kNames.find(name);
        if (found == kNames.end())
            return std::nullopt;
        std::uint32_t& slot = m_program.specials[static_cast<std::size_t>(found->second)];
        if (slot == 0)
            slot = newSlot(4);
        return slot;
    }

    // `bytes`: of a lane of the operand, for immediates and addresses of variables.
    Status slotOf(
        const Instruction& instruction, const Operand& operand, int bytes, std::uint32_t& slot)
    {
        switch (operand.kind) {
        case OperandKind::Register:
            if (const auto special = slotOfSpecial(operand.name)) {
                slot = *special;
                return {};
            }
            if (bytesOf(operand.name) < 0)
                return unknown(instruction, operand.name + " is not declared");
            slot = slotOfRegister(operand.name);
            return {};
        case OperandKind::Integer:
            slot = slotOfConstant(operand.bits, bytes);
            return {};
        case OperandKind::Float:
            slot = slotOfConstant(operand.bits, operand.bytes);
            return {};
        case OperandKind::Symbol:
            if (const auto found = m_symbols.find(operand.name); found != m_symbols.end()) {
                slot = slotOfConstant(found->second, bytes);
                return {};
            }
            return unknown(instruction, operand.name + " is not a variable");
        case OperandKind::Sink:
            slot = 0;
            return {};
        default:
            return unknown(instruction, "an operand of this form");
        }
    }

    Status decodeOne(const Instruction& instruction, Step& step)
    {
        if (!instruction.guard.empty()) {
            step.isGuarded = true;
            step.guardNegated = instruction.guardNegated;
            step.guard = slotOfRegister(instruction.guard);
        }
        const OpName op(instruction.op);
        const std::string_view name = op.first();
        if (name == "bra")
            return decodeBranch(instruction, step);
        if (name == "ret" || name == "exit") {
            step.control = Control::Exit;
            return {};
        }
        if (name == "bar" || name == "barrier")
            return decodeBarrier(instruction, op, step);
        if (name == "shfl" || name == "vote" || name == "ldmatrix" || name == "mma")
            return decodeWarp(instruction, op, step);
        if (name == "ld" || name == "st")
            return decodeAccess(instruction, op, step);
        if (name == "cp")
            return decodeCopy(instruction, op, step);
        if (name == "cvta")
            return decodeMove(instruction, 8, step);
        if (name == "mov" && std::ranges::any_of(instruction.operands, [](const Operand& operand) {
                return operand.kind == OperandKind::Vector;
            }))
            return decodePack(instruction, op, step);
        return decodeLane(instruction, op, step);
    }

    Status decodeBranch(const Instruction& instruction, Step& step)
    {
        const auto found = m_entry.labels.find(instruction.operands.at(0).name);
        if (found == m_entry.labels.end())
            return unknown(instruction, "no label of this name");
        step.control = Control::Branch;
        step.target = static_cast<std::uint32_t>(found->second);
        return {};
    }

    Status decodeBarrier(const Instruction& instruction, const OpName& op, Step& step)
    {
        if (op.is("bar.warp.sync")) {
            step.control = Control::Together;
            return slotOf(instruction, instruction.operands.at(0), 4, step.mask);
        }
        if (!op.is("bar.sync") && !op.is("barrier.sync"))
            return unknown(instruction, "not known");
        if (instruction.operands.size() != 1 || instruction.operands[0].bits != 0)
            return unknown(instruction, "a barrier other than 0, or of some threads");
        step.control = Control::Barrier;
        return {};
    }

    // Slots of operands [first, ...), vectors spread out, from slot `to` on.
    Status spread(const Instruction& instruction, const Operand& operand, int bytes,
        std::size_t& to, Step& step)
    {
        if (operand.kind != OperandKind::Vector && operand.kind != OperandKind::Pair)
            return slotOf(instruction, operand, bytes, step.slots.at(to++));
        for (const Operand& part : operand.parts)
            MR_TRY(slotOf(instruction, part, bytes, step.slots.at(to++)));
        return {};
    }

    Status decodeWarp(const Instruction& instruction, const OpName& op, Step& step)
    {
        step.execute = warpOp(op);
        if (!step.execute)
            return unknown(instruction, "not known");
        step.control = Control::Together;
        const std::vector<Operand>& operands = instruction.operands;
        std::size_t to = 0;
        if (op.first() == "ldmatrix") {
            step.mask = slotOfConstant(kAllLanes, 4);
            step.offset = operands.at(1).offset;
            MR_TRY(slotOfAddress(instruction, operands.at(1), 4, step.slots[0]));
            to = 1;
            return spread(instruction, operands.at(0), 4, to, step);
        }
        if (op.first() == "mma") {
            step.mask = slotOfConstant(kAllLanes, 4);
            for (const Operand& operand : operands)
                MR_TRY(spread(instruction, operand, 4, to, step));
            return {};
        }
        MR_TRY(slotOf(instruction, operands.back(), 4, step.mask));
        if (op.first() == "vote") {
            MR_TRY(slotOf(instruction, operands.at(0), 4, step.slots[0]));
            return slotOf(instruction, operands.at(1), 0, step.slots[1]);
        }
        const Operand& destination = operands.at(0);
        MR_TRY(spread(instruction, destination, 4, to, step));
        to = 2; // after the predicate, if there is none
        for (std::size_t i = 1; i + 1 < operands.size(); ++i)
            MR_TRY(slotOf(instruction, operands[i], 4, step.slots.at(to++)));
        return {};
    }

    Status slotOfAddress(
        const Instruction& instruction, const Operand& address, int bytes, std::uint32_t& slot)
    {
        Operand base;
        base.kind = address.name.empty()            ? OperandKind::Integer
                    : address.name.starts_with("%") ? OperandKind::Register
                                                    : OperandKind::Symbol;
        base.name = address.name;
        return slotOf(instruction, base, bytes, slot);
    }

    Status decodeAccess(const Instruction& instruction, const OpName& op, Step& step)
    {
        const bool isLoad = op.first() == "ld";
        const Operand& address = instruction.operands.at(isLoad ? 1 : 0);
        const Operand& data = instruction.operands.at(isLoad ? 0 : 1);
        const Operand& first = data.kind == OperandKind::Vector ? data.parts.at(0) : data;
        const bool isRegister = first.kind == OperandKind::Register;
        step.bytes = static_cast<std::uint8_t>(std::stoi(std::string(op.last().substr(1))) / 8);
        const int width = isRegister ? bytesOf(first.name) : std::max<int>(step.bytes, 2);
        step.execute = memoryOp(op, width);
        if (!step.execute)
            return unknown(instruction, "not known");
        step.offset = address.offset;
        step.isWideAddress = true;
        step.isWideAddress = !address.name.starts_with("%") || bytesOf(address.name) == 8;
        MR_TRY(slotOfAddress(instruction, address, 8, step.slots[0]));
        step.count =
            static_cast<std::uint8_t>(data.kind == OperandKind::Vector ? data.parts.size() : 1);
        std::size_t to = 1;
        return spread(instruction, data, width, to, step);
    }

    Status decodeCopy(const Instruction& instruction, const OpName& op, Step& step)
    {
        step.execute = memoryOp(op, 4);
        if (!step.execute)
            return unknown(instruction, "not known");
        const std::vector<Operand>& operands = instruction.operands;
        if (op.is("cp.async.commit_group"))
            return {};
        if (op.is("cp.async.wait_group")) {
            step.offset = static_cast<std::int64_t>(operands.at(0).bits);
            return {};
        }
        step.offset = operands.at(0).offset;
        step.secondOffset = operands.at(1).offset;
        step.bytes = static_cast<std::uint8_t>(operands.at(2).bits);
        MR_TRY(slotOfAddress(instruction, operands[0], 4, step.slots[0]));
        MR_TRY(slotOfAddress(instruction, operands[1], 8, step.slots[1]));
        return operands.size() > 3 ? slotOf(instruction, operands[3], 4, step.slots[2]) : Status();
    }

    // mov of `bytes`, also for address spaces, which are one here.
    Status decodeMove(const Instruction& instruction, int bytes, Step& step)
    {
        step.execute = laneOp(OpName(bytes == 8 ? "mov.b64" : "mov.b32"), bytes);
        MR_TRY(slotOf(instruction, instruction.operands.at(0), bytes, step.slots[0]));
        return slotOf(instruction, instruction.operands.at(1), bytes, step.slots[1]);
    }

    Status decodePack(const Instruction& instruction, const OpName& op, Step& step)
    {
        const Operand& to = instruction.operands.at(0);
        const Operand& from = instruction.operands.at(1);
        const int whole = op.last().ends_with("64") ? 8 : 4;
        const bool unpacks = to.kind == OperandKind::Vector;
        const Operand& parts = unpacks ? to : from;
        if (parts.parts.size() != 2)
            return unknown(instruction, "a vector that has not two parts");
        step.execute = packOp(unpacks, whole);
        MR_TRY(slotOf(instruction, unpacks ? from : to, whole, step.slots[0]));
        MR_TRY(slotOf(instruction, parts.parts[0], whole / 2, step.slots[1]));
        return slotOf(instruction, parts.parts[1], whole / 2, step.slots[2]);
    }

    Status decodeLane(const Instruction& instruction, const OpName& op, Step& step)
    {
        const std::vector<Operand>& operands = instruction.operands;
        const int sourceBytes = operands.size() > 1 ? widthOf(operands[1]) : -1;
        step.execute = laneOp(op, sourceBytes);
        if (!step.execute)
            return unknown(instruction, "not known");
        for (std::size_t i = 0; i < operands.size(); ++i) {
            const int bytes = operandBytes(op, i);
            const int width = widthOf(operands[i]);
            if (width >= 0 && width != bytes && !(op.first() == "cvt" && i == 1))
                return unknown(instruction, fmt::format("operand {} has another width", i));
            MR_TRY(slotOf(instruction, operands[i], bytes, step.slots.at(i)));
        }
        return {};
    }

    // Bytes of a lane of an operand that is a register, else -1.
    int widthOf(const Operand& operand)
    {
        if (operand.kind != OperandKind::Register)
            return -1;
        return slotOfSpecial(operand.name) ? 4 : bytesOf(operand.name);
    }

    // Bytes that an instruction reads or writes in a lane of operand i.
    static int operandBytes(const OpName& op, std::size_t i)
    {
        const std::string_view name = op.first();
        const int own = registerBytes(op.last());
        if (name == "cvt" && i == 0)
            return op.is("cvt.rn.bf16x2.f32") ? 4 : registerBytes(op.parts[op.parts.size() - 2]);
        if (name == "setp" && i == 0)
            return 0;
        if ((name == "shl" || name == "shr") && i == 2)
            return 4;
        if ((name == "bfe" || name == "bfi") && i >= 2 && !(name == "bfi" && i == 2))
            return 4;
        if (name == "selp" && i == 3)
            return 0;
        const bool isWide = op.is("mul.wide") || op.is("mad.wide");
        return isWide && (i == 0 || i == 3) ? 2 * own : own;
    }

    const Module& m_module;
    const Entry& m_entry;
    Program m_program;
    std::map<std::string, std::uint32_t> m_slots;
    std::map<std::pair<std::uint64_t, int>, std::uint32_t> m_constants;
    std::map<std::string, std::uint64_t> m_symbols;
};

} // namespace

OpName::OpName(std::string_view text)
    : whole(text)
{
    for (std::size_t at = 0; at <= text.size();) {
        const std::size_t end = std::min(text.find('.', at), text.size());
        parts.push_back(text.substr(at, end - at));
        at = end + 1;
    }
}

bool OpName::is(std::string_view begin) const
{
    return whole.starts_with(begin) && (whole.size() == begin.size() || whole[begin.size()] == '.');
}

bool OpName::has(std::string_view part) const
{
    return std::ranges::find(parts, part) != parts.end();
}

Execute laneOp(const OpName& op, int sourceBytes)
{
    if (const Execute found = conversionOp(op, sourceBytes))
        return found;
    for (const auto decode : {predicateOp, compareOp, wordOp, floatOp, integerOp})
        if (const Execute found = decode(op))
            return found;
    return nullptr;
}

Result<Program> decode(const Module& module, const Entry& entry)
{
    return Decoder(module, entry).decode();
}

} // namespace mr::ptx
