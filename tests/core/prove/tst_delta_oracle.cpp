// The gradients of DeltaOracle against central differences of what it computes forward.

#include "core/prove/delta_oracle.h"
#include "support/test_room.h"

#include <QObject>
#include <QTest>

#include <cmath>
#include <functional>
#include <random>

namespace mr::test::tst_delta_oracle {

using conformance::DeltaOracle;
using conformance::DeltaOracleInputs;
using conformance::Near;
using conformance::Values;

namespace {

constexpr std::size_t kRows = 9;
constexpr std::size_t kKeyDim = 5;
constexpr std::size_t kValueDim = 4;

std::vector<Values> randomRows(std::mt19937_64& engine, std::size_t cols)
{
    std::vector<Values> rows(kRows, Values(cols));
    for (Values& row : rows)
        for (double& value : row)
            value = static_cast<double>(engine() >> 11U) / 4503599627370496.0 - 1.0;
    return rows;
}

DeltaOracleInputs inputs()
{
    std::mt19937_64 engine(7); // NOLINT: the same in every run
    DeltaOracleInputs in;
    in.queries = randomRows(engine, kKeyDim);
    in.keys = randomRows(engine, kKeyDim);
    in.values = randomRows(engine, kValueDim);
    in.gradOut = randomRows(engine, kValueDim);
    for (const Values& row : randomRows(engine, 2)) {
        in.b.push_back(row[0]);
        in.a.push_back(row[1]);
    }
    in.logDecay = 0.3;
    in.timeBias = -0.5;
    in.state = randomRows(engine, kKeyDim * kValueDim)[0];
    return in;
}

// sum of out gradOut
double loss(const DeltaOracleInputs& in)
{
    const DeltaOracle oracle(in);
    double sum = 0.0;
    for (std::size_t t = 0; t < kRows; ++t)
        for (std::size_t c = 0; c < kValueDim; ++c)
            sum += oracle.out[t][c].value * in.gradOut[t][c];
    return sum;
}

// By moving the number that `place` gives.
double difference(DeltaOracleInputs in, const std::function<double&(DeltaOracleInputs&)>& place)
{
    constexpr double kStep = 1e-5;
    const double at = place(in);
    place(in) = at + kStep;
    const double above = loss(in);
    place(in) = at - kStep;
    return (above - loss(in)) / (2.0 * kStep);
}

bool isNear(double got, double want)
{
    return std::abs(got - want) < 1e-8 * (1.0 + std::abs(want));
}

} // namespace

class TestDeltaOracle : public QObject
{
    Q_OBJECT

private Q_SLOTS:

    void gradientsOfRowsEqualCentralDifferences()
    {
        const DeltaOracleInputs in = inputs();
        const DeltaOracle oracle(in);

        for (std::size_t t = 0; t < kRows; ++t) {
            const auto query = DeltaOracle::throughNorm(
                in.queries[t], oracle.gradQuery[t], 1.0 / std::sqrt(double{kKeyDim}));
            const auto key = DeltaOracle::throughNorm(in.keys[t], oracle.gradKey[t], 1.0);
            for (std::size_t i = 0; i < kKeyDim; ++i) {
                QVERIFY(isNear(query[i].value,
                    difference(in, [=](auto& x) -> double& { return x.queries[t][i]; })));
                QVERIFY(isNear(key[i].value,
                    difference(in, [=](auto& x) -> double& { return x.keys[t][i]; })));
            }
            for (std::size_t c = 0; c < kValueDim; ++c)
                QVERIFY(isNear(oracle.gradValue[t][c].value,
                    difference(in, [=](auto& x) -> double& { return x.values[t][c]; })));
        }
    }

    void gradientsOfGatesEqualCentralDifferences()
    {
        const DeltaOracleInputs in = inputs();
        const DeltaOracle oracle(in);

        double decay = 0.0;
        double bias = 0.0;
        for (std::size_t t = 0; t < kRows; ++t) {
            QVERIFY(isNear(
                oracle.gradB[t].value, difference(in, [=](auto& x) -> double& { return x.b[t]; })));
            QVERIFY(isNear(
                oracle.gradA[t].value, difference(in, [=](auto& x) -> double& { return x.a[t]; })));
            decay += oracle.decayTerms[t].value;
            bias += oracle.gradA[t].value;
        }
        QVERIFY(isNear(decay, difference(in, [](auto& x) -> double& { return x.logDecay; })));
        QVERIFY(isNear(bias, difference(in, [](auto& x) -> double& { return x.timeBias; })));
    }
};

MR_TEST(TestDeltaOracle)

} // namespace mr::test::tst_delta_oracle

#include "tst_delta_oracle.moc"
