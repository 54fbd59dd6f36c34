// DeltaOracle: the gated delta rule of one document and one value head in double precision, token
// by token, with all gradients, and how far an op in F32 may be from each.
//
// Tolerance. A column of the state is multiplied by exp(g) (I - beta k k^T) from row to row, whose
// norm is at most exp(g); so is a column of its gradient, backwards. An error made at one row is
// therefore passed on with the decays alone, and errors of rows add up: with a' = exp(g) a and
// A = a' + |d| the sizes of all terms that a column is the sum of, its error E obeys
//     E' = exp(g) E + (error of exp(g)) a',   E = E' + w (a' + |v| + |d|).
// w covers the sums over keyDim, twice (one of them with rounded keys), those over the rows of a
// chunk, for a device that takes 64 rows at once, and single roundings. All other numbers are sums
// of products of these, and their tolerance is that of the product.
// "Norm" above is over keyDim, where |k| is at most 1 and |q| at most keyDim^-1/2.
//
// Threads  A value.

#pragma once

#include "core/prove/conformance_case.h"

#include <cstdint>

namespace mr::conformance {

// A number and its tolerance, before it is stored.
struct Near {
    double value = 0.0;
    double tolerance = 0.0;

    void add(const Near& other) noexcept
    {
        value += other.value;
        tolerance += other.tolerance;
    }
};

using NearRows = std::vector<std::vector<Near>>;

// Inputs of one document and head, exact.
struct DeltaOracleInputs {
    std::vector<Values> queries, keys; // (rows, keyDim), before their norms
    std::vector<Values> values;        // (rows, valueDim)
    std::vector<Values> gradOut;       // (rows, valueDim); empty: forward only
    Values b, a;                       // (rows)
    double logDecay = 0.0;
    double timeBias = 0.0;
    Values state; // (keyDim * valueDim): before the first row; empty: zero
};

class DeltaOracle
{
public:
    explicit DeltaOracle(const DeltaOracleInputs& in);

    // Forward.
    NearRows out;            // (rows, valueDim)
    std::vector<Near> state; // (keyDim * valueDim): after the last row

    // Backward; those of q and k are of normed ones.
    NearRows gradQuery, gradKey;                // (rows, keyDim)
    NearRows gradValue;                         // (rows, valueDim)
    std::vector<Near> gradB, gradA, decayTerms; // (rows); the last: of gradLogDecay

    // The gradient of x, of n = scale x (sum x^2 + 1e-6)^-1/2 the gradient `grad`.
    static std::vector<Near> throughNorm(
        const Values& x, const std::vector<Near>& grad, double scale);

private:
    struct Gate {
        double beta, g, decay, slope, rate;
        double gError; // of g
    };

    // Sizes and errors of a column at a row; see above.
    struct Column {
        double before = 0.0, beforeError = 0.0; // a', E'
        double size = 0.0, error = 0.0;         // A, E
        double change = 0.0, changeError = 0.0; // v - u
        double delta = 0.0, deltaError = 0.0;   // d
    };

    // Sums over the columns of a row.
    struct RowSums {
        Near beta, g;
        double queryError = 0.0, keyError = 0.0;
    };

    void makeGates();
    void forwardRow(std::size_t t, Values& values);
    void forwardColumn(std::size_t t, std::size_t c, Values& values);
    void storeState(const Values& values);
    void backwardRow(std::size_t t);
    void backwardColumn(std::size_t t, std::size_t c, RowSums& sums);
    double moveState(std::size_t t, std::size_t c, double move);
    void storeGateGradients(std::size_t t, const Near& gradBeta, const Near& gradG);

    const DeltaOracleInputs& m_in;
    std::size_t m_keyDim, m_valueDim;
    double m_unit;   // w
    double m_qScale; // keyDim^-1/2
    std::vector<Values> m_q, m_k;
    std::vector<Gate> m_gates;
    std::vector<Values> m_states; // after each row
    std::vector<std::vector<Column>> m_columns;
    Values m_gradState;             // G, from the right
    Values m_gradSize, m_gradError; // of its columns
};

} // namespace mr::conformance
