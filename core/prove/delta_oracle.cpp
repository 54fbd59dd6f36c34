#include "core/prove/delta_oracle.h"

#include "core/prove/conformance_recurrent.h"

namespace mr::conformance {

namespace {

Values normedBy(const Values& x, double scale)
{
    double squares = 1e-6;
    for (const double value : x)
        squares += value * value;
    Values out;
    for (const double value : x)
        out.push_back(scale * value / std::sqrt(squares));
    return out;
}

} // namespace

DeltaOracle::DeltaOracle(const DeltaOracleInputs& in)
    : m_in(in)
    , m_keyDim(in.keys.at(0).size())
    , m_valueDim(in.values.at(0).size())
    , m_unit((2.0 * static_cast<double>(m_keyDim) + 192.0) * kU)
    , m_qScale(1.0 / std::sqrt(static_cast<double>(m_keyDim)))
{
    const std::size_t rows = in.keys.size();
    for (std::size_t t = 0; t < rows; ++t) {
        m_q.push_back(normedBy(in.queries[t], m_qScale));
        m_k.push_back(normedBy(in.keys[t], 1.0));
    }
    makeGates();
    Values now = in.state.empty() ? Values(m_keyDim * m_valueDim, 0.0) : in.state;
    for (std::size_t t = 0; t < rows; ++t)
        forwardRow(t, now);
    storeState(now);
    if (in.gradOut.empty())
        return;
    for (auto* list : {&gradQuery, &gradKey, &gradValue})
        list->resize(rows);
    for (auto* list : {&gradB, &gradA, &decayTerms})
        list->resize(rows);
    m_gradState.assign(m_keyDim * m_valueDim, 0.0);
    m_gradSize.assign(m_valueDim, 0.0);
    m_gradError.assign(m_valueDim, 0.0);
    for (std::size_t t = rows; t-- > 0;)
        backwardRow(t);
}

void DeltaOracle::makeGates()
{
    for (std::size_t t = 0; t < m_in.b.size(); ++t) {
        const double time = m_in.a[t] + m_in.timeBias;
        const double soft = time > 20.0 ? time : std::log1p(std::exp(time));
        const double slope = time > 20.0 ? 1.0 : sigmoidOf(time);
        const double rate = std::exp(m_in.logDecay);
        // The sum is rounded; an exponential of 4 u and a logarithm; two products and a second
        // exponential.
        const double error = rate * (5.0 + std::abs(time)) * kU * slope + 10.0 * kU * rate * soft;
        m_gates.push_back(
            {sigmoidOf(m_in.b[t]), -rate * soft, std::exp(-rate * soft), slope, rate, error});
    }
}

void DeltaOracle::forwardRow(std::size_t t, Values& values)
{
    out.emplace_back();
    m_columns.emplace_back();
    for (std::size_t c = 0; c < m_valueDim; ++c)
        forwardColumn(t, c, values);
    m_states.push_back(values);
}

void DeltaOracle::forwardColumn(std::size_t t, std::size_t c, Values& values)
{
    const Gate& gate = m_gates[t];
    const double value = m_in.values[t][c];
    Column now{};
    double read = 0.0;
    double squares = 0.0;
    for (std::size_t i = 0; i < m_keyDim; ++i) {
        double& s = values[i * m_valueDim + c];
        squares += s * s;
        s *= gate.decay;
        read += s * m_k[t][i];
    }
    const Column first{.size = std::sqrt(squares)};
    const Column& last = t > 0 ? m_columns[t - 1][c] : first;
    now.before = gate.decay * last.size;
    now.beforeError = gate.decay * last.error + (gate.gError + 6.0 * kU) * now.before;
    now.change = value - read;
    now.changeError = now.beforeError + m_unit * (now.before + std::abs(value));
    now.delta = gate.beta * now.change;
    now.deltaError = gate.beta * now.changeError + 12.0 * kU * std::abs(now.delta);
    now.size = now.before + std::abs(now.delta);
    now.error = now.changeError + m_unit * std::abs(now.delta);
    Near o{0.0, m_qScale * (now.error + m_unit * now.size)};
    for (std::size_t i = 0; i < m_keyDim; ++i) {
        values[i * m_valueDim + c] += m_k[t][i] * now.delta;
        o.value += values[i * m_valueDim + c] * m_q[t][i];
    }
    out.back().push_back(o);
    m_columns.back().push_back(now);
}

void DeltaOracle::storeState(const Values& values)
{
    for (std::size_t i = 0; i < values.size(); ++i) {
        const Column& column = m_columns.back()[i % m_valueDim];
        state.push_back({values[i], column.error + m_unit * column.size});
    }
}

void DeltaOracle::backwardRow(std::size_t t)
{
    RowSums sums;
    gradQuery[t].resize(m_keyDim);
    gradKey[t].resize(m_keyDim);
    for (std::size_t c = 0; c < m_valueDim; ++c)
        backwardColumn(t, c, sums);
    for (std::size_t i = 0; i < m_keyDim; ++i) {
        gradQuery[t][i].tolerance = sums.queryError;
        gradKey[t][i].tolerance = sums.keyError;
    }
    storeGateGradients(t, sums.beta, sums.g);
}

// G of one column from behind row t to before it.
void DeltaOracle::backwardColumn(std::size_t t, std::size_t c, RowSums& sums)
{
    const Gate& gate = m_gates[t];
    const Column& now = m_columns[t][c];
    const double grad = m_in.gradOut[t][c];
    m_gradSize[c] += m_qScale * std::abs(grad);
    m_gradError[c] += m_unit * m_gradSize[c];
    double read = 0.0; // e
    for (std::size_t i = 0; i < m_keyDim; ++i) {
        double& g = m_gradState[i * m_valueDim + c];
        g += m_q[t][i] * grad;
        read += g * m_k[t][i];
    }
    const Near e{read, m_gradError[c] + m_unit * m_gradSize[c]};
    const Near move{
        -gate.beta * e.value, gate.beta * e.tolerance + 12.0 * kU * std::abs(gate.beta * e.value)};
    sums.g.value += moveState(t, c, move.value);
    gradValue[t].push_back({-move.value, move.tolerance});
    sums.beta.add({e.value * now.change, e.tolerance * std::abs(now.change) +
                                             std::abs(e.value) * now.changeError +
                                             m_unit * std::abs(e.value * now.change)});
    const double beforeError = now.beforeError + m_unit * now.before;
    sums.queryError += std::abs(grad) * (now.error + m_unit * now.size);
    sums.keyError += e.tolerance * std::abs(now.delta) + m_gradSize[c] * now.deltaError +
                     beforeError * std::abs(move.value) + now.before * move.tolerance;
    const double size = m_gradSize[c] + std::abs(move.value); // of G'
    sums.g.tolerance += (m_gradError[c] + 2.0 * m_unit * size) * now.before + size * beforeError;
    m_gradSize[c] = gate.decay * size;
    m_gradError[c] =
        gate.decay * (m_gradError[c] + m_unit * size) + (gate.gError + 6.0 * kU) * m_gradSize[c];
}

// Adds one column's terms of the gradients of q and k, and returns that of g; G becomes
// exp(g) (G + k m^T).
double DeltaOracle::moveState(std::size_t t, std::size_t c, double move)
{
    const Gate& gate = m_gates[t];
    double gradG = 0.0;
    for (std::size_t i = 0; i < m_keyDim; ++i) {
        const std::size_t at = i * m_valueDim + c;
        const double last = t > 0 ? m_states[t - 1][at] : m_in.state.empty() ? 0.0 : m_in.state[at];
        const double start = gate.decay * last;
        double& g = m_gradState[at];
        gradQuery[t][i].value += m_states[t][at] * m_in.gradOut[t][c];
        gradKey[t][i].value += g * m_columns[t][c].delta + start * move;
        g += m_k[t][i] * move;
        gradG += g * start;
        g *= gate.decay;
    }
    return gradG;
}

void DeltaOracle::storeGateGradients(std::size_t t, const Near& gradBeta, const Near& gradG)
{
    const Gate& gate = m_gates[t];
    const double steep = gate.beta * (1.0 - gate.beta);
    // 1 - beta cancels: its error is that of beta.
    gradB[t] = {gradBeta.value * steep,
        gradBeta.tolerance * steep + 20.0 * kU * gate.beta * std::abs(gradBeta.value)};
    const double time = m_in.a[t] + m_in.timeBias;
    const double factor = gate.rate * gate.slope;
    gradA[t] = {-factor * gradG.value,
        factor * (gradG.tolerance + (16.0 + std::abs(time)) * kU * std::abs(gradG.value))};
    decayTerms[t] = {gate.g * gradG.value,
        std::abs(gate.g) * gradG.tolerance +
            (gate.gError + 4.0 * kU * std::abs(gate.g)) * std::abs(gradG.value)};
}

std::vector<Near> DeltaOracle::throughNorm(
    const Values& x, const std::vector<Near>& grad, double scale)
{
    const auto count = static_cast<double>(x.size());
    const Values n = normedBy(x, 1.0);
    double squares = 1e-6;
    double dot = 0.0;
    double length = 0.0;
    double error = 0.0;
    for (std::size_t i = 0; i < x.size(); ++i) {
        squares += x[i] * x[i];
        dot += n[i] * scale * grad[i].value;
        length += std::pow(scale * grad[i].value, 2.0);
        error = std::max(error, scale * grad[i].tolerance);
    }
    // `error` bounds the length of the gradient's error, not each element's alone; the dot product
    // is at most the length of the gradient.
    const double factor = 1.0 / std::sqrt(squares);
    const double units = (2.0 * count + 24.0) * kU;
    std::vector<Near> out;
    for (std::size_t i = 0; i < x.size(); ++i)
        out.push_back({factor * (scale * grad[i].value - n[i] * dot),
            factor * (2.0 * error + units * std::sqrt(length))});
    return out;
}

} // namespace mr::conformance
