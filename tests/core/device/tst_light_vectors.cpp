// Optimizers with little or no state, and their codecs, against goldens/light_vectors.json: three
// steps in float64 by other code, whose Adafactor equals that of transformers 5.23 to 3e-17.

#include "core/base/philox.h"
#include "core/device/light_weight.h"
#include "core/optim/light_factors.h"
#include "support/test_room.h"

#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QTest>

#include <algorithm>
#include <cmath>
#include <limits>

namespace mr::test::tst_light_vectors {

namespace {

constexpr std::size_t kDeviceBytes = std::size_t{1} << 20;

QJsonObject lightVectors()
{
    QFile file(qEnvironmentVariable("MILLRACE_SOURCE") +
               QStringLiteral("/tests/core/device/goldens/light_vectors.json"));
    if (!file.open(QIODevice::ReadOnly))
        qFatal("%s cannot be read", qPrintable(file.fileName()));
    return QJsonDocument::fromJson(file.readAll()).object();
}

// Entries of a vector, or of a matrix by rows.
std::vector<float> floatsOf(const QJsonValue& value)
{
    std::vector<float> values;
    for (const QJsonValue entry : value.toArray()) {
        if (!entry.isArray()) {
            values.push_back(static_cast<float>(entry.toDouble()));
            continue;
        }
        const std::vector<float> row = floatsOf(entry);
        values.insert(values.end(), row.begin(), row.end());
    }
    return values;
}

// Largest difference, relative to the largest entry.
double errorOf(const std::vector<float>& got, const QJsonValue& wanted)
{
    const std::vector<float> want = floatsOf(wanted);
    if (got.size() != want.size())
        return std::numeric_limits<double>::infinity();
    double largest = 0.0;
    double error = 0.0;
    for (std::size_t i = 0; i < want.size(); ++i) {
        const double w = static_cast<double>(want[i]);
        largest = std::max(largest, std::abs(w));
        const double difference = std::abs(static_cast<double>(got[i]) - w);
        error = std::max(error, std::isnan(difference) ? 1e9 : difference);
    }
    return error / largest;
}

// The first element whose random bits are these; `count`: none has them.
std::size_t drawOf(int bits, std::size_t count)
{
    for (std::size_t element = 0; element < count; ++element) {
        const auto words = philox(42, element / 8, LightSettings{}.counter);
        const std::uint32_t word = words[element % 8 / 2];
        if (static_cast<int>(element % 2 == 0 ? word & 0xFFFFU : word >> 16) == bits)
            return element;
    }
    return count;
}

} // namespace

class TestLightVectors : public QObject
{
    Q_OBJECT

private Q_SLOTS:

    void stepsFollowTheSharedVectors_data()
    {
        QTest::addColumn<int>("rule");
        QTest::addColumn<float>("weightDecay");
        QTest::newRow("adafactor") << static_cast<int>(StepRule::Limited) << 0.1F;
        QTest::newRow("adafactor_relative") << static_cast<int>(StepRule::Relative) << 0.0F;
        QTest::newRow("sgd_normalised") << static_cast<int>(StepRule::Normalised) << 0.1F;
    }

    void stepsFollowTheSharedVectors()
    {
        QFETCH(const int, rule);
        QFETCH(const float, weightDecay);
        const QJsonObject vectors = lightVectors();
        const QJsonArray steps = vectors[QStringLiteral("cases")]
                                     .toObject()[QString::fromLatin1(QTest::currentDataTag())]
                                     .toObject()[QStringLiteral("steps")]
                                     .toArray();
        LightSettings settings;
        settings.rule = static_cast<StepRule>(rule);
        settings.decay = 1.0F - settings.rate * weightDecay;
        LightWeight matrix(4, 6, floatsOf(vectors[QStringLiteral("W0")]), MasterPlanes::Halves);
        LightWeight bias(1, 6, floatsOf(vectors[QStringLiteral("b0")]), MasterPlanes::Halves);
        const auto device = makeCpuDevice(kDeviceBytes);
        QCOMPARE(steps.size(), 3);
        for (int time = 1; time <= steps.size(); ++time) {
            const QJsonObject want = steps[time - 1].toObject();
            const QJsonObject grad =
                vectors[QStringLiteral("gradients")].toArray()[time - 1].toObject();

            QVERIFY(matrix.step(*device, settings, time, floatsOf(grad[QStringLiteral("W")])).ok());
            QVERIFY(bias.step(*device, settings, time, floatsOf(grad[QStringLiteral("b")])).ok());

            QVERIFY(errorOf(matrix.masters(), want[QStringLiteral("W")]) <= 2e-6);
            QVERIFY(errorOf(bias.masters(), want[QStringLiteral("b")]) <= 2e-6);
            if (settings.rule == StepRule::Normalised)
                continue;
            const QJsonObject state = want[QStringLiteral("stateW")].toObject();
            const QJsonObject ofBias = want[QStringLiteral("stateb")].toObject();
            QVERIFY(errorOf(matrix.averageRows, state[QStringLiteral("r")]) <= 2e-6);
            QVERIFY(errorOf(matrix.averageColumns, state[QStringLiteral("c")]) <= 2e-6);
            QVERIFY(errorOf(bias.averageColumns, ofBias[QStringLiteral("v")]) <= 2e-6);
        }
    }

    // The vectors give the signs, and a key is looked for that draws them.
    void aProjectedStepFollowsTheSharedVectors()
    {
        const QJsonObject vectors = lightVectors();
        const QJsonObject apollo =
            vectors[QStringLiteral("cases")].toObject()[QStringLiteral("apollo_mini")].toObject();
        const QJsonObject given = apollo[QStringLiteral("parameters")].toObject();
        const std::vector<float> signs = floatsOf(given[QStringLiteral("P")]);
        QCOMPARE(signs.size(), std::size_t{4});
        std::uint64_t key = 0;
        const auto draws = [&](std::size_t row) {
            return (philox(key, 0, 0)[0] >> row & 1U) != 0 ? -1.0F : 1.0F;
        };
        while (draws(0) != signs[0] || draws(1) != signs[1] || draws(2) != signs[2] ||
               draws(3) != signs[3])
            ++key;
        const double rate = given[QStringLiteral("lr")].toDouble();
        const double alpha = given[QStringLiteral("alpha")].toDouble();
        QCOMPARE(alpha, 4.0); // the shorter side
        LightSettings settings;
        settings.decay = static_cast<float>(1.0 - rate * given[QStringLiteral("wd")].toDouble());
        LightWeight matrix(4, 6, floatsOf(vectors[QStringLiteral("W0")]), MasterPlanes::Halves);
        const auto device = makeCpuDevice(kDeviceBytes);
        const QJsonArray steps = apollo[QStringLiteral("steps")].toArray();
        QCOMPARE(steps.size(), 3);
        for (int time = 1; time <= steps.size(); ++time) {
            const QJsonObject grad =
                vectors[QStringLiteral("gradients")].toArray()[time - 1].toObject();
            const LightFactors factors = lightFactors(rate, 0.0, time);
            settings.rate = static_cast<float>(
                factors.momentRate * std::sqrt(alpha) * static_cast<double>(settings.decay));

            QVERIFY(matrix
                        .stepProjected(
                            *device, settings, time, floatsOf(grad[QStringLiteral("W")]), key)
                        .ok());

            const QJsonObject want = steps[time - 1].toObject();
            QVERIFY(errorOf(matrix.masters(), want[QStringLiteral("W")]) <= 2e-6);
            const QJsonObject state = want[QStringLiteral("stateW")].toObject();
            const double norm = state[QStringLiteral("nu")].toDouble();
            QVERIFY(std::abs(static_cast<double>(matrix.moments.back()) - norm) <= 2e-6 * norm);
        }
    }

    // Two rows of four, chosen by steps 1 and 3.
    void chosenRowsFollowTheSharedVectors()
    {
        const QJsonObject vectors = lightVectors();
        const QJsonObject grass =
            vectors[QStringLiteral("cases")].toObject()[QStringLiteral("grass_top2")].toObject();
        const QJsonObject given = grass[QStringLiteral("parameters")].toObject();
        const int refresh = given[QStringLiteral("refresh")].toInt();
        QCOMPARE(refresh, 2);
        AdamwSettings settings;
        settings.weightDecay = 0.0;
        LightWeight matrix(4, 6, floatsOf(vectors[QStringLiteral("W0")]), MasterPlanes::Halves);
        const auto device = makeCpuDevice(kDeviceBytes);
        const QJsonArray steps = grass[QStringLiteral("steps")].toArray();
        QCOMPARE(steps.size(), 3);
        for (int time = 1; time <= steps.size(); ++time) {
            const std::vector<float> grad = floatsOf(vectors[QStringLiteral("gradients")]
                                                         .toArray()[time - 1]
                                                         .toObject()[QStringLiteral("W")]);
            const int since = (time - 1) % refresh + 1;
            if (since == 1)
                QVERIFY(matrix.chooseRows(*device, grad, 2).ok());
            const AdamwFactors factors =
                adamwFactors(settings, given[QStringLiteral("lr")].toDouble(), since);

            QVERIFY(matrix.updateRows(*device, factors, since == 1, grad, 0, 24).ok());

            const QJsonObject want = steps[time - 1].toObject();
            const QJsonObject state = want[QStringLiteral("stateW")].toObject();
            QCOMPARE(state[QStringLiteral("t")].toInt(), since);
            QCOMPARE(matrix.numbers, floatsOf(state[QStringLiteral("rows")]));
            QVERIFY(errorOf(matrix.masters(), want[QStringLiteral("W")]) <= 2e-6);
            QVERIFY(errorOf(matrix.firstMoments, state[QStringLiteral("m")]) <= 2e-6);
            QVERIFY(errorOf(matrix.secondMoments, state[QStringLiteral("v")]) <= 2e-6);
        }
    }

    // Updates 1, 201 and 401 choose rows, and bias is corrected by those since.
    void rowsAreChosenEveryTwoHundredUpdates()
    {
        AdamwSettings settings;
        settings.weightDecay = 0.1;
        for (const std::int64_t update : {1, 2, 199, 200, 201, 202, 400, 401}) {
            const std::int64_t since = update > 400   ? update - 400
                                       : update > 200 ? update - 200
                                                      : update;
            const AdamwFactors want = adamwFactors(settings, 1e-2, since);
            const LightFactors got = lightFactors(1e-2, 0.1, update);
            QCOMPARE(got.choosesRows, since == 1);
            QCOMPARE(got.ofRows.decay, want.decay);
            QCOMPARE(got.ofRows.stepSize, want.stepSize);
            QCOMPARE(got.ofRows.inverseSqrtBias2, want.inverseSqrtBias2);
        }
    }

    void codecsHaveTheSharedCodes()
    {
        const QJsonObject codecs = lightVectors()[QStringLiteral("codecs")].toObject();
        for (const QJsonValue line : codecs[QStringLiteral("weights24")].toArray()) {
            const auto x = static_cast<float>(line[QStringLiteral("x")].toDouble());
            const Master24 code = splitMaster24(x);
            QCOMPARE(static_cast<double>(bf16Value(code.weight)),
                line[QStringLiteral("w16")].toDouble());
            QCOMPARE(int{code.rest}, line[QStringLiteral("code")].toInt());
            QCOMPARE(
                joinMaster24(code), static_cast<float>(line[QStringLiteral("back")].toDouble()));
        }
    }

    // An update draws its bits itself: the element is looked for whose bits are those of the line.
    void randomRoundingHasTheSharedValues()
    {
        const QJsonObject codecs = lightVectors()[QStringLiteral("codecs")].toObject();
        constexpr std::size_t kDraws = 1 << 20; // 16 for each value of the bits
        const auto device = makeCpuDevice(kDeviceBytes);
        auto stream = device->createStream("test").value();
        for (const QJsonValue line : codecs[QStringLiteral("stochastic_bf16")].toArray()) {
            const auto x = static_cast<float>(line[QStringLiteral("x")].toDouble());
            const std::size_t draw = drawOf(line[QStringLiteral("random16")].toInt(), kDraws);
            QVERIFY(draw < kDraws);
            LightWeight weight(1, static_cast<std::int64_t>(draw) + 1, std::vector<float>(draw + 1),
                MasterPlanes::Random16);
            weight.size[0] = 1.0F;
            std::vector<float> grad(draw + 1, -x);
            LightSettings settings;
            settings.rule = StepRule::Normalised;

            QVERIFY(weight
                        .update(device->ops(), *stream, settings, grad,
                            static_cast<std::int64_t>(draw), 1)
                        .ok());

            QCOMPARE(static_cast<double>(bf16Value(weight.high.back())),
                line[QStringLiteral("bf16")].toDouble());
        }
    }
};

MR_TEST(TestLightVectors)

} // namespace mr::test::tst_light_vectors

#include "tst_light_vectors.moc"
