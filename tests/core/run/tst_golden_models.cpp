// Loss, logits and every gradient tensor of tiny random models of every family, against PyTorch in
// float64.

#include "core/run/golden_rig.h"
#include "support/test_room.h"

namespace mr::test::tst_golden_models {

namespace {

void addModels()
{
    QTest::addColumn<QString>("model");
    for (const char* name : {"gqa_tied", "head_dim_untied", "mha_untied", "biases", "batch",
             "llama3_rope", "mistral_window", "qwen2", "qwen3", "phi3", "phi3_partial", "gemma",
             "gemma2", "gemma3", "gemma3_older", "padding", "dynamic_rope"})
        QTest::newRow(name) << QString(name);
}

} // namespace

class TestGoldenModels : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void lossAndEveryGradientAgreeWithFloat64_data() { addModels(); }

    void lossAndEveryGradientAgreeWithFloat64()
    {
        QFETCH(QString, model);
        const Golden golden(model.toStdString());
        GoldenRig rig(golden, 1, RecomputeChoice::None);

        const double loss = rig.step(golden.tokens());

        QCOMPARE(compareLoss(golden, loss), QString());
        QCOMPARE(compareGradients(golden, rig), QString());
    }

    void gradientsSummedOverMicroBatchesAndRecomputedAgreeToo_data() { addModels(); }

    void gradientsSummedOverMicroBatchesAndRecomputedAgreeToo()
    {
        QFETCH(QString, model);
        const Golden golden(model.toStdString());
        GoldenRig rig(golden, golden.sequences, RecomputeChoice::Block);

        rig.step(golden.tokens());

        QCOMPARE(compareGradients(golden, rig), QString());
    }

    void gradientsOfCheapRecomputationAgreeToo_data() { addModels(); }

    void gradientsOfCheapRecomputationAgreeToo()
    {
        QFETCH(QString, model);
        const Golden golden(model.toStdString());
        GoldenRig rig(golden, golden.sequences, RecomputeChoice::Cheap);

        rig.step(golden.tokens());

        QCOMPARE(compareGradients(golden, rig), QString());
    }

    // By layer, boundaries of every micro-batch are kept; the budget that nobody gave has room.
    void gradientsSummedInTheFlippedOrderAgreeToo()
    {
        const Golden golden("mha_untied");
        RunSpec spec = goldenSpec(golden.folder, batchOf(golden, golden.sequences));
        spec.policyOptions = {{"order", "by-layer-flip"}};
        GoldenRig rig(spec);

        rig.step(golden.tokens());

        QVERIFY(rig.setup.memory.bytes(Tier::Device) <= rig.setup.budget.deviceBytes);
        QCOMPARE(compareGradients(golden, rig), QString());
    }

    void logitsAtEveryPositionAgreeWithFloat64_data() { addModels(); }

    void logitsAtEveryPositionAgreeWithFloat64()
    {
        QFETCH(QString, model);
        const Golden golden(model.toStdString());
        GoldenRig rig(golden);
        const std::vector<TokenSequence> set = golden.tokens();
        const auto vocab = static_cast<std::size_t>(rig.setup.config.vocab);
        const std::vector<float> expected = golden.read("logits");
        std::vector<float> logits(expected.size());

        // The first tokens at once, the others one by one: both ways generation takes.
        constexpr std::int64_t kPrompt = 3;
        for (std::int64_t s = 0; s < golden.sequences; ++s) {
            const auto* ids = set[static_cast<std::size_t>(s)].tokens.data();
            for (std::int64_t t = 0; t < golden.seqLen; ++t) {
                const std::int64_t first = t < kPrompt ? 0 : t;
                const auto at = static_cast<std::size_t>(s * golden.seqLen + t) * vocab;
                require(rig.executor->decoder().advance(
                    {ids + first, static_cast<std::size_t>(t + 1 - first)}, first,
                    std::span(logits).subspan(at, vocab)));
            }
        }

        QCOMPARE(complaint("logits", logits, expected, golden.report["logits"].toObject(), 0.0),
            QString());
    }
};

MR_TEST(TestGoldenModels)

} // namespace mr::test::tst_golden_models

#include "tst_golden_models.moc"
