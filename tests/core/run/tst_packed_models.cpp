// Documents that share a row get the losses and gradients of documents alone, and never see each
// other: against PyTorch's own packed rows, against rows of their own, and by bits.

#include "core/run/golden_rig.h"
#include "support/test_room.h"

#include <array>

namespace mr::test::tst_packed_models {

namespace {

constexpr std::int64_t kSeqLen = 24;

// One micro-batch of one row with all of them; they stand in their order.
MicroBatchData packed(const std::vector<TokenSequence>& documents, std::int64_t seqLen)
{
    TokenSet set;
    for (const TokenSequence& document : documents)
        require(set.sequences.add(document.tokens, document.trained));
    set.packing = PackedRows::pack(set.sequences, seqLen);
    if (set.batchRows() != 1)
        qFatal("the documents are more than a row");
    MicroBatchData micro;
    TokenSequence scratch;
    require(readMicroBatch(set, std::array<std::int64_t, 1>{0}, {seqLen, 1, 1}, scratch, micro));
    return micro;
}

TokenSequence document(std::size_t tokens, TokenId first, std::uint8_t trained)
{
    TokenSequence made;
    for (std::size_t t = 0; t < tokens; ++t) {
        made.tokens.push_back(
            static_cast<TokenId>((static_cast<std::size_t>(first) + 7 * t) % 40 + 3));
        made.trained.push_back(t % 3 == 2 ? 0 : trained);
    }
    return made;
}

// Short and long, shorter and longer than the windows of these models; some tokens not trained.
std::vector<TokenSequence> documents()
{
    return {document(5, 1, 1), document(2, 9, 1), document(10, 4, 1), document(7, 30, 1)};
}

std::vector<float> gradients(const GoldenRig& rig)
{
    std::vector<float> all;
    for (const NamedTensor& tensor : rig.setup.table.tensors) {
        const auto values = rig.gradient(tensor);
        all.insert(all.end(), values.begin(), values.end());
    }
    return all;
}

// Loss and gradients of one packed row.
struct Outcome {
    double loss = 0.0;
    std::vector<float> gradients;
};

Outcome stepOf(const QString& model, const std::vector<TokenSequence>& set)
{
    GoldenRig rig(goldens() / model.toStdString(), {kSeqLen, 1, 1});
    const double loss = rig.step(std::vector<MicroBatchData>{packed(set, kSeqLen)});
    return {loss, gradients(rig)};
}

void addModels()
{
    QTest::addColumn<QString>("model");
    for (const char* name : {"gqa_tied", "llama3_rope", "mistral_window", "qwen2", "qwen3", "phi3",
             "phi3_partial", "gemma", "gemma2", "gemma3", "gemma3_older"})
        QTest::newRow(name) << QString(name);
}

} // namespace

class TestPackedModels : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void aSharedRowAgreesWithTransformersInFloat64_data()
    {
        QTest::addColumn<QString>("model");
        for (const char* name : {"gqa_tied", "mistral_window", "gemma2", "gemma3"})
            QTest::newRow(name) << QString(name);
    }

    void aSharedRowAgreesWithTransformersInFloat64()
    {
        QFETCH(QString, model);
        const Golden golden("packed_" + model.toStdString());
        const std::vector<TokenSequence> set = golden.tokens();
        std::int64_t seqLen = 3; // padding
        for (const TokenSequence& one : set)
            seqLen += static_cast<std::int64_t>(one.tokens.size()) - 1;
        GoldenRig rig(goldens() / model.toStdString(), {seqLen, 1, 1});

        const double loss = rig.step(std::vector<MicroBatchData>{packed(set, seqLen)});

        QCOMPARE(compareLoss(golden, loss), QString());
        QCOMPARE(compareGradients(golden, rig), QString());
    }

    void aSharedRowIsWorthItsDocumentsAlone_data() { addModels(); }

    void aSharedRowIsWorthItsDocumentsAlone()
    {
        QFETCH(QString, model);
        const std::vector<TokenSequence> set = documents();
        const auto count = static_cast<std::int64_t>(set.size());
        GoldenRig alone(goldens() / model.toStdString(), {kSeqLen, 1, count});

        const double expected = alone.step(set);
        const Outcome got = stepOf(model, set);

        // Sums of the same terms in another order: 1e-5, as against float64.
        QVERIFY(std::abs(got.loss - expected) <= kLeastTolerance * expected);
        const std::vector<float> sums = gradients(alone);
        QVERIFY(norm(sums) > 0.1);
        QVERIFY(distance(got.gradients, sums) <= kLeastTolerance * norm(sums));
    }

    void whatOneDocumentSaysChangesNoBitOfAnother_data() { addModels(); }

    // Only the third is trained. The tokens of the others, before it and behind it, change neither
    // its loss nor one gradient.
    void whatOneDocumentSaysChangesNoBitOfAnother()
    {
        QFETCH(QString, model);
        std::vector<TokenSequence> set = {
            document(5, 1, 0), document(2, 9, 0), document(10, 4, 1), document(7, 30, 0)};
        const Outcome before = stepOf(model, set);

        for (const std::size_t other : {std::size_t{0}, std::size_t{1}, std::size_t{3}})
            for (TokenId& token : set[other].tokens)
                token = (token + 11) % 40 + 3;
        const Outcome after = stepOf(model, set);

        QVERIFY(after.loss == before.loss);
        QVERIFY(after.gradients == before.gradients);
        set[2].tokens[4] = (set[2].tokens[4] + 1) % 40 + 3; // trained tokens do
        QVERIFY(stepOf(model, set).loss != before.loss);
    }
};

MR_TEST(TestPackedModels)

} // namespace mr::test::tst_packed_models

#include "tst_packed_models.moc"
