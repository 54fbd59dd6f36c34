// Many tiny models for each mechanism of a block, with settings beyond those of published models,
// against what transformers makes of them in float64: loss and every gradient of a row of
// documents.
//
// tests/reference/make_variant_goldens.py makes the goldens; variant_models.py there says what is
// left out. Weights are made here by the formula of both (variant_model.h).

#include "core/run/variant_model.h"
#include "support/test_room.h"

#include <QTemporaryDir>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <numeric>

namespace mr::test::tst_family_variants {

namespace {

constexpr double kMost = 1e-5; // relative to the norm of a tensor
constexpr double kUnit = 1e-6; // of the sums, likewise

std::int64_t inputsOf(const std::vector<TokenSequence>& documents)
{
    std::int64_t inputs = 0;
    for (const TokenSequence& document : documents)
        inputs += std::ssize(document.tokens) - 1;
    return inputs;
}

enum class Rows {
    One,   // of all documents
    Apart, // of few, each a micro-batch
    Beside // one another
};

// Documents in as few rows as they fit into.
struct Batch {
    Batch(const std::vector<TokenSequence>& documents, Rows rows)
    {
        std::int64_t longest = 2; // as short as a row may be
        for (const TokenSequence& document : documents) {
            require(set.sequences.add(document.tokens, document.trained));
            longest = std::max(longest, std::ssize(document.tokens) - 1);
        }
        shape = {rows == Rows::One ? inputsOf(documents) : longest, 1, 1};
        set.packing = PackedRows::pack(set.sequences, shape.seqLen);
        (rows == Rows::Apart ? shape.accumulate : shape.microBatch) = set.packing.count();
        TokenSequence scratch;
        for (std::int64_t row = 0; row < set.packing.count(); row += shape.microBatch) {
            std::vector<std::int64_t> those(static_cast<std::size_t>(shape.microBatch));
            std::iota(those.begin(), those.end(), row);
            require(readMicroBatch(set, those, shape, scratch, micros.emplace_back()));
        }
    }

    TokenSet set;
    BatchShape shape;
    std::vector<MicroBatchData> micros;
};

// Sums of terms that cancel: PyTorch in float32 is off by up to 3.3e-5 there.
bool cancels(std::string_view name)
{
    constexpr std::array<std::string_view, 3> kEnds = {
        "linear_attn.A_log", "linear_attn.dt_bias", "linear_attn.norm.weight"};
    return std::ranges::any_of(kEnds, [&](std::string_view end) { return name.ends_with(end); });
}

// How far norm and signed sums are from the golden's, at most.
double errorOf(std::span<const float> ours, std::string_view name, std::span<const double> wanted)
{
    const std::uint64_t key = fnv1a(fmt::format("signs:{}", name));
    std::vector<double> sums(wanted.size() - 1);
    for (std::size_t i = 0; i < ours.size(); ++i)
        for (std::size_t bit = 0; bit < sums.size(); ++bit)
            sums[bit] += (variantWord(key, i) >> bit & 1U) != 0 ? -static_cast<double>(ours[i])
                                                                : static_cast<double>(ours[i]);
    double worst = std::abs(norm(ours) - wanted[0]);
    for (std::size_t bit = 0; bit < sums.size(); ++bit)
        worst = std::max(worst, std::abs(sums[bit] - wanted[bit + 1] * kUnit * wanted[0]));
    return worst;
}

// The model's trained tensors by name, some of them in parts.
using Trained = std::map<std::string, std::vector<const NamedTensor*>>;

Trained trainedOf(const ParamTable& table)
{
    Trained trained;
    for (const NamedTensor& tensor : table.tensors)
        trained[tensor.name].push_back(&tensor);
    return trained;
}

std::string listOf(const Trained& trained)
{
    std::string list;
    for (const auto& [name, parts] : trained)
        list += fmt::format("{}:[{}];", name, fmt::join(parts.front()->fileShape(), ", "));
    return list;
}

// Empty, or the error.
QString compareGradients(const GoldenRig& rig, const VariantModel& model)
{
    const QJsonObject& about = model.about;
    const auto trained = trainedOf(rig.setup.table);
    const std::string list = listOf(trained);
    if (fmt::format("{:016x}", fnv1a(list)) != about["tensors"].toString().toStdString())
        return QStringLiteral("transformers trains other tensors than ") +
               QString::fromStdString(list);
    std::vector<double> numbers;
    for (const QJsonValue& number : about["gradients"].toArray())
        numbers.push_back(number.toDouble());
    double all = 0.0;
    const auto each = static_cast<std::size_t>(1 + model.sums);
    for (std::size_t at = 0; at < numbers.size(); at += each)
        all += numbers[at] * numbers[at];
    std::span<const double> left(numbers);
    for (const auto& [name, parts] : trained) {
        const auto wanted = left.first(each);
        left = left.subspan(each);
        const double error =
            errorOf(joined(rig, parts), plainName(name, rig.setup.config.prefix), wanted);
        const double most =
            std::max((cancels(name) ? 3.0 : 1.0) * kMost * wanted[0], kTinyShare * std::sqrt(all));
        if (!(error <= most))
            return QStringLiteral("%1: off by %2 of its norm, %3")
                .arg(QString::fromStdString(name))
                .arg(error / wanted[0])
                .arg(wanted[0]);
    }
    return {};
}

QString compareLoss(double loss, double expected)
{
    if (std::abs(loss - expected) <= kMost * expected)
        return {};
    return QStringLiteral("loss %1, expected %2").arg(loss, 0, 'g', 9).arg(expected, 0, 'g', 9);
}

// Empty, or the error of one model.
QString compared(const VariantModel& model, RecomputeChoice recompute, Rows rows)
{
    const QTemporaryDir dir;
    const std::filesystem::path folder = dir.path().toStdString();
    model.write(folder);
    const Batch batch(model.documents(valueOf(readModelConfig(folder)).vocab), rows);
    GoldenRig rig(goldenSpec(folder, batch.shape, recompute));

    const double loss = rig.step(batch.micros);

    const QString wrong = compareLoss(loss, model.about["loss"].toDouble());
    return wrong.isEmpty() ? compareGradients(rig, model) : wrong;
}

} // namespace

class TestFamilyVariants : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    // A row is a model.
    void lossAndGradientsAgree_data()
    {
        QTest::addColumn<QString>("mechanism");
        QTest::addColumn<std::size_t>("index");
        for (const char* mechanism :
            {"delta", "windows", "norms", "scales", "wrappers", "gemma4", "gemma4_inputs"}) {
            m_models[mechanism] = variantsOf(mechanism);
            QCOMPARE(m_models[mechanism].size(), std::size_t{60});
            for (std::size_t i = 0; i < m_models[mechanism].size(); ++i)
                QTest::addRow("%s %zu", mechanism, i) << QString(mechanism) << i;
        }
    }

    void lossAndGradientsAgree()
    {
        QFETCH(QString, mechanism);
        QFETCH(std::size_t, index);
        constexpr std::array kRecomputes = {
            RecomputeChoice::None, RecomputeChoice::Cheap, RecomputeChoice::Block};
        const VariantModel& model = m_models[mechanism].at(index);
        // Positions of some others are made for the longest row.
        const Rows rows =
            mechanism.startsWith("gemma4") ? static_cast<Rows>(index / 6 % 3) : Rows::One;

        const QString wrong = compared(model, kRecomputes[index / 2 % kRecomputes.size()], rows);

        const QByteArray config = QJsonDocument(model.config).toJson(QJsonDocument::Compact);
        QVERIFY2(wrong.isEmpty(), qPrintable(wrong + QLatin1Char('\n') + QLatin1String(config)));
    }

private:
    std::map<QString, std::vector<VariantModel>> m_models; // by mechanism
};

MR_TEST(TestFamilyVariants)

} // namespace mr::test::tst_family_variants

#include "tst_family_variants.moc"
