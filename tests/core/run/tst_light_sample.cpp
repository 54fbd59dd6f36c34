// The bundled sample trained by a light optimizer, beside AdamW at the same rate.

#include "core/run/run_rig.h"
#include "support/test_room.h"

#include <QtTest>

namespace mr::test::tst_light_sample {

class TestLightSample : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void factoredIsLevelWithAdamw_data();
    void factoredIsLevelWithAdamw();

private:
    double lossAfter(Optimizer optimizer, std::uint64_t seed);

    RunRig m_rig;
};

double TestLightSample::lossAfter(Optimizer optimizer, std::uint64_t seed)
{
    const std::string sample =
        qEnvironmentVariable("MILLRACE_SOURCE").toStdString() + "/resources/sample/";
    RunSpec spec = m_rig.spec(std::string(name(optimizer)) + std::to_string(seed));
    spec.modelDir = sample + "model";
    spec.data = {{sample + "train.jsonl", DataFormat::Auto, {}}};
    spec.evalData = {{sample + "eval.jsonl", DataFormat::Auto, {}}};
    spec.steps = 160;
    spec.seqLen = 48;
    spec.microBatch = 8;
    spec.accumulate = 1;
    spec.learningRate = 5e-4;
    spec.warmupSteps = 8;
    spec.evalEvery = 160;
    spec.seed = seed;
    spec.optimizer = optimizer;
    const Outcome run = m_rig.train(spec, *smallDevice());
    return run.ended.ok() && run.progress.step == spec.steps
               ? run.progress.evalLoss
               : std::numeric_limits<double>::quiet_NaN();
}

void TestLightSample::factoredIsLevelWithAdamw_data()
{
    QTest::addColumn<int>("seed");
    for (const int seed : {1, 2, 3})
        QTest::addRow("seed %d", seed) << seed;
}

void TestLightSample::factoredIsLevelWithAdamw()
{
    QFETCH(int, seed);
    const double adamw = lossAfter(Optimizer::AdamW, static_cast<std::uint64_t>(seed));

    const double light = lossAfter(Optimizer::Factored, static_cast<std::uint64_t>(seed));

    const std::string text = std::to_string(light) + ", AdamW " + std::to_string(adamw);
    QVERIFY2(light <= 0.12, text.c_str());
    QVERIFY2(light - adamw <= 0.05, text.c_str());
    QVERIFY2(light != adamw, text.c_str());
}

MR_TEST(TestLightSample)

} // namespace mr::test::tst_light_sample

#include "tst_light_sample.moc"
