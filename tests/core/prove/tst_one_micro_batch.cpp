// In a step of one micro-batch backward rounds the gradients of weights as it stores them. Bits are
// those of an fp32 sum that is rounded once.

#include "core/device/cpu/cpu_device.h"
#include "support/test_room.h"
#include "tests/core/prove/one_micro_batch.h"

#include <QtTest>

#include <map>
#include <string>

namespace mr::test::tst_one_micro_batch {

class TestOneMicroBatch : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void gradientsAreThoseOfASumThatIsRounded_data()
    {
        QTest::addColumn<QString>("policy");
        QTest::addColumn<bool>("tied");
        for (const char* policy : {"resident", "zero-offload", "deep-optimizer-states", "streamed"})
            for (const bool tied : {false, true})
                QTest::addRow("%s, %s", policy, tied ? "tied" : "untied")
                    << QString::fromLatin1(policy) << tied;
    }

    void gradientsAreThoseOfASumThatIsRounded()
    {
        QFETCH(QString, policy);
        QFETCH(bool, tied);
        const auto device = makeCpuDevice(std::size_t{64} << 20);
        TinyRun run;
        run.config = tinyConfig(tied);
        run.config.block.qkvBias = run.config.block.attnOutBias = run.config.block.mlpBias = true;
        run.config.block.queryKeyNorm = QueryKeyNorm::Heads;
        run.compute = DType::BF16;
        run.policy = policy.toStdString();
        if (run.policy == "deep-optimizer-states")
            run.options = {{"device-share", "0.5"}, {"tile", "4KiB"}};

        const TrainedMaster once = trainOneMicroBatch(*device, run, false);
        const TrainedMaster summed = trainOneMicroBatch(*device, run, true);

        QVERIFY(once.master.high == summed.master.high);
        QVERIFY(once.master.low == summed.master.low);
        QCOMPARE(once.norms, summed.norms);
        QVERIFY(once.norms.front() > 0.0);
        QVERIFY(once.sumBytes < summed.sumBytes);
    }
};

MR_TEST(TestOneMicroBatch)

} // namespace mr::test::tst_one_micro_batch

#include "tst_one_micro_batch.moc"
