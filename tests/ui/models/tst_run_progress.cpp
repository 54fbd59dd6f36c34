// Progress in the head of a run: step, speed, time elapsed and time left.

#include "models/run_progress.h"
#include "support/test_room.h"
#include "ui/support/demo_rows.h"

#include <QTest>

#include <cmath>

namespace mr::test::tst_run_progress {

using mr::ui::progressOf;
using mr::ui::RunProgress;
using mr::ui::test::demoSnapshot;

class TestRunProgress : public QObject
{
    Q_OBJECT

private slots:

    void theTimeLeftFollowsTheLastSteps()
    {
        const auto snapshot = demoSnapshot(400, 600);
        double wallUs = 0.0;
        for (std::size_t i = 350; i < 400; ++i)
            wallUs += static_cast<double>(snapshot->steps[i].wallUs);

        const RunProgress now = progressOf(*snapshot);

        QCOMPARE(now.step, std::int64_t{400});
        QVERIFY(std::abs(now.remainingSeconds - wallUs / 1e6 / 50.0 * 200.0) < 1e-6);
        QVERIFY(now.tokensPerSecond > 0.0);
    }

    void anEndedRunHasNoTimeLeft()
    {
        QVERIFY(progressOf(*demoSnapshot(400, 600, RunStatus::Stopped)).remainingSeconds < 0.0);
    }

    void aRunWithoutStepsKnowsNothingYet()
    {
        const RunProgress now = progressOf(*demoSnapshot(0, 600, RunStatus::Starting));

        QVERIFY(now.remainingSeconds < 0.0);
        QVERIFY(now.tokensPerSecond < 0.0);
        QVERIFY(now.elapsedSeconds <= 0.0);
    }
};

MR_TEST(TestRunProgress)

} // namespace mr::test::tst_run_progress

#include "tst_run_progress.moc"
