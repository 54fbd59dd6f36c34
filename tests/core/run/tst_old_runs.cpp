// Runs and a history that an earlier program wrote: they are read, and resumed to the weights that
// program would have reached.
//
// old_runs/ holds two runs of 12 steps that were killed after step 5: one that finishes the late
// half of each update before a checkpoint (zero-offload), and one within its second window
// (zenflow, compact state). history.db has them and the same runs uninterrupted.

#include "core/run/run_rig.h"
#include "support/test_room.h"

#include <QDirIterator>
#include <QFile>
#include <QTest>

#include <cmath>

namespace mr::test::tst_old_runs {

namespace fs = std::filesystem;

namespace {

constexpr const char* kInstructionSet = "avx512_bf16"; // on the machine that made them
constexpr double kEvalTolerance = 0.01;                // last evaluation, elsewhere

QByteArray contentOf(const QString& path)
{
    QFile file(path);
    return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
}

// The old runs in a folder of their own, with its path in their records.
struct OldRuns {
    Folder folder;

    OldRuns()
    {
        const QString source =
            qEnvironmentVariable("MILLRACE_SOURCE") + QStringLiteral("/tests/core/run/old_runs");
        fs::copy(source.toStdString(), folder.path(), fs::copy_options::recursive);
        QDirIterator records(QString::fromStdString(folder.path()), {QStringLiteral("run.json")},
            QDir::Files, QDirIterator::Subdirectories);
        while (records.hasNext()) {
            QFile file(records.next());
            const QByteArray text =
                contentOf(file.fileName()).replace("/old-runs", folder.path().c_str());
            if (!file.open(QIODevice::WriteOnly) || file.write(text) != text.size())
                qFatal("%s could not be written", qPrintable(file.fileName()));
        }
    }

    std::string database() const { return folder.path("history.db"); }
};

} // namespace

class TestOldRuns : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void theHistoryIsRead()
    {
        const OldRuns old;
        auto reader = RunReader::open(old.database());
        QVERIFY2(reader.ok(), reader.status().message().c_str());
        const std::vector<RunRow> runs = reader.value()->runs().value();
        QCOMPARE(runs.size(), std::size_t{4});
        QCOMPARE(reader.value()->run(1).value().name, std::string("config on pairs"));
        QCOMPARE(reader.value()->run(1).value().status, RunStatus::Done);
        QVERIFY(reader.value()->run(3).value().status != RunStatus::Done);
        const std::vector<StepRow> steps = reader.value()->steps(2, -1, 100).value();
        QCOMPARE(steps.size(), std::size_t{12});
        QVERIFY(steps.back().loss > 0.0 && steps.back().h2dBytes > 0);
        const std::vector<ScalarRow> losses = reader.value()->scalars(1, "eval_loss", -1).value();
        QCOMPARE(losses.size(), std::size_t{5});
        QCOMPARE(losses.back().value, 6.864051447974311);
    }

    void runsAreResumedToTheSameWeights_data()
    {
        QTest::addColumn<QString>("name");
        QTest::addColumn<QString>("hash");
        QTest::addColumn<double>("evalLoss");
        QTest::addRow("late updates") << "state-in-ram"
                                      << "bfb6d998861699aec041796584e0432e" << 6.864051447974311;
        QTest::addRow("within a window") << "hot-columns"
                                         << "b728f5c59267e9d569e730aa25ba3d8b" << 6.873339900264034;
    }

    void runsAreResumedToTheSameWeights()
    {
        QFETCH(const QString, name);
        QFETCH(const QString, hash);
        QFETCH(const double, evalLoss);
        const OldRuns old;
        RunRig rig;
        rig.database = old.database();
        rig.store = std::move(RunStore::open(rig.database)).value();
        auto device = smallDevice();
        const Outcome out = rig.resume(old.folder.path(name.toStdString()), *device);
        QVERIFY2(out.opened.ok(), out.opened.message().c_str());
        QVERIFY2(out.ended.ok(), out.ended.message().c_str());
        QCOMPARE(out.progress.step, std::int64_t{12});
        QVERIFY(std::abs(out.progress.evalLoss - evalLoss) < kEvalTolerance);
        if (device->info().instructionSet == kInstructionSet)
            QCOMPARE(out.progress.weightsHash, hash.toStdString());
        QCOMPARE(rig.row(out.id).status, RunStatus::Done);
        QCOMPARE(rig.steps(out.id).size(), std::size_t{12});
        QVERIFY(fs::exists(old.folder.path(name.toStdString() + "/model/model.safetensors")));
        QCOMPARE(RunReader::open(rig.database).value()->runs().value().size(), std::size_t{4});
    }
};

MR_TEST(TestOldRuns)

} // namespace mr::test::tst_old_runs

#include "tst_old_runs.moc"
