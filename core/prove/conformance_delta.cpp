// gatedDelta and its backward: against double precision, and bit for bit single documents against
// packed rows. delta_oracle.h derives the tolerances.

#include "core/prove/conformance_recurrent.h"
#include "core/prove/delta_oracle.h"

#include <fmt/format.h>

namespace mr::conformance {

namespace {

enum class Gates { Slow, Strong }; // Strong: decays from 1 to 0, and softplus above 20

struct DeltaCase {
    std::int64_t rows;
    DeltaShape shape;
    Lengths lengths;
    std::int64_t cols, firstGate;
    Gates gates = Gates::Slow;
};

// One element; documents of one row, of whole chunks, of a row more and less, of three chunks;
// value heads that share keys; sizes that no pack divides, also above a tile of 64, and those of
// models; gates within wider rows; no row.
constexpr DeltaCase kDeltaCases[] = {{1, {1, 1, 1, 1}, {}, 2, 0}, {7, {1, 3, 7, 12}, {1}, 9, 2},
    {70, {2, 2, 12, 7}, {}, 4, 0}, {200, {1, 3, 7, 12}, {1, 2, 133}, 8, 1},
    {192, {2, 4, 16, 40}, {64, 65}, 8, 0}, {140, {1, 1, 64, 64}, {}, 2, 0},
    {67, {1, 2, 128, 128}, {66, 1}, 20, 16}, {150, {1, 2, 8, 24}, {130}, 4, 0, Gates::Strong},
    {130, {1, 3, 70, 70}, {}, 9, 2, Gates::Strong}, {0, {1, 1, 8, 8}, {}, 2, 0}};

// Heads narrower than any model has; cases of such heads also run with late starts.
bool isSmall(const DeltaCase& s)
{
    return s.shape.keyDim < 64;
}

struct DeltaInputs {
    Input mixed, gates, logDecay, timeBias, from;
    std::vector<std::int64_t> starts;
};

DeltaInputs deltaInputs(CaseRun& run, DType type, const DeltaCase& s)
{
    const bool isStrong = s.gates == Gates::Strong;
    DeltaInputs in{run.random(type, {s.rows, s.shape.columns()}),
        run.random(type, {s.rows, s.cols}, isStrong ? 12.0 : 1.0),
        run.random(type, {s.shape.valueHeads}, 0.5), {}, {}, documentStarts(s.rows, s.lengths)};
    Values bias;
    for (int h = 0; h < s.shape.valueHeads; ++h)
        bias.push_back(isStrong ? 4.0 : -1.0 - 1.5 * (h % 3));
    in.timeBias = run.given(type, {s.shape.valueHeads}, bias);
    in.from = run.given(DType::I32, {s.rows}, documentFrom(in.starts));
    return in;
}

GatedDeltaArgs deltaArgs(CaseRun& run, DType type, const DeltaCase& s, const DeltaInputs& in)
{
    return {in.mixed.view, in.gates.view, in.logDecay.view, in.timeBias.view, in.from.view,
        run.blank(type, {s.rows, s.shape.valueColumns()}), {},
        run.blank(DType::F32, {deltaForwardScratch(s.rows, s.shape)}), s.shape, s.firstGate, false};
}

// `count` columns from `column` on of rows [begin, end).
std::vector<Values> partOf(const Input& input, std::int64_t cols, std::int64_t begin,
    std::int64_t end, std::int64_t column, std::int64_t count)
{
    std::vector<Values> part;
    for (std::int64_t t = begin; t < end; ++t) {
        const double* row = input.at(t * cols + column);
        part.emplace_back(row, row + count);
    }
    return part;
}

Values columnOf(const Input& input, std::int64_t cols, std::int64_t begin, std::int64_t end,
    std::int64_t column)
{
    Values values;
    for (std::int64_t t = begin; t < end; ++t)
        values.push_back(input(t * cols + column));
    return values;
}

struct KeyColumns {
    std::int64_t query, key;
};

KeyColumns keyColumns(const DeltaShape& shape, std::int64_t head)
{
    const std::int64_t query = head / (shape.valueHeads / shape.keyHeads) * shape.keyDim;
    return {query, shape.keyColumns() + query};
}

std::int64_t valueColumn(const DeltaShape& shape, std::int64_t head)
{
    return 2 * shape.keyColumns() + head * shape.valueDim;
}

// Rows [begin, end) of a head; gradOut null: forward only.
DeltaOracleInputs oracleInputs(const DeltaCase& s, const DeltaInputs& in, const Input* gradOut,
    std::int64_t begin, std::int64_t end, std::int64_t head)
{
    const auto [query, key] = keyColumns(s.shape, head);
    const std::int64_t cols = s.shape.columns();
    DeltaOracleInputs one;
    one.queries = partOf(in.mixed, cols, begin, end, query, s.shape.keyDim);
    one.keys = partOf(in.mixed, cols, begin, end, key, s.shape.keyDim);
    one.values = partOf(in.mixed, cols, begin, end, valueColumn(s.shape, head), s.shape.valueDim);
    if (gradOut)
        one.gradOut = partOf(*gradOut, s.shape.valueColumns(), begin, end, head * s.shape.valueDim,
            s.shape.valueDim);
    one.b = columnOf(in.gates, s.cols, begin, end, s.firstGate + head);
    one.a = columnOf(in.gates, s.cols, begin, end, s.firstGate + s.shape.valueHeads + head);
    one.logDecay = in.logDecay(head);
    one.timeBias = in.timeBias(head);
    return one;
}

// Numbers that an op stores.
struct Wanted {
    Values values, tolerance;

    explicit Wanted(std::int64_t count, double held = 0.0)
        : values(static_cast<std::size_t>(count), held)
        , tolerance(static_cast<std::size_t>(count), 0.0)
    {
    }

    void put(std::int64_t place, const Near& near, DType type)
    {
        const auto at = static_cast<std::size_t>(place);
        values[at] = near.value;
        // Below F32's normal numbers a result may be 0.
        tolerance[at] =
            near.tolerance + 1.01 * unitOf(type) * (std::abs(near.value) + near.tolerance) + 1e-36;
    }
};

void expectWanted(CaseRun& run, const char* what, const TensorView& view, const Wanted& want)
{
    run.expect(what, view, want.values, want.tolerance);
}

// `state` (valueHeads, keyDim, valueDim): before row 0, or none. Returns that after the last row.
Wanted expectOut(CaseRun& run, DType type, const DeltaCase& s, const DeltaInputs& in,
    const TensorView& out, const Input* state)
{
    const std::int64_t stateCount = std::int64_t{s.shape.keyDim} * s.shape.valueDim;
    Wanted want(s.rows * s.shape.valueColumns());
    Wanted after(stateCount * s.shape.valueHeads);
    for (std::size_t d = 0; d + 1 < in.starts.size(); ++d)
        for (std::int64_t head = 0; head < s.shape.valueHeads; ++head) {
            const std::int64_t begin = in.starts[d];
            const std::int64_t end = in.starts[d + 1];
            DeltaOracleInputs one = oracleInputs(s, in, nullptr, begin, end, head);
            if (state && d == 0)
                one.state.assign(state->at(head * stateCount), state->at((head + 1) * stateCount));
            const DeltaOracle oracle(one);
            for (std::int64_t i = 0; i < (end - begin) * s.shape.valueDim; ++i)
                want.put((begin + i / s.shape.valueDim) * s.shape.valueColumns() +
                             head * s.shape.valueDim + i % s.shape.valueDim,
                    oracle.out[static_cast<std::size_t>(i / s.shape.valueDim)]
                              [static_cast<std::size_t>(i % s.shape.valueDim)],
                    type);
            for (std::int64_t i = 0; i < stateCount; ++i)
                after.put(
                    head * stateCount + i, oracle.state[static_cast<std::size_t>(i)], DType::F32);
        }
    expectWanted(run, "out", out, want);
    return after;
}

TensorView zerosOf(CaseRun& run, std::int64_t rows)
{
    return run.given(DType::I32, {rows}, Values(static_cast<std::size_t>(rows), 0.0)).view;
}

void gatedDelta(CaseRun& run, DType type, const DeltaCase& s)
{
    const DeltaInputs in = deltaInputs(run, type, s);
    const GatedDeltaArgs args = deltaArgs(run, type, s, in);
    run.call(run.ops().gatedDelta(args, run.stream()));
    expectOut(run, type, s, in, args.out, nullptr);
    const TensorView zeros = zerosOf(run, s.rows);
    const TensorView out = run.blank(type, {s.rows, s.shape.valueColumns()});
    for (std::size_t i = 0; i + 1 < in.starts.size(); ++i) {
        const std::int64_t begin = in.starts[i];
        const std::int64_t count = in.starts[i + 1] - begin;
        GatedDeltaArgs alone = args;
        alone.mixed = args.mixed.rows(begin, count);
        alone.gates = args.gates.rows(begin, count);
        alone.documentFrom = zeros.rows(0, count);
        alone.out = out.rows(begin, count);
        alone.scratch.dims[0] = deltaForwardScratch(count, s.shape);
        run.call(run.ops().gatedDelta(alone, run.stream()));
    }
    run.expectSame("out, alone", args.out, out);
}

// Rows [0, 2), [2, 3), [3, rows) in calls of their own, from a state that is given.
void deltaInParts(CaseRun& run, DType type, const DeltaCase& s)
{
    const DeltaInputs in = deltaInputs(run, type, s);
    const GatedDeltaArgs args = deltaArgs(run, type, s, in);
    const Input state =
        run.random(DType::F32, {s.shape.valueHeads, s.shape.keyDim, s.shape.valueDim}, 0.1);
    const std::int64_t starts[] = {
        0, std::min<std::int64_t>(2, s.rows), std::min<std::int64_t>(3, s.rows), s.rows};
    for (std::size_t i = 0; i < 3; ++i) {
        const std::int64_t count = starts[i + 1] - starts[i];
        Values from;
        for (std::int64_t t = starts[i]; t < starts[i + 1]; ++t)
            from.push_back(std::max(0.0, in.from(t) - static_cast<double>(starts[i])));
        GatedDeltaArgs part = args;
        part.mixed = args.mixed.rows(starts[i], count);
        part.gates = args.gates.rows(starts[i], count);
        part.documentFrom = run.given(DType::I32, {count}, from).view;
        part.out = args.out.rows(starts[i], count);
        part.state = state.view;
        part.scratch.dims[0] = deltaForwardScratch(count, s.shape);
        part.continues =
            i == 0 || (count > 0 && in.from(starts[i]) < static_cast<double>(starts[i]));
        run.call(run.ops().gatedDelta(part, run.stream()));
    }
    const Wanted after = expectOut(run, type, s, in, args.out, &state);
    expectWanted(run, "state", state.view, after);
}

struct DeltaBackward {
    Input gradOut, decayBefore, biasBefore;
    GatedDeltaBackwardArgs args;
};

TensorView heldGates(CaseRun& run, DType type, const DeltaCase& s)
{
    const Values held(static_cast<std::size_t>(s.rows * s.cols), 3.0);
    return run.given(type, {s.rows, s.cols}, held).view;
}

DeltaBackward deltaBackward(CaseRun& run, DType type, const DeltaCase& s, const DeltaInputs& in)
{
    const std::int64_t heads = s.shape.valueHeads;
    DeltaBackward b{run.random(type, {s.rows, s.shape.valueColumns()}),
        run.random(DType::F32, {heads}), run.random(DType::F32, {heads}), {}};
    b.args = {in.mixed.view, in.gates.view, in.logDecay.view, in.timeBias.view, in.from.view,
        b.gradOut.view, run.blank(type, {s.rows, s.shape.columns()}), heldGates(run, type, s),
        b.decayBefore.view, b.biasBefore.view,
        run.blank(DType::F32, {recurrentBlocks(s.rows), heads, s.shape.keyDim, s.shape.valueDim}),
        run.blank(DType::F32, {kDeltaPlanes, s.rows, heads}),
        run.blank(DType::F32, {deltaScratch(s.rows, s.shape)}), s.shape, s.firstGate, false};
    return b;
}

struct DeltaGradients {
    Wanted mixed, gates, decay, bias;
};

// The gradients of one document. Those of q and k are summed over the heads of a group first.
class DocumentGradients
{
public:
    DocumentGradients(const DeltaCase& s, DType type, const DeltaInputs& in, std::int64_t begin,
        std::int64_t end, DeltaGradients& to)
        : m_s(s)
        , m_type(type)
        , m_in(in)
        , m_begin(begin)
        , m_end(end)
        , m_to(to)
    {
    }

    void add(const Input& gradOut)
    {
        const std::int64_t group = m_s.shape.valueHeads / m_s.shape.keyHeads;
        for (std::int64_t keyHead = 0; keyHead < m_s.shape.keyHeads; ++keyHead) {
            m_query.clear();
            m_key.clear();
            for (std::int64_t j = 0; j < group; ++j)
                addHead(gradOut, keyHead * group + j);
            const auto [query, key] = keyColumns(m_s.shape, keyHead * group);
            storeKeys(m_query, query, 1.0 / std::sqrt(static_cast<double>(m_s.shape.keyDim)));
            storeKeys(m_key, key, 1.0);
        }
    }

private:
    void addHead(const Input& gradOut, std::int64_t head)
    {
        const DeltaOracle oracle(oracleInputs(m_s, m_in, &gradOut, m_begin, m_end, head));
        addRows(m_query, oracle.gradQuery);
        addRows(m_key, oracle.gradKey);
        // Sums of all rows, in any order.
        const double sumUnits = (static_cast<double>(m_s.rows) + 4.0) * kU;
        const auto at = static_cast<std::size_t>(head);
        for (std::int64_t t = m_begin; t < m_end; ++t) {
            const auto row = static_cast<std::size_t>(t - m_begin);
            for (std::int64_t c = 0; c < m_s.shape.valueDim; ++c)
                m_to.mixed.put(t * m_s.shape.columns() + valueColumn(m_s.shape, head) + c,
                    oracle.gradValue[row][static_cast<std::size_t>(c)], m_type);
            const std::int64_t gate = t * m_s.cols + m_s.firstGate + head;
            m_to.gates.put(gate, oracle.gradB[row], m_type);
            m_to.gates.put(gate + m_s.shape.valueHeads, oracle.gradA[row], m_type);
            for (const auto& [sum, term] : {std::pair(&m_to.decay, oracle.decayTerms[row]),
                     std::pair(&m_to.bias, oracle.gradA[row])}) {
                sum->values[at] += term.value;
                sum->tolerance[at] += term.tolerance + sumUnits * std::abs(term.value);
            }
        }
    }

    static void addRows(NearRows& sum, const NearRows& rows)
    {
        if (sum.empty()) {
            sum = rows;
            return;
        }
        for (std::size_t t = 0; t < rows.size(); ++t)
            for (std::size_t i = 0; i < rows[t].size(); ++i)
                sum[t][i].add(rows[t][i]);
    }

    void storeKeys(const NearRows& grad, std::int64_t column, double scale)
    {
        const std::int64_t dim = m_s.shape.keyDim;
        const std::vector<Values> x =
            partOf(m_in.mixed, m_s.shape.columns(), m_begin, m_end, column, dim);
        for (std::int64_t t = m_begin; t < m_end; ++t) {
            const auto row = static_cast<std::size_t>(t - m_begin);
            const std::vector<Near> gradX = DeltaOracle::throughNorm(x[row], grad[row], scale);
            for (std::int64_t i = 0; i < dim; ++i)
                m_to.mixed.put(t * m_s.shape.columns() + column + i,
                    gradX[static_cast<std::size_t>(i)], m_type);
        }
    }

    const DeltaCase& m_s;
    DType m_type;
    const DeltaInputs& m_in;
    std::int64_t m_begin, m_end;
    DeltaGradients& m_to;
    NearRows m_query, m_key;
};

void addBefore(Wanted& sum, const Input& before, bool accumulate)
{
    for (std::size_t i = 0; i < sum.values.size(); ++i) {
        sum.values[i] += accumulate ? before.values[i] : 0.0;
        sum.tolerance[i] += 2.0 * kU * std::abs(sum.values[i]) + 1e-36;
    }
}

// Documents alone: the bits of packed rows.
void backwardAlone(CaseRun& run, DType type, const DeltaCase& s, const DeltaInputs& in,
    const GatedDeltaBackwardArgs& args)
{
    const TensorView zeros = zerosOf(run, s.rows);
    const TensorView gradMixed = run.blank(type, {s.rows, s.shape.columns()});
    const TensorView gradGates = heldGates(run, type, s);
    for (std::size_t i = 0; i + 1 < in.starts.size(); ++i) {
        const std::int64_t begin = in.starts[i];
        const std::int64_t count = in.starts[i + 1] - begin;
        GatedDeltaBackwardArgs alone = args;
        alone.mixed = args.mixed.rows(begin, count);
        alone.gates = args.gates.rows(begin, count);
        alone.documentFrom = zeros.rows(0, count);
        alone.gradOut = args.gradOut.rows(begin, count);
        alone.gradMixed = gradMixed.rows(begin, count);
        alone.gradGates = gradGates.rows(begin, count);
        alone.gradLogDecay = {};
        alone.gradTimeBias = {};
        alone.borders = args.borders.rows(0, recurrentBlocks(count));
        alone.scratch.dims[0] = deltaScratch(count, s.shape);
        alone.partial = run.blank(DType::F32, {kDeltaPlanes, count, s.shape.valueHeads});
        run.call(run.ops().gatedDeltaBackward(alone, run.stream()));
    }
    run.expectSame("gradMixed, alone", args.gradMixed, gradMixed);
    run.expectSame("gradGates, alone", args.gradGates, gradGates);
}

void gatedDeltaBackward(CaseRun& run, DType type, const DeltaCase& s, bool accumulate)
{
    const DeltaInputs in = deltaInputs(run, type, s);
    DeltaBackward b = deltaBackward(run, type, s, in);
    b.args.accumulate = accumulate;
    run.call(run.ops().gatedDeltaBackward(b.args, run.stream()));
    DeltaGradients want{Wanted(s.rows * s.shape.columns()), Wanted(s.rows * s.cols, 3.0),
        Wanted(s.shape.valueHeads), Wanted(s.shape.valueHeads)};
    for (std::size_t i = 0; i + 1 < in.starts.size(); ++i)
        DocumentGradients(s, type, in, in.starts[i], in.starts[i + 1], want).add(b.gradOut);
    if (s.rows == 0)
        want.mixed = Wanted(0);
    addBefore(want.decay, b.decayBefore, accumulate);
    addBefore(want.bias, b.biasBefore, accumulate);
    expectWanted(run, "gradMixed", b.args.gradMixed, want.mixed);
    expectWanted(run, "gradGates", b.args.gradGates, want.gates);
    expectWanted(run, "gradLogDecay", b.args.gradLogDecay, want.decay);
    expectWanted(run, "gradTimeBias", b.args.gradTimeBias, want.bias);
    if (!accumulate)
        backwardAlone(run, type, s, in, b.args);
}

// Rounded gradients of weights: the bits of F32 ones, rounded.
void deltaRounded(CaseRun& run, const DeltaCase& s)
{
    constexpr DType kType = DType::BF16;
    const DeltaInputs in = deltaInputs(run, kType, s);
    DeltaBackward b = deltaBackward(run, kType, s, in);
    run.call(run.ops().gatedDeltaBackward(b.args, run.stream()));
    const TensorView decay = b.args.gradLogDecay;
    const TensorView bias = b.args.gradTimeBias;
    b.args.gradLogDecay = run.blank(kType, {s.shape.valueHeads});
    b.args.gradTimeBias = run.blank(kType, {s.shape.valueHeads});
    run.call(run.ops().gatedDeltaBackward(b.args, run.stream()));
    run.expectSame("gradLogDecay", b.args.gradLogDecay, run.rounded(decay));
    run.expectSame("gradTimeBias", b.args.gradTimeBias, run.rounded(bias));
}

void addDeltaCase(Table& table, DType type, const DeltaCase& s)
{
    const auto name = [&](const char* op, const char* more) {
        return fmt::format("{} {} ({}, {} heads of {}, {} of {}, gates in {}){}{}{}", op,
            typeName(type), s.rows, s.shape.keyHeads, s.shape.keyDim, s.shape.valueHeads,
            s.shape.valueDim, s.cols, lengthsName(s.lengths),
            s.gates == Gates::Strong ? " strong" : "", more);
    };
    table.push_back(
        {"gatedDelta", name("gatedDelta", ""), [=](CaseRun& run) { gatedDelta(run, type, s); }});
    if (s.rows > 0)
        table.push_back({"gatedDelta", name("gatedDelta", " in parts"),
            [=](CaseRun& run) { deltaInParts(run, type, s); }});
    for (const bool accumulate : {false, true})
        if (!accumulate || isSmall(s))
            table.push_back(
                {"gatedDeltaBackward", name("gatedDeltaBackward", accumulate ? " accumulate" : ""),
                    [=](CaseRun& run) { gatedDeltaBackward(run, type, s, accumulate); }});
    if (type == DType::BF16 && isSmall(s))
        table.push_back({"gatedDeltaBackward", name("gatedDeltaBackward", " rounded"),
            [=](CaseRun& run) { deltaRounded(run, s); }});
}

} // namespace

void addDeltaCases(Table& table)
{
    Table small;
    for (const DType type : kBothTypes)
        for (const DeltaCase& s : kDeltaCases)
            addDeltaCase(isSmall(s) ? small : table, type, s);
    table.insert(table.end(), small.begin(), small.end());
    addLateStarts(table, small);
}

} // namespace mr::conformance
