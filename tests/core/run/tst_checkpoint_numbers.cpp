// Numbers of state.json come back to the last bit, also those that JSON does not have.

#include "core/run/run_rig.h"
#include "core/save/checkpoint_text.h"
#include "core/save/run_progress.h"
#include "support/test_room.h"

#include <QtTest>

#include <bit>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

namespace mr::test::tst_checkpoint_numbers {

using Json = nlohmann::json;

namespace {

template <typename Number>
bool sameBits(Number a, Number b)
{
    return std::memcmp(&a, &b, sizeof a) == 0;
}

} // namespace

class TestCheckpointNumbers : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void everyNumberComesBackToTheLastBit_data();
    void everyNumberComesBackToTheLastBit();
    void whatIsNoNumberIsRefused_data();
    void whatIsNoNumberIsRefused();
    void aNullOfAnEarlierProgramIsRead();
    void aCheckpointBeforeTheFirstWindowHoldsScalarsOfNoStep();
};

void TestCheckpointNumbers::everyNumberComesBackToTheLastBit_data()
{
    QTest::addColumn<quint64>("wide");
    QTest::addColumn<quint32>("narrow");
    const auto row = [](const char* name, double wide, float narrow) {
        QTest::newRow(name) << quint64(std::bit_cast<std::uint64_t>(wide))
                            << quint32(std::bit_cast<std::uint32_t>(narrow));
    };
    using Wide = std::numeric_limits<double>;
    using Narrow = std::numeric_limits<float>;
    row("usual", 0.1, 0.1F);
    row("below zero", -0.0, -0.0F);
    row("smallest", Wide::denorm_min(), Narrow::denorm_min());
    row("largest", Wide::max(), Narrow::max());
    row("infinite", Wide::infinity(), Narrow::infinity());
    row("infinite below", -Wide::infinity(), -Narrow::infinity());
    row("no number", Wide::quiet_NaN(), Narrow::quiet_NaN());
    QTest::newRow("no number, of other bits")
        << quint64{0xFFF8'0000'0000'1234} << quint32{0xFFC0'1234};
}

void TestCheckpointNumbers::everyNumberComesBackToTheLastBit()
{
    QFETCH(quint64, wide);
    QFETCH(quint32, narrow);
    const auto number = std::bit_cast<double>(std::uint64_t{wide});
    RunProgress progress;
    progress.lastGradNorm = progress.lastLoss = progress.evalLoss = number;
    for (StepScalars* scalars : {&progress.windows.step, &progress.windows.urgent})
        *scalars = {number, std::bit_cast<float>(std::uint32_t{narrow}), 0};

    const auto read = progressFromJson(toJson(progress), "state.json");

    QVERIFY2(read.ok(), read.status().message().c_str());
    const RunProgress back = Result<RunProgress>(read).value();
    for (const double value : {back.lastGradNorm, back.lastLoss, back.evalLoss,
             back.windows.step.gradNorm, back.windows.urgent.gradNorm})
        QVERIFY(sameBits(value, number));
    for (const StepScalars& scalars : {back.windows.step, back.windows.urgent})
        QVERIFY(sameBits(scalars.clipFactor, std::bit_cast<float>(std::uint32_t{narrow})));
}

void TestCheckpointNumbers::whatIsNoNumberIsRefused_data()
{
    QTest::addColumn<QString>("place");
    QTest::addColumn<QString>("value");
    QTest::newRow("bits of a number") << "/window/scalars/0/1"
                                      << R"("0x3f800000")";
    QTest::newRow("bits of the other type") << "/window/scalars/0/1"
                                            << R"("0x7ff0000000000000")";
    QTest::newRow("too large") << "/window/scalars/0/1"
                               << "1e39";
    QTest::newRow("no digits") << "/window/scalars/1/0"
                               << R"("0x7ff000000000000g")";
    QTest::newRow("a word") << "/last_loss"
                            << R"("inf")";
    QTest::newRow("a list") << "/eval_loss"
                            << "[1]";
}

void TestCheckpointNumbers::whatIsNoNumberIsRefused()
{
    QFETCH(QString, place);
    QFETCH(QString, value);
    Json json = Json::parse(toJson(RunProgress()));
    json[Json::json_pointer(place.toStdString())] = Json::parse(value.toStdString());

    const auto read = progressFromJson(json.dump(), "state.json");

    QCOMPARE(read.status().kind(), ErrorKind::DataCorrupt);
    QVERIFY(read.status().message().find("state.json") != std::string::npos);
}

void TestCheckpointNumbers::aNullOfAnEarlierProgramIsRead()
{
    Json json = Json::parse(toJson(RunProgress()));
    json["window"]["scalars"] = {{nullptr, nullptr, 1}, {0.5, nullptr, 0}};

    auto read = progressFromJson(json.dump(), "state.json");

    QVERIFY2(read.ok(), read.status().message().c_str());
    QVERIFY(std::isnan(read.value().windows.step.clipFactor));
    QCOMPARE(read.value().windows.urgent.gradNorm, 0.5);
}

void TestCheckpointNumbers::aCheckpointBeforeTheFirstWindowHoldsScalarsOfNoStep()
{
    RunRig rig;
    const auto device = smallDevice();
    RunSpec spec = rig.spec("early");
    spec.policy = "zenflow";
    spec.policyOptions = {{"interval", "4"}, {"warmup", "3"}};
    spec.checkpointEvery = 1;
    const Outcome whole = rig.train(spec, *device);
    QVERIFY2(whole.ended.ok(), whole.ended.message().c_str());
    spec.outDir += " stopped";

    const Outcome stopped = rig.train(spec, *device, stopAt(1));
    const StepScalars urgent = stopped.progress.windows.urgent;
    const Outcome resumed = rig.resume(spec.outDir, *device);

    QVERIFY2(stopped.ended.ok(), stopped.ended.message().c_str());
    QCOMPARE(stopped.progress.step, 1);
    QCOMPARE(urgent.gradNorm, 0.0);
    QCOMPARE(urgent.clipFactor, 1.0F);
    QVERIFY2(resumed.opened.ok(), resumed.opened.message().c_str());
    QVERIFY2(resumed.ended.ok(), resumed.ended.message().c_str());
    QCOMPARE(resumed.progress.weightsHash, whole.progress.weightsHash);
}

MR_TEST_WITH_APP(TestCheckpointNumbers)

} // namespace mr::test::tst_checkpoint_numbers

#include "tst_checkpoint_numbers.moc"
