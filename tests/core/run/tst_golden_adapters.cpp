// Loss and every gradient of LoRA and DoRA on all linear modules, beside a tiny model of every
// family, against peft in float64. Phi-3's modules are the fused ones.

#include "core/run/golden_rig.h"
#include "support/test_room.h"

namespace mr::test::tst_golden_adapters {

namespace {

// Models of two sequences.
void addAdapters()
{
    QTest::addColumn<QString>("model");
    QTest::addColumn<QString>("method");
    for (const char* model :
        {"biases", "mistral_window", "qwen2", "qwen3", "phi3_partial", "gemma", "gemma2", "gemma3"})
        for (const char* method : {"lora", "dora"})
            QTest::addRow("%s %s", model, method) << QString(model) << QString(method);
}

Golden goldenOf(const QString& model, const QString& method)
{
    return Golden(QStringLiteral("adapters/%1_%2").arg(model, method).toStdString());
}

// A run that goes on from the golden's adapter.
RunSpec specOf(const Golden& golden, const QString& model, std::int64_t microBatches,
    RecomputeChoice recompute)
{
    RunSpec spec =
        goldenSpec(goldens() / model.toStdString(), batchOf(golden, microBatches), recompute);
    spec.method = "lora";
    spec.adapterDir = golden.folder.string();
    return spec;
}

} // namespace

class TestGoldenAdapters : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void lossAndEveryGradientAgreeWithFloat64_data() { addAdapters(); }

    void lossAndEveryGradientAgreeWithFloat64()
    {
        QFETCH(QString, model);
        QFETCH(QString, method);
        const Golden golden = goldenOf(model, method);
        GoldenRig rig(specOf(golden, model, 1, RecomputeChoice::None));

        const double loss = rig.step(golden.tokens());

        QCOMPARE(rig.setup.spec.dora, method == "dora");
        QCOMPARE(compareLoss(golden, loss), QString());
        QCOMPARE(compareGradients(golden, rig), QString());
    }

    void gradientsSummedOverMicroBatchesAndRecomputedAgreeToo_data() { addAdapters(); }

    void gradientsSummedOverMicroBatchesAndRecomputedAgreeToo()
    {
        QFETCH(QString, model);
        QFETCH(QString, method);
        const Golden golden = goldenOf(model, method);
        QVERIFY(golden.sequences > 1);
        GoldenRig rig(specOf(golden, model, golden.sequences, RecomputeChoice::Block));

        const double loss = rig.step(golden.tokens());

        QCOMPARE(compareLoss(golden, loss), QString());
        QCOMPARE(compareGradients(golden, rig), QString());
    }

    void gradientsOfCheapRecomputationAgreeToo_data() { addAdapters(); }

    void gradientsOfCheapRecomputationAgreeToo()
    {
        QFETCH(QString, model);
        QFETCH(QString, method);
        const Golden golden = goldenOf(model, method);
        GoldenRig rig(specOf(golden, model, golden.sequences, RecomputeChoice::Cheap));

        rig.step(golden.tokens());

        QCOMPARE(compareGradients(golden, rig), QString());
    }
};

MR_TEST(TestGoldenAdapters)

} // namespace mr::test::tst_golden_adapters

#include "tst_golden_adapters.moc"
