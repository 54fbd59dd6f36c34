// The table of `plan --all-methods`: a line for each method, columns below each other.

#include "app/cli/method_table.h"
#include "support/test_room.h"

#include <QTest>

namespace mr::test::tst_method_table {

namespace {

PlanReport report(std::string method, std::uint64_t device)
{
    constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
    PlanReport plan;
    plan.method = std::move(method);
    plan.policy = "zero-offload";
    plan.precision = "bf16";
    plan.fits = device <= 100;
    plan.limit = plan.fits ? "" : "device memory: 20 MiB short";
    plan.tiers = {{"device", 100 * kMiB, device * kMiB, {}}, {"host", 900 * kMiB, 8 * kMiB, {}}};
    plan.trainedParameters = 1234567;
    plan.predictedStepMs = 12.25;
    plan.checkpointBytes = 3 * kMiB;
    plan.diskWriteBytesPerStep = 2 * kMiB;
    return plan;
}

} // namespace

class TestMethodTable : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void everyMethodHasALineThatSaysWhetherItFits()
    {
        PlanReport refused;
        refused.method = "layers";
        refused.policy = "auto";
        refused.precision = "bf16";
        refused.limit = "train-layers: '9' is no layer of this model";

        const auto lines = app::methodTable({report("full", 120), refused, report("lora", 60)});

        QCOMPARE(lines.size(), std::size_t{4});
        const auto words = [&](std::size_t i) {
            return QString::fromStdString(lines[i]).simplified();
        };
        QCOMPARE(words(0), QStringLiteral("method policy precision device host disk trained ms a "
                                          "step written a step checkpoint"));
        QCOMPARE(words(1), QStringLiteral("full zero-offload bf16 120.0 MiB 8.0 MiB - 1234567 12.2 "
                                          "2.0 MiB 3.0 MiB device memory: 20 MiB short"));
        QCOMPARE(words(2), QStringLiteral("layers auto bf16 - - - - - - - train-layers: '9' is no "
                                          "layer of this model"));
        QVERIFY2(words(3).endsWith(QStringLiteral("3.0 MiB fits, 40.0 MiB of device memory left")),
            qPrintable(words(3)));
        QCOMPARE(lines[1].find("device memory:"), lines[3].find("fits,"));
    }
};

MR_TEST(TestMethodTable)

} // namespace mr::test::tst_method_table

#include "tst_method_table.moc"
