// Tiny models of this year's families against what transformers makes of them in float64: logits,
// loss, gradients, documents that share a row, three steps of AdamW.
//
// The files lie in the shared test data (families/README.md there).

#include "core/data/data_files.h"
#include "core/run/golden_rig.h"
#include "support/test_room.h"

#include <QJsonArray>

#include <array>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

namespace mr::test::tst_family_vectors {

namespace {

namespace fs = std::filesystem;

constexpr double kMost = 1e-5; // relative to the norm of a tensor
// Scores that are not scaled: the rounding of the first norm's output alone, all else in float64,
// moves gradients of this model by 8e-6 of their norm. PyTorch in float32 is off by up to 9e-6.
constexpr double kMostOfPlainScores = 2e-5;

// One folder, with its reference.json.
struct Family {
    explicit Family(const QString& name)
        : folder(fs::path(sharedData()) / "families" / name.toStdString())
    {
        QFile text(QString::fromStdString((folder / "reference.json").string()));
        if (!text.open(QIODevice::ReadOnly))
            qFatal("%s cannot be read", qPrintable(text.fileName()));
        reference = QJsonDocument::fromJson(text.readAll()).object();
    }

    static bool areThere() { return fs::exists(fs::path(sharedData()) / "families"); }

    static TokenSequence document(const QJsonArray& ids)
    {
        TokenSequence made;
        for (const QJsonValue& id : ids) {
            made.tokens.push_back(static_cast<TokenId>(id.toInt()));
            made.trained.push_back(1);
        }
        return made;
    }

    // Two sequences.
    std::vector<TokenSequence> sequences() const
    {
        std::vector<TokenSequence> set;
        for (const QJsonValue& ids : reference["ids"].toArray())
            set.push_back(document(ids.toArray()));
        return set;
    }

    std::int64_t seqLen() const { return std::ssize(sequences().front().tokens) - 1; }

    fs::path folder;
    QJsonObject reference;
};

QString compareLoss(double loss, double expected)
{
    if (std::abs(loss - expected) <= kMost * expected)
        return {};
    return QStringLiteral("loss %1, expected %2").arg(loss, 0, 'g', 9).arg(expected, 0, 'g', 9);
}

// Empty, or the error. `about`: shape, norm, at, values.
QString compareGradient(
    const std::string& name, double most, std::span<const float> ours, const QJsonObject& about)
{
    const double size = about["norm"].toDouble();
    double worst = std::abs(norm(ours) - size);
    const QJsonArray at = about["at"].toArray();
    const QJsonArray values = about["values"].toArray();
    for (qsizetype i = 0; i < at.size(); ++i)
        worst = std::max(
            worst, std::abs(static_cast<double>(ours[static_cast<std::size_t>(at[i].toInt())]) -
                            values[i].toDouble()));
    // Sums of terms that cancel: PyTorch in float32 is off by up to 3.3e-5 there.
    const auto ends = [&](const char* end) { return name.ends_with(end); };
    const bool cancels =
        ends("linear_attn.A_log") || ends("linear_attn.dt_bias") || ends("linear_attn.norm.weight");
    if (worst <= (cancels ? 3.0 * kMost : most) * size)
        return {};
    return QStringLiteral("%1: off by %2 of its norm")
        .arg(QString::fromStdString(name))
        .arg(worst / size);
}

QString compareGradients(const GoldenRig& rig, const QJsonObject& wanted)
{
    std::map<std::string, std::vector<const NamedTensor*>> tensors;
    for (const NamedTensor& tensor : rig.setup.table.tensors)
        tensors[tensor.name].push_back(&tensor);
    qsizetype trained = wanted.size();
    for (const CarriedTensor& tensor :
        rig.setup.table.carried) // of a tower: text does not reach it
        if (wanted[QString::fromStdString(tensor.name)].toObject()["norm"].toDouble(-1.0) == 0.0)
            --trained;
    if (trained != static_cast<qsizetype>(tensors.size()))
        return QStringLiteral("transformers trains %1 tensors, we %2")
            .arg(trained)
            .arg(tensors.size());
    for (const auto& [file, parts] : tensors) {
        const QString name = QString::fromStdString(file);
        if (!wanted.contains(name))
            return name + QStringLiteral(" is not trained by transformers");
        const bool isPlain = rig.setup.config.layerInput > 0;
        const QString wrong = compareGradient(file, isPlain ? kMostOfPlainScores : kMost,
            joined(rig, parts), wanted[name].toObject());
        if (!wrong.isEmpty())
            return wrong;
    }
    return {};
}

// One row of documents.
MicroBatchData packedRow(const QJsonObject& packed, std::int64_t seqLen)
{
    const QJsonArray ids = packed["ids"].toArray();
    TokenSet set;
    qsizetype at = 0;
    for (const QJsonValue& length : packed["lengths"].toArray()) {
        QJsonArray part;
        for (int i = 0; i < length.toInt(); ++i)
            part.append(ids[at++]);
        const TokenSequence document = Family::document(part);
        require(set.sequences.add(document.tokens, document.trained));
    }
    set.packing = PackedRows::pack(set.sequences, seqLen);
    MicroBatchData micro;
    TokenSequence scratch;
    require(readMicroBatch(set, std::array<std::int64_t, 1>{0}, {seqLen, 1, 1}, scratch, micro));
    return micro;
}

void addFamilies()
{
    QTest::addColumn<QString>("name");
    for (const char* name : {"ernie4_5", "exaone4", "gemma4", "gemma4_unified", "glm4", "granite",
             "granite4_dense", "hunyuan_v1_dense", "ministral3", "mistral3", "olmo2", "olmo3",
             "qwen3_5", "qwen3_5_vl", "seed_oss", "smollm3"})
        QTest::newRow(name) << QString(name);
}

} // namespace

class TestFamilyVectors : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void initTestCase()
    {
        if (!Family::areThere())
            QSKIP("no shared data (MILLRACE_SHARED)");
    }

    void lossAndGradientsAgree_data() { addFamilies(); }

    void lossAndGradientsAgree()
    {
        QFETCH(QString, name);
        const Family family(name);
        for (const RecomputeChoice recompute :
            {RecomputeChoice::None, RecomputeChoice::Cheap, RecomputeChoice::Block}) {
            const bool isApart = recompute == RecomputeChoice::Block;
            const BatchShape batch{family.seqLen(), isApart ? 1 : 2, isApart ? 2 : 1};
            GoldenRig rig(goldenSpec(family.folder, batch, recompute));

            const double loss = rig.step(family.sequences());

            QCOMPARE(compareLoss(loss, family.reference["loss"].toDouble()), QString());
            QCOMPARE(compareGradients(rig, family.reference["gradients"].toObject()), QString());
        }
    }

    void documentsThatShareARowAgree_data() { addFamilies(); }

    void documentsThatShareARowAgree()
    {
        QFETCH(QString, name);
        const Family family(name);
        const QJsonObject packed = family.reference["packed"].toObject();
        GoldenRig rig(family.folder, {family.seqLen(), 1, 1});

        const double loss =
            rig.step(std::vector<MicroBatchData>{packedRow(packed, family.seqLen())});

        QCOMPARE(compareLoss(loss, packed["loss"].toDouble()), QString());
        QCOMPARE(compareGradients(rig, packed["gradients"].toObject()), QString());
    }

    void longDocumentsAgree_data()
    {
        QTest::addColumn<QString>("name");
        for (const char* name : {"qwen3_5", "qwen3_5_vl"})
            QTest::newRow(name) << QString(name);
    }

    // More tokens than a chunk of a state, alone and beside documents shorter than a convolution.
    void longDocumentsAgree()
    {
        QFETCH(QString, name);
        const Family family(name);
        for (const char* key : {"long", "packed_long"}) {
            const QJsonObject wanted = family.reference[QLatin1String(key)].toObject();
            std::int64_t tokens = 0;
            for (const QJsonValue& length : wanted["lengths"].toArray())
                tokens += length.toInt();
            for (const RecomputeChoice recompute :
                {RecomputeChoice::None, RecomputeChoice::Cheap, RecomputeChoice::Block}) {
                GoldenRig rig(goldenSpec(family.folder, {tokens, 1, 1}, recompute));

                const double loss =
                    rig.step(std::vector<MicroBatchData>{packedRow(wanted, tokens)});

                QCOMPARE(compareLoss(loss, wanted["loss"].toDouble()), QString());
                QCOMPARE(compareGradients(rig, wanted["gradients"].toObject()), QString());
            }
        }
    }

    void logitsOfGenerationAgree_data() { addFamilies(); }

    // The first tokens at once, the others one by one.
    void logitsOfGenerationAgree()
    {
        QFETCH(QString, name);
        const Family family(name);
        const std::vector<TokenSequence> set = family.sequences();
        GoldenRig rig(family.folder, family.seqLen() + 1);
        std::vector<float> logits(static_cast<std::size_t>(rig.setup.config.vocab));
        for (const QJsonValue& value : family.reference["logits"].toArray()) {
            const QJsonObject wanted = value.toObject();
            const auto& ids = set[static_cast<std::size_t>(wanted["sequence"].toInt())].tokens;
            const std::int64_t last = wanted["position"].toInt();
            const std::int64_t prompt = std::min<std::int64_t>(last + 1, 5);
            require(rig.executor->decoder().advance(
                std::span(ids).first(static_cast<std::size_t>(prompt)), 0, logits));
            for (std::int64_t t = prompt; t <= last; ++t)
                require(rig.executor->decoder().advance(
                    std::span(ids).subspan(static_cast<std::size_t>(t), 1), t, logits));
            const QJsonArray values = wanted["values"].toArray();
            QCOMPARE(values.size(), std::ssize(logits));
            double size = 0.0;
            double error = 0.0;
            for (qsizetype i = 0; i < values.size(); ++i) {
                const double ours = static_cast<double>(logits[static_cast<std::size_t>(i)]);
                size += values[i].toDouble() * values[i].toDouble();
                error += (ours - values[i].toDouble()) * (ours - values[i].toDouble());
            }
            QVERIFY2(std::sqrt(error) <= kMost * std::sqrt(size),
                qPrintable(QString::number(std::sqrt(error / size))));
        }
    }

    void aSavedModelHasTheTensorsThatWereRead_data() { addFamilies(); }

    // Names, types, shapes, order and bytes: those of transformers' own file.
    void aSavedModelHasTheTensorsThatWereRead()
    {
        QFETCH(QString, name);
        const Family family(name);
        const QTemporaryDir dir;
        const fs::path out = fs::path(dir.path().toStdString()) / "saved";
        const ModelConfig config = valueOf(readModelConfig(family.folder));
        const ParamTable table = buildParamTable(config);
        const auto weights = valueOf(openWeights(family.folder, config, table));

        require(saveModel(out, config, table, *weights, ExportType::F32, {}));

        const auto tensors = [](const fs::path& file) {
            const std::string bytes = readFile(file.string());
            std::uint64_t length = 0;
            std::memcpy(&length, bytes.data(), 8);
            QStringList all;
            const auto header = nlohmann::ordered_json::parse(bytes.substr(8, length));
            for (const auto& item : header.items())
                if (item.key() != "__metadata__")
                    all << QString::fromStdString(item.key() + " " + item.value().dump());
            return std::pair(all, bytes.substr(8 + length));
        };
        const auto read = tensors(family.folder / "model.safetensors");
        const auto saved = tensors(out / "model.safetensors");
        QCOMPARE(saved.first, read.first);
        QVERIFY(saved.second == read.second);
        QCOMPARE(readFile((out / "config.json").string()).size(),
            readFile((family.folder / "config.json").string()).size());
    }

    void threeStepsOfAdamwAgree_data() { addFamilies(); }

    void threeStepsOfAdamwAgree()
    {
        QFETCH(QString, name);
        const Family family(name);
        const QJsonObject about = family.reference["adamw"].toObject();
        const QJsonArray losses = about["losses"].toArray();
        AdamwSettings params;
        params.beta1 = about["betas"][0].toDouble();
        params.beta2 = about["betas"][1].toDouble();
        params.eps = about["eps"].toDouble();
        params.weightDecay = about["weight_decay"].toDouble();
        GoldenRig rig(family.folder, {family.seqLen(), 2, 1});
        for (int step = 1; step <= losses.size(); ++step) {
            const double loss =
                rig.step(family.sequences(), adamwFactors(params, about["lr"].toDouble(), step));
            QCOMPARE(compareLoss(loss, losses[step - 1].toDouble()), QString());
        }
    }
};

MR_TEST(TestFamilyVectors)

} // namespace mr::test::tst_family_vectors

#include "tst_family_vectors.moc"
