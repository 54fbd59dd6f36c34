#include "gpu/ptx/mutations.h"

#include "gpu/ptx/decode.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <string>
#include <utility>

namespace mr::ptx {
namespace {

constexpr std::string_view kAfterRemoved = "$after_removed";

Operand named(OperandKind kind, std::string_view name)
{
    Operand operand;
    operand.kind = kind;
    operand.name = name;
    return operand;
}

class MutantMaker
{
public:
    explicit MutantMaker(const Entry& entry)
        : m_entry(entry)
    {
    }

    std::vector<Mutant> make()
    {
        for (m_index = 0; m_index < m_entry.instructions.size(); ++m_index)
            mutate(m_entry.instructions[m_index]);
        return std::move(m_mutants);
    }

private:
    void add(Fault fault, std::string form, std::optional<Instruction> instead)
    {
        int& number = m_numbers[static_cast<std::size_t>(fault)];
        m_mutants.push_back({fault, ++number, std::move(form), m_index, std::move(instead)});
    }

    void mutate(const Instruction& whole)
    {
        const OpName op(whole.op);
        const std::string_view name = op.first();
        if (name == "bar" || name == "barrier")
            add(Fault::BarrierRemoved, "removed", std::nullopt);
        else if (name == "ldmatrix")
            mutateMatrix(whole, op);
        else if (name == "mma")
            mutateProduct(whole);
        else if (name == "setp")
            mutateComparison(whole, op);
        else if (name == "shfl")
            mutateShuffle(whole);
        else if (name == "cp")
            mutateCopy(whole, op);
        else if ((name == "ld" || name == "st") && (op.has("shared") || op.has("global")))
            mutateAccess(whole, op);
    }

    void mutateCopy(const Instruction& whole, const OpName& op)
    {
        if (op.is("cp.async.commit_group"))
            return add(Fault::CommitRemoved, "removed", std::nullopt);
        if (op.is("cp.async.wait_group")) {
            Instruction weaker = whole;
            ++weaker.operands.at(0).bits;
            add(Fault::WaitWeakened, fmt::format("{} groups", weaker.operands[0].bits), weaker);
            return add(Fault::WaitRemoved, "removed", std::nullopt);
        }
        moveAddress(whole, 0, whole.operands.at(2).bits, "to ");
        moveAddress(whole, 1, whole.operands.at(2).bits, "from ");
    }

    void mutateAccess(const Instruction& whole, const OpName& op)
    {
        const bool isLoad = op.first() == "ld";
        const Operand& data = whole.operands.at(isLoad ? 0 : 1);
        std::size_t bits = 0;
        const std::string_view digits = op.last().substr(1);
        std::from_chars(digits.data(), digits.data() + digits.size(), bits);
        const std::size_t count = data.kind == OperandKind::Vector ? data.parts.size() : 1;
        moveAddress(whole, isLoad ? 1 : 0, bits / 8 * count, "");
    }

    void mutateMatrix(const Instruction& whole, const OpName& op)
    {
        swapParts(Fault::MatrixSwapped, whole, 0, 0, 1, "0 and 1");
        swapParts(Fault::MatrixSwapped, whole, 0, 1, 2, "1 and 2");
        moveAddress(whole, 1, 16, "");
        if (!op.has("trans"))
            return;
        Instruction plain = whole;
        plain.op.erase(plain.op.find(".trans"), 6);
        add(Fault::TransposeDropped, "not transposed", plain);
    }

    void mutateProduct(const Instruction& whole)
    {
        swapParts(Fault::ProductSwapped, whole, 1, 1, 2, "A 1 and 2");
        swapParts(Fault::ProductSwapped, whole, 2, 0, 1, "B 0 and 1");
        swapParts(Fault::ProductSwapped, whole, 3, 1, 2, "sums before 1 and 2");
        swapParts(Fault::ProductSwapped, whole, 0, 1, 2, "sums after 1 and 2");
    }

    // Comparisons of floats are left alone: two that are equal but for what is made equal on
    // purpose are too rare to be met.
    void mutateComparison(const Instruction& whole, const OpName& op)
    {
        constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kOthers = {
            {{"lt", "le"}, {"le", "lt"}, {"gt", "ge"}, {"ge", "gt"}}};
        if (op.last().starts_with('f') || !whole.guard.empty())
            return;
        Instruction other = whole;
        for (const auto& [is, becomes] : kOthers)
            if (op.parts.at(1) == is) {
                other.op.replace(5, 2, becomes);
                return add(Fault::ComparisonShifted, std::string(becomes), other);
            }
        Operand& right = other.operands.at(2);
        if (right.kind != OperandKind::Integer)
            return;
        ++right.bits;
        add(Fault::ComparisonShifted, "constant + 1", other);
    }

    // Operands d|p, a, b (distance or lane), c, mask.
    void mutateShuffle(const Instruction& whole)
    {
        const std::optional<std::uint64_t> by = constantOf(whole.operands.at(2));
        Operand moved;
        moved.kind = OperandKind::Integer;
        moved.bits = !by ? 1 : *by > 1 ? *by / 2 : *by + 1;
        Instruction other = whole;
        other.operands[2] = moved;
        add(Fault::ShuffleMoved, fmt::format("by {}", moved.bits), other);
    }

    void moveAddress(
        const Instruction& whole, std::size_t operand, std::size_t bytes, std::string_view which)
    {
        const int by = bytes > 4 ? 16 : 4;
        Instruction other = whole;
        other.operands.at(operand).offset += by;
        add(Fault::AddressMoved, fmt::format("{}+{}", which, by), other);
    }

    void swapParts(Fault fault, const Instruction& whole, std::size_t operand, std::size_t first,
        std::size_t second, std::string_view form)
    {
        Instruction other = whole;
        std::vector<Operand>& parts = other.operands.at(operand).parts;
        if (parts.at(first).name == parts.at(second).name)
            return; // the same instruction
        std::swap(parts[first], parts[second]);
        add(fault, std::string(form), other);
    }

    // The value of an immediate, or of a register that one instruction sets to an immediate.
    std::optional<std::uint64_t> constantOf(const Operand& operand) const
    {
        if (operand.kind == OperandKind::Integer)
            return operand.bits;
        std::optional<std::uint64_t> value;
        for (const Instruction& instruction : m_entry.instructions) {
            if (instruction.operands.empty() || instruction.operands[0].name != operand.name ||
                instruction.op.starts_with("st"))
                continue;
            const bool isMove = instruction.op.starts_with("mov") &&
                                instruction.operands[1].kind == OperandKind::Integer;
            if (!isMove || value)
                return std::nullopt;
            value = instruction.operands[1].bits;
        }
        return value;
    }

    const Entry& m_entry;
    std::size_t m_index = 0;
    std::array<int, static_cast<std::size_t>(Fault::Count)> m_numbers = {};
    std::vector<Mutant> m_mutants;
};

// After each comparison that has a mutant it adds
//     setp (as in the mutant) %differs, ...
//     xor.pred %differs, %differs, %p
//     @!%differs bra to what follows
//     xor.pred %differs, %differs, %differs
class ProbeMaker
{
public:
    explicit ProbeMaker(const Entry& entry)
        : m_other(entry)
    {
    }

    Probe make(const std::vector<Mutant>& mutants)
    {
        std::map<std::size_t, const Mutant*> comparisons;
        for (const Mutant& mutant : mutants)
            if (mutant.fault == Fault::ComparisonShifted)
                comparisons[mutant.index] = &mutant;
        m_probe.entry = m_other;
        m_probe.entry.instructions.clear();
        m_probe.entry.registers[m_differs.name] = "pred";
        for (std::size_t i = 0; i < m_other.instructions.size(); ++i) {
            m_probe.places.push_back(add(m_other.instructions[i]));
            if (const auto found = comparisons.find(i); found != comparisons.end())
                compare(*found->second);
        }
        m_probe.places.push_back(m_probe.entry.instructions.size());
        for (const auto& [name, index] : m_other.labels)
            m_probe.entry.labels[name] = m_probe.places[index];
        return std::move(m_probe);
    }

private:
    std::size_t add(Instruction instruction)
    {
        m_probe.entry.instructions.push_back(std::move(instruction));
        return m_probe.entry.instructions.size() - 1;
    }

    std::size_t add(const Instruction& like, std::string op, std::vector<Operand> operands)
    {
        Instruction instruction;
        instruction.line = like.line;
        instruction.op = std::move(op);
        instruction.operands = std::move(operands);
        return add(std::move(instruction));
    }

    void compare(const Mutant& mutant)
    {
        const Instruction& whole = *mutant.instead;
        const Operand right = whole.operands.at(0);
        const Operand after =
            named(OperandKind::Symbol, fmt::format("$after_comparison_{}", mutant.index));
        std::vector<Operand> operands = whole.operands;
        operands[0] = m_differs;
        add(whole, whole.op, operands);
        add(whole, "xor.pred", {m_differs, m_differs, right});
        Instruction& branch = m_probe.entry.instructions[add(whole, "bra", {after})];
        branch.guard = m_differs.name;
        branch.guardNegated = true;
        m_probe.differences[mutant.index] =
            add(whole, "xor.pred", {m_differs, m_differs, m_differs});
        m_probe.entry.labels[after.name] = m_probe.entry.instructions.size();
    }

    const Entry& m_other;
    const Operand m_differs = named(OperandKind::Register, "%differs");
    Probe m_probe;
};

} // namespace

std::string_view nameOf(Fault fault)
{
    constexpr std::array<std::string_view, static_cast<std::size_t>(Fault::Count)> kNames = {
        "barrier removed", "wait weakened", "wait removed", "commit removed", "matrix swapped",
        "product swapped", "comparison shifted", "shuffle moved", "transpose dropped",
        "address moved"};
    return kNames.at(static_cast<std::size_t>(fault));
}

std::vector<Mutant> mutantsOf(const Entry& entry)
{
    return MutantMaker(entry).make();
}

Probe probeOf(const Entry& entry, const std::vector<Mutant>& mutants)
{
    return ProbeMaker(entry).make(mutants);
}

Result<Program> decodeMutant(const Module& module, const Entry& entry, const Mutant& mutant)
{
    Entry other = entry;
    Instruction& changed = other.instructions.at(mutant.index);
    if (mutant.instead) {
        changed = *mutant.instead;
        return decode(module, other);
    }
    // A branch to the next instruction does nothing, and leaves the places of all others.
    const Operand target = named(OperandKind::Symbol, kAfterRemoved);
    changed.guard.clear();
    changed.op = "bra";
    changed.operands = {target};
    other.labels[target.name] = mutant.index + 1;
    return decode(module, other);
}

} // namespace mr::ptx
