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

// All documents in one row.
MicroBatchData rowOf(const std::vector<TokenSequence>& documents)
{
    TokenSet set;
    for (const TokenSequence& document : documents)
        require(set.sequences.add(document.tokens, document.trained));
    const std::int64_t inputs = inputsOf(documents);
    set.packing = PackedRows::pack(set.sequences, inputs);
    MicroBatchData micro;
    TokenSequence scratch;
    require(readMicroBatch(set, std::array<std::int64_t, 1>{0}, {inputs, 1, 1}, scratch, micro));
    return micro;
}

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
    std::array<double, 2> sums{};
    for (std::size_t i = 0; i < ours.size(); ++i)
        for (std::size_t bit = 0; bit < sums.size(); ++bit)
            sums[bit] += (variantWord(key, i) >> bit & 1U) != 0 ? -static_cast<double>(ours[i])
                                                                : static_cast<double>(ours[i]);
    double worst = std::abs(norm(ours) - wanted[0]);
    for (std::size_t bit = 0; bit < sums.size(); ++bit)
        worst = std::max(worst, std::abs(sums[bit] - wanted[bit + 1] * kUnit * wanted[0]));
    return worst;
}

// The model's trained tensors by name.
std::map<std::string, const NamedTensor*> trainedOf(const ParamTable& table)
{
    std::map<std::string, const NamedTensor*> trained;
    for (const NamedTensor& tensor : table.tensors)
        trained[tensor.name] = &tensor;
    return trained;
}

std::string listOf(const std::map<std::string, const NamedTensor*>& trained)
{
    std::string list;
    for (const auto& [name, tensor] : trained)
        list += fmt::format("{}:[{}];", name, fmt::join(tensor->shape, ", "));
    return list;
}

// Empty, or the error.
QString compareGradients(const GoldenRig& rig, const QJsonObject& about)
{
    const auto trained = trainedOf(rig.setup.table);
    const std::string list = listOf(trained);
    if (fmt::format("{:016x}", fnv1a(list)) != about["tensors"].toString().toStdString())
        return QStringLiteral("transformers trains other tensors than ") +
               QString::fromStdString(list);
    std::vector<double> numbers;
    for (const QJsonValue& number : about["gradients"].toArray())
        numbers.push_back(number.toDouble());
    double all = 0.0;
    for (std::size_t at = 0; at < numbers.size(); at += 3)
        all += numbers[at] * numbers[at];
    std::span<const double> left(numbers);
    for (const auto& [name, tensor] : trained) {
        const auto wanted = left.first(3);
        left = left.subspan(3);
        const double error =
            errorOf(rig.gradient(*tensor), plainName(name, rig.setup.config.prefix), wanted);
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
QString compared(const VariantModel& model, RecomputeChoice recompute)
{
    const QTemporaryDir dir;
    const std::filesystem::path folder = dir.path().toStdString();
    model.write(folder);
    const auto documents = model.documents(valueOf(readModelConfig(folder)).vocab);
    GoldenRig rig(goldenSpec(folder, {inputsOf(documents), 1, 1}, recompute));

    const double loss = rig.step(std::vector<MicroBatchData>{rowOf(documents)});

    const QString wrong = compareLoss(loss, model.about["loss"].toDouble());
    return wrong.isEmpty() ? compareGradients(rig, model.about) : wrong;
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
        for (const char* mechanism : {"delta", "windows", "norms", "scales", "wrappers"}) {
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

        const QString wrong = compared(model, kRecomputes[index / 2 % kRecomputes.size()]);

        const QByteArray config = QJsonDocument(model.config).toJson(QJsonDocument::Compact);
        QVERIFY2(wrong.isEmpty(), qPrintable(wrong + QLatin1Char('\n') + QLatin1String(config)));
    }

private:
    std::map<QString, std::vector<VariantModel>> m_models; // by mechanism
};

MR_TEST(TestFamilyVariants)

} // namespace mr::test::tst_family_variants

#include "tst_family_variants.moc"
